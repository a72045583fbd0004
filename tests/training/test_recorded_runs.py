"""Runs of recorded steps are the runs themselves: on a GPU as CUDA graphs, on the CPU by a tape in their place."""

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback, GradientAccumulationScheduler, LambdaCallback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from gsa.data import DigitsDataModule
from gsa.data._pictures import NormalisedPictures
from gsa.runner import ConfigError, build, train
from gsa.saved import read_checkpoint
from gsa.training import (
    Classifier,
    FiniteSteps,
    NotFinite,
    RecordedClassifier,
    TrainingLoss,
    check_recordable,
    constant,
)
from gsa.training._recorded_steps import RecordedSteps
from tests.devices import DEVICES, on_gpu
from tests.tape import same

OPTIMIZERS = {
    "muon": ("optimizer=muon", "optimizer.lr=0.01"),
    "adamw": ("optimizer=adamw",),
    "adam, clipped": ("optimizer=adam", "trainer.gradient_clip_val=0.1"),
    "sgd, classes weighed": ("optimizer=sgd", "class_weights=balanced"),
}
NETWORK = ("model.norm=batch", "model.attention_dropout=0.2", "trainer.precision=64-true")
ROUNDING = 1e-6  # of weights up to 2 in float32, after two epochs
CASES = [("cpu", name) for name in OPTIMIZERS] + [on_gpu("cuda", name) for name in OPTIMIZERS]


def both(small, *options, device="cpu", batches=8):
    """What a run comes to as it is, and with recorded steps."""
    options = (*NETWORK, *options, f"trainer.accelerator={device.replace('cuda', 'gpu')}")
    plain = train(small(*options, batches=batches, folder="plain"))[1]
    recorded = train(small(*options, "compile=graph", batches=batches, folder="recorded"))[1]
    return plain, recorded


@pytest.mark.parametrize("device, optimizer", CASES)
def test_a_recorded_run_is_the_run_itself(small, tapes, monkeypatch, device, optimizer):
    if device == "cuda":
        monkeypatch.undo()
    plain, recorded = both(small, *OPTIMIZERS[optimizer], device=device)
    same(*(run["network"].state_dict() for run in (recorded, plain)), ROUNDING)
    for a, b in zip(recorded["history"], plain["history"], strict=True):
        assert a | {"seconds": 0} == pytest.approx(b | {"seconds": 0}, abs=1e-4)
    assert device == "cuda" or [tape.replays for tape in tapes] == [13]  # of 16 steps


class Stale(RecordedSteps):
    """Planted: replays see the pictures of the recording."""

    def place(self, inputs):
        return self._places or super().place(inputs)


class Constant(RecordedSteps):
    """Planted: they go by the rate of the recording."""

    def _write_rates(self, optimizer):
        pass


class Twice(RecordedSteps):
    """Planted: the recorded step is taken twice."""

    def _record(self, *others):
        super()._record(*others)
        self._graph.replay()


@pytest.mark.parametrize("planted", [Stale, Constant, Twice])
def test_planted_replays_that_are_other_steps(small, tapes, monkeypatch, planted):
    monkeypatch.setattr("gsa.training._recorded_classifier.RecordedSteps", planted)
    plain, recorded = both(small, *OPTIMIZERS["muon"])
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        same(*(run["network"].state_dict() for run in (recorded, plain)), ROUNDING)


def bad_pictures(patch, bad):
    """Pictures of these training steps are not numbers."""
    ours, count = NormalisedPictures.__getitems__, iter(range(10**6))

    def read(self, keys):
        pictures, labels = ours(self, keys)
        is_training = isinstance(keys[0], tuple)
        return pictures.fill_(float("nan")) if is_training and next(count) in bad else pictures, labels

    patch.setattr(NormalisedPictures, "__getitems__", read)


