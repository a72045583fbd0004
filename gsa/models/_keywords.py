"""A network's keywords, flat: those of its signature, with the fields of the options that it takes in their place."""

import inspect
from dataclasses import fields, is_dataclass
from typing import Any

from gsa.groups import Group
from gsa.models._network import Network

__all__ = ["build", "defaults", "plain"]


def defaults(network: type[Network]) -> dict[str, Any]:
    """All keywords with their values."""
    flat: dict[str, Any] = {}
    for parameter in inspect.signature(network).parameters.values():
        flat |= _fields(parameter.default) or {parameter.name: parameter.default}
    return flat


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


def plain(value: Any) -> Any:
    """A value as files and configurations hold it."""
    if isinstance(value, Group):
        return value.name
    return list(value) if isinstance(value, tuple) else value


def _fields(default: Any) -> dict[str, Any]:
    """Fields and values of options; nothing for anything else."""
    return {field.name: getattr(default, field.name) for field in fields(default)} if is_dataclass(default) else {}
