"""The CUDA kernels without a GPU: right in Triton's interpreter, and compiled for the GPUs they are meant for."""

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
from gsa.ops.impl.triton import _launch as backend  # noqa: E402
from gsa.ops.impl.triton import _sizes  # noqa: E402
from tests.ops.cases import tensors  # noqa: E402

ROOT = Path(__file__).parents[2]
import poses as poses_benchmark  # noqa: E402
from _listing import KERNELS, Listing, compiled  # noqa: E402

POSES = {
    "lifting": (False, 1, 1, 4),
    "regular": (True, 4, 4, 4),
    "summed": (False, 4, 4, 4),
    "R8": (True, 8, 8, 8),
    "R16": (True, 16, 16, 16),
    "R16 summed": (False, 16, 16, 16),
}
KILOBYTE = 1024  # of shared memory: with more, fewer warps could stand on a multiprocessor than have registers there
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

    monkeypatch.setattr(backend, "_kernels", lambda regular: {name: Recorded(name) for name in KERNELS})
    five, window, form = tensors("summed", "square")
    call = Call(*(t.detach() for t in five), window, torch.tensor(0), form == "regular", 0.0)
    gradients = backend.backward(torch.zeros_like(call.query), call, needed)
    assert tuple(seen) == launched and [gradient is not None for gradient in gradients] == list(needed)


def meta_call(poses: str, dtype: str, head_dim: int) -> Call:
    regular, queries, keys, outputs = POSES[poses]
    query = torch.empty(1, 1, queries, 28, 28, head_dim, device="meta", dtype=TYPES[dtype])
    key = query[:, :, :1].expand(-1, -1, keys, -1, -1, -1)
    spatial = torch.empty(outputs, 5, 5, head_dim, device="meta")
    pose = torch.empty(queries, keys, head_dim, device="meta")
    window, seed = torch.ones(5, 5, dtype=torch.bool, device="meta"), torch.tensor(0, device="meta")
    return Call(query, key, key, spatial, pose, window, seed, regular, 0.1)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile_for_the_h100_without_spills_and_threads_keep_to_themselves(name):
    listing = Listing(name, meta_call("regular", "fp32", 10))
    loops = listing.loops
    assert listing.spilled == 0 and loops and listing.shared <= KILOBYTE
    inside = [text for at, text in listing.instructions if any(first <= at <= last for first, last in loops)]
    assert not [text for text in inside if any(word in text for word in ("SHFL", "STS", "LDS", "BAR."))]
    assert not reads_of_several_pixels(listing)


def reads_of_several_pixels(listing: Listing) -> list[str]:
    """That pixels are neighbours is told to the compiler for the threads: none may read several at once."""
    codes = re.findall(r"\b(?:LDG|STG)\.[\w.]*", " ".join(text for _, text in listing.instructions))
    assert codes
    return [code for code in codes if code.endswith((".64", ".128"))]


