"""What is wrong in a configuration is refused by name, before anything begins."""

import os

import pytest
import torch
from hydra import compose, initialize_config_module
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import InterpolationResolutionError

from gsa import runner
from gsa.runner import ConfigError, check
from gsa.runner._keys import refuse_bad_keys
from tests.forks import python
from tests.runner.test_config import ROOT, SLOW

TWO = ("trainer.accelerator=cpu", "trainer.devices=2")


BAD = [
    ("compile=fast", "compile must be one of .False, True"),
    *(
        ([f"compile={mode}", "trainer.accumulate_grad_batches=2"], f"compile={mode} needs .*=1, but got 2: CUDA graphs")
        for mode in ("reduce-overhead", "max-autotune", "graph")
    ),
    ("typo=1", "typo"),
    ("+typo=1", "unknown key 'typo'"),
    ("+seeds=1", "unknown key 'seeds' .the nearest is 'seed'"),
    ("model.neighborhood=7", "neighborhood"),
    ("+model.neighborhood=7", "the nearest is 'neighbourhood'"),
    ("+data.batchsize=7", "unknown key 'data.batchsize' .the nearest is 'batch_size'"),
    ("+trainer.max_epoch=7", "unknown key 'trainer.max_epoch' .the nearest is 'max_epochs'"),
    (["optimizer=adamw", "+optimizer.momentum=7"], "unknown key 'optimizer.momentum'"),
    (
        ["+callbacks.mine._target_=lightning.pytorch.callbacks.Callback", "+callbacks.mine.every=2"],
        "unknown key 'callbacks.mine.every'; .* takes no arguments",
    ),
    ("+callbacks.early=true", "callbacks.early must have a _target_"),
    ("+callbacks.early._target_=lightning.pytorch.callbacks.EarlyStoping", "cannot be imported"),
    ("model=rotmnist_r5_sa", "rotmnist_r5_sa"),
    ("seed=abc", "seed"),
    ("train=perhaps", "train"),
    ("trainer.max_epochs=ten", "trainer.max_epochs must be int or None, but got 'ten'"),
    ("trainer.max_epochs=0", "trainer.max_epochs must be at least 1"),
    ("trainer.precision=bf17", "trainer.precision must be .*'bf16-mixed'"),
    ("trainer.accelerator=gpus", "gpus"),
    ("data.batch_size=1.5", "data.batch_size must be int, but got 1.5"),
    ("data.batch_size=-3", "batch_size must be at least 1, but got -3"),
    ("data.augmentation=[turn]", "augmentation must be a list out of"),
    ("data.augmentation=[{a: 1}]", "augmentation must be a list out of"),
    ("data.batch_size={a: 1}", "data.batch_size must be int, but got {'a': 1}"),
    ("optimizer.lr=nan", "optimizer.lr must be a finite number"),
    ("optimizer.lr=inf", "optimizer.lr must be a finite number"),
    (["optimizer=adamw", "optimizer.lr=-1"], "optimizer.lr must not be negative"),
    (
        ["optimizer=adamw", "+optimizer.fused=true", "trainer.precision=bf16-mixed", "trainer.gradient_clip_val=1"],
        "optimizer.fused=true does not go with trainer.gradient_clip_val",
    ),
    ("optimizer.lr=-1", "lr must not be negative"),
    ("label_smoothing=1", "label_smoothing must be a share"),
    ("optimizer.lr=fast", "optimizer.lr must be"),
    ("scheduler.warmup=1.5", "warmup must be a share"),
    ("ema=2", "ema must be a decay between 0 and 1"),
    ("model.neighbourhood=4", "neighbourhood must be an odd number"),
    ("model.group=R1", "a group is named Z2"),
    ("model.group=Q4", "a group is named Z2"),
    ("model.num_heads=0", "num_heads must be a positive integer"),
    ("model.form=sumed", "form must be one of"),
    ("model.encoding=furier", "furier"),
    ("data.size=13", "nearest ones that are: 12 or 14"),
    ("train=false", "set ckpt_path"),
    (["train=false", "ckpt_path=auto"], "set ckpt_path"),
    ("seed=-1", "seed must be in"),
    ("seed=5000000000", "seed must be in"),
    ("data.seed=-2", "seed must not be negative"),
    ("objective=val/acc", r"objective must be one of .'val/accuracy'"),
    (["objective=test/accuracy", "test=false"], "objective must be one of"),
    ("trainer.max_epochs=null", "trainer.max_epochs must be at least 1"),
    ("trainer.accumulate_grad_batches=0", "accumulate_grad_batches must be at least 1"),
    ("trainer.gradient_clip_val=-1", "gradient_clip_val must be positive"),
    pytest.param(
        "trainer=gpu",
        "needs a GPU, but torch finds none here",
        marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one"),
    ),
    ("+trainer.val_check_interval=0.5", "val_check_interval must be left out"),
    ("compile=1", "compile must be one of .False, True"),
    ("mixup=1e-300", "mixup must be the α of a Beta distribution, at least 1e-06, or 0, but got 1e-300"),
    ("+trainer.max_time=00:00:00:00", "trainer.max_time must be some time"),
    ("+callbacks.best.save_top_k=3", "callbacks.best.save_top_k must be 1, .* but got 3"),
    ("+callbacks.best.save_top_k=0", "callbacks.best.save_top_k must be 1, .* but got 0"),
    ("+callbacks.last.save_weights_only=true", "callbacks.last.save_weights_only must be false"),
    ("callbacks.best.filename=other", "callbacks.best.filename must be best, .*callbacks.mine.every_n_epochs=10"),
    ("data.split_seed=-1", "data.split_seed must not be negative, but got -1"),
    ("model.dropout=1", r"dropout must be a probability in \[0, 1\), but got 1"),
    ("model.dropout=null", "dropout must be a probability .* but got None"),
    (["optimizer=adam", "+optimizer.betas=[0.9]"], "IndexError: .*out of range"),
    (
        ["scheduler=constant", "scheduler._target_=torch.optim.lr_scheduler.StepLR", "+scheduler.step_size=0"],
        "ZeroDivisionError",
    ),
    (
        ["ema=0.99", "+callbacks.mine._target_=lightning.pytorch.callbacks.EMAWeightAveraging"],
        "RuntimeError: Found more than one stateful callback of type `EMAWeightAveraging`",
    ),
    ([*TWO, "+trainer.strategy=ddp_spawn"], "must be gsa.training.ddp"),
    ([*TWO, "+trainer.strategy=fsdp"], "trainer.strategy|fsdp|FSDP"),
    ([*TWO, "+trainer.num_nodes=2"], "needs srun, submitit or torchrun"),
    ([*TWO, "data.batch_size=15"], "divisible by the 2 processes, but got 15"),
]


