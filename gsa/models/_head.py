"""From classes at every pixel and pose to logits."""

from torch import Tensor

__all__ = ["logits_over_poses"]


def logits_over_poses(scores: Tensor, poses: str) -> Tensor:
    """Mean over pixels, then "max" or "mean" over poses: [B, classes, |H|, H, W] → [B, classes]."""
    over_pixels = scores.mean((-2, -1))
    return over_pixels.amax(-1) if poses == "max" else over_pixels.mean(-1)
