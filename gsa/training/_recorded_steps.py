"""Training steps that a GPU is told of once: recorded as one CUDA graph, then replayed."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor, nn
from torch.optim import Optimizer

from gsa.training._cuda_graph import CudaGraph

__all__ = ["RecordedSteps", "structure"]

_AS_THEY_ARE = 3  # steps before the recording: kernels are compiled and chosen in them, and optimizers make their state
_MANY = 10  # changes, and no replay in between


class RecordedSteps:
    """Takes training steps; the first ones as they are, then by replaying one of them as a whole.

    A replay goes by what lies in the memory of the device: the batch, weights, the state of the optimizer, random
    numbers, and the learning rate, which the recording reads there. What the host decides within a step it decides in
    the recording, for all. Batches of another shape are taken as they are; where the optimizer, its options other than
    its rate, or what else is told of have changed, steps are recorded anew.

    Attributes:
        is_recording: whether a step is being recorded at the moment.
    """

    def __init__(self) -> None:
        self._graph: CudaGraph | None = None
        self._terms: tuple | None = None  # what a recording takes as given
        self._places: list[Tensor] = []  # of its inputs
        self._rates: list[Tensor] = []
        self._written: list[float] = []  # rates that lie there
        self._taken = self._changes = 0
        self.is_recording = False

    def place(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The inputs of a step, in memory of its own: where those of the recording lay, if they are alike."""
        if self._places and _shapes(inputs) == _shapes(self._places):
            for place, x in zip(self._places, inputs, strict=True):
                place.copy_(x)
            return self._places
        return [x.clone() for x in inputs]

    def take(self, step: Callable[[], object], inputs: list[Tensor], optimizer: Optimizer, *others: object) -> bool:
        """A step on these inputs, of this optimizer; whether it was replayed: its results lie where the recording's do.

        Args:
            step: all of it.
            inputs: as `place` has given them.
            optimizer: with parameters on the device.
            others: what else steps depend on.

        Raises:
            RuntimeError: a step that asks the host for something, with a note.
        """
        if (terms := (optimizer, _terms(optimizer), others)) != self._terms:
            self._begin(terms)
        assert self._graph is not None
        if self._places and inputs is not self._places:
            step()
            return False
        if self._places:
            self._write_rates(optimizer)
        elif self._taken < _AS_THEY_ARE:
            with self._graph.aside():
                step()
            self._taken += 1
            return False
        else:
            self._record(step, inputs, optimizer)
        self._graph.replay()
        self._changes = 0
        return True

    def end(self) -> None:
        """Forget what was recorded."""
        self._graph = self._terms = None
        self._places, self._rates, self._taken, self._changes = [], [], 0, 0

    def _begin(self, terms: tuple) -> None:
        graph, changes = self._graph or CudaGraph(), self._changes + 1
        self.end()
        self._graph, self._terms, self._changes = graph, terms, changes
        if changes == _MANY:
            rank_zero_warn(
                "steps are not recorded, because options of the optimizer other than its rate, or the network, change "
                "all the time: compile=false does the same"
            )

    def _record(self, step: Callable[[], object], inputs: list[Tensor], optimizer: Optimizer) -> None:
        assert self._graph is not None
        groups = optimizer.param_groups
        device = next(p.device for group in groups for p in group["params"])
        self._written = [float(group["lr"]) for group in groups]
        self._rates = [torch.tensor(rate, device=device) for rate in self._written]
        before: list[dict[str, Any]] = [{k: group[k] for k in ("lr", "capturable") if k in group} for group in groups]
        self.is_recording = True
        try:
            for group, rate, own in zip(groups, self._rates, before, strict=True):
                group.update(dict.fromkeys(own, True) | {"lr": rate})
            with self._graph.recording():
                step()
        except RuntimeError as error:
            error.add_note(
                "a step was being recorded: it may neither ask for numbers of the GPU nor copy any to it. "
                "compile=false takes steps as they are"
            )
            raise
        finally:
            self.is_recording = False
            for group, own in zip(groups, before, strict=True):
                group.update(own)
        self._places = inputs

    def _write_rates(self, optimizer: Optimizer) -> None:
        """Where the recording reads them."""
        for number, group in enumerate(optimizer.param_groups):
            if (rate := float(group["lr"])) != self._written[number]:
                self._rates[number].fill_(rate)
                self._written[number] = rate


def _shapes(tensors: Sequence[Tensor]) -> list[tuple[torch.Size, torch.dtype]]:
    return [(x.shape, x.dtype) for x in tensors]


def _terms(optimizer: Optimizer) -> list[tuple[dict, list[tuple[int, bool]]]]:
    """What a recording of an optimizer's step takes as given."""
    return [
        (
            {name: value for name, value in group.items() if name not in ("params", "lr")},
            [(id(p), p.requires_grad) for p in group["params"]],
        )
        for group in optimizer.param_groups
    ]


def structure(network: nn.Module) -> list[Any]:
    """What a recording of a network takes as given, all but the numbers in its tensors: modes, rates of dropout, …"""
    plain = (bool, int, float, str)
    return [
        (id(m), {name: value for name, value in vars(m).items() if isinstance(value, plain)}, *map(id, _tensors(m)))
        for m in network.modules()
    ]


def _tensors(module: nn.Module) -> list[Tensor]:
    """Its own."""
    return [*module.parameters(recurse=False), *module.buffers(recurse=False)]
