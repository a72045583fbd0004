"""Attention in the place of an ordinary convolution: an image in, an image out, turning with its input."""

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from gsa import groups, ops
from gsa._checks import check_floating, check_pixels, check_positive
from gsa.encodings import QuadraticEncoding, Rectangle
from gsa.groups import Group
from gsa.nn._border import check_border, zeros_beyond
from gsa.nn._filters import filters_of, of_transposed
from gsa.nn._strides import left_over
from gsa.nn._strongest import strongest

__all__ = ["PosedAttention"]

_SHARPNESS = 4.0  # of heads that were entries of a filter: 93 % of a head's weight is on its pixel
_MUCH = 16  # times the products of a convolution


class PosedAttention(nn.Module):
    """Attention by position in every pose of a group; at every pixel, the strongest answer of all poses is kept.

        y(i) = max_h Σ_e W_e Σ_j softmax_j( α_e (|Δ_e|² − |h⁻¹(j − i) − Δ_e|²) ) x(j) + b

    It commutes with the group, as maps of plain pictures do. Every head has an offset Δ, a sharpness α
    (`gsa.encodings.QuadraticEncoding`) and a map of the channels; with sharp heads on the pixels of a window this is
    the largest of a filter's responses in all poses.

    Where a stride leaves pixels over at one end, as one of 2 does on even sides, windows are so much larger, and heads
    are moved to where the filter stands: it is counted from one end in one pose, and from the other in another. So maps
    of any sides turn exactly.

    Args:
        group: the point group H, or its name.
        in_channels, out_channels: C and C′.
        neighbourhood: side n of the window in pixels. The centre of an even one lies between pixels: it is asked for
            before each and after the last, so that H + 1 and W + 1 take the place of H and W below.
        heads: number of heads; n² when None, one for each pixel of the window.
        stride: every so many-th pixel is kept.
        crop: pixels left out at every border; with zeros there, so many beyond it are asked as well, if negative.
        bias: whether there is b.
        border: what lies beyond the picture: "hidden" keys that take no part, or "zeros", pixels of zero that do; see
            `AttentionOptions`.
        channel_groups: as many groups of channels keep to themselves, as in a grouped convolution: W_e is zero between
            them.
        spread: s; s − 1 zeros are put between the pixels first, as in a transposed convolution of stride s, which
            makes H and W to (H − 1) s + 1 and (W − 1) s + 1.

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
        spread: int = 1,
    ) -> None:
        super().__init__()
        check_border(border)
        check_positive(neighbourhood=neighbourhood, spread=spread)
        self.neighbourhood = Rectangle(neighbourhood, neighbourhood)
        heads = neighbourhood**2 if heads is None else heads
        check_positive(in_channels=in_channels, out_channels=out_channels, heads=heads, stride=stride)
        check_positive(channel_groups=channel_groups)
        if in_channels % channel_groups or out_channels % channel_groups:
            raise ValueError(
                f"channel_groups must divide in_channels={in_channels} and out_channels={out_channels}, "
                f"but got {channel_groups}"
            )
        if border == "hidden":
            check_pixels(crop=crop)
        self.spread = spread
        self.replaces_transposed: bool | None = None  # a transposed convolution or another; None of what replaces none
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

        With `border="zeros"` what lies beyond the picture is what the convolution is padded with. A transposed
        convolution is one of pixels that zeros were put between.

        Raises:
            ValueError: an unknown border; sides that differ, padding that differs, is not of zeros or, if it is hidden,
                is more than half of the filter; weights that are made of others (parametrised, pruned), hooks, a class
                of somebody's own.
        """
        filters = filters_of(convolution, border)
        assert isinstance(convolution, nn.Conv2d | nn.ConvTranspose2d)
        window, heads = filters.window, len(filters.cells)
        if window**2 > _MUCH * heads:
            warnings.warn(
                f"heads move, so that attention in the place of {convolution} looks at all {window}×{window} pixels: "
                f"up to {window**2 // heads} times the products, on maps as large as that",
                stacklevel=2,
            )
        made = cls(
            group,
            convolution.in_channels,
            convolution.out_channels,
            window,
            heads,
            filters.stride,
            filters.crop,
            convolution.bias is not None,
            border,
            convolution.groups,
            filters.spread,
        )
        made.replaces_transposed = isinstance(convolution, nn.ConvTranspose2d)
        made.to(convolution.weight.device, convolution.weight.dtype)
        made.encoding.start_at(filters.cells)
        with torch.no_grad():
            made.weight.copy_(filters.weight.flatten(2).transpose(1, 2))
            if made.bias is not None and convolution.bias is not None:
                made.bias.copy_(convolution.bias)
                made.bias.requires_grad_(convolution.bias.requires_grad)
        for parameter in (made.weight, *made.encoding.parameters()):
            parameter.requires_grad_(convolution.weight.requires_grad)
        return made.train(convolution.training)

    def forward(self, images: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """[B, C, H, W] → [B, C′, H′, W′]; transposed convolutions are told a size, which must be this one."""
        if images.ndim != 4 or images.shape[1] != self.in_channels:
            raise ValueError(
                f"posed attention takes images [B, {self.in_channels}, H, W], but got the shape {list(images.shape)}"
            )
        check_floating(images, "attention")
        height, width = ((length - 1) * self.spread + 1 for length in images.shape[-2:])
        window, crops, longer = self._window_from_both_ends(height, width)
        sides = height + 2 * self.padding, width + 2 * self.padding
        scores = self.encoding.position_scores(window, *sides, longer)
        if window.extent(*sides) == (1, 1):
            scores = scores[:, :1]  # all poses see the same
        lifted = ops.attend_by_position(
            images.unsqueeze(2),
            scores,
            window.mask(*sides, images.device),
            None,
            self.weight,
            self.bias,
            padding=self.padding,
            crop=crops,
            stride=self.stride,
            channel_groups=self.channel_groups,
            spread=self.spread,
        )
        if output_size is not None and tuple(output_size)[-2:] != tuple(lifted.shape[-2:]):
            raise ValueError(
                "attention in the place of a transposed convolution has a size, by its output_padding: expected "
                f"output_size={list(lifted.shape[-2:])} here, but got {list(output_size)}"
            )
        return strongest(lifted)

    def _window_from_both_ends(self, height: int, width: int) -> tuple[Rectangle, tuple[int, int], tuple[int, int]]:
        """The window whose strides end where the picture does, its crops, and how much longer it is.

        A filter that leaves pixels over at the end of a line stands at the beginning of windows that are so much
        longer. In other poses it stands at their end.
        """
        side = self.neighbourhood.extent(height, width)[0]
        asked = [length - 2 * self.crop + 1 - side % 2 for length in (height, width)]
        left = [left_over(count - 1, self.stride) if count > 0 else 0 for count in asked]
        if not any(left):
            return self.neighbourhood, (self.crop, self.crop), (0, 0)
        rows, columns = (side + pixels for pixels in left)
        crops = self.crop + rows // 2 - side // 2, self.crop + columns // 2 - side // 2
        return Rectangle(rows, columns), crops, (left[0], left[1])

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Weights of the convolution in whose place it is are taken, too, with heads where they start."""
        weight = state_dict.get(f"{prefix}weight")
        if isinstance(weight, Tensor) and weight.ndim == 4 and self.replaces_transposed is not None:
            filters = of_transposed(weight, self.channel_groups) if self.replaces_transposed else weight
            state_dict[f"{prefix}weight"] = filters.flatten(2).transpose(1, 2).contiguous()  # it may be kept as it is
            start = copy.deepcopy(self.encoding)
            if start.offset.is_meta:  # of a network whose tensors the weights are to be
                start.to_empty(device=weight.device)
            start.reset_parameters()
            state_dict |= {f"{prefix}encoding.{name}": value for name, value in start.state_dict().items()}
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        side = self.neighbourhood.size
        return (
            f"{self.group.name}, {self.in_channels} → {self.out_channels}, {self.encoding.num_heads} heads, "
            f"{side}×{side}, stride={self.stride}, crop={self.crop}, bias={self.bias is not None}, "
            f"border={self.border}"
            + (f", channel_groups={self.channel_groups}" if self.channel_groups > 1 else "")
            + (f", spread={self.spread}" if self.spread > 1 else "")
        )
