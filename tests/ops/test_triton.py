"""The CUDA kernels without a GPU: right in Triton's interpreter, and compiled for the GPUs they are meant for."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

triton = pytest.importorskip("triton")
if not os.environ.get("TRITON_DEFAULT_FP_FUSION"):
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"

from gsa.ops._call import Call, Needed  # noqa: E402
from gsa.ops.impl.cuda import _launch as backend  # noqa: E402
from gsa.ops.impl.cuda import _sizes  # noqa: E402
from tests.ops.cases import tensors  # noqa: E402

ROOT = Path(__file__).parents[2]
KERNELS = ("forward", "queries_backward", "keys_backward", "spatial_backward")
POSES = {
    "lifting": (False, 1, 1, 4),
    "regular": (True, 4, 4, 4),
    "summed": (False, 4, 4, 4),
    "R16": (False, 16, 16, 16),
}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "fp64": torch.float64}


@pytest.mark.parametrize("cases", ["few", pytest.param("all", marks=pytest.mark.slow)])
def test_interpreted_kernels_equal_the_reference(cases):
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-m", "tests.ops.triton_interpreted", cases],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("needed, launched", [
    (Needed(), KERNELS[1:]),
    (Needed(key=False, value=False), (KERNELS[1], KERNELS[3])),
    (Needed(spatial=False), KERNELS[1:3]),
    (Needed(False, False, True, False, False), KERNELS[1:3]),
    (Needed(True, False, False, False, True), KERNELS[1:2]),
])  # fmt: skip
def test_kernels_whose_gradients_nobody_asks_for_are_not_launched(monkeypatch, needed, launched):
    seen = []

    class Recorded:
        def __init__(self, name):
            self.name = name

        def __getitem__(self, grid):
            return lambda *arguments, **plan: seen.append(self.name)

    class Stub(dict):
        def __missing__(self, name):
            return Recorded(name)

    monkeypatch.setattr(backend, "_kernels", Stub)
    five, window, form = tensors("summed", "square")
    call = Call(*(t.detach() for t in five), window, torch.tensor(0), form == "regular", 0.0)
    gradients = backend.backward(torch.zeros_like(call.query), call, needed)
    assert tuple(seen) == launched and [gradient is not None for gradient in gradients] == list(needed)


def ptxas() -> Path:
    return next((Path(triton.__file__).parent / "backends" / "nvidia" / "bin").glob("ptxas*"))


def meta_call(poses: str, dtype: str, head_dim: int, side: int = 28) -> Call:
    regular, queries, keys, outputs = POSES[poses]
    query = torch.empty(1, 1, queries, side, side, head_dim, device="meta", dtype=TYPES[dtype])
    key = query[:, :, :1].expand(-1, -1, keys, -1, -1, -1)
    spatial = torch.empty(outputs, 5, 5, head_dim, device="meta")
    pose = torch.empty(queries, keys, head_dim, device="meta")
    window, seed = torch.ones(5, 5, dtype=torch.bool, device="meta"), torch.tensor(0, device="meta")
    return Call(query, key, key, spatial, pose, window, seed, regular, 0.1)


def compiled(name: str, call: Call, dtype: str, architecture: int):
    """The kernel for this call, compiled by Triton."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = backend._kernels()[name]
    constants = backend._plan(call) | {"scale": call.query.shape[-1] ** -0.5, "factor": 1 / 0.9}
    parameters = list(inspect.signature(kernel.fn).parameters)
    exact = "fp64" if dtype == "fp64" else "fp32"
    types = {"log_sum": f"*{exact}", "mean": f"*{exact}", "pose_part": f"*{exact}", "spatial_part": f"*{exact}"}
    types |= {"window": "*i8", "seed": "*i64"}
    features = ("query", "key", "value", "out", "grad", "query_grad", "key_grad", "value_grad", "spatial", "pose")
    types |= dict.fromkeys(features, f"*{dtype}") | dict.fromkeys(constants, "constexpr")
    source = ASTSource(
        kernel,
        {parameter: types.get(parameter, "i32") for parameter in parameters},
        {(parameters.index(constant),): value for constant, value in constants.items()},
    )
    options = {"num_warps": _sizes.warps(name, call)}
    return triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options)


def spilled(name: str, poses: str, dtype: str, architecture: int) -> int:
    """Bytes that the compiled kernel spills from registers to memory."""
    ptx = compiled(name, meta_call(poses, dtype, 10), dtype, architecture).asm["ptx"]
    suffix = "a" if architecture >= 90 else ""
    listing = subprocess.run(
        [ptxas(), "-v", f"--gpu-name=sm_{architecture}{suffix}", "-o", os.devnull, "-"],
        input=ptx, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return sum(int(count) for count in re.findall(r"(\d+) bytes spill stores", listing.stderr))


@pytest.mark.parametrize("poses", ["regular", "summed"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile_for_the_h100_without_spills(name, poses):
    assert spilled(name, poses, "fp32", 90) == 0


@pytest.mark.slow
@pytest.mark.parametrize("architecture", [80, 90, 100])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("poses", POSES)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile_for_every_gpu_and_spill_eight_registers_at_most(name, poses, dtype, architecture):
    assert spilled(name, poses, dtype, architecture) <= 8 * 4


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_float64_compiles(name):
    spilled(name, "summed", "fp64", 90)


def test_a_kernel_too_large_for_the_registers_is_noticed(monkeypatch):
    """Planted failure: tiles sixteen times as large spill."""
    monkeypatch.setattr(_sizes, "_ELEMENTS", 16 * _sizes._ELEMENTS)
    assert spilled("keys_backward", "summed", "fp32", 90) > 8 * 4


@pytest.mark.parametrize("name, poses, dtype, head_dim, architecture", [
    ("spatial_backward", "R16", "fp32", 32, 90),
    ("queries_backward", "summed", "fp32", 10, 80),
    *(
        pytest.param(name, poses, dtype, head_dim, architecture, marks=pytest.mark.slow)
        for name in KERNELS for poses in POSES for dtype in ("fp32", "bf16", "fp64")
        for head_dim in (10, 64) for architecture in (80, 90)
    ),
])  # fmt: skip
def test_no_kernel_takes_more_shared_memory_than_is_said(name, poses, dtype, head_dim, architecture):
    call = meta_call(poses, dtype, head_dim)
    taken, said = compiled(name, call, dtype, architecture).metadata.shared, _sizes.shared_memory(name, call)
    assert taken <= said <= _sizes.shared_memory("spatial_backward", call)
    if poses == "R16" and head_dim == 32:
        assert said < 1.15 * taken
