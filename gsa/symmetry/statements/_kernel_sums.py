"""What normalised heads cannot express between the pixels: kernels whose sums differ from pose to pose."""

from collections.abc import Callable

import torch
from torch import Tensor

from gsa import groups
from gsa.encodings import Encoding, Neighbourhood
from gsa.groups import Group
from gsa.symmetry._norm import relative_error

__all__ = ["head_residual", "kernel_sum_residual", "moved_filters", "sampled_filters"]


def moved_filters(group: Group | str, filters: Tensor) -> Tensor:
    """A filter in every pose, K_h(m, u) = W(h⁻¹m, h⁻¹u): permuted on the grid, interpolated between the pixels.

    Args:
        group: the point group H, or its name.
        filters: W, [|H|, k, k]; k odd.

    Returns:
        K, [|H|, |H|, k, k]: output pose, input pose, rows, columns.
    """
    group = groups.group(group)
    return torch.stack([group.act(filters[None, None], h)[0, 0] for h in range(group.order)])


def sampled_filters(group: Group | str, function: Callable[[Tensor], Tensor], side: int) -> Tensor:
    """A function of continuous offsets and relative poses in every pose: K_h(m, u) = ψ(h⁻¹u)[h⁻¹m], not interpolated.

    Args:
        group: the point group H, or its name.
        function: ψ, from offsets [..., 2] in pixels (x, y), y up, in float64, to values [..., |H|].
        side: k, odd.

    Returns:
        K, [|H|, |H|, k, k], as from `moved_filters`.
    """
    group = groups.group(group)
    offsets = Neighbourhood(side).pixels(side, side, like=group.matrices)
    turned = torch.einsum("hij,...j->h...i", group.matrices[group.inverse], offsets)
    relative = group.product[group.inverse]  # h⁻¹m
    return torch.stack([function(at)[..., m].movedim(-1, 0) for at, m in zip(turned, relative, strict=True)])


def head_residual(encoding: Encoding, kernel: Tensor) -> float:
    """How far a kernel on the group is from every sum of heads that an encoding places: by least squares over W.

        min_W ‖K − Σ_e W_e w_e‖ / ‖K‖,   w_e(h, m, u) = softmax_{m,u}( score_e(h, m, u) )

    Args:
        encoding: of a group layer, one that places heads.
        kernel: K(h, m, u), [|H|, |H|, k, k] with k odd.
    """
    side = kernel.shape[-1]
    with torch.no_grad():
        scores = encoding.position_scores(Neighbourhood(side), side, side)
    heads = scores.flatten(2).softmax(-1).flatten(1).T.to(kernel)  # [|H||H|k², E]
    wanted = kernel.flatten()[:, None]
    return relative_error(heads @ torch.linalg.lstsq(heads, wanted, driver="gelsd").solution, wanted)


def kernel_sum_residual(group: Group | str, kernel: Tensor, joint: bool = False) -> float:
    """What no number of heads with scores ρ_x(h⁻¹u) + ρ_H(h⁻¹m) can give: how unequal the kernel's sums are.

        ‖S − mean_h S‖ / (k ‖K‖),   S(h, m) = Σ_u K_h(hm, u)

    A head's weights are a(h⁻¹u)·b(h⁻¹m), each normalised: their sum over the window is b(m), for every h. So sums of
    heads have sums S(h, m) that do not depend on h, and this is the distance to the kernels that have such: a lower
    bound of `head_residual`, which many heads reach if the kernel is one function in every pose.
    On the grid, h⁻¹ maps a square window to itself: K_h has the same entries in every pose, S is the same, and nothing
    is lost. By 45° a 3×3 window goes to other places, (±1, ±1)/√2, (±√2, 0) and (0, ±√2), of which only the centre is
    one of its own: there the function that is sampled may have any values, but heads must give them the same sum.
    Heads that are not normalised would have no such limit.

    Args:
        group: the point group H, or its name.
        kernel: as in `head_residual`.
        joint: of heads with any scores ρ(h⁻¹u, h⁻¹m): then only Σ_m S(h, m) has to be the same.
    """
    group = groups.group(group)
    sums = kernel.sum((-2, -1))
    sums = torch.stack([sums[h, group.product[h]] for h in range(group.order)])
    if joint:
        sums = sums.mean(1, keepdim=True).expand_as(sums)
    lost = (sums - sums.mean(0)).norm() / kernel.shape[-1]
    return (lost.double() / kernel.double().norm().clamp_min(torch.finfo(torch.float64).tiny)).item()