@pytest.mark.parametrize("override, message", BAD)
def test_a_bad_override_is_refused_by_name(configure, override, message):
    with pytest.raises((ConfigError, HydraException), match=message):
        check(configure(*([override] if isinstance(override, str) else override)))


@pytest.mark.parametrize(
    "override",
    ["+trainer.max_time=00:00:01:00", "trainer.limit_train_batches=3", "model.neighbourhood=null", "seed=null",
     "ema=0.99", "seed=0", "trainer.enable_progress_bar=false", "model.head_dim=6", "compile=reduce-overhead",
     "+callbacks.stop={_target_: lightning.pytorch.callbacks.EarlyStopping, monitor: val/loss}",
     "+callbacks.mine={_target_: lightning.pytorch.callbacks.ModelCheckpoint, every_n_epochs: 10}",
     "+callbacks.timer={_target_: lightning.pytorch.callbacks.Timer, duration: '00:01:00:00'}"],
)  # fmt: skip
def test_a_good_override_is_not(configure, override):
    check(configure(override))


def test_a_trainer_that_validates_steps_or_clips_nothing_is_refused(configure):
    config = configure()
    wrong = {"limit_val_batches": 0, "gradient_clip_val": 0, "check_val_every_n_epoch": 2, "max_steps": 0}
    for key, value in wrong.items():
        other = config.copy()
        OmegaConf.update(other, f"trainer.{key}", value, force_add=True)
        with pytest.raises(ConfigError, match=rf"trainer\.{key} must be .*, but got {value}"):
            refuse_bad_keys(other)
    config.train, config.ckpt_path, config.trainer.limit_train_batches = False, __file__, 0
    refuse_bad_keys(config)


