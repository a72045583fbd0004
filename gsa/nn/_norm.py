"""Normalisation of features on the group: statistics and gains are shared over poses."""

from collections.abc import Callable

from torch import Tensor, nn

from gsa._checks import check_choice

__all__ = ["ChannelNorm", "norm"]


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of every pixel and pose: [B, C, …] → the same.

    A pointwise map, so it commutes with every permutation of pixels and poses.
    """

    __call__: Callable[..., Tensor]

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


_KINDS: dict[str, Callable[[int], nn.Module]] = {
    "channel": ChannelNorm,  # every pixel and pose on its own
    "sample": lambda channels: nn.GroupNorm(1, channels),  # one mean and variance for a whole sample
    "batch": nn.BatchNorm3d,  # one for each channel, over batch, poses and pixels
}


def norm(kind: str, channels: int) -> nn.Module:
    """A normalisation of [B, C, |H|, H, W] that commutes with the group.

    Args:
        kind: "channel" (over the channels of each pixel and pose), "sample" (over everything in a sample; the
            paper's), or "batch" (each channel over batch, poses and pixels).
        channels: C.

    Raises:
        ValueError: unknown kind.
    """
    check_choice(tuple(_KINDS), norm=kind)
    return _KINDS[kind](channels)
