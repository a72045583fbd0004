"""What strides leave over at the end of a line."""

__all__ = ["left_over"]


def left_over(room: int, stride: int) -> int:
    """room % stride, as one of the numbers 0 … stride − 1 where the room is a symbol, too: a compiler notes which."""
    return next(rest for rest in range(stride) if room % stride == rest)
