"""Global group self-attention approximates invariant and equivariant functions: any labels of orbits, and no others."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gsa import groups
from gsa.groups import Group
from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import zero_beside

__all__ = ["fit_labels", "orbit_gap"]


def fit_labels(network: nn.Module, pictures: Tensor, labels: Tensor, steps: int, rate: float = 0.01) -> float:
    """Train a network on a few pictures, all of them in every step, and see how many labels it gives right.

    A universal approximator of invariant functions can give any labels to pictures of different orbits, at random as
    well, and one of equivariant functions any labels to their pixels (Ravanbakhsh 2020, of regular representations with
    global receptive fields, which global group self-attention has: Romero & Cordonnier 2021). What it cannot do at all
    is give different ones to two pictures of one orbit, so half of such labels are wrong, and their loss is at least
    log 2 a picture; nor to pixels of a picture that a symmetry of its own carries into one another.

    Args:
        network: [B, C, H, W] → [B, K], or [B, K, H, W] of equivariant functions; it is trained by Adam.
        pictures: [N, C, H, W].
        labels: int64 [N], or [N, H, W], one a pixel, less than K.
        steps: of Adam; it ends before them when all labels are right.
        rate: its learning rate.

    Returns:
        The share of labels that are right at the end, in eval mode, from 0 to 1.
    """
    optimizer = torch.optim.Adam(network.parameters(), rate)
    for _ in range(steps):
        logits = network(pictures)
        if bool((logits.argmax(1) == labels).all()):
            break
        optimizer.zero_grad()
        F.cross_entropy(logits, labels).backward()
        optimizer.step()
    with torch.no_grad(), evaluating(network):
        return (network(pictures).argmax(1) == labels).double().mean().item()


def orbit_gap(network: nn.Module, pictures: Tensor, group: Group | str) -> float:
    """The largest difference between logits of pictures of one orbit, in parts of that between the pictures' logits.

        max_{g, n} |f(L_g x_n) − f(x_n)| / max_{n, n′} |f(x_n) − f(x_n′)|,   g exact on the grid

    Logits that are all alike but for rounding are compared with ε^¼ times their norm.

    Args:
        network: f, [B, C, H, W] → [B, K].
        pictures: x, [N, C, H, W] with N ≥ 2; of different orbits.
        group: whose orbits; its name or itself.
    """
    group = groups.group(group)
    with torch.no_grad(), evaluating(network):
        logits = network(pictures)
        moved = torch.stack([network(group.act(pictures, g)) for g in group.grid_elements])
    apart = (logits[:, None] - logits).abs().max().clamp_min(max(zero_beside([logits]), torch.finfo(logits.dtype).tiny))
    return ((moved - logits).abs().max() / apart).item()
