"""What Triton makes of a CUDA kernel, without a GPU: registers, and how many instructions a warp will issue."""

import inspect
import math
import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from gsa.ops._call import Call
from gsa.ops.impl.triton import _launch

__all__ = ["KERNELS", "Listing", "compiled"]

KERNELS = ("forward", "queries_backward", "keys_backward", "spatial_backward")
_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float64: "fp64"}
_SUMS = ("log_sum", "mean", "pose_score", "pose_part", "spatial_part")
_FEATURES = ("query", "key", "value", "out", "grad", "query_grad", "key_grad", "value_grad", "spatial", "pose")


def compiled(name: str, call: Call, architecture: int = 90):
    """The kernel for this call, compiled by Triton for sm_<architecture>."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = _launch._kernels(call.regular)[name]
    constants = _launch._plan(name, call) | {"scale": call.query.shape[-1] ** -0.5, "factor": 1 / (1 - call.dropout)}
    parameters = list(inspect.signature(kernel.fn).parameters)
    types = {"window": "*i8", "seed": "*i64"} | dict.fromkeys(constants, "constexpr")
    types |= dict.fromkeys(_FEATURES, f"*{_NAMES[call.query.dtype]}")
    types |= dict.fromkeys(_SUMS, f"*{_NAMES[call.sum_dtype]}")
    # As at a launch, where Triton looks at the numbers: memory is aligned, and so are most strides.
    divisible = [["tt.divisibility", 16]]
    aligned = {(i,): divisible for i, parameter in enumerate(parameters) if _is_aligned(parameter, types)}
    source = ASTSource(
        kernel,
        {parameter: types.get(parameter, "i32") for parameter in parameters},
        {(parameters.index(constant),): value for constant, value in constants.items()},
        aligned,
    )
    return triton.compile(source, target=GPUTarget("cuda", architecture, 32), options={"num_warps": 1})


def _is_aligned(parameter: str, types: dict[str, str]) -> bool:
    return types.get(parameter, "").startswith("*") or parameter.endswith(("_batch", "_head"))


@dataclass
class Listing:
    """The machine code of a kernel for one call."""

    name: str
    call: Call
    architecture: int = 90

    @cached_property
    def _compiled(self):
        return compiled(self.name, self.call, self.architecture)

    @cached_property
    def _texts(self) -> tuple[str, str]:
        import triton

        program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(self._compiled.asm["cubin"])
            file.flush()
            asked = ("-sass", "-res-usage")
            listed = [
                subprocess.run([program, a, file.name], capture_output=True, text=True, check=True) for a in asked
            ]
        return listed[0].stdout, listed[1].stdout + listed[1].stderr

    def _usage(self, what: str) -> int:
        return int(re.search(rf"{what}:(\d+)", self._texts[1])[1])

    @property
    def registers(self) -> int:
        """Of a thread, 255 at most."""
        return self._usage("REG")

    @property
    def spilled(self) -> int:
        """Bytes of a thread that found no register."""
        return self._usage("STACK")

    @property
    def shared(self) -> int:
        """Bytes of shared memory, which Triton asks for at the launch: the machine code does not tell."""
        return self._compiled.metadata.shared

    @property
    def warps_at_once(self) -> int:
        """On one multiprocessor of 65 536 registers, 32 programs at most."""
        return min(65536 // (32 * (-(-self.registers // 8) * 8)), 32)

    @cached_property
    def instructions(self) -> list[tuple[int, str]]:
        """Addresses and what stands there."""
        return [(int(at, 16), text) for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?);", self._texts[0])]

    @property
    def loops(self) -> list[tuple[int, int]]:
        """First and last addresses: wherever a branch goes back."""
        branches = [(re.search(r"\bBRA\b.*0x([0-9a-f]+)", text), at) for at, text in self.instructions]
        return [(int(branch[1], 16), at) for branch, at in branches if branch and int(branch[1], 16) < at]

    @property
    def issued(self) -> int:
        """Instructions that one warp issues, each loop counted with its trips."""
        loops, trips = self.loops, self._trips()
        total = 0
        for at, _ in self.instructions:
            around = sum(first <= at <= last for first, last in loops)
            total += math.prod(trips[:around])
        return total

    def _trips(self) -> list[int]:
        """Of the kernel's loops, the outermost first; loops of one trip are none, and inner ones may be unrolled."""
        queries, outputs, offsets = self.call.query.shape[2], self.call.spatial.shape[0], self.call.window.numel()
        plan, blocks = _launch._plan(self.name, self.call), _launch._blocks(self.call)
        trips = {
            (True, "forward"): [offsets],
            (True, "queries_backward"): [offsets],
            (True, "keys_backward"): [queries, offsets],
            (True, "spatial_backward"): [blocks],
            (False, "forward"): [queries, offsets],
            (False, "queries_backward"): [outputs // plan["T"], offsets],
            (False, "keys_backward"): [queries, offsets, outputs],
            (False, "spatial_backward"): [blocks, queries],
        }[self.call.regular, self.name]
        return [count for count in trips if count > 1]

    @property
    def warps(self) -> int:
        """That are launched."""
        return _launch.programs(self.name, self.call)
