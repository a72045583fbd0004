"""CPU kernels in C++ (native.cpp), called without the GIL; float32 and float64, halves by way of float32."""

import ctypes
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import torch
from torch import Tensor

from gsa.ops.impl._layout import empty_channels_first

__all__ = ["backward", "forward", "is_built", "refusal"]

# The same source, built for these vector widths: what torch says of this CPU → the builds it can run, best first.
_BUILDS = {"AVX512": ("avx512", "avx2", "portable"), "AVX2": ("avx2", "portable")}


class _Feature(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("strides", ctypes.c_int64 * 6)]


class _Call(ctypes.Structure):
    """The arguments of a kernel: `struct Call` of native.cpp, field for field."""

    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in (
                "batch",
                "heads",
                "queries",
                "keys",
                "outputs",
                "height",
                "width",
                "channels",
                "rows",
                "columns",
                "paired",
                "threads",
            )
        ),
        *((name, _Feature) for name in ("query", "key", "value", "out")),
        *((name, _Feature) for name in ("query_gradient", "key_gradient", "value_gradient")),
        *((name, ctypes.c_void_p) for name in ("spatial", "pose", "spatial_gradient", "pose_gradient", "window")),
        ("dropout", ctypes.c_double),
        ("seed", ctypes.c_int64),
        ("team", ctypes.c_void_p),
    ]


def _load(capability: str) -> ctypes.CDLL | None:
    """The widest build that is installed and that a CPU of this capability can run."""
    for build in _BUILDS.get(capability, ("portable",)):
        for suffix in EXTENSION_SUFFIXES:
            path = Path(__file__).with_name(f"_native_{build}{suffix}")
            if path.exists():
                return ctypes.CDLL(str(path))
    return None


def _team() -> int | None:
    """Address of GOMP_parallel in the OpenMP library that torch has loaded; None where there is none."""
    try:
        return ctypes.cast(ctypes.CDLL(None).GOMP_parallel, ctypes.c_void_p).value
    except (AttributeError, OSError, TypeError):
        return None


_library = _load(torch.backends.cpu.get_cpu_capability())
_parallel = _team()


def is_built() -> bool:
    """Whether the installation found a C++ compiler."""
    return _library is not None


def refusal(device: torch.device, dtype: torch.dtype) -> str | None:
    """Why the kernels cannot serve; None where they can."""
    if device.type != "cpu":
        return "it runs on the CPU only"
    if not is_built():
        return "it was not built: install a C++ compiler (g++ or clang++) and gsa again"
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
    dtype = query.dtype
    query, key, value, spatial, pose = _whole(query, key, value, spatial, pose)
    out = empty_channels_first(query, spatial.shape[0])
    call = _call(query, key, value, spatial, pose, window, seed, paired, dropout, out)
    _run("forward", call, query.dtype)
    return out.to(dtype)


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
    dtype = query.dtype
    grad, query, key, value, spatial, pose = _whole(grad, query, key, value, spatial, pose)
    gradients = (
        *(empty_channels_first(x, x.shape[2]) for x in (query, key, value)),
        torch.empty_like(spatial),
        torch.empty_like(pose),
    )
    call = _call(query, key, value, spatial, pose, window, seed, paired, dropout, grad)
    for name, gradient in zip(("query", "key", "value"), gradients[:3], strict=True):
        setattr(call, f"{name}_gradient", _feature(gradient))
    call.spatial_gradient, call.pose_gradient = (gradient.data_ptr() for gradient in gradients[3:])
    _run("backward", call, query.dtype)
    return tuple(gradient.to(dtype) for gradient in gradients)


def _whole(*tensors: Tensor) -> tuple[Tensor, ...]:
    """float32 for half precisions; the tables, which are small, contiguous."""
    dtype = torch.float64 if tensors[0].dtype == torch.float64 else torch.float32
    return tuple(t.to(dtype) if t.ndim == 6 else t.to(dtype).contiguous() for t in tensors)


def _feature(x: Tensor) -> _Feature:
    return _Feature(x.data_ptr(), x.stride())


def _call(query, key, value, spatial, pose, window, seed, paired, dropout, out) -> _Call:
    batch, heads, queries, height, width, channels = query.shape
    call = _Call(
        batch, heads, queries, key.shape[2], spatial.shape[0], height, width, channels, *window.shape,
        int(paired), torch.get_num_threads(),
    )  # fmt: skip
    call.query, call.key, call.value, call.out = (_feature(x) for x in (query, key, value, out))
    window = window.contiguous()
    call.spatial, call.pose, call.window = spatial.data_ptr(), pose.data_ptr(), window.data_ptr()
    call.dropout, call.seed, call.team = dropout, int(seed), _parallel
    call.kept_alive = window
    return call


def _run(direction: str, call: _Call, dtype: torch.dtype) -> None:
    kernel = getattr(_library, f"gsa_{direction}_{'double' if dtype == torch.float64 else 'float'}")
    if kernel(ctypes.byref(call)):
        raise MemoryError(f"not enough memory for the {direction} pass of attention")