@pytest.mark.parametrize("poses", ["regular", pytest.param("summed", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", KERNELS)
def test_where_a_slice_begins_is_told_in_64_bits(name, poses):
    """Features of more than 2³¹ numbers: R16 at 224 pixels has them from a batch of 19."""
    wide, narrow = places_of_slices(compiled(name, meta_call(poses, "fp32", 10)).asm["ttir"])
    assert wide and not narrow


@triton.jit
def in_32_bits(query, query_batch, heads):
    slice_ = triton.language.program_id(0) // 7
    triton.language.store(query + slice_ // heads * query_batch, 0.0)


def test_planted_a_slice_whose_place_is_told_in_32_bits():
    types = {"query": "*fp32", "query_batch": "i32", "heads": "i32"}
    source = triton.compiler.ASTSource(in_32_bits, types)
    target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
    wide, narrow = places_of_slices(triton.compile(source, target=target).asm["ttir"])
    assert narrow and not wide


def places_of_slices(program: str) -> tuple[list[str], list[str]]:
    """Where what is computed of a slice's number becomes 64 bits wide, and where it moves a pointer before that."""
    operations = re.findall(r"(%\w+) = ([\w.]+) (.*?) : ", program)
    program_id = next(result for result, operation, _ in operations if operation == "tt.get_program_id")
    numbers, wide, narrow = set(), [], []
    for result, operation, operands in operations:
        used = set(re.findall(r"%\w+", operands))
        is_number = operation in ("arith.divsi", "arith.remsi", "arith.muli", "arith.addi")
        if (operation == "arith.divsi" and program_id in used) or (is_number and numbers & used):
            numbers.add(result)
        elif numbers & used:
            {"arith.extsi": wide, "tt.addptr": narrow}.get(operation, []).append(result)
    return wide, narrow


# Instructions of a warp for one pair of poses at one relative position of 32 pixels, dropout included, when written.
PAIR = {
    ("regular", "forward"): 70, ("regular", "queries_backward"): 123,
    ("regular", "keys_backward"): 104, ("regular", "spatial_backward"): 75,
    ("summed", "forward"): 150, ("summed", "queries_backward"): 340,
    ("summed", "keys_backward"): 242, ("summed", "spatial_backward"): 137,
}  # fmt: skip


def per_pair(name: str, poses: str) -> float:
    call = meta_call(poses, "fp32", 10)
    pairs = call.query.shape[2] * call.key.shape[2] * call.window.numel() * (28 * 28 / 32)
    listing = Listing(name, call)
    return listing.issued * listing.warps / pairs


@pytest.mark.parametrize("name", KERNELS)
def test_no_count_of_instructions_doubles(name):
    assert 0.5 < per_pair(name, "regular") / PAIR["regular", name] < 2


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_no_count_of_instructions_doubles_in_the_summed_form(name):
    assert 0.5 < per_pair(name, "summed") / PAIR["summed", name] < 2


def test_a_lost_share_of_what_is_read_together_is_noticed(monkeypatch):
    """Planted failure: every pose for itself."""
    before = per_pair("spatial_backward", "regular")
    monkeypatch.setattr(_sizes, "_ROOM", 0)
    assert per_pair("spatial_backward", "regular") > 1.2 * before


def test_too_many_poses_for_the_registers_are_noticed(monkeypatch):
    """Planted failure: all of eight poses together spill."""
    monkeypatch.setattr(_sizes, "_ROOM", 10_000)
    assert Listing("keys_backward", meta_call("R8", "fp32", 10)).spilled > 0


@pytest.mark.slow
@pytest.mark.parametrize("architecture", [80, 90, 100])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("head_dim", [10, 16])
@pytest.mark.parametrize("poses", ["lifting", "regular", "summed"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_four_poses_compile_for_every_gpu_without_spills(name, poses, head_dim, dtype, architecture):
    few = 64 * 4 if poses == "summed" and head_dim == 16 else 0  # keys and values of all poses, and their gradients
    few = max(few, 8 * 4 if architecture == 100 else 0)  # 168 registers, with which the assembler makes do there
    listing = Listing(name, meta_call(poses, dtype, head_dim), architecture)
    assert listing.spilled <= few
    assert not reads_of_several_pixels(listing)


def test_fewer_poses_together_leave_room_for_more_warps():
    call = meta_call("regular", "fp32", 10)
    before = Listing("spatial_backward", call).warps_at_once
    with poses_benchmark.together(3):
        assert backend.poses_together("spatial_backward", call) == 2
        assert Listing("spatial_backward", call).warps_at_once > 1.5 * before
    assert backend.poses_together("spatial_backward", call) == 4


@pytest.mark.slow
@pytest.mark.parametrize("poses", ["R8", "R16", "R16 summed"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_more_poses_spill_few_registers(name, poses):
    # The summed form keeps a softmax over 16 key poses. With one output pose at a time in place of four it spills half
    # as many, and issues three times the instructions.
    few = 400 if poses == "R16 summed" else 64
    assert Listing(name, meta_call(poses, "fp32", 10)).spilled <= 4 * few


@pytest.mark.slow
@pytest.mark.parametrize("poses", ["R16", "R16 summed"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_use_a_kilobyte_of_shared_memory_at_most(name, poses):
    assert Listing(name, meta_call(poses, "fp32", 32)).shared <= KILOBYTE


@triton.jit
def in_shared_memory(query, N: triton.language.constexpr):
    each = triton.language.arange(0, N)
    at = query + each[:, None] * N + each[None, :]
    square = triton.language.load(at)
    triton.language.store(at, triton.language.dot(square, triton.language.trans(square)))


def test_planted_a_kernel_that_keeps_a_matrix_in_shared_memory(monkeypatch):
    source = triton.compiler.ASTSource(in_shared_memory, {"query": "*fp32", "N": "constexpr"}, {(1,): 64})
    planted = triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32))
    monkeypatch.setattr("_listing.compiled", lambda *_: planted)
    assert Listing("forward", meta_call("regular", "fp32", 10)).shared > KILOBYTE


@pytest.mark.slow
@pytest.mark.parametrize("poses", ["regular", "summed"])
@pytest.mark.parametrize("head_dim", [10, 64])
@pytest.mark.parametrize("name", KERNELS)
def test_float64_and_large_heads_compile(name, poses, head_dim):
    compiled(name, meta_call(poses, "fp64", head_dim))
    compiled(name, meta_call(poses, "fp32", head_dim))
