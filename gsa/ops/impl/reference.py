"""The law: the sums of group self-attention written out, in any dtype, differentiable twice.

Letters of the einsums: b batch, e head, p output pose, q query pose, m key pose, y x pixel, u v offset, d channel.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from gsa.ops._call import Call, Gradients, Needed
from gsa.ops._dropout import dropped, element_hash, slice_hash
from gsa.ops.impl._layout import without_border

__all__ = ["backward", "forward", "weights"]


def forward(call: Call) -> Tensor:
    """out(i, h) = Σ_ĥ Σ_{j,h̃} softmax_{j,h̃}(…) v(j, h̃); arguments as in `gsa.ops.attend`."""
    if call.query.dtype != call.sum_dtype:
        return forward(call.to(call.sum_dtype)).to(call.query.dtype)
    attention = weights(call)
    if call.dropout:
        attention = attention.masked_fill(_dropped(attention, call), 0) / (1 - call.dropout)
    around = _neighbours(call.value, call.window)
    law = "bepyxmuv,bemyxuvd->bepyxd" if call.regular else "bepqyxmuv,bemyxuvd->bepyxd"
    return without_border(torch.einsum(law, attention, around), call.crop)


def backward(grad: Tensor, call: Call, needed: Needed) -> Gradients:
    """Gradients of query, key, value, spatial and pose: PyTorch's own derivative of `forward`."""

    def law(*asked: Tensor) -> Tensor:
        rest = iter(asked)
        pairs = zip(needed, call.tensors, strict=True)
        return forward(call.with_tensors(*[next(rest) if wanted else tensor for wanted, tensor in pairs]))

    _, pull_back = torch.func.vjp(law, *[x for wanted, x in zip(needed, call.tensors, strict=True) if wanted])
    gradients = iter(pull_back(grad))
    query, key, value, spatial, pose = (next(gradients).contiguous() if wanted else None for wanted in needed)
    return query, key, value, spatial, pose


def weights(call: Call) -> Tensor:
    """Attention over key poses and offsets, zero outside the window and the picture.

        regular: softmax_{j,h̃}( q(i,h) · (k(j,h̃) + ρ_x(h⁻¹(j−i)) + ρ_H(h⁻¹h̃)) / √d )
        summed:  softmax_{j,h̃}( q(i,ĥ) · (k(j,h̃) + ρ_x(h⁻¹(j−i)) + ρ_H(ĥ⁻¹h̃)) / √d )

    Returns:
        [B, E, P, H, W, M, U, V] in the regular form, else [B, E, P, Q, H, W, M, U, V].
    """
    query, key, _, spatial, pose, window = call[:6]
    height, width, head_dim = query.shape[-3:]
    scores = torch.einsum("beqyxd,bemyxuvd->beqyxmuv", query, _neighbours(key, window))
    scores = scores + torch.einsum("beqyxd,qmd->beqyxm", query, pose)[..., None, None]
    if call.regular:
        scores = scores + torch.einsum("bepyxd,puvd->bepyxuv", query, spatial).unsqueeze(-3)
    else:
        scores = scores[:, :, None] + torch.einsum("beqyxd,puvd->bepqyxuv", query, spatial).unsqueeze(-3)
    scores = scores / head_dim**0.5
    visible = _inside(height, width, window).unsqueeze(2)  # [H, W, 1, U, V]
    return scores.masked_fill(~visible, -torch.inf).flatten(-3).softmax(-1).view_as(scores)


def _neighbours(x: Tensor, window: Tensor) -> Tensor:
    """x(i + offset), zeros outside: [B, E, M, H, W, d] -> [B, E, M, H, W, U, V, d]."""
    rows, columns = window.shape
    padded = F.pad(x, (0, 0, columns // 2, columns // 2, rows // 2, rows // 2))
    return padded.unfold(3, rows, 1).unfold(4, columns, 1).movedim(5, -1)


def _inside(height: int, width: int, window: Tensor) -> Tensor:
    """Which offsets of which pixels are in the window and in the picture: bool [H, W, U, V]."""
    picture = torch.ones(1, 1, 1, height, width, 1, device=window.device)
    return (_neighbours(picture, window)[0, 0, 0, ..., 0] > 0) & window


def _dropped(attention: Tensor, call: Call) -> Tensor:
    """One decision for (h, h̃, pixel, offset) in the regular form, for (h, ĥ, pixel, offset) in the summed one."""
    batch, heads, poses = attention.shape[:3]
    height, width, key_poses, rows, columns = attention.shape[-5:]
    second = key_poses if call.regular else attention.shape[3]

    def count(n: int, *after: int) -> Tensor:
        return torch.arange(n, dtype=torch.int32, device=attention.device).view(n, *after)

    pair = count(poses * second, 1, 1).view(poses, second, 1, 1)
    element = element_hash(pair, count(height * width, 1), count(rows * columns), height * width, rows * columns).view(
        poses, second, height, width, rows, columns
    )
    element = element.permute(0, 2, 3, 1, 4, 5) if call.regular else element.unsqueeze(4)
    slices = slice_hash(call.seed, 0, batch * heads).view(batch, heads, *[1] * (attention.ndim - 2))
    return dropped(element, slices, call.dropout)
