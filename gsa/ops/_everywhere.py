"""Global attention whose scores are plain products: PyTorch's own fused kernels."""

import torch.nn.functional as F
from torch import Tensor

__all__ = ["attend_everywhere"]


def attend_everywhere(query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
    """softmax_{j,m}( scale · q(i)·k(j,m) ) v(j,m) over all pixels j and poses m.

    The scores are never stored (flash attention where PyTorch has it): memory is linear in pixels and poses.

    Args:
        query: [B, heads, 1, H, W, d′]; every output pose is a head.
        key: [B, heads, M, H, W, d′].
        value: [B, heads, M, H, W, d], d ≤ d′.
        scale: on the scores.

    Returns:
        [B, heads, 1, H, W, d].
    """
    width = query.shape[-1] if query.device.type == "cpu" else -(-query.shape[-1] // 8) * 8
    tokens = [F.pad(x, (0, width - x.shape[-1])).flatten(2, 4).to(query.dtype) for x in (query, key, value)]
    out = F.scaled_dot_product_attention(tokens[0], tokens[1], tokens[2], scale=scale)  # fused: one width
    return out[..., : value.shape[-1]].unflatten(2, (1, *value.shape[-3:-1]))
