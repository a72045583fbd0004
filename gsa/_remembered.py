"""Weights that remember their group: those of R8 do not pass for those of R4M, though the shapes agree."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from torch import nn

from gsa.groups import Group

__all__ = ["compare_group", "groups_within", "remember_group", "with_groups", "write_group"]

_OTHERS = "but these weights are of"  # said once of a network


def remember_group(module: nn.Module) -> None:
    """Have `module.group` written beside its weights in a `state_dict`, and weights of another group refused.

    Refused in the manner of torch, by the RuntimeError of `load_state_dict`. Weights that say nothing of their group,
    as in a plain dict, are taken.
    """
    write_group(module)
    compare_group(module)


def write_group(module: nn.Module) -> None:
    """Have `module.group` written beside its weights in a `state_dict`."""
    module.register_state_dict_post_hook(_write)


def compare_group(module: nn.Module) -> None:
    """Have weights of another group refused, as by `remember_group`."""
    module.register_load_state_dict_pre_hook(_compare)


def groups_within(network: nn.Module) -> dict[str, str]:
    """The groups of all modules inside that remember theirs, by name: what averages and copies of weights forget."""
    metadata: dict[str, dict[str, Any]] = getattr(network.state_dict(), "_metadata", {})
    return {name: said["group"] for name, said in metadata.items() if name and "group" in said}


def with_groups(weights: Mapping[str, Any], groups: Mapping[str, str]) -> dict[str, Any]:
    """Weights that say again what `groups_within` said of their network."""
    told: Any = OrderedDict(weights)
    told._metadata = OrderedDict({name: {"group": group} for name, group in groups.items()})
    return told


def _write(module: nn.Module, state_dict: dict[str, Any], prefix: str, metadata: dict[str, Any]) -> None:
    metadata["group"] = _of(module).name


def _compare(
    module: nn.Module,
    state_dict: dict[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    group, theirs = _of(module).name, metadata.get("group", _of(module).name)
    holds_some = any(name.startswith(prefix) for name in state_dict)  # and not those of a head alone
    if theirs != group and holds_some and not any(_OTHERS in error for error in errors):
        errors.append(
            f"{prefix[:-1] or 'this layer'} is a {type(module).__name__} of {group}, {_OTHERS} {theirs}:"
            f" make it one of {theirs} (dict(weights) is asked for its shapes alone)"
        )


def _of(module: nn.Module) -> Group:
    group = module.group
    assert isinstance(group, Group)
    return group
