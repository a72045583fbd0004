"""Training steps that a GPU is told of once: recorded as one CUDA graph, then replayed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor
from torch.optim import Optimizer

from gsa.training._finite_steps import FiniteSteps
from gsa.training._fused import can_be_fused
from gsa.training._muon import Muon, leaves_steps_out
from gsa.training.adapter import fuses, is_alone, scales_gradients

__all__ = ["CudaGraph", "RecordedSteps", "as_numbers", "check_recordable"]

_AS_THEY_ARE = 3  # steps before the recording: kernels are compiled and chosen in them, and optimizers make their state
_ON = ("cuda",)
_OF_OPTIMIZERS = (
    "by an optimizer that leaves out by itself what is not finite: gsa.training.muon, or torch's Adam, AdamW or SGD, "
    "fused"
)
_NO_FUSED = " (none is fused where it is told otherwise, nor in mixed precision with gradient_clip_val)"
_WITHIN = ("on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step")


class CudaGraph:
    """What is launched within `recording()`, on a stream of its own, to be launched again by `replay()`."""

    def __init__(self) -> None:
        self._graph, self._stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """On that stream, as what is done before a recording has to be."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            yield
        torch.cuda.current_stream().wait_stream(self._stream)

    def recording(self) -> AbstractContextManager:
        """Nothing is computed in it. Other threads, which pin the memory of batches, go on meanwhile."""
        return torch.cuda.graph(self._graph, stream=self._stream, capture_error_mode="thread_local")

    def replay(self) -> None:
        self._graph.replay()


class RecordedSteps:
    """Takes training steps; the first ones as they are, then by replaying one of them as a whole.

    A replay goes by what lies in the memory of the device: the batch, which is copied to where that of the recording
    lay, weights, the state of the optimizer, random numbers, and the learning rate, which is a tensor from then on.
    What the host decides within a step it decides in the recording, for all. Batches of another shape are taken as
    they are; where other parameters are trained, or options of the optimizer other than its rate have changed, steps
    are recorded anew.

    Args:
        graph: what makes a recording.
    """

    def __init__(self, graph: Callable[[], CudaGraph] | None = None) -> None:
        self._new_graph = graph or CudaGraph
        self._forget(None)

    def _forget(self, terms: Any) -> None:
        self._terms, self._taken = terms, 0
        self._graph = self._new_graph() if terms else None
        self._inputs: Sequence[Tensor] = ()
        self._rates: list[Tensor] = []

    def take(self, step: Callable[[], object], inputs: Sequence[Tensor], optimizer: Optimizer, *others: object) -> bool:
        """A step on these inputs, of this optimizer; whether it was replayed: its results lie where the recording's do.

        Args:
            step: all of it.
            inputs: on the device.
            optimizer: with parameters on the device.
            others: what else steps depend on, such as the modes of modules.

        Raises:
            ValueError: an optimizer that asks the host whether to take a step.
        """
        if (terms := (_terms(optimizer), others)) != self._terms:
            self._free_rates(optimizer)
            self._forget(terms)
        assert self._graph is not None
        if self._inputs:
            if not all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(self._inputs, inputs, strict=True)):
                step()
                return False
            for place, x in zip(self._inputs, inputs, strict=True):
                place.copy_(x)
            self._settle_rates(optimizer)
        elif self._taken < _AS_THEY_ARE:
            with self._graph.aside():
                step()
            self._taken += 1
            return False
        else:
            self._record(step, inputs, optimizer)
        self._graph.replay()
        return True

    def end(self, optimizer: Optimizer) -> None:
        """Leave the optimizer as it was."""
        self._free_rates(optimizer)
        self._forget(None)

    def _record(self, step: Callable[[], object], inputs: Sequence[Tensor], optimizer: Optimizer) -> None:
        assert self._graph is not None
        if not leaves_steps_out(optimizer):
            raise ValueError(f"a step is recorded {_OF_OPTIMIZERS}, but got {type(optimizer).__name__}")
        groups = optimizer.param_groups
        device = next(p.device for group in groups for p in group["params"])
        self._rates = [torch.as_tensor(float(group["lr"]), device=device) for group in groups]
        self._settle_rates(optimizer)
        knows = [group for group in groups if "capturable" in group]
        for group in knows:
            group["capturable"] = True
        try:
            with self._graph.recording():
                step()
        finally:
            for group in knows:
                group["capturable"] = False
        self._inputs = tuple(inputs)

    def _settle_rates(self, optimizer: Optimizer) -> None:
        """Rates where the recording looks for them, whether a schedule writes there or says numbers."""
        for group, rate in zip(optimizer.param_groups, self._rates, strict=True):
            if group["lr"] is not rate:
                rate.fill_(float(group["lr"]))
                group["lr"] = rate

    def _free_rates(self, optimizer: Optimizer) -> None:
        for group, _ in zip(optimizer.param_groups, self._rates, strict=False):
            group["lr"] = float(group["lr"])


def _terms(optimizer: Optimizer) -> list[tuple[dict, list[tuple[int, bool]]]]:
    """What a recording of an optimizer's step takes as given."""
    return [
        (
            {name: value for name, value in group.items() if name not in ("params", "lr")},
            [(id(p), p.requires_grad) for p in group["params"]],
        )
        for group in optimizer.param_groups
    ]


def as_numbers(checkpoint: dict[str, Any]) -> None:
    """The rates in a checkpoint of a run as numbers, with which a run without recordings goes on."""
    for state in checkpoint.get("optimizer_states", ()):
        for group in state["param_groups"]:
            if isinstance(rate := group.get("lr"), Tensor):
                group["lr"] = float(rate)
    for state in checkpoint.get("lr_schedulers", ()):
        if "_last_lr" in state:
            state["_last_lr"] = [float(rate) for rate in state["_last_lr"]]


def check_recordable(trainer: lightning.Trainer, optimizer: Optimizer) -> None:
    """Look at what will train before its steps are recorded.

    Raises:
        ValueError: with what the host would do within every step.
    """
    rule = "a step is recorded as a whole"
    owner: Any = trainer  # which does not declare its callbacks
    within = [c for c in owner.callbacks if not isinstance(c, FiniteSteps) and any(map(_acts(c), _WITHIN))]
    if (device := trainer.strategy.root_device.type) not in _ON:
        raise ValueError(f"{rule} on a CUDA device, but the trainer has one of type {device}")
    if not is_alone(trainer):
        raise ValueError(f"{rule} where one device is alone, but the trainer has {trainer.world_size} processes")
    if trainer.accumulate_grad_batches != 1:
        raise ValueError(f"{rule}, but accumulate_grad_batches={trainer.accumulate_grad_batches} makes it of several")
    if scales_gradients(trainer):
        raise ValueError(
            f"{rule}, but the scaler of 16-mixed asks the host in its midst: expected 32-true or bf16-mixed"
        )
    if within:
        raise ValueError(f"{rule}, but the callback {type(within[0]).__name__} acts within every one")
    if not (isinstance(optimizer, Muon) or (fuses(trainer) and can_be_fused(optimizer))):
        raise ValueError(f"{rule}, {_OF_OPTIMIZERS}, but got {type(optimizer).__name__}{_NO_FUSED}")


def _acts(callback: Callback) -> Callable[[str], bool]:
    return lambda hook: getattr(type(callback), hook) is not getattr(Callback, hook)
