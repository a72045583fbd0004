"""How the Triton kernels are launched: float32, bfloat16 and float16 with float32 sums; float64 in float64."""

import math
import os
import shutil
import sysconfig
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from gsa.ops._call import Call, Gradients, Needed
from gsa.ops.impl._layout import empty_channels_first
from gsa.ops.impl.triton._ahead import compile_ahead, wait_for, wait_for_all
from gsa.ops.impl.triton._sizes import PIXELS, poses_together

__all__ = ["backward", "forward", "is_installed", "programs", "refusal"]

_FOUND = find_spec("triton") is not None
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_COMPILERS = [os.environ["CC"]] if "CC" in os.environ else ["gcc", "clang"]
_HEADER = Path(sysconfig.get_path("include", "posix_prefix"), "Python.h")
_CAN_LAUNCH = any(map(shutil.which, _COMPILERS)) and _HEADER.is_file()  # by a program that is compiled when it runs
_CAPABILITY = (8, 0)  # of the A100
_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_FORESEEN: set[tuple] = set()  # calls whose next kernels are compiled, or about to be


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
        if not _CAN_LAUNCH:
            return (
                "it needs a C compiler, gcc or clang or the one that the environment variable CC names, and the "
                f"headers of Python (python3-dev), {_HEADER}"
            )
    if dtype not in _DTYPES:
        return f"it knows float32, bfloat16, float16 and float64, not {dtype}"
    return None


def forward(call: Call) -> Tensor:
    """The op."""
    _foresee(call)
    features = tuple(map(_planes, call.tensors[:3]))
    out = empty_channels_first(call.query, call.spatial.shape[0])
    with _on(call.query.device):
        _launch("forward", call, *features, out, *_tables(call), *_strides(*features, out), *_numbers(call))
    return out


def backward(grad: Tensor, call: Call, needed: Needed) -> Gradients:
    """Gradients of query, key, value, spatial and pose; the weights are computed again.

    The queries' kernel always runs: it leaves what the others need.
    """
    features = tuple(map(_planes, (grad, *call.tensors[:3])))
    query, spatial, pose = call.query, call.spatial, call.pose
    tables, numbers, slices = _tables(call), _numbers(call), call.slices
    (queries, keys), outputs, pixels = pose.shape[:2], 1 if call.regular else spatial.shape[0], query.shape[3:5]
    left = [query.new_empty(slices, n, *pixels, dtype=call.sum_dtype) for n in (queries * outputs,) * 2]
    left.append(query.new_empty(slices, queries * keys, *pixels, dtype=call.sum_dtype))
    pose_part = query.new_empty(slices * _blocks(call), *tables[1].shape, dtype=call.sum_dtype)
    spatial_part = query.new_empty(slices, *tables[0].shape, dtype=call.sum_dtype)
    query_grad, key_grad, value_grad = (empty_channels_first(x, x.shape[2]) for x in features[1:])
    with _on(query.device):
        strides = _strides(*features, query_grad)
        _launch("queries_backward", call, *features, query_grad, pose_part, *left, *tables, *strides, *numbers)
        if needed.key or needed.value:
            strides = _strides(*features, key_grad, value_grad)
            _launch("keys_backward", call, *features, key_grad, value_grad, *left, *tables, *strides, *numbers)
        if needed.spatial:
            _launch("spatial_backward", call, *features, spatial_part, *left, *tables, *_strides(*features), *numbers)
    return (
        query_grad if needed.query else None,
        key_grad if needed.key else None,
        value_grad if needed.value else None,
        spatial_part.sum(0).movedim(1, 3).to(query.dtype) if needed.spatial else None,
        pose_part.sum(0).movedim(1, 2).to(query.dtype) if needed.pose else None,
    )


def _launch(name: str, call: Call, *arguments: Tensor | float) -> None:
    """One kernel; of a call that is imagined, compiled only."""
    kernel, plan, key = _kernels(call.regular)[name], _plan(name, call), _key(name, call)
    if call.query.is_meta:
        compile_ahead(key, kernel, arguments, plan)
    else:
        wait_for(key)
        launch = partial(kernel[(programs(name, call),)], *arguments, **plan, num_warps=1)
        try:
            launch()
        except SystemError:  # Python before 3.11.8 and 3.12.2, where threads read code at the same time: gh-106905
            wait_for_all()
            launch()


def _foresee(call: Call) -> None:
    """Where a call is the first of its sizes in training, have the kernels compiled that it will need after its own.

    They are those of its backward pass, and of validation, which is without dropout. Each takes seconds to compile, and
    the same threads compile those of the next layers.
    """
    key = _key("forward", call)
    if call.query.is_meta or key in _FORESEEN or not call.query.requires_grad or _INTERPRETED:
        return
    _FORESEEN.add(key)
    window, seed = _imagined(call.window), _imagined(call.seed)
    imagined = call.with_tensors(*map(_imagined, call.tensors))._replace(window=window, seed=seed)
    with _on(call.query.device):
        backward(empty_channels_first(imagined.query, call.spatial.shape[0]), imagined, Needed())
        if call.dropout:
            forward(imagined._replace(dropout=0.0))


def _imagined(x: Tensor) -> Tensor:
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def _key(name: str, call: Call) -> tuple:
    """What tells compiled kernels from one another."""
    sizes = call.query.shape[2:], call.key.shape[2], call.spatial.shape[:3]
    return name, call.regular, call.dropout > 0, call.query.dtype, *sizes


def programs(name: str, call: Call) -> int:
    """One for each slice, each few poses and each block of pixels (or relative position)."""
    poses = {"keys_backward": call.key.shape[2], "queries_backward": call.query.shape[2]}.get(
        name, call.spatial.shape[0]
    )
    # The summed form's queries come one by one: there it is the output poses that are taken together.
    together = 1 if name == "queries_backward" and not call.regular else poses_together(name, call)
    count = call.window.numel() if name == "spatial_backward" else _blocks(call)
    return call.slices * (poses // together) * count


@cache
def _kernels(regular: bool) -> dict:
    """Of a form; imported when first needed: Triton may not be there."""
    from gsa.ops.impl.triton import _regular, _regular_backward, _summed, _summed_backward

    forward, backward = (_regular, _regular_backward) if regular else (_summed, _summed_backward)
    return {"forward": forward.forward} | {name: getattr(backward, name) for name in backward.__all__}


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
    """Encodings with channels next to last, as [P, d, U, V] and [Q, d, M], the window and the seed."""
    spatial, pose = call.spatial.movedim(3, 1).contiguous(), call.pose.movedim(2, 1).contiguous()
    return spatial, pose, call.window.to(torch.int8).contiguous(), call.seed


def _numbers(call: Call) -> tuple[int, int, float, float]:
    return call.query.shape[1], round(call.dropout * 2**31), call.query.shape[-1] ** -0.5, 1 / (1 - call.dropout)


def _blocks(call: Call) -> int:
    return -(-math.prod(call.query.shape[3:5]) // PIXELS)


def _plan(name: str, call: Call) -> dict:
    """What is compiled into a kernel: the sizes, and how many poses it takes together."""
    import triton.language as tl

    height, width, channels = call.query.shape[3:]
    outputs, rows, columns = call.spatial.shape[:3]
    return {
        "H": height,
        "W": width,
        "U": rows,
        "V": columns,
        "D": channels,
        "Q": call.query.shape[2],
        "M": call.key.shape[2],
        "P": outputs,
        "T": poses_together(name, call),
        "B": PIXELS,
        "DROPOUT": call.dropout > 0,
        "A": tl.float64 if call.sum_dtype == torch.float64 else tl.float32,
    }
