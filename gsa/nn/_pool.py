"""Pooling over pixels that stays exact, or says why it cannot."""

import warnings
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gsa._checks import check_choice, check_positive
from gsa.nn._largest import largest
from gsa.nn._strides import left_over

__all__ = ["SpatialPool", "nearest_sizes"]


class SpatialPool(nn.Module):
    """Max or average pooling over the pixels of an image or a feature, pose by pose.

    Windows of k pixels at stride s cover a side of N pixels the same way from both ends exactly when s divides
    N − k: even sides for 2×2 at stride 2, odd ones for 3×3 at stride 2. Other sides leave out a row on one end, and
    turned pictures would be pooled differently, unless windows are made so many pixels larger.

    Pixels that tie for the maximum share its gradient, so that it turns with the picture even on a flat background.

    Args:
        kernel: side k of the window.
        stride: s; the kernel when None.
        kind: "max" or "average".
        on_inexact: what to do on a side that loses exactness: "raise", "warn" (once for each such size), "allow", or
            "widen" windows along it by what s leaves over, which is exact on every side.

    Shapes:
        [B, C, H, W] or [B, C, |H|, H, W] → the same with sides ⌊(N − k)/s⌋ + 1

    Raises:
        ValueError: a size that loses exactness, naming the nearest that do not; unknown kind or policy.
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self, kernel: int = 2, stride: int | None = None, kind: str = "max", on_inexact: str = "raise"
    ) -> None:
        super().__init__()
        stride = kernel if stride is None else stride
        check_choice(("max", "average"), kind=kind)
        check_choice(("raise", "warn", "allow", "widen"), on_inexact=on_inexact)
        check_positive(kernel=kernel, stride=stride)
        self.kernel, self.stride = kernel, stride
        self.kind, self.on_inexact = kind, on_inexact
        self._warned: set[tuple[int, int]] = set()

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in (4, 5):
            raise ValueError(f"a pool takes [B, C, H, W] or [B, C, |H|, H, W], but got the shape {list(x.shape)}")
        self._check(*x.shape[-2:])
        rows, columns = (self._window(side) for side in x.shape[-2:])
        if self.kind == "max":
            return largest(x, (rows, columns), self.stride)
        pooled = F.avg_pool2d(x.flatten(1, -3), (rows, columns), self.stride)
        return pooled.unflatten(1, x.shape[1:-2])

    def output_size(self, size: int) -> int:
        """The side that comes out of a side of `size` pixels; 0 where the window does not fit."""
        return max((size - self.kernel) // self.stride + 1, 0)

    def is_exact_on(self, size: int) -> bool:
        """Whether a side of `size` pixels is pooled the same way from both ends."""
        return size >= self.kernel and (size - self._window(size)) % self.stride == 0

    def _window(self, size: int) -> int:
        """The window's side along a side of `size` pixels."""
        return self.kernel + (left_over(size - self.kernel, self.stride) if self.on_inexact == "widen" else 0)

    def _check(self, height: int, width: int) -> None:
        small = [side for side in (height, width) if side < self.kernel]
        inexact = [side for side in (height, width) if not self.is_exact_on(side)]
        if not small and (self.on_inexact == "allow" or not inexact):
            return
        wrong = (small or inexact)[0]
        good = nearest_sizes(
            wrong, (n for n in range(self.kernel, wrong + self.kernel + self.stride + 1) if self.is_exact_on(n))
        )
        message = (
            f"{self.kind} pooling {self.kernel}×{self.kernel} at stride {self.stride} is equivariant only on sides N "
            f"with (N − {self.kernel}) divisible by {self.stride}: got a {height}×{width} map; "
            f"nearest sides that stay exact: {good}"
        )
        if self.on_inexact == "raise" or small:
            raise ValueError(message)
        if not torch.compiler.is_compiling() and (height, width) not in self._warned:
            self._warned.add((height, width))
            warnings.warn(message, stacklevel=3)

    def extra_repr(self) -> str:
        return f"{self.kind}, kernel={self.kernel}, stride={self.stride}"


def nearest_sizes(size: int, candidates: Iterable[int]) -> str:
    """The closest candidates below and above a size, in words."""
    candidates = list(candidates)
    below = max((n for n in candidates if n < size), default=None)
    above = min((n for n in candidates if n > size), default=None)
    return " or ".join(str(n) for n in (below, above) if n is not None)
