"""Group self-attention expresses group convolutions: a layer of heads for a given filter, and what cannot be one."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from gsa.encodings import Neighbourhood, QuadraticEncoding
from gsa.nn import GroupConvolution, GroupSelfAttention, LiftingConvolution, LiftingSelfAttention
from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error

__all__ = ["as_self_attention", "expression_error", "pose_dependence", "receptive_field"]


def as_self_attention(
    convolution: GroupConvolution | LiftingConvolution, sharpness: float = 40.0
) -> GroupSelfAttention | LiftingSelfAttention:
    """The self-attention that computes a given group convolution: a head for each offset and relative pose.

        Σ_e W_e Σ_{j,h̃} softmax_{j,h̃}( −α |h⁻¹(j − i) − Δ_e|² + α p_e·p(h⁻¹h̃) ) x(j, h̃) + b
            → Σ_{u,m} W(h⁻¹m, h⁻¹u) x(i + u, m) + b      as α → ∞,   W_e = W(p_e, Δ_e)

    Cells and poses lie at least 1 apart in the scores, so no head has more than (n²|H| − 1) e^{−α} of its weight
    elsewhere. Values are the features themselves; W_o holds the filter. The first layer of a network (lifting) has no
    poses among its keys, and k² heads.

    Source: Cordonnier, Loukas & Jaggi 2020, theorem 1, carried to groups as Romero & Cordonnier state it ("given enough
    heads, group self-attention can describe any group convolutional filter"). It holds for form="regular"; for
    "summed" see `pose_dependence`.

    Args:
        convolution: on a group of the grid, with an odd side k and at most the padding that keeps the picture's size.
        sharpness: α, in 1/pixels², in (0, 100].

    Returns:
        A layer with the convolution's shapes, dtype and device; equal to it wherever the filter lies within the
        picture (where it does not, attention leaves out the keys that are not there, and convolution counts zeros).

    Raises:
        ValueError: an even side, more padding, another sharpness.
    """
    side, reach = convolution.kernel_size, convolution.dilation * (convolution.kernel_size - 1) // 2
    if side % 2 == 0 or convolution.padding > reach:
        raise ValueError(
            f"self-attention expresses convolutions with odd sides and a padding of at most {reach} pixels here, "
            f"but got the side {side} and a padding of {convolution.padding}"
        )
    if not 0 < sharpness <= 100:
        raise ValueError(f"sharpness must be in (0, 100], but got {sharpness}")
    heads = side**2 * convolution.in_poses
    sizes = convolution.group, convolution.in_channels, convolution.out_channels
    options: dict[str, Any] = {
        "num_heads": heads,
        "positional_heads": heads,
        "head_dim": convolution.in_channels,
        "neighbourhood": 2 * reach + 1,
        "encoding": "quadratic",
        "crop": reach - convolution.padding,
    }
    layer: GroupSelfAttention | LiftingSelfAttention
    if isinstance(convolution, LiftingConvolution):
        layer = LiftingSelfAttention(*sizes, **options)
    else:
        layer = GroupSelfAttention(*sizes, **options, form="regular")
    _place_heads(layer.to(convolution.weight), convolution, sharpness)
    return layer


@torch.no_grad()
def _place_heads(
    layer: GroupSelfAttention | LiftingSelfAttention,
    convolution: GroupConvolution | LiftingConvolution,
    sharpness: float,
) -> None:
    """Head (m, u) looks at pose m and cell u of the filter, and carries W(m, u)."""
    encoding, weight = layer.encoding, convolution.weight
    assert isinstance(encoding, QuadraticEncoding) and layer.positional_value is not None
    side, poses = convolution.kernel_size, convolution.in_poses
    cells = Neighbourhood(side).pixels(side, side, like=weight).flatten(0, 1)
    encoding.offset.copy_(convolution.dilation * cells.repeat(poses, 1))
    encoding.raw_sharpness.fill_(sharpness + math.log(-math.expm1(-sharpness)))  # of which softplus is α
    encoding.preference.copy_(sharpness * encoding.pose_vectors[:poses].repeat_interleave(side**2, 0))
    identity = torch.eye(convolution.in_channels, dtype=weight.dtype, device=weight.device)
    layer.positional_value.weight.copy_(identity.repeat(layer.num_heads, 1))
    layer.out.weight.copy_(weight.movedim(1, -1).flatten(1))
    layer.out.bias.zero_()
    if convolution.bias is not None:
        layer.out.bias.copy_(convolution.bias)


def expression_error(convolution: GroupConvolution | LiftingConvolution, x: Tensor, sharpness: float = 40.0) -> float:
    """How far the self-attention made of a group convolution is from it, where the filter lies within the picture.

        ‖attention(x) − convolution(x)‖ / ‖convolution(x)‖

    Args:
        convolution, sharpness: as in `as_self_attention`.
        x: image [B, C, H, W] for a lifting convolution, feature [B, C, |H|, H, W] for a group convolution.

    Raises:
        ValueError: a picture in which the filter lies nowhere.
    """
    layer, border = as_self_attention(convolution, sharpness), convolution.padding
    with torch.no_grad():
        expected, found = convolution(x), layer(x)
    height, width = expected.shape[-2:]
    if min(height, width) <= 2 * border:
        raise ValueError(f"a filter of this size lies nowhere within {x.shape[-2]}×{x.shape[-1]} pixels")
    inside = (..., slice(border, height - border), slice(border, width - border))
    return relative_error(found[inside], expected[inside])


def pose_dependence(layer: nn.Module, x: Tensor) -> float:
    """How much a layer tells output poses apart where all pixels look alike.

        ‖y − mean_h y‖ / ‖y‖,   y = Φ(x̄),   x̄(i, h̃) = mean_j x(j, h̃)

    Of the summed form it is zero: its output pose is seen by ρ_x(h⁻¹(j − i)) alone, which decides between pixels, and
    here they are all alike (zeros beyond the border are not). So on x̄ the best that any number of summed heads can
    give in the place of a group convolution is its mean over poses: the convolution's `pose_dependence` is the least
    relative error of that.

    Args:
        layer: Φ, from features to features [B, C′, |H|, H′, W′].
        x: feature [B, C, |H|, H, W]; only its mean over pixels is used.
    """
    with torch.no_grad(), evaluating(layer):
        y = layer(x.mean((-2, -1), keepdim=True).expand_as(x))
    return relative_error(y.mean(2, keepdim=True).expand_as(y), y)


def receptive_field(layer: nn.Module, x: Tensor) -> int:
    """How many pixels a layer's answer at the centre of its map depends on: where ∂f(x)_centre/∂x is not zero.

    Attention sees further for no more parameters, a convolution for n² times as many. Source: Romero & Cordonnier 2021
    ("since group self-attention typically handles larger receptive fields, the family of functions is also larger").

    Args:
        layer: of features or pictures [B, C, …, H, W].
        x: one for which it is measured.
    """
    x = x.detach().requires_grad_()
    with evaluating(layer):
        output = layer(x)
        height, width = (side // 2 for side in output.shape[-2:])
        (gradient,) = torch.autograd.grad(output[..., height, width].sum(), x)
    return int((gradient.abs().flatten(0, -3).sum(0) > 0).sum())
