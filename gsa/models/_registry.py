"""Networks by name."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, overload

from gsa._nearest import nearest
from gsa.models._features import Features
from gsa.models._network import Network
from gsa.models._preset import Preset
from gsa.models._presets import PRESETS
from gsa.models._pretrained import list_pretrained, load_pretrained

__all__ = ["create_model", "list_models", "preset"]


def list_models(pattern: str | Sequence[str] = "*", pretrained: bool = False) -> list[str]:
    """Names of networks, in the order of the paper's tables.

    Args:
        pattern: what names must match, with wildcards as for files, such as "rotmnist*"; of several, any one.
        pretrained: only those whose trained weights come with the package.
    """
    known = list_pretrained() if pretrained else PRESETS
    patterns = (pattern,) if isinstance(pattern, str) else pattern
    return [name for name in PRESETS if name in known and any(fnmatchcase(name, each) for each in patterns)]


@overload
def create_model(
    name: str, *, pretrained: bool = ..., features_only: Literal[False] = ..., **overrides: Any
) -> Network: ...
@overload
def create_model(
    name: str,
    *,
    pretrained: bool = ...,
    features_only: Literal[True],
    out_indices: Sequence[int] | None = ...,
    **overrides: Any,
) -> Features: ...
@overload
def create_model(
    name: str,
    *,
    pretrained: bool = ...,
    features_only: bool,
    out_indices: Sequence[int] | None = ...,
    **overrides: Any,
) -> Network | Features: ...
def create_model(
    name: str,
    *,
    pretrained: bool = False,
    features_only: bool = False,
    out_indices: Sequence[int] | None = None,
    **overrides: Any,
) -> Network | Features:
    """Build a network by name.

    Args:
        name: one of `list_models()`; in_channels and num_classes are those of its data set.
        pretrained: with the trained weights that come with the package, where there are some (`list_pretrained()`);
            `network.pictures.normalise` takes raw pictures in [0, 1]. As any new network it is in training mode:
            call `eval()` to use it as it is.
        features_only: its features in place of logits, as `gsa.models.Features`.
        out_indices: which of them; what leads to none of them is left out.
        overrides: keywords of the network, such as group=, neighbourhood=, form=, num_classes=; flat, even where the
            network takes some of them together as options.

    Returns:
        A `Network`, or `Features`.

    Raises:
        ValueError: unknown name; a value out of its range, or one that changes nothing, such as a window where every
            block has its own; no trained weights of this network.
        TypeError: a keyword that the network does not have.
    """
    chosen = preset(name)
    keywords = chosen.keywords
    for keyword in overrides:
        if keyword not in keywords:
            hint = nearest(keyword, keywords)
            raise TypeError(f"{name} has no keyword {keyword!r}{hint}; it has {list(keywords)}")
    if out_indices is not None and not features_only:
        raise ValueError("out_indices chooses among features: set features_only=True")
    if features_only and "num_classes" in overrides:
        raise ValueError("features_only=True has no classes: leave num_classes out")
    if features_only:
        overrides = {**overrides, "num_classes": 0}
    network = chosen.build(overrides)
    chosen.refuse_void(overrides)
    if pretrained:
        load_pretrained(network, name, keywords | overrides)
    if not features_only:
        return network
    features = Features(network, out_indices)
    features.prune()
    return features


def preset(name: str) -> Preset:
    """A network by name: its class, keywords, data set and recipe.

    Raises:
        ValueError: unknown name.
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"unknown network {name!r}{nearest(name, PRESETS)}; the networks are {list_models()}")
    return PRESETS[name]
