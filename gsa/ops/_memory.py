"""What is said when a backend runs out of memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gsa.ops import _registry
from gsa.ops._call import Call

__all__ = ["noting_memory"]


@contextmanager
def noting_memory(direction: str, backend: str, call: Call) -> Iterator[None]:
    """Add a note to an error for want of memory: which backend, how large the call is, and what needs less."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error):
            error.add_note(_note(direction, backend, call))
        raise


def _note(direction: str, backend: str, call: Call) -> str:
    query, key, spatial = call.query, call.key, call.spatial
    batch, heads, queries, height, width, head_dim = query.shape
    (outputs, rows, columns), keys = spatial.shape[:3], key.shape[2]
    arguments = sum(tensor.numel() * tensor.element_size() for tensor in call.tensors)
    output = batch * heads * outputs * height * width * head_dim * query.element_size()
    maps = batch * heads * outputs * (1 if call.regular else queries) * keys
    scores = maps * height * width * rows * columns * call.sum_dtype.itemsize
    device = query.device
    return (
        f"in the {direction} pass of attention on the {backend!r} backend, {device}, {query.dtype}: "
        f"batch {batch}, {heads} heads of {head_dim}, {queries} query, {keys} key and {outputs} output poses, "
        f"maps of {height}×{width}, a window of {rows}×{columns}; inputs and output take {_size(arguments + output)}, "
        f"all score maps, in the {'regular' if call.regular else 'summed'} form, {_size(scores)}; "
        + _registry.advise(backend, device, query.dtype)
    )


def _size(count: float) -> str:
    """Bytes, to three figures."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.0f} TB"