def test_a_check_leaves_nothing_behind(configure, monkeypatch):
    monkeypatch.delenv("PL_GLOBAL_SEED", raising=False)
    torch.manual_seed(3)
    before = torch.rand(1)
    torch.manual_seed(3)
    check(configure("seed=7"))
    assert torch.equal(torch.rand(1), before) and "PL_GLOBAL_SEED" not in os.environ


@pytest.mark.parametrize("override, message", [
    ("typo=1", "unknown key 'typo'; all keys"),
    pytest.param("trainer.max_time=00:00:01:00", "trainer.max_time is not in the configuration yet, but may be: write",
                 marks=SLOW),
    ("experiment=null", "Config group override must be a string or a list. Got NoneType (a group is left out by"),
    ("hydra.job.chdir=true", "hydra.job.chdir must be false, because paths of data and modules are relative to where"),
    ("output_dir=here", "output_dir is Hydra's folder on the command line: set hydra.run.dir, or hydra.sweep.dir for"),
    ("seed=1.5", "refused: seed: Value '1.5' of type 'float' could not be converted to Integer\n"),
    pytest.param("model.neighborhood=7", "(the nearest is 'model.neighbourhood')", marks=SLOW),
    ("model=rotmnist_r5_sa", "the nearest is 'rotmnist_r"),
    pytest.param("experiment=rotmnist/r4_saa", "(the nearest is 'experiment/rotmnist/r4_sa')", marks=SLOW),
    ("experiment=rotmnist/r4_sa", "use data.source=mnist"),  # there are no data: told once Hydra has made its folder
    pytest.param("ckpt_path=nowhere.ckpt", "there is no checkpoint at nowhere.ckpt", marks=SLOW),
    pytest.param("hydra.run.dir=/dev/null/mine", "a folder that can be written, but /dev/null is not", marks=SLOW),
    pytest.param("data.batch_size=-3", "batch_size must be at least 1, but got -3", marks=SLOW),
])  # fmt: skip
def test_the_command_exits_with_2_and_leaves_nothing(tmp_path, override, message):
    done = python(ROOT / "train.py", override, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


def test_what_may_be_added_to_ones_own_configuration_is_said(tmp_path):
    (tmp_path / "mine" / "data").mkdir(parents=True)
    (tmp_path / "mine" / "data" / "shapes.yaml").write_text("_target_: gsa.data.DigitsDataModule\nseed: ${seed}\n")
    words = "--config-dir", "mine", "data=shapes", "recipe=digits", "~data.batch_size", "model=own"
    words += "model._target_=gsa.models.GroupCNN", "model.group=R4"
    done = python(ROOT / "train.py", *words, cwd=tmp_path)
    assert done.returncode == 2 and "model.group is not in the configuration yet, but may be: write +" in done.stderr


def test_a_run_that_is_composed_needs_a_folder():
    runner.register()
    with initialize_config_module("gsa.configs", version_base="1.3"):
        config = compose("train")
    with pytest.raises(InterpolationResolutionError, match="a run needs a folder: compose with output_dir=…"):
        runner.train(config)


def test_a_notebook_starts_no_processes(configure, monkeypatch):
    monkeypatch.setattr("lightning.pytorch.trainer.connectors.accelerator_connector._IS_INTERACTIVE", True)
    with pytest.raises(ConfigError, match="processes cannot be started from a notebook: train by the command"):
        check(configure("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2"))
