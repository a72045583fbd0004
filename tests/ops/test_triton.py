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

from gsa.ops._call import Call  # noqa: E402
from gsa.ops.impl.cuda import _launch as backend  # noqa: E402

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


def ptxas() -> Path:
    return next((Path(triton.__file__).parent / "backends" / "nvidia" / "bin").glob("ptxas*"))


def spilled(name: str, poses: str, dtype: str, architecture: int, side: int = 28) -> int:
    """Bytes that the compiled kernel spills from registers to memory."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = backend._kernels()[name]
    regular, queries, keys, outputs = POSES[poses]
    query = torch.empty(1, 1, queries, side, side, 10, device="meta", dtype=TYPES[dtype])
    key = query[:, :, :1].expand(-1, -1, keys, -1, -1, -1)
    spatial, pose = torch.empty(outputs, 5, 5, 10, device="meta"), torch.empty(queries, keys, 10, device="meta")
    window, seed = torch.ones(5, 5, dtype=torch.bool, device="meta"), torch.tensor(0, device="meta")
    constants = backend._plan(Call(query, key, key, spatial, pose, window, seed, regular, 0.1)) | {
        "scale": 10**-0.5,
        "factor": 1 / 0.9,
    }
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
    warps = backend._warps(name, outputs * (1 if regular else queries))
    compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options={"num_warps": warps})
    suffix = "a" if architecture >= 90 else ""
    listing = subprocess.run(
        [ptxas(), "-v", f"--gpu-name=sm_{architecture}{suffix}", "-o", os.devnull, "-"],
        input=compiled.asm["ptx"], capture_output=True, text=True, check=True,
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
    monkeypatch.setattr(backend, "_ELEMENTS", 16 * backend._ELEMENTS)
    assert spilled("keys_backward", "summed", "fp32", 90) > 8 * 4
