"""Networks by name."""

from typing import Any

from gsa._nearest import nearest
from gsa.models._keywords import build
from gsa.models._network import Network
from gsa.models._preset import Preset
from gsa.models._presets import PRESETS

__all__ = ["create_model", "list_models", "preset"]


def list_models() -> list[str]:
    """Names of all networks, in the order of the paper's tables."""
    return list(PRESETS)


def create_model(name: str, **overrides: Any) -> Network:
    """Build a network by name.

    Args:
        name: one of `list_models()`; in_channels and num_classes are those of its data set.
        overrides: keywords of the network, such as group=, neighbourhood=, form=, num_classes=; flat, even where the
            network takes some of them together as options.

    Raises:
        ValueError: unknown name; a value out of its range.
        TypeError: a keyword that the network does not have.
    """
    chosen = preset(name)
    keywords = chosen.keywords
    for keyword in overrides:
        if keyword not in keywords:
            hint = nearest(keyword, keywords)
            raise TypeError(f"{name} has no keyword {keyword!r}{hint}; it has {list(keywords)}")
    return build(chosen.network, keywords | overrides)


def preset(name: str) -> Preset:
    """A network by name: its class, keywords, data set and recipe.

    Raises:
        ValueError: unknown name.
    """
    if name not in PRESETS:
        raise ValueError(f"unknown network {name!r}{nearest(name, PRESETS)}; the networks are {list_models()}")
    return PRESETS[name]
