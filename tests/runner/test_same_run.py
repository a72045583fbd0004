"""Whether a run that goes on is the one that was begun."""

import json
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from gsa.runner import ConfigError, train
from gsa.runner._dotted import values_of
from gsa.runner._fitting import refuse_other_training, refuse_unfit
from gsa.runner._metrics import of_report
from gsa.runner._resume import _of_another_run, finished_report
from tests.runs import of_few_steps


def test_auto_takes_no_run_for_one_with_other_callbacks(small):
    """But for those that change nothing of it, such as a bar."""
    early = "callbacks=early_stopping", "trainer.max_epochs=1", "ckpt_path=auto"
    _, before = train(small(*early, "callbacks.early_stopping.patience=1"))
    _, again = train(small(*early, "callbacks.early_stopping.patience=1", "~callbacks.progress"))
    assert again["report"] == before["report"]
    with pytest.raises(ConfigError, match=r"other values of callbacks\.early_stopping\.patience"):
        train(small(*early, "callbacks.early_stopping.patience=2"))


def test_auto_refuses_the_checkpoint_of_another_run(small, tmp_path):
    train(small("trainer.max_epochs=1"))
    with pytest.raises(ConfigError, match=r"other values of optimizer\.lr"):
        train(small("trainer.max_epochs=1", "optimizer.lr=0.5", "ckpt_path=auto"))
    (tmp_path / "run" / "report.json").unlink()  # it had not finished
    (tmp_path / "run" / "config.yaml").unlink()
    with pytest.raises(ConfigError, match=r"other values of data.seed .*, seed"):
        train(small("trainer.max_epochs=1", "seed=3", "ckpt_path=auto"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """The checkpoint of a run of one epoch."""
    folder = tmp_path_factory.mktemp("begun")
    train(of_few_steps("trainer.max_epochs=1", folder=folder))
    return folder / "checkpoints" / "last.ckpt"


REPORT = {"val_accuracy": 0.5, "test_accuracy": None}  # without a digest, as earlier versions have written it


def test_a_finished_run_returns_what_it_was_measured_to():
    report = {"val_accuracy": 0.5, "test_accuracy": None, "test_auroc": 0.7, "epochs": 2}
    assert of_report(report) == {"val/accuracy": 0.5, "test/auroc": 0.7}


@pytest.mark.parametrize("changed", [
    "data.num_workers=1", "data.root=elsewhere", "objective=test/accuracy", "trainer.enable_progress_bar=true",
    "logger=csv", "data.eval_batch_size=7", "+trainer.max_time=null", "seed=null",
])  # fmt: skip
def test_auto_goes_on_whatever_changes_neither_weights_nor_metrics(configure, tmp_path, changed):
    """Planted: a key that does change them."""
    (tmp_path / "run").mkdir()
    config = configure("model=rotmnist_z2_sa", "ckpt_path=auto")
    (tmp_path / "run" / "config.yaml").write_text(OmegaConf.to_yaml(config, resolve=True))
    (tmp_path / "run" / "report.json").write_text(json.dumps(REPORT))
    assert finished_report(configure("model=rotmnist_z2_sa", "ckpt_path=auto", changed)) == REPORT
    with pytest.raises(ConfigError, match=r"data\.split_seed"):
        finished_report(configure("model=rotmnist_z2_sa", "ckpt_path=auto", "data.split_seed=3"))


@pytest.mark.parametrize("field, value", [("group", "Z2M"), ("num_heads", 2), ("neighbourhood", 5), ("form", "summed")])
@pytest.mark.parametrize("training", [True, False])
def test_a_checkpoint_of_another_network_is_refused_by_its_fields(small, begun, field, value, training):
    with pytest.raises(ValueError, match=rf"another network; .* {field} \(.* there, {value!r} here\)"):
        train(small(f"model.{field}={value}", f"ckpt_path='{begun}'", f"train={training}".lower()))


def test_a_training_goes_on_with_its_dropout_alone(configure):
    """Which a test has none of."""
    before = {"hyper_parameters": {"run": values_of(configure())}}
    config = configure("model.dropout=0.7", "ckpt_path=last.ckpt")
    run = SimpleNamespace(config=config, data=None, network=SimpleNamespace(training_only=("dropout",)))
    with pytest.raises(ValueError, match=r"another network; .* dropout \(.* there, 0.7 here\)"):
        refuse_unfit(before, run)


@pytest.mark.parametrize("changed, key", [
    ("seed=3", "seed"), ("optimizer.lr=0.5", "optimizer.lr"), ("ema=null", "ema"),
    ("data.batch_size=8", "data.batch_size"), ("trainer.gradient_clip_val=0.5", "trainer.gradient_clip_val"),
    ("trainer.limit_train_batches=5", "trainer.limit_train_batches"),
    ("trainer.limit_val_batches=1", "trainer.limit_val_batches"),
    ("trainer.overfit_batches=2", "trainer.overfit_batches"),
    ("+trainer.gradient_clip_algorithm=value", "trainer.gradient_clip_algorithm"),
])  # fmt: skip
def test_a_run_goes_on_as_it_began_or_not_at_all(small, begun, changed, key):
    with pytest.raises(ConfigError, match=rf"trained with other values: .*{key} \("):
        train(small(f"ckpt_path='{begun}'", changed))
    train(small(f"ckpt_path='{begun}'", "train=false", changed, folder="tested"))  # which changes nothing


def test_no_more_steps_than_there_are_already_are_refused(configure):
    config = configure("+trainer.max_steps=9")
    checkpoint = {"hyper_parameters": {"run": values_of(config)}, "global_step": 8}
    refuse_other_training(checkpoint, config)
    config.trainer.max_steps = 8  # to be tested
    refuse_other_training(checkpoint, config)
    config.trainer.max_steps = 7
    with pytest.raises(ValueError, match="trainer.max_steps must be at least the 8 steps .* but got 7;"):
        refuse_other_training(checkpoint, config)


def test_a_run_on_rotmnist_from_before_clutter_goes_on(configure):
    config = configure("model=rotmnist_gsa", "data.source=mnist")
    before = OmegaConf.to_container(config, resolve=True)
    del before["data"]["clutter"], before["data"]["occlusion"]
    refuse_other_training({"hyper_parameters": {"run": before}}, config)
    config.data.clutter = 4
    with pytest.raises(ValueError, match=r"data.clutter \(0 there, 4 here\)"):
        refuse_other_training({"hyper_parameters": {"run": before}}, config)


@pytest.mark.parametrize(
    "changed, key",
    [
        ("mixup=0.2", "mixup"),
        ("label_smoothing=0.1", "label_smoothing"),
        ("class_weights=balanced", "class_weights"),
        ("trainer.accumulate_grad_batches=2", "trainer.accumulate_grad_batches"),
        ("scheduler=constant", "scheduler._target_"),
    ],
)
def test_what_changes_the_weights_is_another_training(small, changed, key):
    before = {"hyper_parameters": {"run": values_of(small())}}
    refuse_other_training(before, small())
    with pytest.raises(ValueError, match=rf"trained with other values: .*{key} \("):
        refuse_other_training(before, small(changed))


@pytest.mark.parametrize(
    "changed, key",
    [("trainer.precision=bf16-mixed", "trainer.precision"), ("compile=true", "compile"), ("test=false", "test")],
)
def test_what_changes_a_bit_is_another_run(configure, changed, key):
    assert _of_another_run(values_of(configure()), configure(changed)) == [key]
