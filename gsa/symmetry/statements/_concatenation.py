"""Group self-attention, step by step: the encoding acted upon by each element, attention with each, concatenation."""

import copy

import torch
from torch import Tensor

from gsa.nn import SelfAttention
from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._turned import check_kind, turned_by

__all__ = ["by_concatenation", "concatenation_error"]


def by_concatenation(layer: SelfAttention, x: Tensor) -> Tensor:
    """What lifting or group self-attention answers, by plain self-attention once for each element h of the group.

        1. ρ_h(u, m) = ρ(h⁻¹u, h⁻¹m): the encoding, acted upon by h
        2. y_h = self-attention with ρ_h
        3. y = [y_h for h in H]

    Plain self-attention is what the layer does for the identity's pose: it is told that cell u lies at h⁻¹u and, in a
    group layer, that pose m is pose h⁻¹m. Nothing but the encoding sees either, so nothing else has to be modified.

    Source: Romero & Cordonnier 2021 ("the only geometric part of self-attention is the positional encoding").

    Args:
        layer: any form and any encoding but absolute ones.
        x: what it takes.

    Returns:
        [B, C′, |H|, H′, W′]

    Raises:
        ValueError: an absolute encoding, which no element acts upon.
    """
    check_kind(layer.encoding, "absolute")
    group, answers = layer.group, []
    with torch.no_grad(), evaluating(layer):
        for h, inverse in enumerate(group.matrices[group.inverse]):
            plain = copy.deepcopy(layer)
            plain.neighbourhood = turned_by(layer.neighbourhood, inverse)
            answers.append(plain(x if x.ndim == 4 else x[:, :, group.product[h]])[:, :, 0])
    return torch.stack(answers, dim=2)


def concatenation_error(layer: SelfAttention, x: Tensor) -> float:
    """How far a layer is from self-attention with every acted encoding, concatenated: ‖Φ(x) − y‖ / ‖y‖.

    Args:
        layer: Φ.
        x: what it takes.
    """
    with torch.no_grad(), evaluating(layer):
        return relative_error(layer(x), by_concatenation(layer, x))
