"""Networks by name."""

import difflib
import inspect

from torch import nn

from gsa.models._presets import PRESETS

__all__ = ["create_model", "list_models", "preset"]


def list_models() -> list[str]:
    """Names of all networks, in the order of the paper's tables."""
    return list(PRESETS)


def create_model(name: str, **overrides) -> nn.Module:
    """Build a network by name.

    Args:
        name: one of `list_models()`; in_channels and num_classes are those of its data set.
        overrides: keywords of the network, such as group=, neighbourhood=, form=, num_classes=.

    Raises:
        ValueError: unknown name.
        TypeError: a keyword that the network does not have.
    """
    keywords = preset(name)
    for keyword in overrides:
        if keyword not in keywords:
            hint = _suggestion(keyword, keywords)
            raise TypeError(f"{name} has no keyword {keyword!r}{hint}; it has {list(keywords)}")
    kind, _ = PRESETS[name]
    return kind(**{**keywords, **overrides})


def preset(name: str) -> dict:
    """All keywords of a network by name, with their values.

    Raises:
        ValueError: unknown name.
    """
    if name not in PRESETS:
        raise ValueError(f"unknown network {name!r}{_suggestion(name, PRESETS)}; the networks are {list_models()}")
    kind, keywords = PRESETS[name]
    return {p.name: p.default for p in inspect.signature(kind).parameters.values()} | keywords


def _suggestion(word: str, known) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
