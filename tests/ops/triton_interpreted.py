"""The Triton kernels in Triton's interpreter, against the law: run by test_triton.py, with TRITON_INTERPRET=1."""

import itertools
import sys

import torch

from gsa import ops
from gsa.ops.impl.triton import _sizes
from tests.ops.cases import tensors
from tests.ops.test_backends import largest_error, run

FEW = [
    ("regular, other keys", "more pixels than a warp", 0.3),
    ("lifting", "as wide as the window", 0.0),
]
ALL = [
    *FEW,
    ("regular, other keys", "as wide as the window", 0.3),
    ("regular, other keys", "window larger than the map", 0.3),
    ("summed, all counts different", "window larger than the map", 0.3),
    *itertools.product(("lifting", "regular", "summed"), ("window larger than the map", "one pixel"), (0.0, 0.3)),
    ("summed, all counts different", "global along one axis", 0.0),
    ("regular, other keys", "global along one axis", 0.0),
]
# Every pose for itself.
FEW_APART = [("regular, other keys", "one pixel", 0.3)]
ALL_APART = [
    *FEW_APART,
    ("regular, other keys", "more pixels than a warp", 0.3),
    ("lifting", "more pixels than a warp", 0.3),
    ("summed, all counts different", "more pixels than a warp", 0.3),
]


def worst(poses: str, map_: str, dropout: float, seed: int = 7, heads: int = 1, **options) -> float:
    """Largest relative error of the output and the five gradients."""
    five, window, form = tensors(poses, map_, batch=1, heads=heads, head_dim=3, **options)
    expected, gradients, cotangent = run(five, window, form, "reference", dropout=dropout, seed=torch.tensor(7))
    actual = run(five, window, form, "triton", cotangent, dropout=dropout, seed=torch.tensor(seed))
    pairs = zip((actual[0], *actual[1]), (expected, *gradients), strict=True)
    return max(largest_error(a, b) for a, b in pairs)


if __name__ == "__main__":
    assert "triton" in ops.backends()
    every = "all" in sys.argv
    for room, cases in ((_sizes._ROOM, ALL if every else FEW), (0, ALL_APART if every else FEW_APART)):
        _sizes._ROOM = room
        for poses, map_, dropout in cases:
            error = worst(poses, map_, dropout, heads=2 if every else 1)
            print(f"{poses}, {map_}, dropout {dropout}: {error:.1e}", flush=True)
            assert error < 1e-10
    if every:
        error = worst("regular, other keys", "as wide as the window", 0.0, dtype=torch.float32)
        assert 0 < error < 1e-5
    planted = worst("regular, other keys", "one pixel", 0.3, seed=8)
    assert planted > 1e-3, "another mask must be noticed"
