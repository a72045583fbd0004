"""How the Triton kernels are launched: float32, bfloat16 and float16 with float32 sums; float64 in float64."""

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from gsa.ops._call import Call, Gradients, Needed
from gsa.ops.impl._layout import empty_channels_first
from gsa.ops.impl.cuda._sizes import tile_sizes, warps

__all__ = ["backward", "forward", "is_installed", "refusal"]

_FOUND = find_spec("triton") is not None
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_CAPABILITY = (8, 0)  # of the A100
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
    if device.type == "cuda" and torch.cuda.is_available():
        capability = torch.cuda.get_device_capability(device)
        if capability < _CAPABILITY:
            needed, there = (".".join(map(str, version)) for version in (_CAPABILITY, capability))
            return f"it needs compute capability {needed} or more, but this device has {there}"
    if dtype not in _DTYPES:
        return f"it knows float32, bfloat16, float16 and float64, not {dtype}"
    return None


def forward(call: Call) -> Tensor:
    """The op."""
    features = tuple(map(_planes, call.tensors[:3]))
    out = empty_channels_first(call.query, call.spatial.shape[0])
    plan = _plan(call)
    with _on(call.query.device):
        _kernels()["forward"][(call.slices * _blocks(plan),)](
            *features, out, *_tables(call), *_strides(*features, out), *_numbers(call), **plan
        )
    return out


def backward(grad: Tensor, call: Call, needed: Needed) -> Gradients:
    """Gradients of query, key, value, spatial and pose; the weights are computed again.

    The queries' kernel always runs: it leaves what the others need.
    """
    features = tuple(map(_planes, (grad, *call.tensors[:3])))
    query, spatial, pose = call.query, call.spatial, call.pose
    plan, tables, numbers = _plan(call), _tables(call), _numbers(call)
    slices, blocks = call.slices, _blocks(plan)
    poses = spatial.shape[0] * (1 if call.regular else pose.shape[0])
    log_sum, mean = query.new_empty(2, slices, poses, *query.shape[3:5], dtype=call.sum_dtype)
    pose_part = query.new_empty(slices * blocks, *pose.shape, dtype=call.sum_dtype)
    spatial_part = query.new_empty(slices, *spatial.shape, dtype=call.sum_dtype)
    query_grad, key_grad, value_grad = (empty_channels_first(x, x.shape[2]) for x in features[1:])
    kernels, programs = _kernels(), (slices * blocks,)
    with _on(query.device):
        kernels["queries_backward"][programs](
            *features, query_grad, pose_part, log_sum, mean, *tables, *_strides(*features, query_grad), *numbers, **plan
        )
        if needed.key or needed.value:
            kernels["keys_backward"][programs](
                *features, key_grad, value_grad, log_sum, mean, *tables,
                *_strides(*features, key_grad, value_grad), *numbers, **plan,
            )  # fmt: skip
        if needed.spatial:
            kernels["spatial_backward"][(slices * spatial.shape[1] * spatial.shape[2],)](
                *features, spatial_part, log_sum, mean, *tables,
                *_strides(*features), *numbers, **plan, num_warps=warps("spatial_backward", call),
            )  # fmt: skip
    return (
        query_grad if needed.query else None,
        key_grad if needed.key else None,
        value_grad if needed.value else None,
        spatial_part.sum(0).to(query.dtype) if needed.spatial else None,
        pose_part.sum(0).to(query.dtype) if needed.pose else None,
    )


@cache
def _kernels() -> dict:
    """Imported when first needed: Triton may not be there."""
    from gsa.ops.impl.cuda import _backward, _forward

    kernels = (_forward.forward, _backward.queries_backward, _backward.keys_backward, _backward.spatial_backward)
    return {kernel.fn.__name__: kernel for kernel in kernels}


def _on(device: torch.device) -> AbstractContextManager:
    """Triton launches on the current device, which need not be that of the tensors."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _planes(x: Tensor) -> Tensor:
    """[B, heads, poses, H, W, d] with pixels, poses and channels in memory as [d, poses, H, W]; copied only if not."""
    first = x.permute(0, 1, 5, 2, 3, 4)
    if first.stride()[2:] != torch.empty(first.shape[2:], device="meta").stride():
        first = first.contiguous()
    return first.permute(0, 1, 3, 4, 5, 2)


def _strides(*features: Tensor) -> list[int]:
    return [stride for x in features for stride in x.stride()[:2]]


def _tables(call: Call) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return call.spatial.contiguous(), call.pose.contiguous(), call.window.to(torch.int8).contiguous(), call.seed


def _numbers(call: Call) -> tuple[int, int, float, float]:
    return call.query.shape[1], round(call.dropout * 2**31), call.query.shape[-1] ** -0.5, 1 / (1 - call.dropout)


def _blocks(plan: dict) -> int:
    return -(-plan["H"] * plan["W"] // plan["B"])


def _plan(call: Call) -> dict:
    """What is compiled into the kernels: the sizes, and the pixels of a block."""
    import triton
    import triton.language as tl

    height, width, channels = call.query.shape[3:]
    outputs, rows, columns = call.spatial.shape[:3]
    keys, together, padded, pixels = tile_sizes(call)
    return {
        "H": height,
        "W": width,
        "U": rows,
        "V": columns,
        "D": channels,
        "Q": call.query.shape[2],
        "M": call.key.shape[2],
        "P": outputs,
        "MP": keys,
        "PP": together,
        "C": padded,
        "B": min(pixels, triton.next_power_of_2(height * width)),
        "REGULAR": call.regular,
        "DROPOUT": call.dropout > 0,
        "A": tl.float64 if call.sum_dtype == torch.float64 else tl.float32,
    }
