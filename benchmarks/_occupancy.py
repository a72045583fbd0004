"""How much of a multiprocessor the kernels of a network fill: registers, and the warps that stand there at once."""

from collections.abc import Iterator

import torch
from _listing import KERNELS, Listing
from _training_step import NETWORKS
from kernels import call_of, calls_of

import gsa
from gsa.ops._call import Call

__all__ = ["largest_call", "occupancy"]


def occupancy(names: tuple[str, ...], device: str) -> Iterator[dict]:
    """One row for each kernel in the largest attention of each network, compiled for the device, or for an H100."""
    architecture = 90
    if device != "cpu":
        major, minor = torch.cuda.get_device_capability(device)
        architecture = 10 * major + minor
    for name in names:
        call = largest_call(name, 64)
        for kernel in KERNELS:
            made = Listing(kernel, call, architecture)
            row = {"network": name, "kernel": kernel, "architecture": architecture, "registers": made.registers}
            yield row | {"spilled": made.spilled, "shared": made.shared, "warps": made.warps_at_once}


def largest_call(name: str, batch: int) -> Call:
    """Of the attention of a network, that of the most scores."""
    preset, changes, side, _ = NETWORKS[name]
    channels = gsa.models.preset(preset).keywords["in_channels"]
    calls = calls_of(gsa.create_model(preset, **changes), torch.rand(1, channels, side, side))
    return call_of(max(calls, key=_scores), batch)


def _scores(shapes: tuple) -> int:
    """How many a picture has."""
    (heads, queries, height, width, _), keys, (_, rows, columns), *_ = shapes
    return heads * queries * keys * height * width * rows * columns
