"""What a program of the Triton kernels holds: tiles of so many poses, pixels and channels, and shared memory."""

import torch

from gsa.ops._call import Call

__all__ = ["refuse_size", "shared_memory", "tile_sizes", "warps"]

_ELEMENTS = 2048  # of a tile of keys [poses, pixels, channels]: 16 registers a thread
# Tiles that a kernel has in shared memory at most: one through which threads exchange; with eight warps, two each of
# keys, values and output gradients on their way from memory as well.
_TILES = {4: 1, 8: 7}


def tile_sizes(call: Call) -> tuple[int, int, int, int]:
    """Key poses, output poses, channels, each padded to a power of two, and pixels of a block on a large map."""
    keys, channels = _power_of_2(call.key.shape[2]), _power_of_2(call.query.shape[-1])
    together = 1 if call.regular else _power_of_2(call.spatial.shape[0])  # output poses that a program holds at a time
    return keys, together, channels, min(max(_ELEMENTS // (max(keys, together) * channels), 8), 64)


def warps(kernel: str, call: Call) -> int:
    """More for the one kernel and size that four warps have too few registers for."""
    pairs = call.spatial.shape[0] * (1 if call.regular else call.query.shape[2])
    return 8 if kernel == "spatial_backward" and pairs > 64 else 4


def shared_memory(kernel: str, call: Call) -> int:
    """The most bytes of shared memory that a kernel takes for this call."""
    keys, together, channels, pixels = tile_sizes(call)
    return _TILES[warps(kernel, call)] * max(keys, together) * channels * pixels * call.sum_dtype.itemsize


def refuse_size(call: Call) -> str | None:
    """Why the call is too large for its device; None where it is not, or where nothing is launched."""
    device = call.query.device
    if device.type != "cuda" or not torch.cuda.is_available():
        return None
    needed = shared_memory("spatial_backward", call)  # no other takes more
    there = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
    if needed <= there:
        return None
    return (
        f"its kernels take up to {needed // 1024} KB of shared memory for {call.key.shape[2]} key and "
        f"{call.spatial.shape[0]} output poses with heads of {call.query.shape[-1]}, but this device has "
        f"{there // 1024} KB"
    )


def _power_of_2(count: int) -> int:
    """The least that is no smaller."""
    return 1 << (count - 1).bit_length()
