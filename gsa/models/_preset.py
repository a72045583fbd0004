"""A network by name, with the data and the recipe it is trained with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gsa.models._keywords import defaults
from gsa.models._network import Network

__all__ = ["Preset"]


@dataclass(frozen=True)
class Preset:
    """A row of a table.

    Attributes:
        network: class of the network.
        data, recipe: what it is trained on and how, as choices of the configuration groups of these names.
        options: keywords of the network that differ from its defaults, flat.
    """

    network: type[Network]
    data: str
    recipe: str
    options: Mapping[str, Any]

    @property
    def keywords(self) -> dict[str, Any]:
        """All keywords of the network with their values, flat, as `gsa.create_model` takes them."""
        return {**defaults(self.network), **self.options}

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
