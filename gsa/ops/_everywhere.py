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
    wider = query.shape[-1] - value.shape[-1]  # the fused kernels want one width
    query, key, tokens = query.flatten(2, 4), key.flatten(2, 4), F.pad(value, (0, wider)).flatten(2, 4)
    out = F.scaled_dot_product_attention(query, key.to(query.dtype), tokens.to(query.dtype), scale=scale)
    return out[..., : value.shape[-1]].unflatten(2, (1, *value.shape[-3:-1]))
