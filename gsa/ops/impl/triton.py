"""CUDA kernels in Triton (_triton_*.py): float32, bfloat16 and float16 with float32 sums; float64 in float64."""

import os
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from gsa.ops.impl._layout import empty_channels_first

__all__ = ["backward", "forward", "is_installed", "refusal"]

_ELEMENTS = 2048  # of a tile of keys [poses, pixels, channels]: 16 registers a thread
_FOUND = find_spec("triton") is not None
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def is_installed() -> bool:
    """Whether Triton is there and has something to run on: a CUDA device, or its own interpreter."""
    return _FOUND and (_INTERPRETED or torch.cuda.is_available())


def refusal(device: torch.device, dtype: torch.dtype) -> str | None:
    """Why the kernels cannot serve; None where they can."""
    if not _FOUND:
        return "the package triton is not installed"
    if device.type != "cuda" and not _INTERPRETED:
        return "it runs on CUDA devices only"
    if dtype not in _DTYPES:
        return f"it knows float32, bfloat16, float16 and float64, not {dtype}"
    return None


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    spatial: Tensor,
    pose: Tensor,
    window: Tensor,
    seed: Tensor,
    paired: bool,
    dropout: float,
) -> Tensor:
    """The op, arguments as in `gsa.ops.attend`."""
    query, key, value = map(_planes, (query, key, value))
    out = empty_channels_first(query, spatial.shape[0])
    plan = _plan(query, key, spatial, paired, dropout)
    tables = (spatial.contiguous(), pose.contiguous(), window.to(torch.int8), seed)
    _kernels()["forward"][_blocks(plan), _slices(query)](
        query, key, value, out, *tables, *_strides(query, key, value, out), *_numbers(query, dropout), **plan
    )
    return out


def backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    spatial: Tensor,
    pose: Tensor,
    window: Tensor,
    seed: Tensor,
    paired: bool,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of query, key, value, spatial and pose; the weights are computed again."""
    grad, query, key, value = features = tuple(map(_planes, (grad, query, key, value)))
    plan = _plan(query, key, spatial, paired, dropout)
    tables = (spatial.contiguous(), pose.contiguous(), window.to(torch.int8), seed)
    slices, blocks, numbers = _slices(query), _blocks(plan), _numbers(query, dropout)
    exact = torch.float64 if query.dtype == torch.float64 else torch.float32
    poses = spatial.shape[0] * (1 if paired else pose.shape[0])
    log_sum, mean = query.new_empty(2, slices, poses, *query.shape[3:5], dtype=exact)
    pose_part = query.new_empty(slices * blocks, *pose.shape, dtype=exact)
    spatial_part = query.new_empty(slices, *spatial.shape, dtype=exact)
    query_grad, key_grad, value_grad = (empty_channels_first(x, x.shape[2]) for x in (query, key, value))
    kernels = _kernels()
    kernels["queries_backward"][blocks, slices](
        *features, query_grad, pose_part, log_sum, mean, *tables, *_strides(*features, query_grad), *numbers, **plan
    )
    kernels["keys_backward"][blocks, slices](
        *features, key_grad, value_grad, log_sum, mean, *tables,
        *_strides(*features, key_grad, value_grad), *numbers, **plan,
    )  # fmt: skip
    kernels["spatial_backward"][spatial.shape[1] * spatial.shape[2], slices](
        *features,
        spatial_part,
        log_sum,
        mean,
        *tables,
        *_strides(*features),
        *numbers,
        **plan,
        num_warps=_warps("spatial_backward", poses),
    )
    parts = (spatial_part.sum(0), pose_part.sum(0))
    return query_grad, key_grad, value_grad, *(part.to(query.dtype) for part in parts)


@cache
def _kernels() -> dict:
    """Imported when first needed: Triton may not be there."""
    from gsa.ops.impl import _triton_backward as backward
    from gsa.ops.impl import _triton_forward as forward

    kernels = (forward.forward, backward.queries_backward, backward.keys_backward, backward.spatial_backward)
    return {kernel.fn.__name__: kernel for kernel in kernels}


def _planes(x: Tensor) -> Tensor:
    """[B, heads, poses, H, W, d] with pixels, poses and channels in memory as [d, poses, H, W]; copied only if not."""
    first = x.permute(0, 1, 5, 2, 3, 4)
    if first.stride()[2:] != torch.empty(first.shape[2:], device="meta").stride():
        first = first.contiguous()
    return first.permute(0, 1, 3, 4, 5, 2)


def _strides(*features: Tensor) -> list[int]:
    return [stride for x in features for stride in x.stride()[:2]]


def _numbers(query: Tensor, dropout: float) -> tuple[int, int, float, float]:
    return query.shape[1], round(dropout * 2**31), query.shape[-1] ** -0.5, 1 / (1 - dropout)


def _warps(kernel: str, pairs: int) -> int:
    """More for the one kernel and size that four warps have too few registers for."""
    return 8 if kernel == "spatial_backward" and pairs > 64 else 4


def _slices(query: Tensor) -> int:
    return query.shape[0] * query.shape[1]


def _blocks(plan: dict) -> int:
    return -(-plan["H"] * plan["W"] // plan["B"])


def _plan(query: Tensor, key: Tensor, spatial: Tensor, paired: bool, dropout: float) -> dict:
    """What is compiled into the kernels: the sizes, and the pixels of a block."""
    import triton
    import triton.language as tl

    height, width, channels = query.shape[3:]
    outputs, rows, columns = spatial.shape[:3]
    keys, padded = triton.next_power_of_2(key.shape[2]), triton.next_power_of_2(channels)
    pixels = max(_ELEMENTS // (max(keys, 1 if paired else triton.next_power_of_2(outputs)) * padded), 8)
    return {
        "H": height,
        "W": width,
        "U": rows,
        "V": columns,
        "D": channels,
        "Q": query.shape[2],
        "M": key.shape[2],
        "P": outputs,
        "MP": keys,
        "PP": 1 if paired else triton.next_power_of_2(outputs),
        "C": padded,
        "B": min(pixels, 64, triton.next_power_of_2(height * width)),
        "PAIRED": paired,
        "DROPOUT": dropout > 0,
        "A": tl.float64 if query.dtype == torch.float64 else tl.float32,
    }
