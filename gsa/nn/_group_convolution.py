"""Convolutions on the group: the filters are moved by every pose, by a permutation of their entries."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gsa import groups
from gsa._checks import check_floating, check_pixels, check_positive
from gsa._remembered import remember_group
from gsa._tables import WithTables
from gsa.groups import Group

__all__ = ["GroupConvolution", "LiftingConvolution"]


def check_maps(layer: nn.Module, x: Tensor, sizes: tuple[int, ...]) -> None:
    """Refuse what is no image [B, C, H, W] (sizes C) or no feature [B, C, |H|, H, W] (sizes C, |H|) of a layer."""
    check_floating(x, type(layer).__name__)
    if x.ndim != 3 + len(sizes) or tuple(x.shape[1:-2]) != sizes:
        wanted = f"images [B, {sizes[0]}, H, W]"
        if len(sizes) == 2:
            wanted = f"features [B, {sizes[0]}, {sizes[1]}, H, W] (poses on axis 2)"
        group = layer.group
        assert isinstance(group, Group)
        raise ValueError(f"{type(layer).__name__} over {group.name} takes {wanted}, but got the shape {list(x.shape)}")


class _Convolution(WithTables):
    """Filters of [C′, C, M, k, k] numbers, M = 1 for images and |H| for features, and their |H| moved copies."""

    lifting: bool
    moved: Tensor
    __call__: Callable[..., Tensor]

    def __init__(
        self,
        group: Group | str,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        padding: int = 0,
        dilation: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.group = groups.group(group)
        if not self.group.is_on_grid:
            raise ValueError(
                "group convolutions move their filters by permuting pixels, so every element must map the grid to "
                f"itself: expected Z2, R2, R4 or one of these with M, but got {self.group.name}"
            )
        check_positive(in_channels=in_channels, out_channels=out_channels, kernel_size=kernel_size, dilation=dilation)
        check_pixels(padding=padding)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel_size
        self.in_poses = 1 if self.lifting else self.group.order
        self.padding, self.dilation = padding, dilation
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, self.in_poses, kernel_size, kernel_size))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        remember_group(self)
        self.keep_table("moved", _moved_entries(self.group, self.in_poses, kernel_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights N(0, 2/fan-in), biases 0."""
        nn.init.normal_(self.weight, std=math.sqrt(2 / self.weight[0].numel()))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def filters(self) -> Tensor:
        """W(h⁻¹ m, h⁻¹ u) for every output pose h: [C′, |H|, C, M, k, k]."""
        return self.weight.flatten(2)[:, :, self.moved].movedim(2, 1)

    def check(self, x: Tensor) -> None:
        """Refuse what is no image, or no feature, of this layer, or smaller than its filter."""
        check_maps(self, x, (self.in_channels,) if self.lifting else (self.in_channels, self.in_poses))
        least = self.dilation * (self.kernel_size - 1) + 1 - 2 * self.padding
        if min(x.shape[-2:]) < least:
            raise ValueError(
                f"{type(self).__name__} with filters of {self.kernel_size}×{self.kernel_size} takes maps of at least "
                f"{least}×{least} pixels, but got {x.shape[-2]}×{x.shape[-1]}"
            )

    def forward(self, x: Tensor) -> Tensor:
        self.check(x)
        filters = self.filters().flatten(2, 3).flatten(0, 1)
        bias = None if self.bias is None else self.bias.repeat_interleave(self.group.order, 0)
        y = F.conv2d(x.flatten(1, -3), filters, bias, padding=self.padding, dilation=self.dilation)
        return y.unflatten(1, (self.out_channels, self.group.order))

    def extra_repr(self) -> str:
        return (
            f"{self.group.name}, {self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"padding={self.padding}, dilation={self.dilation}, bias={self.bias is not None}"
        )


class LiftingConvolution(_Convolution):
    """Correlation of an image with a filter in every pose.

        y(i, h) = Σ_u W(h⁻¹ u) x(i + u) + b

    Exactly equivariant for groups that map the pixel grid to itself.

    Source: Cohen & Welling 2016.

    Args:
        group: the point group H, or its name; on the grid (Z2, R2, R4, with or without M).
        in_channels, out_channels: C, C′.
        kernel_size: side k of the filter; even sides are centred between pixels.
        padding: zeros added on every border.
        dilation: pixels from one entry of the filter to the next.
        bias: one number for each output channel, shared by its poses.

    Shapes:
        [B, C, H, W] → [B, C′, |H|, H′, W′] with H′ = H + 2·padding − dilation·(k − 1)

    Raises:
        ValueError: a group that is not on the grid; a size that is not positive; an input of another shape.
    """

    lifting = True


class GroupConvolution(_Convolution):
    """Correlation of a feature on the group with a filter on the group.

        y(i, h) = Σ_u Σ_m W(h⁻¹ m, h⁻¹ u) x(i + u, m) + b

    Exactly equivariant for groups that map the pixel grid to itself.

    Source: Cohen & Welling 2016.

    Args:
        group, in_channels, out_channels, kernel_size, padding, dilation, bias: as in `LiftingConvolution`.

    Shapes:
        [B, C, |H|, H, W] → [B, C′, |H|, H′, W′]

    Raises:
        ValueError: a group that is not on the grid; a size that is not positive; an input of another shape.
    """

    lifting = False


def _moved_entries(group: Group, in_poses: int, kernel_size: int) -> Tensor:
    """Which entry of a filter stands where once pose h has moved it: int64 [|H|, M, k, k]."""
    entries = torch.arange(in_poses * kernel_size**2, device="cpu").view(1, 1, in_poses, kernel_size, kernel_size)
    if in_poses == 1:
        entries = entries[:, :, 0]
    moved = [group.act(entries, element)[0, 0] for element in range(group.order)]
    return torch.stack(moved).view(group.order, in_poses, kernel_size, kernel_size)
