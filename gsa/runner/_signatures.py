"""What targets take, told without importing them, which takes seconds."""

import inspect
import logging
import re
import sys
import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from hydra.utils import get_object

from gsa._kept import kept
from gsa.runner._quiet import at_levels

__all__ = ["Signature", "signature"]

_PLAIN: tuple[Any, ...] = (True, 1, 1.0, "", None, [], {})  # an example of every type that YAML has


@dataclass(frozen=True)
class Parameter:
    """What may be given for one argument.

    Args:
        words: its type, for people.
        kinds: names of the plain types that fit: int, float, str, bool, NoneType, list, dict.
        choices: values that fit besides.
    """

    words: str
    kinds: list[str]
    choices: list[Any]

    def takes(self, value: Any) -> bool:
        """Whether a plain value may be passed; those that cannot be told pass, such as what has a target of its own."""
        is_made = isinstance(value, dict) and "_target_" in value
        return is_made or type(value).__name__ in self.kinds or value in self.choices


@dataclass(frozen=True)
class Signature:
    """The arguments of a target; an open one takes any others, too."""

    parameters: Mapping[str, Parameter]
    open: bool


def signature(target: str) -> Signature:
    """Of a target by its dotted name: those of configs/ are kept between commands, others are imported.

    Raises:
        Exception: whatever the import of the target does.
    """
    found = None if "lightning" in sys.modules else _kept_ones().get(target)
    if found is None:  # nothing takes long beside Lightning
        return _looked_up(target)
    return Signature({name: Parameter(**plain) for name, plain in found["parameters"].items()}, found["open"])


@cache
def _kept_ones() -> dict[str, Any]:
    return kept("signatures", _of_configs, "lightning")


def _of_configs() -> dict[str, Any]:
    """Plain values of the signature of every target in configs/ that can be imported here, and of our networks."""
    found = {"gsa.create_model": asdict(_looked_up("gsa.create_model"))}
    for file in Path(str(files("gsa.configs"))).rglob("*.yaml"):
        for target in re.findall(r"_target_: *([\w.]+)", file.read_text(encoding="utf-8")):
            with suppress(Exception):  # said where the target is asked for
                found[target] = asdict(_looked_up(target))
    return found


def _looked_up(target: str) -> Signature:
    with at_levels({"hydra.utils": logging.CRITICAL}):  # the error says it
        parameters = inspect.signature(get_object(target)).parameters
    named = {name: _parameter(p.annotation) for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD}
    return Signature(named, open=any(p.kind is p.VAR_KEYWORD for p in parameters.values()))


def _parameter(annotation: Any) -> Parameter:
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    options = typing.get_args(annotation) if is_union else (annotation,)
    kinds = [type(value).__name__ for value in _PLAIN if any(_fits(value, option) for option in options)]
    choices = [choice for option in options for choice in _literals(option)]
    return Parameter(" or ".join(dict.fromkeys(map(_in_words, options))), kinds, choices)


def _literals(option: Any) -> tuple[Any, ...]:
    return typing.get_args(option) if typing.get_origin(option) is typing.Literal else ()


def _fits(value: Any, option: Any) -> bool:
    """Whether a value may be passed where an annotation names this, but for its literals."""
    origin = typing.get_origin(option)
    if origin is typing.Literal:
        return False
    if option is None:
        return value is None
    kind = origin or option
    if not isinstance(kind, type) or kind in (Any, inspect.Parameter.empty):
        return True
    if kind is tuple and isinstance(value, list):  # YAML has no tuples
        return True
    if isinstance(value, bool):
        return kind in (bool, object)
    try:
        return isinstance(value, kind) or (kind is float and isinstance(value, int))
    except TypeError:  # a protocol that is not checked at run time
        return True


def _in_words(option: Any) -> str:
    if literals := _literals(option):
        return " or ".join(map(repr, literals))
    return "None" if option is type(None) else getattr(option, "__name__", str(option))
