"""Runs leave out what is not finite, and say where it came from."""

import math
from types import SimpleNamespace

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import gsa
from gsa.runner import build, train
from gsa.saved import first_not_finite, read_checkpoint
from gsa.training import FiniteSteps, NotFinite
from gsa.training._muon import leaves_steps_out
from tests.runner.faults import act_in
from tests.runner.test_run import outcome

LEFT_OUT = pytest.mark.filterwarnings("ignore:steps of epoch . left out")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_steps_that_are_not_finite_are_left_out_and_end_the_run(small, tmp_path, value):
    config = small("trainer.max_epochs=3", "trainer.limit_train_batches=6")
    seen = []

    def backward(module, loss):
        if module.trainer.current_epoch == 1:
            loss = loss * value
            seen.append([p.detach().clone() for p in module.parameters()])
        loss.backward()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gsa.training.Classifier.backward", backward)
        with pytest.raises(NotFinite, match="3 steps in a row were not finite, .* of epoch 1: the gradient of network"):
            train(config)
    assert len(seen) == 3 and all(torch.equal(a, b) for a, b in zip(seen[0], seen[2], strict=True))
    for name in ("best", "last"):
        state = read_checkpoint(tmp_path / "run" / "checkpoints" / f"{name}.ckpt")["state_dict"]
        assert all(value.isfinite().all() for value in state.values())


@pytest.mark.parametrize(
    "precision, remedy", [("32-true", "Try a lower"), ("16-true", "Try .*=bf16-mixed, as float16")]
)
def test_an_infinite_loss_is_left_out_although_its_gradients_are_finite(small, precision, remedy):
    ours = gsa.training.Classifier.training_step
    with pytest.MonkeyPatch.context() as patch, pytest.raises(NotFinite, match=f"of epoch 0: .* {remedy}"):
        patch.setattr("gsa.training.Classifier.training_step", lambda *a: ours(*a) + float("inf"))
        train(small("trainer.max_epochs=1", "trainer.limit_train_batches=4", f"trainer.precision={precision}"))


def test_a_single_step_that_is_not_finite_does_not_end_the_run(small):
    def backward(module, loss):
        (loss * float("nan") if module.trainer.global_step == 1 and not done else loss).backward()
        done.append(module.trainer.global_step == 1)

    done = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gsa.training.Classifier.backward", backward)
        _, objects = train(small("trainer.max_epochs=1", "trainer.limit_train_batches=4"))
    assert all(p.isfinite().all() for p in objects["network"].parameters())


MUON = ("optimizer=muon", "optimizer.lr=0.01", "model.norm=batch")


@LEFT_OUT
def test_an_optimizer_that_leaves_a_step_out_itself_does_what_the_others_do(small, monkeypatch):
    """The weights and running statistics of a run with a bad step are those of a run on a GPU, which is not asked."""

    def spoil(module, loss):
        (loss * float("nan") if module.trainer.global_step == 2 and module.training else loss).backward()

    monkeypatch.setattr("gsa.training.Classifier.backward", spoil)
    ends = []
    for free, alone in ((("cpu",), lambda _: False), (("cpu",), leaves_steps_out), ((), leaves_steps_out)):
        monkeypatch.setattr("gsa.training._finite_steps._FREE", free)
        monkeypatch.setattr("gsa.training._finite_steps.leaves_steps_out", alone)
        ends.append(outcome(train(small(*MUON, folder=f"run{len(ends)}"))[1]))
    for weights, *rest in ends[1:]:
        assert rest == list(ends[0][1:]) and all(torch.equal(weights[name], ends[0][0][name]) for name in weights)


