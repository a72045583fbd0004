"""Errors for want of memory."""

__all__ = ["is_out_of_memory"]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory has run out: Python's, PyTorch's on a device, or that of its allocator on CPUs.

    By name, because it is asked where PyTorch may not have been imported.
    """
    is_one = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return is_one or "can't allocate memory" in str(error)
