"""A network as the backbone of another: its features in place of logits."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, TypeVar

from torch import Tensor, nn

from gsa._remembered import compare_group
from gsa.groups import Group
from gsa.models._network import Network

__all__ = ["Features"]

_T = TypeVar("_T")


class Features(nn.Module):
    """The features of a network on the way to its head.

    It also loads the weights of a whole network, with strict=False, because the head is missing here.

    The whole network runs, whichever features are wanted, until `prune` takes away what leads to none of them, which
    `gsa.create_model` does; until then, `DistributedDataParallel` may need find_unused_parameters=True.

    Args:
        network: whose head is not used.
        out_indices: which of `Network.forward_stages`, 0 for the lifted one; negative ones count from the last; all
            when None.

    Attributes:
        network: as given.
        group, num_features: of the network.
        channels: of each feature; empty where the network does not say.

    Shapes:
        [B, C, H, W] → a list of [B, channels, |H|, H′, W′]

    Raises:
        ValueError: out_indices that are no integers.
        IndexError: one that is not there; when it is run, if the network does not say how many there are.
    """

    network: Network
    out_indices: Sequence[int] | None
    channels: list[int]
    __call__: Callable[..., list[Tensor]]

    def __init__(self, network: Network, out_indices: Sequence[int] | None = None) -> None:
        super().__init__()
        if out_indices is not None and not (
            isinstance(out_indices, Sequence)
            and all(isinstance(index, Integral) and not isinstance(index, bool) for index in out_indices)
        ):
            raise ValueError(f"out_indices must be a list of integers, but got {out_indices!r}")
        self.network, self.out_indices = network, out_indices
        self.register_load_state_dict_pre_hook(_of_the_network)
        compare_group(self)  # of the network, as what its layers say is not found behind the names of here
        self.channels = self._chosen(network.stage_channels) if network.stage_channels else []

    @property
    def group(self) -> Group:
        return self.network.group

    @property
    def num_features(self) -> int:
        return self.network.num_features

    @property
    def pretrained_cfg(self) -> dict[str, Any]:
        """As `Network.pretrained_cfg`."""
        return self.network.pretrained_cfg

    def prune(self) -> None:
        """Take away what leads to none of the features, so that it costs nothing and every parameter has a gradient.

        The head goes first, if there is one. Networks that do not say their channels, or define no `keep_stages`, keep
        all else.
        """
        if self.network.num_classes:
            self.network.reset_classifier(0)
        if self.channels and self.out_indices is not None:
            self.out_indices = self._chosen(range(len(self.network.stage_channels)))
            self.network.keep_stages(max(self.out_indices) + 1)

    def no_weight_decay(self) -> set[str]:
        """As `Network.no_weight_decay`."""
        return {f"network.{name}" for name in self.network.no_weight_decay()}

    def forward(self, images: Tensor) -> list[Tensor]:
        return self._chosen(self.network.forward_stages(images))

    def _chosen(self, all_of_them: Sequence[_T]) -> list[_T]:
        count = len(all_of_them)
        indices = range(count) if self.out_indices is None else self.out_indices
        for index in indices:
            if not -count <= index < count:
                raise IndexError(f"this network has the features 0 to {count - 1}, but out_indices names {index}")
        return [all_of_them[index] for index in indices]


def _of_the_network(features: nn.Module, weights: dict[str, Any], prefix: str, *_: Any) -> None:
    """Before weights are loaded: those of a network that stands alone are those of the network in here."""
    for name in [name for name in weights if name.startswith(prefix)]:
        own = name.removeprefix(prefix)
        if not own.startswith("network."):
            weights[f"{prefix}network.{own}"] = weights.pop(name)