@pytest.mark.parametrize(
    "batches, message", [(60, "one of the steps 0 to 15 of epoch 0"), (5, "one of the steps 0 to 4 of epoch 0")]
)
def test_a_run_on_a_gpu_ends_when_it_is_looked_at(small, monkeypatch, batches, message):
    ours, kept = gsa.training.Classifier.training_step, []

    def step(module, *batch):
        if module.trainer.global_step == 2:
            kept.extend(p.detach().clone() for p in module.parameters())
        return ours(module, *batch) + (float("inf") if module.trainer.global_step >= 2 else 0)

    monkeypatch.setattr("gsa.training._finite_steps._FREE", ())
    monkeypatch.setattr("gsa.training.Classifier.training_step", step)
    run = build(small(*MUON, "trainer.max_epochs=1", batches=batches))
    with pytest.raises(NotFinite, match=message):
        train(run.config, run)
    assert kept and all(map(torch.equal, kept, run.classifier.parameters()))


class Questions(Callback, TorchDispatchMode):
    """How often a device would be waited for within steps."""

    def __init__(self):
        super().__init__()
        self.asked = self.steps = 0

    def on_train_batch_start(self, *_):
        self.steps += 1
        self.__enter__()

    def on_train_batch_end(self, *_):
        self.__exit__(None, None, None)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.asked += function._schema.name in ("aten::_local_scalar_dense", "aten::nonzero", "aten::equal")
        return function(*args, **kwargs or {})


@pytest.mark.parametrize("optimizer, waits", [
    (("optimizer=muon",), False), (("optimizer=adamw",), False), (("optimizer=adam",), False),
    (("optimizer=sgd", "optimizer.momentum=0"), False), (("optimizer=adamw", "+optimizer.fused=false"), True),
])  # fmt: skip
def test_a_gpu_is_not_waited_for_between_steps(small, monkeypatch, optimizer, waits):
    """The planted failure is an optimizer that has to be told by the host. Windows are looked at on the CPU alone."""
    monkeypatch.setattr("gsa.training._finite_steps._FREE", ())
    monkeypatch.setattr("gsa.training._fused._ON", ("cpu",))
    monkeypatch.setattr("gsa.ops._by_position.check_centre", lambda window: None)
    network = "model=digits_gsa", "model.num_heads=18", "model.head_dim=8"
    run = build(small(*network, *optimizer, "trainer.max_epochs=1", "trainer.gradient_clip_val=1"))
    run.trainer.callbacks.append(questions := Questions())
    train(run.config, run)
    assert questions.steps == 4 and (questions.asked > 0) == waits


@LEFT_OUT
def test_a_bad_first_step_of_a_fused_optimizer_leaves_no_trace(small, monkeypatch):
    """Fused SGD would go on from momenta that were never written; all weights are those of a run that looks itself."""

    def spoil(module, loss):
        (loss * float("nan") if module.trainer.global_step == 0 else loss).backward()

    monkeypatch.setattr("gsa.training.Classifier.backward", spoil)
    monkeypatch.setattr("gsa.training._fused._ON", ("cpu",))
    ends = []
    for free in (("cpu",), ()):
        monkeypatch.setattr("gsa.training._finite_steps._FREE", free)
        ends.append(outcome(train(small("optimizer=sgd", folder=f"run{len(ends)}"))[1])[0])
    plain = outcome(train(small("optimizer=sgd", "+optimizer.fused=false", folder="plain"))[1])[0]
    for name, weight in plain.items():
        assert torch.equal(ends[0][name], ends[1][name])
        torch.testing.assert_close(ends[0][name], weight)


def test_the_first_bad_module_is_named(small):
    def spoil(module):
        torch.nn.init.constant_(module.network.lifting.query.weight if hasattr(module.network.lifting, "query")
                                else next(module.network.lifting.parameters()), float("nan"))  # fmt: skip

    with pytest.MonkeyPatch.context() as patch, pytest.raises(NotFinite, match=r"the output of lifting"):
        act_in(patch, 0, 1, spoil)
        train(small("trainer.max_epochs=1", "trainer.limit_train_batches=6"))


def test_it_is_looked_for_without_other_processes():
    """A batch norm would wait for their batches, but one of them may have ended already."""
    norm, stop = torch.nn.BatchNorm2d(1), FiniteSteps()
    network, modes = torch.nn.Sequential(norm, torch.nn.Identity()), []
    network[1].register_forward_hook(lambda _, given, output: (modes.append(norm.training), output / 0)[1])
    stop._batch = (torch.rand(2, 1, 3, 3), torch.zeros(2))
    assert stop._first_bad(network) == "the output of 1 (Identity)"
    assert modes == [False] and norm.training and not norm.num_batches_tracked