@pytest.mark.filterwarnings("ignore:steps of epoch . left out")
@pytest.mark.parametrize("device", DEVICES)
def test_a_bad_step_is_left_out_of_replays(small, tapes, monkeypatch, device):
    """Step 5 is one, behind the recording."""
    if device == "cuda":
        monkeypatch.undo()
    ends, where = [], f"trainer.accelerator={device.replace('cuda', 'gpu')}"
    for how in ("false", "graph"):
        with monkeypatch.context() as patch:
            bad_pictures(patch, [5])
            options = (*NETWORK, *OPTIMIZERS["muon"], where, f"compile={how}")
            ends.append(train(small(*options, batches=8, folder=how))[1])
    plain, recorded = ends
    same(*(run["network"].state_dict() for run in (recorded, plain)), ROUNDING)


def test_bad_steps_in_a_row_end_a_recorded_run(small, tapes, monkeypatch):
    bad_pictures(monkeypatch, range(5, 9))
    with pytest.raises(NotFinite, match="one of the steps 0 to 15 of epoch 0"):
        train(small(*NETWORK, *OPTIMIZERS["muon"], "compile=graph", batches=40))


def test_a_recorded_run_goes_on_without_recordings(small, tapes, monkeypatch):
    """Its checkpoint has rates that are numbers, in single and in whole steps alike."""
    options = (*NETWORK, *OPTIMIZERS["adamw"], "trainer.max_epochs=2")
    whole = train(small(*options, batches=8, folder="whole"))[1]
    config = small(*options, "compile=graph", batches=8, folder="parts")
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(
            "gsa.training.History.on_train_epoch_start", lambda _, trainer, module: 1 / (1 - trainer.current_epoch)
        )
        train(config)
    last = f"{config.output_dir}/checkpoints/last.ckpt"
    kept = read_checkpoint(last)
    rates = [group["lr"] for group in kept["optimizer_states"][0]["param_groups"]]
    assert all(type(rate) is float for rate in (*rates, *kept["lr_schedulers"][0]["_last_lr"]))
    resumed = train(small(*options, f"ckpt_path={last}", batches=8, folder="parts"))[1]
    same(*(run["network"].state_dict() for run in (resumed, whole)))


def test_metrics_hear_of_replays(small, tapes):
    plain, recorded = both(small, *OPTIMIZERS["muon"], "trainer.max_epochs=1", batches=60)
    (a,), (b,) = recorded["history"], plain["history"]
    assert a["train/accuracy"] == b["train/accuracy"] and a["train/loss"] == pytest.approx(b["train/loss"], abs=1e-6)


class Within(Callback):
    def on_after_backward(self, trainer, module):
        pass


class OnTheInstance(LambdaCallback):
    def __init__(self):
        super().__init__(on_after_backward=lambda trainer, module: None)


class Later(GradientAccumulationScheduler):
    def __init__(self):
        super().__init__({1: 2})


def with_callback(kind):
    return (f"+callbacks.mine._target_=tests.training.test_recorded_runs.{kind.__name__}",)


@pytest.mark.parametrize("overrides, message", [
    ((), "on a CUDA device, but the trainer has one of type cpu"),
    (("mixup=0.2",), "recorded steps cannot mix pictures"),
    (("trainer.accumulate_grad_batches=2",), "compile=graph needs trainer.accumulate_grad_batches=1"),
])  # fmt: skip
def test_what_cannot_be_recorded_is_refused_before_anything_is_read(small, overrides, message):
    with pytest.raises(ConfigError, match=message):
        build(small(*OPTIMIZERS["muon"], "compile=graph", *overrides))


@pytest.mark.parametrize("overrides, message", [
    (with_callback(Within), "but Within acts within every one"),
    (with_callback(OnTheInstance), "but OnTheInstance acts within every one"),
    (with_callback(Later), "but gradients of 2 batches are accumulated in one"),
    (("trainer.detect_anomaly=true",), "but detect_anomaly asks the host"),
    (("optimizer=adamw", "+optimizer.foreach=true"), "by an optimizer that leaves out .* but got AdamW"),
    (("trainer.precision=bf16-mixed", "trainer.gradient_clip_val=1"), "nor in mixed precision with gradient_clip_val"),
    (("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2"), "where one device is alone"),
])  # fmt: skip
def test_what_a_replay_would_pass_over_is_refused(small, tapes, overrides, message):
    with pytest.raises(ConfigError, match=message):
        build(small("optimizer=adamw", "compile=graph", *overrides))


