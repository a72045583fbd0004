"""Attention in the place of an ordinary convolution: an image in, an image out, turning with its input."""

import math
import warnings
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from gsa import groups, ops
from gsa._checks import check_floating, check_pixels, check_positive
from gsa.encodings import EvenNeighbourhood, Neighbourhood, QuadraticEncoding
from gsa.groups import Group
from gsa.nn._border import check_border, zeros_beyond

__all__ = ["PosedAttention"]

_SHARPNESS = 4.0  # of heads that were entries of a filter: 93 % of a head's weight is on its pixel
_MUCH = 16  # times the products of a convolution


class PosedAttention(nn.Module):
    """Attention by position in every pose of a group; at every pixel, the strongest answer of all poses is kept.

        y(i) = max_h Σ_e W_e Σ_j softmax_j( α_e (|Δ_e|² − |h⁻¹(j − i) − Δ_e|²) ) x(j) + b

    It commutes with the group, as maps of plain pictures do. Every head has an offset Δ, a sharpness α
    (`gsa.encodings.QuadraticEncoding`) and a map of the channels; with sharp heads on the pixels of a window this is
    the largest of a filter's responses in all poses.

    Args:
        group: the point group H, or its name.
        in_channels, out_channels: C and C′.
        neighbourhood: side n of the window in pixels. The centre of an even one lies between pixels: it is asked for
            at their corners, H + 1 and W + 1 in the place of H and W below, where all of it is in the picture or its
            zeros.
        heads: number of heads; n² when None, one for each pixel of the window.
        stride: every so many-th pixel is kept; exact where it divides side − 2·crop − 1 (side − 2·crop at corners).
        crop: pixels left out at every border; n/2 of corners beyond which keys are hidden.
        bias: whether there is b.
        border: what lies beyond the picture: "hidden" keys that take no part, or "zeros", pixels of zero that do; see
            `AttentionOptions`.
        channel_groups: as many groups of channels keep to themselves, as in a grouped convolution: W_e is zero between
            them.

    Shapes:
        [B, C, H, W] → [B, C′, ⌈(H − 2·crop) / stride⌉, ⌈(W − 2·crop) / stride⌉]

    Raises:
        ValueError: an argument or a shape out of its range.
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self,
        group: Group | str,
        in_channels: int,
        out_channels: int,
        neighbourhood: int = 3,
        heads: int | None = None,
        stride: int = 1,
        crop: int = 0,
        bias: bool = True,
        border: str = "hidden",
        channel_groups: int = 1,
    ) -> None:
        super().__init__()
        check_border(border)
        check_positive(neighbourhood=neighbourhood)
        self.neighbourhood = _window(neighbourhood)
        heads = neighbourhood**2 if heads is None else heads
        check_positive(in_channels=in_channels, out_channels=out_channels, heads=heads, stride=stride)
        check_positive(channel_groups=channel_groups)
        if in_channels % channel_groups or out_channels % channel_groups:
            raise ValueError(
                f"channel_groups must divide in_channels={in_channels} and out_channels={out_channels}, "
                f"but got {channel_groups}"
            )
        check_pixels(crop=crop)
        if neighbourhood % 2 == 0 and border == "hidden" and crop < neighbourhood // 2:
            raise ValueError(
                f"at corners of pixels all of a {neighbourhood}×{neighbourhood} window must be in the picture, or "
                f"there be zeros: expected crop={neighbourhood // 2} or more, or border='zeros', but got crop={crop}"
            )
        self.group, self.stride, self.crop, self.border = groups.group(group), stride, crop, border
        self.padding = zeros_beyond(border, neighbourhood, crop)
        self.in_channels, self.out_channels, self.channel_groups = in_channels, out_channels, channel_groups
        self.encoding = QuadraticEncoding(
            self.group, in_channels, heads, self.neighbourhood, lifting=True, start_sharpness=_SHARPNESS
        )
        self.weight = nn.Parameter(torch.empty(out_channels, heads, in_channels // channel_groups))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the maps anew; heads are put back by the encoding's own."""
        nn.init.normal_(self.weight, std=math.sqrt(2 / self.weight[0].numel()))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @classmethod
    def of_convolution(cls, convolution: nn.Module, group: Group | str, border: str = "zeros") -> Self:
        """Heads that start as the entries of a convolution's filters: at their pixels, with their weights.

        With `border="zeros"` what lies beyond the picture is what the convolution is padded with.

        Raises:
            ValueError: an unknown border; sides that differ, padding that differs, is more than half of the filter, is
                not of zeros or, of even sides, is hidden; weights that are made of others (parametrised, pruned),
                hooks, a class of somebody's own.
        """
        if type(convolution) is not nn.Conv2d or not _is_plain(convolution) or convolution.padding_mode != "zeros":
            raise ValueError(
                "attention replaces plain nn.Conv2d padded with zeros, whose weights are parameters of their own and "
                f"which has no hooks, but got {convolution}"
            )
        side, dilation, padding, stride = (
            _single(convolution, name) for name in ("kernel_size", "dilation", "padding", "stride")
        )
        extent = dilation * (side - 1) + 1
        crop = extent // 2 - padding
        for rule, kept in (
            ("as much padding on all sides", convolution.padding != "same" or extent % 2),
            (f"at most {extent // 2} pixels of padding", crop >= 0),
        ):
            if not kept:
                raise ValueError(f"attention replaces convolutions with {rule}, but got {convolution}")
        if extent**2 > _MUCH * side**2:
            warnings.warn(
                f"heads move, so that attention in the place of {convolution} looks at all {extent}×{extent} pixels: "
                f"{extent**2 // side**2} times the products",
                stacklevel=2,
            )
        channels = convolution.in_channels, convolution.out_channels
        has_bias = convolution.bias is not None
        made = cls(group, *channels, extent, side**2, stride, crop, has_bias, border, convolution.groups)
        made.to(convolution.weight.device, convolution.weight.dtype)
        cells = _window(side).pixels(side, side, like=torch.empty(0, device="cpu"))
        made.encoding.start_at(dilation * cells.flatten(0, 1))
        with torch.no_grad():
            made.weight.copy_(convolution.weight.flatten(2).transpose(1, 2))
            if made.bias is not None and convolution.bias is not None:
                made.bias.copy_(convolution.bias)
                made.bias.requires_grad_(convolution.bias.requires_grad)
        for parameter in (made.weight, *made.encoding.parameters()):
            parameter.requires_grad_(convolution.weight.requires_grad)
        return made.train(convolution.training)

    def forward(self, images: Tensor) -> Tensor:
        if images.ndim != 4 or images.shape[1] != self.in_channels:
            raise ValueError(
                f"posed attention takes images [B, {self.in_channels}, H, W], but got the shape {list(images.shape)}"
            )
        check_floating(images, "attention")
        height, width = (side + 2 * self.padding for side in images.shape[-2:])
        scores = self.encoding.position_scores(self.neighbourhood, height, width)
        window = self.neighbourhood.mask(height, width, images.device)
        lifted = ops.attend_by_position(
            images.unsqueeze(2),
            scores,
            window,
            None,
            self.weight,
            self.bias,
            padding=self.padding,
            crop=self.crop,
            stride=self.stride,
            channel_groups=self.channel_groups,
        )
        return lifted.amax(2)

    def extra_repr(self) -> str:
        side = self.neighbourhood.size
        return (
            f"{self.group.name}, {self.in_channels} → {self.out_channels}, {self.encoding.num_heads} heads, "
            f"{side}×{side}, stride={self.stride}, crop={self.crop}, bias={self.bias is not None}, "
            f"border={self.border}" + (f", channel_groups={self.channel_groups}" if self.channel_groups > 1 else "")
        )


def _window(side: int) -> Neighbourhood:
    return Neighbourhood(side) if side % 2 else EvenNeighbourhood(side)


def _is_plain(convolution: nn.Conv2d) -> bool:
    """Whether it has no weights that are made of others, and nothing else hangs on it."""
    made = is_parametrized(convolution) or not isinstance(convolution._parameters.get("weight"), nn.Parameter)
    hooks = (getattr(convolution, f"_{name}_hooks") for name in ("forward_pre", "forward", "backward_pre", "backward"))
    return not (made or any(hooks))


def _single(convolution: nn.Conv2d, name: str) -> int:
    """A size that is the same in both directions."""
    value = getattr(convolution, name)
    if value == "same":
        value = tuple(d * (k - 1) // 2 for d, k in zip(convolution.dilation, convolution.kernel_size, strict=True))
    if value == "valid":
        return 0
    if value[0] != value[1]:
        raise ValueError(f"attention replaces convolutions with the same {name} in both directions, but got {value}")
    return int(value[0])
