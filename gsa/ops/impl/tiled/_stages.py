"""The two stages of a tile's softmax, and their derivative; letters as in _passes.py."""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

__all__ = ["Stages", "softmax"]


@dataclass
class Stages:
    """Tiles of queries, patches of keys and values, and the two stages of their softmax."""

    query: Tensor  # [c, L, Q·ty·tx, d], scaled
    key: Tensor  # [c, L, M·wy·wx, d]
    value: Tensor
    inner: Tensor  # [c, L, M, Q, ty, tx, R, S]
    outer: Tensor  # [c, L, P, ty, tx, R, S] or [c, L, P, Q, ty, tx, R, S]
    drop: Tensor | None  # bool, [c, L, M, P, …] or [c, L, P, Q, …]
    regular: bool

    def weights(self) -> Tensor:
        """[c, L, M, P, ty, tx, R, S]"""
        if self.regular:
            return self._without_dropped_(self.outer.unsqueeze(2) * self.inner)
        outer = self._kept_outer()
        return _contract((outer[:, :, None, :, q], self.inner[:, :, :, None, q]) for q in range(outer.shape[3]))

    def differentiate(self, d_weights: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the content scores [c, L, M, Q, …] and of the outer scores, shaped like `outer`.

        Overwrites `d_weights`.
        """
        if self.regular:
            d_weights = self._without_dropped_(d_weights)
            d_outer = (d_weights * self.inner).sum(2)
            d_inner = d_weights * self.outer.unsqueeze(2)
        else:
            poses = range(self.outer.shape[2])
            outer = self._kept_outer()
            d_outer = _contract(
                (d_weights[:, :, m, :, None], self.inner[:, :, m, None]) for m in range(self.inner.shape[2])
            )
            d_outer = self._without_dropped_(d_outer)
            d_inner = _contract((d_weights[:, :, :, p, None], outer[:, :, None, p]) for p in poses)
        d_outer -= (d_outer * self.outer).sum((-2, -1), keepdim=True)
        d_outer *= self.outer
        d_total = d_outer if self.regular else d_outer.sum(2)
        d_inner += (d_total - (d_inner * self.inner).sum(2)).unsqueeze(2)
        return d_inner.mul_(self.inner), d_outer

    def _kept_outer(self) -> Tensor:
        return self.outer if self.drop is None else self.outer.masked_fill(self.drop, 0)

    def _without_dropped_(self, x: Tensor) -> Tensor:
        return x if self.drop is None else x.masked_fill_(self.drop, 0)


def softmax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """softmax and log-sum-exp over `dim`."""
    log_weights = x.log_softmax(dim)
    total = x.select(dim, 0) - log_weights.select(dim, 0)
    return log_weights.exp_(), total


def _contract(pairs: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    """Σ a·b over pairs of broadcasting tensors, in one running buffer."""
    pairs = iter(pairs)
    first, second = next(pairs)
    total = first * second
    for a, b in pairs:
        total.addcmul_(a, b)
    return total