QUIET = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)


class OwnStep(RecordedClassifier):
    def training_step(self, batch, index):
        return super().training_step(batch, index)


class OwnHook(RecordedClassifier):
    def on_after_backward(self):
        pass


@pytest.mark.filterwarnings("ignore:.*LeafSpec")
@pytest.mark.parametrize("kind, message", [(OwnStep, "OwnStep has its own"), (OwnHook, "OwnHook acts within every")])
def test_classifiers_with_steps_of_their_own_are_refused(tapes, kind, message):
    network = nn.Sequential(nn.Flatten(), nn.Linear(144, 10))
    module = kind(network, 10, torch.optim.Adam, constant)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", callbacks=[], **QUIET)
    with pytest.raises(ValueError, match=message):
        trainer.fit(module, DigitsDataModule(batch_size=16))


def test_an_optimizer_that_is_not_fused_is_refused_before_the_first_step(tapes):
    parameters = [nn.Parameter(torch.ones(1))]
    trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    check_recordable(trainer, torch.optim.Adam(parameters, fused=True))
    with pytest.raises(ValueError, match="but got Adam"):
        check_recordable(trainer, torch.optim.Adam(parameters))  # which is where it will train already


@pytest.mark.parametrize("saved, here", [(None, True), (True, None)])
def test_an_optimizer_stays_fused_or_not_that_goes_on_from_another_device(monkeypatch, saved, here):
    """Planted, as torch has it: as it was where the run began."""
    made = []
    for fused in (saved, here):
        monkeypatch.setattr("gsa.training._fused._ON", ("cpu",) if fused else ())
        layer = nn.Linear(2, 2)
        made.append(Classifier(layer, 2, torch.optim.AdamW, constant).new_optimizer())
        layer(torch.ones(1, 2)).sum().backward()
        made[-1].step()
    began, goes_on = made
    state = began.state_dict()
    assert [group["fused"] for group in state["param_groups"]] == [saved]
    goes_on.load_state_dict(state)
    assert [group["fused"] for group in goes_on.param_groups] == [here]
    goes_on.step()
    assert all(values["step"] == 2 for values in goes_on.state.values())
    torch_s = torch.optim.AdamW(goes_on.param_groups[0]["params"], fused=here)
    torch_s.load_state_dict(state)
    assert [group["fused"] for group in torch_s.param_groups] == [saved]
    with pytest.raises(ValueError, match="different number of parameter groups"):
        goes_on.load_state_dict(torch.optim.AdamW([{"params": [p]} for p in layer.parameters()]).state_dict())


@pytest.mark.filterwarnings("ignore")  # Lightning's, of few workers
@pytest.mark.parametrize("batches", [3, 5])
def test_shares_of_classes_are_recorded_whenever_they_were_looked_at(tapes, batches):
    """At the first step of an epoch, which after three is the one that is recorded."""
    pictures, shares = torch.rand(4 * batches, 1, 2, 2), torch.softmax(torch.rand(4 * batches, 3), -1)
    module = RecordedClassifier(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), 3, torch.optim.Adam, constant)
    trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", callbacks=[FiniteSteps()], **QUIET)
    trainer.fit(module, DataLoader(TensorDataset(pictures, shares), 4))
    assert tapes[-1].replays and trainer.global_step == 3 * batches


def test_recorded_steps_mix_no_pictures():
    with pytest.raises(ValueError, match="mixup draws its share on the host"):
        RecordedClassifier(nn.Identity(), 3, torch.optim.Adam, constant, loss=TrainingLoss(3, mixup=0.1))