@pytest.mark.parametrize("callbacks", ["quiet", "none"])
def test_what_is_not_finite_is_neither_saved_nor_a_success(small, tmp_path, callbacks):
    def overflow(module):
        next(m for m in module.network.modules() if isinstance(m, torch.nn.BatchNorm3d)).running_var.fill_(math.inf)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(NotFinite, match=r"running_var is not finite after step"):
        act_in(patch, 1, 3, overflow)
        train(small("model.norm=batch", "ema=null", f"callbacks={callbacks}"))
    for file in (tmp_path / "run" / "checkpoints").glob("*.ckpt"):
        assert first_not_finite(read_checkpoint(file)["state_dict"]) is None
    assert not (tmp_path / "run" / "report.json").exists()


def test_bad_steps_in_a_row_are_not_forgotten_until_they_are_looked_at(small, monkeypatch):
    ours = gsa.training.Classifier.training_step

    def step(module, *batch):
        return ours(module, *batch) + (float("inf") if 2 <= module.trainer.global_step < 5 else 0)

    monkeypatch.setattr("gsa.training._finite_steps._FREE", ())
    monkeypatch.setattr("gsa.training.Classifier.training_step", step)
    with pytest.raises(NotFinite, match="one of the steps 0 to 7 of epoch 0"):
        train(small(*MUON, "trainer.max_epochs=1", batches=8))


def test_an_optimizer_is_no_longer_told_after_a_run(small):
    run = build(small(*MUON, "trainer.max_epochs=1"))
    train(run.config, run)
    assert [optimizer.found_inf for optimizer in run.trainer.optimizers] == [None]


@LEFT_OUT
@pytest.mark.parametrize("accumulated", [1, 2])
def test_a_forward_pass_that_is_not_finite_leaves_no_trace_in_batch_norms(small, accumulated):
    """Planted failure: without the statistics put back, they stay NaN for ever."""

    def spoil_once(module):
        hook = module.network.lifting.register_forward_hook(lambda *args: hook.remove() or args[2] * float("nan"))

    options = ("model.norm=batch", "trainer.max_epochs=1", f"trainer.accumulate_grad_batches={accumulated}")
    with pytest.MonkeyPatch.context() as patch:
        act_in(patch, 0, 2, spoil_once)
        _, objects = train(small(*options))
    state = objects["network"].state_dict()
    assert any("running_var" in name for name in state)
    assert all(value.isfinite().all() for value in state.values())


def test_the_count_of_a_mean_over_all_batches_is_put_back(monkeypatch):
    """Planted: one of no momentum is not, as it does not count."""
    norms = nn.ModuleList([nn.BatchNorm1d(2, momentum=momentum) for momentum in (None, 0.1)])
    trainer = SimpleNamespace(global_step=0, accumulate_grad_batches=1, precision_plugin=None, current_epoch=0)
    module = lightning.LightningModule()
    module.norms, steps = norms, FiniteSteps()
    steps.on_train_start(trainer, module)
    for number in range(3):
        steps.on_train_batch_start(trainer, module, None, number)
        for norm in norms:
            (norm(torch.randn(8, 2)).sum() * (float("nan") if number == 1 else 1)).backward()
        steps.on_before_optimizer_step(trainer, module, torch.optim.SGD(norms.parameters(), 0.1))
        norms.zero_grad()
    assert [int(norm.num_batches_tracked) for norm in norms] == [2, 3]


def test_a_validation_that_is_not_finite_is_told_of(small, monkeypatch):
    ours = gsa.training.Classifier.validation_step

    def step(module, batch, index):
        ours(module, (batch[0] * (float("nan") if index == 1 else 1), batch[1]), index)

    monkeypatch.setattr("gsa.training.Classifier.validation_step", step)
    with pytest.warns(UserWarning, match="the validation loss of epoch 0 is nan: validation pictures, or the logits"):
        train(small("trainer.max_epochs=1", "test=false"))
