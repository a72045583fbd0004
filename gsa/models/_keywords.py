"""A network's keywords, flat: those of its signature, with the fields of the options that it takes in their place."""

import inspect
from dataclasses import fields, is_dataclass
from typing import Any

from gsa.models._network import Network

__all__ = ["build", "defaults"]


def defaults(network: type[Network]) -> dict[str, Any]:
    """All keywords with their values; those that matter in training only stand together, where the last of them is."""
    flat: dict[str, Any] = {}
    for parameter in inspect.signature(network).parameters.values():
        flat |= _fields(parameter.default) or {parameter.name: parameter.default}
    names = list(flat)
    last = max((names.index(name) for name in network.training_only), default=0)
    order = {name: last if name in network.training_only else names.index(name) for name in names}
    return {name: flat[name] for name in sorted(names, key=order.__getitem__)}


def build(network: type[Network], keywords: dict[str, Any]) -> Network:
    """A network from all of its flat keywords."""
    arguments = {}
    for parameter in inspect.signature(network).parameters.values():
        options = _fields(parameter.default)
        arguments[parameter.name] = (
            type(parameter.default)(**{name: keywords[name] for name in options})
            if options
            else keywords[parameter.name]
        )
    return network(**arguments)


def _fields(default: Any) -> dict[str, Any]:
    """Fields and values of options; nothing for anything else."""
    return {field.name: getattr(default, field.name) for field in fields(default)} if is_dataclass(default) else {}
