"""Recorded steps are the steps themselves: on a GPU as CUDA graphs, on the CPU by a tape that does what they do."""

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch import nn

from gsa.data._pictures import NormalisedPictures
from gsa.runner import ConfigError, build, train
from gsa.saved import read_checkpoint
from gsa.training import Classifier, NotFinite, TrainingLoss, constant
from gsa.training._recorded_steps import RecordedSteps
from tests.devices import DEVICES, on_gpu
from tests.tape import Tape

OPTIMIZERS = {
    "muon": ("optimizer=muon", "optimizer.lr=0.01"),
    "adamw": ("optimizer=adamw",),
    "adam, clipped": ("optimizer=adam", "trainer.gradient_clip_val=0.1"),
    "sgd": ("optimizer=sgd",),
}
NETWORK = ("model.norm=batch", "model.attention_dropout=0.2", "trainer.precision=64-true")
CASES = [("cpu", name) for name in OPTIMIZERS] + [on_gpu("cuda", name) for name in OPTIMIZERS]


@pytest.fixture
def tapes(monkeypatch):
    """The recordings of a test, on the CPU."""
    made = []

    def new():
        made.append(Tape())
        return made[-1]

    monkeypatch.setattr("gsa.training._recorded_steps._ON", ("cuda", "cpu"))
    monkeypatch.setattr("gsa.training._recorded_steps.CudaGraph", new)
    monkeypatch.setattr("gsa.training._fused._ON", ("cuda", "cpu"))
    monkeypatch.setattr("gsa.training._finite_steps._FREE", ())
    monkeypatch.setattr("gsa.ops._by_position.check_centre", lambda window: None)
    return made


def same(one, other, tolerance=1e-7):
    for name, weight in one.items():
        torch.testing.assert_close(weight, other[name], rtol=0, atol=tolerance)


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
    same(*(run["network"].state_dict() for run in (recorded, plain)))
    for a, b in zip(recorded["history"], plain["history"], strict=True):
        assert a | {"seconds": 0} == pytest.approx(b | {"seconds": 0}, abs=1e-4)
    assert device == "cuda" or [tape.replays for tape in tapes] == [13]  # of 16 steps


class Stale(RecordedSteps):
    """Planted: replays see the pictures of the recording."""

    def take(self, step, inputs, *others):
        return super().take(step, self._inputs or inputs, *others)


class Constant(RecordedSteps):
    """Planted: they go by the rate of the recording."""

    def _settle_rates(self, optimizer):
        if not self._inputs:
            super()._settle_rates(optimizer)
        else:
            for group, rate in zip(optimizer.param_groups, self._rates, strict=True):
                group["lr"] = rate.clone()


class Twice(RecordedSteps):
    """Planted: the recorded step is taken twice."""

    def _record(self, *others):
        super()._record(*others)
        self._graph.replay()


@pytest.mark.parametrize("planted", [Stale, Constant, Twice])
def test_planted_replays_that_are_other_steps(small, tapes, monkeypatch, planted):
    monkeypatch.setattr("gsa.training._classifier.RecordedSteps", planted)
    plain, recorded = both(small, *OPTIMIZERS["muon"])
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        same(*(run["network"].state_dict() for run in (recorded, plain)))


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
    same(*(run["network"].state_dict() for run in (recorded, plain)))


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


def trained(optimizer, batches, steps, between):
    """Weights of a linear map, trained on batches of these sizes; which steps were replayed."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)).double()
    made, at_hand, replayed = optimizer(network), [], []

    def step():
        made.zero_grad()
        network(at_hand[0]).square().mean().backward()
        made.step()

    for number, size in enumerate(batches):
        between(number, network, made)
        at_hand[:] = [torch.randn(size, 3, dtype=torch.float64)]
        replayed.append(steps.take(step, at_hand, made) if steps else step())
    if steps:
        steps.end(made)
    assert all(type(group["lr"]) is float for group in made.param_groups)
    return dict(network.named_parameters()), replayed


def steps_of(optimizer, batches, between=lambda step, network, optimizer: None):
    """Which steps were replayed; the weights are those of steps that are not recorded."""
    plain, _ = trained(optimizer, batches, None, between)
    weights, replayed = trained(optimizer, batches, RecordedSteps(Tape), between)
    same(weights, plain)
    return replayed


def adam(network):
    return torch.optim.Adam(network.parameters(), lr=0.01, fused=True)


def test_batches_of_another_size_are_taken_as_they_are():
    replayed = steps_of(adam, [5, 5, 5, 5, 5, 2, 5])
    assert replayed == [False, False, False, True, True, False, True]


def test_what_is_frozen_in_between_is_recorded_anew():
    def freeze(step, network, optimizer):
        network[0].requires_grad_(step < 5)

    replayed = steps_of(adam, [5] * 10, between=freeze)
    assert replayed == [False] * 3 + [True] * 2 + [False] * 3 + [True] * 2


def test_momenta_that_change_with_every_step_are_followed():
    def cycle(step, network, optimizer):
        optimizer.param_groups[0].update(betas=(0.9 - 0.01 * step, 0.999), lr=0.01 / (step + 1))

    assert steps_of(adam, [5] * 6, between=cycle) == [False] * 6


def test_rates_may_be_said_or_written():
    def change(step, network, optimizer):
        (group,) = optimizer.param_groups
        if step == 5 and isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(0.02)
        else:
            group["lr"] = 0.02 if step == 5 else 0.02 / (step + 1)

    assert sum(steps_of(adam, [5] * 8, between=change)) == 5


@pytest.mark.parametrize("make", [
    lambda network: torch.optim.Adam(network.parameters(), foreach=True),
    lambda network: torch.optim.NAdam(network.parameters()),
])  # fmt: skip
def test_an_optimizer_that_asks_the_host_is_refused(make):
    with pytest.raises(ValueError, match="a step is recorded by an optimizer that leaves out by itself"):
        steps_of(make, [5] * 4)


class Within(Callback):
    def on_after_backward(self, trainer, module):
        pass


WITHIN = ("+callbacks.mine._target_=tests.training.test_recorded_steps.Within",)


@pytest.mark.parametrize("overrides, message", [
    ((), "on a CUDA device, but the trainer has one of type cpu"),
    (("mixup=0.2",), "compile=graph needs mixup=0"),
    (("trainer.accumulate_grad_batches=2",), "compile=graph needs trainer.accumulate_grad_batches=1"),
])  # fmt: skip
def test_what_cannot_be_recorded_is_refused_before_anything_is_read(small, overrides, message):
    with pytest.raises(ConfigError, match=message):
        build(small(*OPTIMIZERS["muon"], "compile=graph", *overrides))


@pytest.mark.parametrize("overrides, message", [
    (WITHIN, "the callback Within acts within every one"),
    (("optimizer=adamw", "+optimizer.foreach=true"), "by an optimizer that leaves out .* but got AdamW"),
    (("trainer.precision=bf16-mixed", "trainer.gradient_clip_val=1"), "nor in mixed precision with gradient_clip_val"),
    (("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2"), "where one device is alone"),
])  # fmt: skip
def test_what_a_replay_would_pass_over_is_refused(small, tapes, overrides, message):
    with pytest.raises(ConfigError, match=message):
        build(small("optimizer=adamw", "compile=graph", *overrides))


def test_recorded_steps_mix_no_pictures():
    with pytest.raises(ValueError, match="mixup draws its share on the host"):
        Classifier(nn.Identity(), 3, torch.optim.Adam, constant, loss=TrainingLoss(3, mixup=0.1), recorded=True)
