"""A network by name, with the data and the recipe it is trained with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gsa.models._keywords import build, defaults, plain
from gsa.models._network import Network

__all__ = ["Preset"]

# Keywords of all blocks, and those that say it of each block or stage, with which they say nothing.
_SAID_OF_EACH = {"neighbourhood": ("neighbourhoods",), "num_heads": ("content_heads", "positional_heads")}
# What published=True has, whatever is said.
_AS_PUBLISHED = {"form": "summed", "block": "published", "pixels": "sum"}
_POOLS = ("pools", "stem_pool")


@dataclass(frozen=True)
class Preset:
    """A row of a table.

    Attributes:
        network: class of the network.
        data, recipe: what it is trained on and how, as choices of the configuration groups of these names.
        options: keywords of the network that differ from its defaults, flat.
        image_size: side of the pictures of these data, in pixels.
    """

    network: type[Network]
    data: str
    recipe: str
    options: Mapping[str, Any]
    image_size: int

    @property
    def keywords(self) -> dict[str, Any]:
        """All keywords of the network with their values, flat, as `gsa.create_model` takes them."""
        return {**defaults(self.network), **self.options}

    def build(self, keywords: Mapping[str, Any]) -> Network:
        """The network with these keywords in place of its own."""
        every = {**self.keywords, **keywords}
        network = build(self.network, every)
        network.image_size = every.get("image_size", self.image_size)
        return network

    def refuse_void(self, keywords: Mapping[str, Any]) -> None:
        """Refuse a keyword that changes nothing, as others say of each block or stage, or of the whole, what it is.

        Raises:
            ValueError: naming those, and what to set.
        """
        changed = {key for key in keywords if plain(keywords[key]) != plain(self.keywords[key])}
        if keywords.get("published"):
            for key, value in _AS_PUBLISHED.items():
                if key in changed and keywords[key] != value:
                    raise ValueError(f"networks with published=True have {key}={value!r}, but got {keywords[key]!r}")
            for key in changed.intersection(_POOLS):
                value = keywords[key]
                if set(value if isinstance(value, list | tuple) else [value]) - {0, 2, None}:
                    raise ValueError(
                        f"networks with published=True have pools of 2×2 at stride 2, but got {key}={value}"
                    )
        for keyword, others in _SAID_OF_EACH.items():
            if keyword in changed and not changed.intersection(others) and self.keywords.get(others[0]) is not None:
                said = " and ".join(f"{key}={plain(self.keywords[key])!r}" for key in others)
                raise ValueError(
                    f"{keyword}={keywords[keyword]!r} would change nothing, as {said} say what each stage or block "
                    f"has: change these, or set {others[0]}=None as well (on the command line model.{others[0]}=null)"
                )

    def as_written(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """All keywords as a file means them.

        Runs and exports state all keywords of their time. Of those that came later they have the defaults, with which
        networks are what they were before, and not those of the preset, which may be another network by now. What
        states fewer than half says how it differs from the preset.
        """
        free = ("in_channels", "num_classes")  # as the data say
        known = {key: value for key, value in defaults(self.network).items() if key not in free}
        is_whole = 2 * sum(key in written for key in known) >= len(known)
        return (known if is_whole else {}) | dict(written)

    @property
    def training_only(self) -> tuple[str, ...]:
        """Keywords that change how the network learns, but not what it computes."""
        return self.network.training_only
