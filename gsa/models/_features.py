"""A network as the backbone of another: its features in place of logits."""

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from gsa.groups import Group
from gsa.models._network import Network

__all__ = ["Features"]


class Features(nn.Module):
    """The features of a network on the way to its head.

    All of the network runs, whichever are asked for. Where the last one is not, what leads to it alone gets no
    gradient: `DistributedDataParallel` then needs find_unused_parameters=True.

    Args:
        network: whose head is not used.
        out_indices: which of `Network.forward_stages`, 0 for the lifted one; negative ones count from the last; all
            when None.

    Attributes:
        network: as given.
        group, num_features: of the network.

    Shapes:
        [B, C, H, W] → a list of [B, channels, |H|, H′, W′]

    Raises:
        ValueError: out_indices that are no integers. IndexError, when it is run: one that is not there.
    """

    __call__: Callable[..., list[Tensor]]

    def __init__(self, network: Network, out_indices: Sequence[int] | None = None) -> None:
        super().__init__()
        if out_indices is not None and not (
            isinstance(out_indices, Sequence) and all(type(index) is int for index in out_indices)
        ):
            raise ValueError(f"out_indices must be a list of integers, but got {out_indices!r}")
        self.network, self.out_indices = network, out_indices

    @property
    def group(self) -> Group:
        return self.network.group

    @property
    def num_features(self) -> int:
        return self.network.num_features

    def no_weight_decay(self) -> set[str]:
        """As `Network.no_weight_decay`."""
        return {f"network.{name}" for name in self.network.no_weight_decay()}

    def forward(self, images: Tensor) -> list[Tensor]:
        features = self.network.forward_stages(images)
        if self.out_indices is None:
            return features
        count = len(features)
        for index in self.out_indices:
            if not -count <= index < count:
                raise IndexError(f"this network has the features 0 to {count - 1}, but out_indices names {index}")
        return [features[index] for index in self.out_indices]
