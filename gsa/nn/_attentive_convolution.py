"""Attentive group convolutions: every summand is weighed by the place, pose and channel it comes from."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gsa._checks import check_positive
from gsa._hooked import refuse_made
from gsa._tables import WithTables
from gsa.groups import Group
from gsa.nn._group_convolution import GroupConvolution, LiftingConvolution

__all__ = ["AttentiveConvolution", "check_attention"]


class AttentiveConvolution(WithTables):
    """Group convolution with attention on its summands (α): over channels and poses, and over positions.

        f(i, h, c, m) = Σ_u W(c, h⁻¹ m, h⁻¹ u) x(c, i + u, m)           for each output channel on its own
        α_C(h, c, m)  = σ(mlp(mean_i f) + mlp(max_i f)),  mlp = V₂(h⁻¹ m) ∘ relu ∘ V₁(h⁻¹ m) on the channels c
        α_S(i, h, m)  = σ(Σ_u K(h⁻¹ m, h⁻¹ u) · (mean_c, max_c)(α_C f)(i + u, h, m))
        y(i, h)       = Σ_c Σ_m (1 − α_C α_S) f

    Every weight is moved by the output pose h with the filter, which keeps the layer exactly equivariant.

    Source: Romero, Bekkers, Tomczak & Hoogendoorn 2020, "full" attention, as their public code evaluates it.

    Args:
        group: the point group H, or its name; on the grid.
        in_channels, out_channels, kernel_size: of the convolution, which has no bias and no padding.
        hidden: width of the channel attention's inner layer.
        attention_size: odd side of K.
        lifting: whether the input is an image.

    Shapes:
        [B, C, H, W] when lifting, else [B, C, |H|, H, W] → [B, C′, |H|, H − k + 1, W − k + 1]; memory is C·|H| times
        that of the output, C times when lifting.

    Raises:
        ValueError: a group that is not on the grid; a size that is not positive; an even attention_size; an input of
            another shape; convolutions whose weights hooks make.
    """

    relative: Tensor
    __call__: Callable[..., Tensor]

    def __init__(
        self,
        group: Group | str,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        hidden: int,
        attention_size: int = 7,
        lifting: bool = False,
    ) -> None:
        super().__init__()
        check_attention(hidden, attention_size)
        kind = LiftingConvolution if lifting else GroupConvolution
        self.convolution = kind(group, in_channels, out_channels, kernel_size, bias=False)
        self.group, poses = self.convolution.group, self.convolution.in_poses
        self.first = nn.Parameter(torch.empty(out_channels, hidden, in_channels, poses))
        self.second = nn.Parameter(torch.empty(out_channels, in_channels, hidden, poses))
        self.spatial = kind(self.group, 2, out_channels, attention_size, bias=False)
        self.keep_table("relative", self._relative_poses())
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the channel attention anew; the convolutions have their own."""
        for weight in (self.first, self.second):
            bound = 1 / math.sqrt(weight.shape[2])
            nn.init.uniform_(weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        self.convolution.check(x)
        for convolution in (self.convolution, self.spatial):
            refuse_made(convolution, "weight")
        windows, filters = self._windows(x if x.ndim == 5 else x[:, :, None]), self._filters()
        means = (filters @ windows.mean(-1, keepdim=True)).squeeze(-1)
        weights = self._channels(means, _largest(filters, windows))
        weighted = weights[..., None] * filters  # α_C W, which gives α_C f
        # The mean of α_C f over the channels is one convolution, with filters of each picture's own.
        mean = weighted.transpose(2, 3).flatten(3) @ windows.flatten(2, 3) / x.shape[1]
        y = self.convolution(x)
        pixels = y.shape[-2:]
        statistics = (s.unflatten(-1, pixels) for s in (mean, (weighted @ windows).max(2).values))
        # α_S is the same for all channels, so Σ_c α_C α_S f = α_S C mean_c(α_C f).
        attended = self._positions(*statistics) * mean.unflatten(-1, pixels)
        return y - x.shape[1] * attended.sum(1).view_as(y)

    def _relative_poses(self) -> Tensor:
        """Pose h⁻¹ m of every output pose h and input pose m; images have the one."""
        relative = self.group.product[self.group.inverse]
        return torch.zeros_like(relative[:, :1]) if self.convolution.in_poses == 1 else relative

    def _filters(self) -> Tensor:
        """W(c, h⁻¹ m, h⁻¹ u): [M, C, O, k²]."""
        return self.convolution.filters().movedim((3, 2), (0, 1)).flatten(4).flatten(2, 3)

    def _windows(self, x: Tensor) -> Tensor:
        """x(c, i + u, m), [B, C, M, H, W] → [B, M, C, k², P]."""
        size = self.convolution.kernel_size
        return F.unfold(x.transpose(1, 2).flatten(1, 2), size).unflatten(1, (x.shape[2], x.shape[1], size**2))

    def _channels(self, means: Tensor, largest: Tensor) -> Tensor:
        """α_C of f's means and maxima over the pixels: all [B, M, C, O]."""
        first, second = self.first[..., self.relative], self.second[..., self.relative]  # [C′, ·, ·, |H|, M]

        def mlp(statistic: Tensor) -> Tensor:
            statistic = statistic.unflatten(-1, (len(first), -1))
            inner = torch.einsum("okchm,bmcoh->bkmoh", first, statistic).relu()
            return torch.einsum("ockhm,bkmoh->bmcoh", second, inner).flatten(3)

        return torch.sigmoid(mlp(means) + mlp(largest))

    def _positions(self, mean: Tensor, largest: Tensor) -> Tensor:
        """α_S: [B, M, O, H′, W′], from the mean and maximum of α_C f over the channels c."""
        filters = self.spatial.filters().movedim((3, 2), (0, 1)).flatten(2, 3).transpose(0, 1).flatten(1, 2)[:, :, None]

        def seen(statistic: Tensor, own: Tensor) -> Tensor:  # depthwise, which is fast with the channels last
            maps = statistic.flatten(1, 2).movedim(1, -1).contiguous().movedim(-1, 1)
            return F.conv2d(maps, own, padding=own.shape[-1] // 2, groups=len(own))

        return torch.sigmoid(seen(mean, filters[0]) + seen(largest, filters[1])).unflatten(1, mean.shape[1:3])


def _largest(filters: Tensor, windows: Tensor) -> Tensor:
    """max_i f, [M, C, O, k²] and [B, M, C, k², P] → [B, M, C, O]; windows with the same f share its gradient."""
    with torch.no_grad():
        summands = filters @ windows
        shares = (summands == summands.amax(-1, keepdim=True)).to(summands)
        shares /= shares.sum(-1, keepdim=True)
    return (filters * (shares @ windows.transpose(-2, -1))).sum(-1)


def check_attention(hidden: int, attention_size: int) -> None:
    """Refuse an inner width that is not positive, or a side that is even.

    Raises:
        ValueError: such a number.
    """
    check_positive(hidden=hidden, attention_size=attention_size)
    if attention_size % 2 == 0:
        raise ValueError(f"attention_size must be odd, but got {attention_size}")
