"""How the C++ kernels are called, without the GIL; float32 and float64, halves by way of float32."""

import ctypes

import torch
from torch import Tensor

from gsa.ops._call import Call, Gradients, Needed
from gsa.ops.impl._layout import empty_channels_first
from gsa.ops.impl.native import _library

__all__ = ["backward", "forward", "refusal"]


class _Feature(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("strides", ctypes.c_int64 * 6)]


class _Arguments(ctypes.Structure):
    """The arguments of a kernel: `struct Call` of call.hpp, field for field."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("batch", "heads", "queries", "keys", "outputs", "height", "width")),
        *((name, ctypes.c_int64) for name in ("channels", "rows", "columns", "regular", "threads", "crop")),
        *((name, _Feature) for name in ("query", "key", "value", "out")),
        *((name, _Feature) for name in ("query_gradient", "key_gradient", "value_gradient")),
        *((name, ctypes.c_void_p) for name in ("spatial", "pose", "spatial_gradient", "pose_gradient", "window")),
        ("dropout", ctypes.c_double),
        ("seed", ctypes.c_int64),
        ("team", ctypes.c_void_p),
    ]


_SIZE = ctypes.sizeof(_Arguments)


def refusal(device: torch.device, dtype: torch.dtype) -> str | None:
    """Why the kernels cannot serve; None where they can."""
    if device.type != "cpu":
        return "it runs on the CPU only"
    if not _library.is_built():
        return "it was not built: install a C++ compiler (g++ or clang++) and gsa again"
    if _library.call_size != _SIZE:  # it would read what is not there
        return "it was built from other sources than these: install gsa again"
    return None


def forward(call: Call) -> Tensor:
    """The op, arguments as in `gsa.ops.attend`."""
    dtype, call = call.query.dtype, _whole(call)
    out = empty_channels_first(call.query, call.spatial.shape[0], call.crop)
    _run("forward", _arguments(call, out), call.sum_dtype)
    return out.to(dtype)


def backward(grad: Tensor, call: Call, needed: Needed) -> Gradients:
    """Gradients of query, key, value, spatial and pose, computed together; the weights are computed again."""
    dtype, call, grad = call.query.dtype, _whole(call), grad.to(call.sum_dtype)
    gradients = (
        *(empty_channels_first(feature, feature.shape[2]) for feature in (call.query, call.key, call.value)),
        torch.empty_like(call.spatial),
        torch.empty_like(call.pose),
    )
    arguments = _arguments(call, grad)
    for name, gradient in zip(("query", "key", "value"), gradients[:3], strict=True):
        setattr(arguments, f"{name}_gradient", _feature(gradient))
    arguments.spatial_gradient, arguments.pose_gradient = (gradient.data_ptr() for gradient in gradients[3:])
    _run("backward", arguments, call.sum_dtype)
    query, key, value, spatial, pose = (
        gradient.to(dtype) if wanted else None for gradient, wanted in zip(gradients, needed, strict=True)
    )
    return query, key, value, spatial, pose


def _whole(call: Call) -> Call:
    """float32 for half precisions; the tables, which are small, contiguous."""
    call = call.to(call.sum_dtype)
    return call._replace(**{name: getattr(call, name).contiguous() for name in ("spatial", "pose", "window")})


def _feature(x: Tensor) -> _Feature:
    return _Feature(x.data_ptr(), x.stride())


def _arguments(call: Call, out: Tensor) -> _Arguments:
    """Addresses: the call's tensors must outlive them."""
    batch, heads, queries, height, width, channels = call.query.shape
    arguments = _Arguments(
        batch, heads, queries, call.key.shape[2], call.spatial.shape[0], height, width, channels, *call.window.shape,
        int(call.regular), torch.get_num_threads(), call.crop,
    )  # fmt: skip
    for name, feature in (("query", call.query), ("key", call.key), ("value", call.value), ("out", out)):
        setattr(arguments, name, _feature(feature))
    for name in ("spatial", "pose", "window"):
        setattr(arguments, name, getattr(call, name).data_ptr())
    arguments.dropout, arguments.seed, arguments.team = call.dropout, int(call.seed), _library.parallel
    return arguments


def _run(direction: str, arguments: _Arguments, dtype: torch.dtype) -> None:
    if _library.kernel(direction, dtype)(ctypes.byref(arguments)):
        raise MemoryError(f"not enough memory for the {direction} pass of attention")
