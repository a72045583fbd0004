"""From classes at every pixel and pose to logits."""

from torch import Tensor

__all__ = ["pooled_logits"]


def pooled_logits(scores: Tensor, poses: str, pixels: str = "mean") -> Tensor:
    """Sum, mean or max over pixels, then max or mean over poses: [B, classes, |H|, H, W] → [B, classes]."""
    scores = scores.flatten(-2)
    over_pixels = {"sum": scores.sum, "mean": scores.mean, "max": scores.amax}[pixels](-1)
    return over_pixels.amax(-1) if poses == "max" else over_pixels.mean(-1)
