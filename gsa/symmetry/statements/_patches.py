"""Pictures whose patches are shuffled: what a network of pictures makes of them."""

from collections.abc import Callable

import torch
from torch import Tensor

from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error
from gsa.symmetry._orders import check_order

__all__ = ["patch_shuffling", "shuffled_patches"]


def shuffled_patches(pictures: Tensor, size: int, order: Tensor) -> Tensor:
    """Pictures cut into squares that change places.

    Args:
        pictures: [B, C, H, W].
        size: side of a patch in pixels, a divisor of H and of W.
        order: int64 [H·W/size²]; patch order[i], counted row by row, comes to place i.

    Returns:
        [B, C, H, W].

    Raises:
        ValueError: a size that does not divide the sides, no order of the patches.
    """
    height, width = pictures.shape[-2:]
    if size < 1 or height % size or width % size:
        raise ValueError(f"patches must divide pictures of {height}×{width} pixels, but got a size of {size}")
    rows, columns = height // size, width // size
    check_order(order, rows * columns)
    cells = pictures.unflatten(-1, (columns, size)).unflatten(-3, (rows, size)).movedim(-3, -2)  # … rows, columns, y, x
    cells = cells.flatten(-4, -3)[..., order, :, :].unflatten(-3, (rows, columns))
    return cells.movedim(-3, -2).flatten(-2).flatten(-3, -2)


def patch_shuffling(
    network: Callable[[Tensor], Tensor],
    pictures: Tensor,
    size: int,
    order: Tensor,
    labels: Tensor | None = None,
) -> dict[str, float]:
    """What shuffling the patches of pictures does to a classifier, f(patches in another order) against f.

    A transformer of these patches without positional encoding, with a class token or a mean at its end, cannot notice.
    Source: Naseer et al. 2021 (patch shuffling), as told in "Permutation Equivariance".

    Args:
        network: f, [B, C, H, W] → [B, K], put in eval mode.
        pictures: [B, C, H, W].
        size, order: as in `shuffled_patches`.
        labels: int64 [B]; the network's own answers to the pictures when None.

    Returns:
        {"logits": relative change; "accuracy", "shuffled accuracy": share of answers that are the label}.
    """
    with torch.no_grad(), evaluating(network):
        logits = network(pictures.clone()).clone()  # it may work in place
        moved = network(shuffled_patches(pictures, size, order))
    labels = logits.argmax(1) if labels is None else labels
    return {
        "logits": relative_error(moved, logits),
        "accuracy": (logits.argmax(1) == labels).double().mean().item(),
        "shuffled accuracy": (moved.argmax(1) == labels).double().mean().item(),
    }
