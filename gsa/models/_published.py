"""Where the published network differs from ours, in one place."""

import warnings

from torch import nn

from gsa._checks import check_choice
from gsa.encodings import FunctionalEncoding
from gsa.nn import (
    AttentionBlock,
    GroupSelfAttention,
    LiftingSelfAttention,
    PointwiseLinear,
    SpatialPool,
)
from gsa.nn import norm as make_norm

__all__ = ["PublishedBlock", "as_published", "use_pose_index"]

_EPS = 1e-12


class PublishedBlock(AttentionBlock):
    """The residual block with the mlp of the public code: norm ∘ linear(C/2 → C) ∘ swish ∘ norm ∘ linear(C → C/2)."""

    def make_mlp(self, norm: str, channels: int) -> nn.Sequential:
        hidden = max(channels // 2, 1)
        return nn.Sequential(
            PointwiseLinear(channels, hidden),
            make_norm(norm, hidden),
            nn.SiLU(),
            PointwiseLinear(hidden, channels),
            make_norm(norm, channels),
        )


def as_published(network: nn.Module) -> None:
    """Give a network the numbers of the public code, as far as they are not arguments of its parts.

    Norms divide by √(σ² + 1e-12), and scores by √C_in in place of √d; the encoding's first biases start at 0, where
    LayerNorm leaves of a coordinate little more than its sign; every pool is 2×2 at stride 2, exact or not.
    """
    for module in network.modules():
        if isinstance(module, nn.GroupNorm | nn.LayerNorm):
            module.eps = _EPS
        elif isinstance(module, LiftingSelfAttention | GroupSelfAttention):
            module.query_scale = (module.head_dim / module.in_channels) ** 0.5
        elif isinstance(module, SpatialPool):
            module.kernel = module.stride = 2
        elif isinstance(module, FunctionalEncoding):
            module.start_without_biases()


def use_pose_index(network: nn.Module, index: str) -> None:
    """Choose the group term of every layer in the summed form, "corrected" or "published"; the second warns.

    Raises:
        ValueError: another index, or a published one for layers that are not summed.
    """
    check_choice(("corrected", "published"), pose_index=index)  # of networks without such layers, too
    layers = [module for module in network.modules() if isinstance(module, GroupSelfAttention)]
    for layer in layers:
        layer.use_pose_index(index)
    if index == "published" and layers and layers[0].group.order > 1:
        warnings.warn(
            f"with pose_index='published' this network is not equivariant to {layers[0].group.name}: a quarter turn of "
            "a digit changes the logits of rotmnist_r4_sa by 0.2 to 0.6 % as it starts (docs/published.md)",
            stacklevel=3,
        )
