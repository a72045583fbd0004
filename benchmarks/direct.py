"""The direct evaluation of the same formula: all |H|³ score maps (regular: |H|²) at once, left to autograd.

This is how the published code evaluates its layers, and so the yardstick of `ops.py`; the results are those of
`gsa.ops.attend` (see tests/benchmarks/test_direct.py). Its dropout mask comes from torch's own generator, as theirs.
"""

from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

import gsa.ops


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    spatial: Tensor,
    pose: Tensor,
    window: Tensor,
    *,
    form: str = "regular",
    dropout: float = 0.0,
    crop: int = 0,
) -> Tensor:
    """Arguments and result of `gsa.ops.attend`."""
    height, width, head_dim = query.shape[3:]
    query = query * head_dim**-0.5
    content = torch.einsum("beqyxd,bemyxod->beqyxmo", query, _unfold(key, window))
    content = content + torch.einsum("beqyxd,qmd->beqyxm", query, pose)[..., None]
    equation = "bepyxd,pod->bepyxo" if form == "regular" else "beqyxd,pod->bepqyxo"
    position = torch.einsum(equation, query, spatial.flatten(1, 2)) + _border(height, width, window)
    scores = (content if form == "regular" else content[:, :, None]) + position.unsqueeze(-2)
    weights = F.dropout(scores.flatten(-2).softmax(-1), dropout).view_as(scores)
    poses = "p" if form == "regular" else "pq"
    out = torch.einsum(f"be{poses}yxmo,bemyxod->bepyxd", weights, _unfold(value, window))
    return out[:, :, :, crop : height - crop, crop : width - crop]


def _unfold(x: Tensor, window: Tensor) -> Tensor:
    """[B, E, M, H, W, d] -> [B, E, M, H, W, U·V, d], zeros outside."""
    rows, columns = window.shape
    padded = F.pad(x, (0, 0, columns // 2, columns // 2, rows // 2, rows // 2))
    return padded.unfold(3, rows, 1).unfold(4, columns, 1).flatten(-2).mT


def _border(height: int, width: int, window: Tensor) -> Tensor:
    """0 where a pixel's offset is in the window and the picture, else −∞: [H, W, U·V]."""
    picture = torch.ones(1, 1, 1, height, width, 1, device=window.device)
    visible = (_unfold(picture, window)[0, 0, 0, ..., 0] > 0) & window.flatten()
    return torch.zeros_like(visible, dtype=picture.dtype).masked_fill_(~visible, -torch.inf)


@contextmanager
def everywhere():
    """Inside, every layer of `gsa.nn` uses the direct evaluation."""
    ours, gsa.ops.attend = gsa.ops.attend, attend
    try:
        yield
    finally:
        gsa.ops.attend = ours
