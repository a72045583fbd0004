"""Bounded memory in plain PyTorch, on any device: band by band, in tiles, everything recomputed in backward.

The softmax over key poses m and offsets o is taken in two exact stages,

    softmax_{m,o}(a + p) = softmax_o( LSE_m(a) + p ) · softmax_m(a),

a = q·k + q·ρ_H free of the output pose, p = q·ρ_x free of the key pose, so the summed form needs |H|²n²
exponentials a pixel instead of |H|³n². Both forms share the stages; they differ in how the outer weights,
`outer`, meet the inner ones, `inner`:

    regular:  weight[m, h] = outer[h] · inner[m, h]            summed:  weight[m, h] = Σ_q outer[h, q] · inner[m, q]

Shapes: c slices, L tiles, then poses (P output, Q query, M key), pixels ty tx of a tile, related positions R S.
"""

import torch
from torch import Tensor

from gsa.ops._call import Call, Gradients, Needed
from gsa.ops.impl.tiled._work import Work

__all__ = ["backward", "forward"]


def forward(call: Call) -> Tensor:
    """Arguments as in `gsa.ops.attend`; [B, E, P, H, W, d]."""
    work = Work(call)
    out = call.query.new_empty(work.slices, call.spatial.shape[0], *call.query.shape[3:])
    for band, part in work.chunks():
        stages = work.weigh(band, part)
        matrix = work.spread(band, stages.weights())
        band.paste(out[part], matrix @ stages.value)
    return out.view(*call.query.shape[:2], *out.shape[1:])


def backward(grad: Tensor, call: Call, needed: Needed) -> Gradients:
    """Gradients of query, key, value, spatial and pose."""
    work = Work(call)
    grad = grad.flatten(0, 1).to(work.query.dtype)
    d_query = torch.empty_like(work.query)
    d_key, d_value = torch.zeros_like(work.key), torch.zeros_like(work.value)
    d_spatial, d_pose = torch.zeros_like(work.spatial), torch.zeros_like(work.pose)

    for band, part in work.chunks():
        stages = work.weigh(band, part)
        arriving = band.cut(grad[part])
        if needed.value:
            band.add_patches(d_value[part], work.spread(band, stages.weights()).mT @ arriving)
        if not any(needed._replace(value=False)):
            continue

        d_weights = band.scores(arriving @ stages.value.mT, work.spatial.shape[0], work.key.shape[1])
        d_content, d_outer = stages.differentiate(d_weights.contiguous())

        matrix = work.spread(band, d_content)
        if needed.key:
            band.add_patches(d_key[part], matrix.mT @ stages.query)
        if not (needed.query or needed.spatial or needed.pose):
            continue
        d_tile = matrix @ stages.key
        d_tile += work.pull_pose(stages, d_content, d_pose)
        d_tile += work.pull_spatial(band, stages, d_outer, d_spatial)
        band.paste(d_query[part], d_tile)

    d_query *= work.scale
    d_value /= 1 - call.dropout
    d_key, d_value = work.plan.unpad_keys(d_key), work.plan.unpad_keys(d_value)
    query, key, value, spatial, pose = (
        gradient.reshape(like.shape).to(like.dtype).contiguous() if wanted else None
        for gradient, like, wanted in zip(
            (d_query, d_key, d_value, d_spatial, d_pose), call.tensors, needed, strict=True
        )
    )
    return query, key, value, spatial, pose
