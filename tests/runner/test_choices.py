"""What may be chosen beside the recipe: mixing, weights of classes, an early end, places, tags, ids on wandb."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from omegaconf import OmegaConf

from gsa.report import read_report
from gsa.runner import ConfigError, build, train
from gsa.runner._config_file import write_config
from gsa.runner._lengths import refuse_bad_lengths
from gsa.runner._wandb import complete_wandb, keep_wandb_ids
from gsa.training import SeededSteps
from tests.forks import python

EARLY = "callbacks=early_stopping callbacks.early_stopping"
ROOT = Path(__file__).parents[2]


def test_a_run_ends_early_where_validation_stands_still(small):
    config = small(
        "callbacks=early_stopping", "callbacks.early_stopping.patience=1", "trainer.max_epochs=9", "optimizer.lr=1e-12"
    )
    _, objects = train(config)
    assert len(objects["history"]) == 2 and objects["report"]["epochs"] == 2


def test_a_run_that_had_ended_early_stays_so_when_it_is_resumed(small):
    options = "callbacks=early_stopping", "callbacks.early_stopping.patience=1", "trainer.max_epochs=9"
    _, before = train(small(*options, "optimizer.lr=1e-12"))
    (before["folder"] / "report.json").unlink()  # as if it had been stopped in its test
    last = before["folder"] / "checkpoints" / "last.ckpt"
    _, after = train(small(*options, "optimizer.lr=1e-12", f"ckpt_path={last}"))
    assert len(before["history"]) == len(after["history"]) == 2
    assert before["report"]["test_accuracy"] == after["report"]["test_accuracy"]


def test_a_run_that_had_ended_early_goes_on_with_more_patience(small):
    options = "callbacks=early_stopping", "trainer.max_epochs=9", "optimizer.lr=1e-12"
    _, before = train(small(*options, "callbacks.early_stopping.patience=1"))
    last = before["folder"] / "checkpoints" / "last.ckpt"
    _, after = train(small(*options, "callbacks.early_stopping.patience=3", f"ckpt_path={last}"))
    assert len(before["history"]) == 2 and len(after["history"]) == 4


def test_steps_may_end_with_an_epoch(small):
    _, objects = train(small("+trainer.max_steps=3", "trainer.limit_train_batches=3", "trainer.max_epochs=9"))
    assert len(objects["history"]) == 1


@pytest.mark.parametrize("wrong, message", [
    ("trainer.limit_test_batches=0.001", "limit_test_batches must leave a batch, but 0.001 of 4 are none"),
    ("trainer.overfit_batches=0.001", "limit_train_batches must leave a batch, but 0.001 of"),
    ("+trainer.max_steps=100", "max_steps must be a multiple of the .* steps of an epoch.*but got 100"),
])  # fmt: skip
def test_lengths_that_the_data_do_not_allow_are_refused_before_training(small, wrong, message):
    config = small("trainer.limit_train_batches=null", "trainer.limit_test_batches=null", "trainer.max_epochs=9", wrong)
    with pytest.raises(ConfigError, match=message):
        train(config)
    assert not Path(config.output_dir).exists()


@pytest.mark.parametrize("fits", [
    ("trainer.limit_train_batches=5", "trainer.accumulate_grad_batches=2", "+trainer.max_steps=3"),  # the last of one
    ("trainer.limit_train_batches=3", "+trainer.max_steps=1000"),  # which are never reached
])  # fmt: skip
def test_steps_that_end_with_an_epoch_are_counted_as_they_are_taken(small, fits):
    run = build(small("trainer.max_epochs=9", *fits))
    run.data.setup()
    refuse_bad_lengths(run)


def test_classes_are_weighed_by_the_training_part(small):
    _, objects = train(small("class_weights=balanced", "trainer.max_epochs=1"))
    counts = torch.tensor([label for _, label in objects["data"].parts["train"]]).bincount()
    torch.testing.assert_close(objects["classifier"].training_loss.weight, 1200 / (10 * counts.float()))


def test_a_list_stands_for_a_tuple(small):
    """YAML has none."""
    run = build(small("optimizer=adam", "+optimizer.betas=[0.5,0.95]"))
    assert tuple(run.classifier.new_optimizer().defaults["betas"]) == (0.5, 0.95)


@pytest.mark.parametrize("wrong, message", [
    ("+trainer.callbacks=[]", r"trainer.callbacks is made by the run itself and cannot be set: say \+callbacks.mine"),
    ("callbacks.best.filename='best-{epoch}'", "callbacks.best.filename must be best, where it is looked for, but"),
    ("callbacks.last.dirpath=/else", r"callbacks.last.dirpath must be /.*/run/checkpoints, where it is looked for"),
    ("+callbacks.a={_target_:lightning.pytorch.callbacks.BatchSizeFinder}", "callbacks.a must leave data.batch_size"),
    ("+callbacks.a={_target_:lightning.pytorch.callbacks.StochasticWeightAveraging,swa_lrs:0.1}", "ema=0.99"),
    ("scheduler._target_=torch.optim.lr_scheduler.ReduceLROnPlateau ~scheduler.warmup", "shown no metric"),
    ("+trainer.plugins=[]", "trainer.plugins is made by the run itself and cannot be set$"),
    ("class_weights=[1,2]", r"weights must be 10 positive numbers, one of each class, but got \[1, 2\]"),
    ("class_weights=[1,1,1,1,1,1,1,1,1,a]", "weights must be 10 positive numbers"),
    ("class_weights=rare", "class_weights must be balanced, a list of numbers, or null, but got 'rare'"),
    ("mixup=-1", "mixup must be the α of a Beta distribution, at least 1e-06, or 0, but got -1"),
    ("callbacks.best.monitor=val/loss", r"monitor must be one of \['val/accuracy', 'val/balanced_accuracy'\]"),
    ("callbacks.best.mode=min", "callbacks.best.mode must be max"),
    ("+callbacks.best2={_target_:lightning.pytorch.callbacks.EarlyStopping,monitor:val/los}", "nearest is 'val/loss'"),
    (f"{EARLY}.monitor=val/loss", "mode must be min for val/loss, but got max"),
    (f"{EARLY}.mode=min", "mode must be max for val/accuracy, but got min"),
    ("+callbacks.stop={_target_:lightning.pytorch.callbacks.EarlyStopping,monitor:val/accuracy}", "stop.mode=max"),
    (f"{EARLY}.monitor=train/auroc", "monitor must be one of .* but got 'train/auroc'"),
    (f"{EARLY}.monitor=val/auroc", "val/auroc is of two classes, but the data have 10"),
    ("tags=mine", r"tags must be a list of words, such as \[mine,second\], but got 'mine'"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(small, wrong, message):
    with pytest.raises(ConfigError, match=message):
        build(small(*wrong.split()))


def test_places_are_said_once_in_a_file(tmp_path):
    (tmp_path / ".env").write_text("GSA_DATA=/my/data\nGSA_OUTPUTS=/my/outputs\n")

    def told(*options):
        shown = "--cfg", "job", "--resolve"
        done = python(ROOT / "train.py", "data=rotmnist", "output_dir=here", *options, *shown, cwd=tmp_path)
        done.check_returncode()
        return OmegaConf.create(done.stdout)

    assert told().data.root == "/my/data"
    assert told("paths.data=elsewhere").data.root == "elsewhere"


def test_a_run_keeps_its_id_on_wandb_and_tags_come_to_its_own(configure):
    config = configure("logger=wandb", "tags=[mine]", "logger.wandb.offline=false")
    keep_wandb_ids(config)
    drawn = config.logger.wandb.id
    assert drawn
    node = complete_wandb(config.logger.wandb, config, "digits")
    assert (node.id, node.resume, node.tags) == (drawn, "allow", ["digits", "R4", "mine"])
    folder = Path(config.output_dir)
    folder.mkdir()
    write_config(OmegaConf.to_yaml(config, resolve=True), folder)
    again, other = configure("logger=wandb"), configure("logger=wandb", folder="other")
    for one in (again, other):
        keep_wandb_ids(one)
    assert again.logger.wandb.id == drawn != other.logger.wandb.id
    config.logger.wandb.id = "${oc.env:HOME}"  # planted: by somebody who would like to know
    write_config(OmegaConf.to_yaml(config), folder)
    again = configure("logger=wandb")
    keep_wandb_ids(again)
    assert len(again.logger.wandb.id) == 8


def test_seeds_of_one_experiment_are_of_one_group_on_wandb_and_tests_are_told_from_training(configure):
    config = configure("logger=wandb")

    def told(**changed):
        other = OmegaConf.merge(config, changed)
        node = complete_wandb(other.logger.wandb, other, "digits")
        return node.group, node.job_type

    group, kind = told(seed=1)
    assert kind == "train" and told(seed=2) == (group, kind) != told(seed=1, mixup=0.1)
    assert told(train=False, ckpt_path="x") == (group, "test")


def test_the_loss_is_the_one_that_was_asked_for(small):
    weights = [1, 2, 3, 1, 1, 1, 1, 1, 1, 1]
    loss = build(small("label_smoothing=0.1", "mixup=0.3", f"class_weights={weights}")).classifier.training_loss
    assert (loss.label_smoothing, loss.mixup, loss.weight.tolist()) == (0.1, 0.3, weights)


def test_the_seed_reaches_own_data_and_the_steps(configure):
    own = ("data=own", "data._target_=tests.data.test_own_data.Stripes", "model=digits_z2_sa")
    run = build(configure(*own, "trainer.accelerator=cpu", "callbacks=none", "logger=none", "seed=3"))
    (steps,) = (one for one in run.trainer.callbacks if isinstance(one, SeededSteps))
    assert run.data.seed == steps.seed == 3


def test_a_published_network_is_reported_as_it_was_built(small):
    """Its form is that of the public code, though the preset's own stands in the configuration."""
    config = small("model=digits_r4_sa", "model.published=true", "test=false")
    train(config)
    assert read_report(Path(config.output_dir))["form"] == "summed"


def test_every_process_has_a_picture_of_each_part(small):
    """Planted: one more process than there are pictures, which would wait for it."""
    run = build(small("data.eval_batch_size=3"))
    run.data.setup()
    run.trainer = SimpleNamespace(**{name: getattr(run.trainer, name) for name in LIMITS}, world_size=200)
    run.config.train = False
    refuse_bad_lengths(run)
    run.trainer.world_size = 201
    with pytest.raises(ConfigError, match="each of the 201 processes needs a picture of 'val', which has 200"):
        refuse_bad_lengths(run)


LIMITS = ("limit_train_batches", "limit_val_batches", "limit_test_batches", "max_steps", "fast_dev_run")
