"""Optimizers whose whole step is one kernel."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

__all__ = ["can_be_fused", "fused_on_gpus", "keep_fused"]

_ON = ("cuda",)
_KINDS = (Adam, AdamW, SGD)
_SAID = {"fused", "foreach", "differentiable"}  # of which one excludes another


def fused_on_gpus(make: Callable[..., Optimizer], network: nn.Module) -> Callable[..., Optimizer]:
    """The same optimizer, with fused=True where it is one of torch's, nothing was said, and the network is on a GPU.

    Such an optimizer leaves a step out by itself (`gsa.training.FiniteSteps`), so that the GPU is not waited for.
    """
    kind, told = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
    there = all(p.device.type in _ON and p.is_floating_point() for p in network.parameters())
    free = kind in _KINDS and not _SAID & told.keys()
    return partial(make, fused=True) if there and free else make


def can_be_fused(optimizer: Optimizer) -> bool:
    """Whether it is fused, or will be once its parameters are on a GPU."""
    groups = optimizer.param_groups
    there = all(p.device.type in _ON for group in groups for p in group["params"])
    said = [{name: group.get(name) for name in _SAID} for group in groups]
    free = all(told["fused"] is None and not any(told.values()) for told in said)
    return type(optimizer) in _KINDS and (all(told["fused"] for told in said) or (free and not there))


def keep_fused(optimizer: Optimizer) -> Optimizer:
    """The same, which stays fused, or stays not fused, when it goes on from the state of a run on another device."""
    if type(optimizer) in _KINDS:
        optimizer.register_load_state_dict_pre_hook(_as_it_is)
    return optimizer


def _as_it_is(optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any] | None:
    saved, here = state["param_groups"], optimizer.param_groups
    if len(saved) != len(here):  # which torch refuses
        return None
    groups = [of_run | {"fused": own["fused"]} for of_run, own in zip(saved, here, strict=True)]
    return state | {"param_groups": groups}
