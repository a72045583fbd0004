"""Pooling in the place of an ordinary pool: an image in, an image out, turning with its input."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gsa.nn._largest import largest
from gsa.nn._strides import left_over

__all__ = ["PosedPool"]

_KINDS = (nn.MaxPool2d, nn.AvgPool2d)
_SIZES = ("kernel_size", "stride", "padding")
_PLAIN = (("dilation", 1), ("return_indices", False), ("divisor_override", None))


class PosedPool(nn.Module):
    """An ordinary pool whose strides are counted from both ends.

    Where a stride leaves pixels over at one end, as one of 2 does with windows of 3×3 on even sides, windows are so
    much larger: they reach over all that the pool sees, whichever end its strides are counted from. Without gaps
    between its windows, the largest pixel is that of the pool in all poses; pixels that have it in common share its
    gradient. So maps of any sides turn exactly; where no
    pixels are left over, it is the pool.

    Args:
        pool: `nn.MaxPool2d` or `nn.AvgPool2d`, alike in both directions; the former without dilation or indices, the
            latter without a divisor of its own.

    Shapes:
        [B, C, H, W] → [B, C, H′, W′], those of the pool

    Raises:
        ValueError: another pool.
    """

    __call__: Callable[..., Tensor]

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        if not isinstance(pool, _KINDS) or not self.takes(pool):
            raise ValueError(
                "expected nn.MaxPool2d or nn.AvgPool2d, alike in both directions, without dilation, indices or a "
                f"divisor of its own, but got {pool}"
            )
        self.kernel, self.stride, self.padding = (max(_of_both(pool, name)) for name in _SIZES)
        self.ceil_mode, self.is_mean = pool.ceil_mode, isinstance(pool, nn.AvgPool2d)
        self.counts_padding = isinstance(pool, nn.AvgPool2d) and pool.count_include_pad

    @staticmethod
    def takes(pool: nn.Module) -> bool:
        """Whether it is a pool that can be replaced."""
        return (
            type(pool) in _KINDS
            and all(getattr(pool, name, value) in (value, (value, value)) for name, value in _PLAIN)
            and all(len(_of_both(pool, name)) == 1 for name in _SIZES)
        )

    @staticmethod
    def is_needed(pool: nn.Module) -> bool:
        """Whether it is a pool that may leave pixels over, or does not treat both directions alike."""
        if not isinstance(pool, (*_KINDS, nn.LPPool2d)):
            return False
        strides, sides = (_of_both(pool, name) for name in ("stride", "kernel_size"))
        return max(strides) > 1 or len(strides) > 1 or len(sides) > 1

    def forward(self, images: Tensor) -> Tensor:
        (rows, above), (columns, before) = (self._from_both_ends(length) for length in images.shape[-2:])
        beyond, window = (before, before, above, above), (rows, columns)
        if not self.is_mean:
            return largest(F.pad(images, beyond, value=-torch.inf), window, self.stride)
        means = F.avg_pool2d(F.pad(images, beyond), window, self.stride)
        padding = self.padding if self.counts_padding else 0
        counted = F.pad(torch.ones_like(images[..., :1, :, :]), (padding,) * 4, value=1.0)
        counted = F.pad(counted, [pixels - padding for pixels in beyond])
        return means / F.avg_pool2d(counted, window, self.stride)

    def _from_both_ends(self, length: int) -> tuple[int, int]:
        """Pixels of a window, and beyond each end, with which strides end where the line does."""
        room = length + 2 * self.padding - self.kernel
        over = left_over(room, self.stride)
        lacking = self.stride - over  # of one more stride, which a pool takes that rounds up and sees something there
        if self.ceil_mode and over and room + lacking < length + self.padding:
            return self.kernel + lacking, self.padding + lacking
        return self.kernel + over, self.padding

    def extra_repr(self) -> str:
        kind = "mean" if self.is_mean else "max"
        more = (", ceil_mode=True" if self.ceil_mode else "") + (
            ", count_include_pad=False" if self.is_mean and not self.counts_padding else ""
        )
        return f"{kind}, kernel={self.kernel}, stride={self.stride}, padding={self.padding}{more}"


def _of_both(pool: nn.Module, name: str) -> set[int]:
    """One number, if it is the same in both directions."""
    value: Any = getattr(pool, name)
    value = pool.kernel_size if value is None else value  # strides of some
    return {*value} if isinstance(value, Sequence) else {value}
