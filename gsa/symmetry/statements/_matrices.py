"""Permutation matrices, and functions of entries that let them pass."""

from collections.abc import Callable

import torch
from torch import Tensor

from gsa.symmetry._norm import relative_error
from gsa.symmetry._orders import check_order

__all__ = ["entrywise_error", "invariance_error", "permutation_matrix", "permutation_matrix_errors"]


def permutation_matrix(order: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """P with P A = A[order]: row i of P A is row order[i] of A.

    Args:
        order: int64 [N], every number from 0 to N − 1 once.
        dtype: of the result; torch's default when None.

    Returns:
        [N, N], one 1 in each row and column.

    Raises:
        ValueError: an order that is no permutation.
    """
    check_order(order)
    return torch.eye(len(order), dtype=dtype, device=order.device)[order]


def permutation_matrix_errors(matrix: Tensor, order: Tensor) -> dict[str, float]:
    """What a permutation matrix does to a square matrix, and that its transpose takes it back.

        P A = A[order],   (A P)[:, order] = A,   Pᵀ (P A) = A,   Pᵀ P = 1

    Source: essays "Permutation Equivariance" (recap) and "Numerical Stability and Initialization" (reverse operation).

    Args:
        matrix: A, [N, N].
        order: of `permutation_matrix`.

    Returns:
        {"rows", "columns", "back", "orthogonal": relative error}.
    """
    p = permutation_matrix(order, matrix.dtype)
    return {
        "rows": relative_error(p @ matrix, matrix[order]),
        "columns": relative_error((matrix @ p)[:, order], matrix),
        "back": relative_error(p.T @ (p @ matrix), matrix),
        "orthogonal": relative_error(p.T @ p, torch.eye(len(order), dtype=matrix.dtype, device=matrix.device)),
    }


def entrywise_error(f: Callable[..., Tensor], rows: Tensor, columns: Tensor, *matrices: Tensor) -> float:
    """How far a function of matrices is from letting permutations of rows and columns pass.

        ‖f(P₁AP₂, P₁BP₂, …) − P₁ f(A, B, …) P₂‖ / ‖f(A, B, …)‖

    It is 0 for functions of each entry (σ(ZP) = σ(Z)P, products, sums), and for a softmax over one axis.
    Source: "Permutation Equivariance" (element-wise operations), "Numerical Stability and Initialization" (σ(ZP)).

    Args:
        f: of as many matrices as are given; the result has their shape.
        rows, columns: the orders of P₁ and of P₂.
        matrices: [N, M] each.

    Raises:
        ValueError: a result of another shape; no orders of the rows and columns.
    """
    check_order(rows, matrices[0].shape[0])
    check_order(columns, matrices[0].shape[1])

    def moved(matrix: Tensor) -> Tensor:
        return matrix[rows][:, columns]

    expected = f(*matrices)
    if expected.shape != matrices[0].shape:
        raise ValueError(f"f must keep the shape {list(matrices[0].shape)}, but gave {list(expected.shape)}")
    return relative_error(f(*map(moved, matrices)), moved(expected))


def invariance_error(f: Callable[[Tensor], Tensor], x: Tensor, order: Tensor) -> float:
    """How far a function of x₁ … xₙ is from permutation symmetry: ‖f(x_π) − f(x)‖ / ‖f(x)‖; 0 for a sum.

    Args:
        f: of one tensor.
        x: [N, …], permuted along its first axis.
        order: π.

    Raises:
        ValueError: no order of them.
    """
    check_order(order, len(x))
    with torch.no_grad():
        return relative_error(f(x[order]), f(x))
