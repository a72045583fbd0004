"""What a program of the Triton kernels serves: 32 pixels, a thread each, and as many poses as its registers hold."""

from gsa.ops._call import Call

__all__ = ["PIXELS", "poses_together"]

PIXELS = 32  # of a warp
_ROOM = 150  # of a thread's 255 registers, for what each of the poses needs for itself


def poses_together(kernel: str, call: Call) -> int:
    """How many poses share what they read: a divisor of their number."""
    channels, keys, outputs = call.query.shape[-1], call.key.shape[2], call.spatial.shape[0]
    room = _ROOM
    if call.regular:
        each = {
            "forward": 2 * channels + 2 * keys,
            "queries_backward": 4 * channels + 5 * keys,
            "keys_backward": 3 * channels + channels // 2,
            "spatial_backward": 3 * channels,
        }[kernel]
    elif kernel == "forward":
        each = 3 * channels
    else:
        each, room = 2 * channels, _ROOM - 6 * channels  # the stage over key poses needs its own
    poses = keys if kernel == "keys_backward" else outputs
    return max(n for n in range(1, poses + 1) if poses % n == 0 and (n == 1 or n * each <= room))
