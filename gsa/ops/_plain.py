"""The op in PyTorch's own operators, for programs that run where gsa is not: ONNX, and `gsa export --plain`."""

from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from gsa.ops._call import Call, unpacked
from gsa.ops.impl._layout import without_border

__all__ = ["attend_plainly", "without_our_op"]


def without_our_op(program: ExportedProgram) -> ExportedProgram:
    """The same program in PyTorch's own operators, slower and larger: `attend_plainly` in place of `gsa.ops.attend`."""

    def plainly(*arguments: Any) -> Tensor:
        return attend_plainly(unpacked(*arguments)[0])

    return program.run_decompositions({torch.ops.gsa.attend.default: plainly})


def attend_plainly(call: Call) -> Tensor:
    """What `gsa.ops.attend` returns, as one matrix product for every pixel: for any batch, and without dropout.

    The N = min(U · V, H · W) pixels that every pixel may see are gathered, and the scores written out:
    B · heads · H · W · N · M · (d + P) numbers in the regular form, P · Q of them for each key in the summed one.
    """
    if call.query.dtype != call.sum_dtype:  # halves
        return attend_plainly(call.to(call.sum_dtype)).to(call.query.dtype)
    query, spatial, window = call.query, call.spatial, call.window
    height, width, head_dim = query.shape[-3:]
    position, pixel, visible = _window(height, width, window)
    keys, values = (_taken(x.flatten(3, 4), 3, pixel).permute(0, 1, 3, 4, 2, 5, 6) for x in (call.key, call.value))
    asked = query.permute(0, 1, 3, 4, 2, 5)  # [B, E, H, W, Q, d]
    scores = (asked @ keys.flatten(4, 5).mT).unflatten(-1, keys.shape[4:6])  # [B, E, H, W, Q, M, N]
    scores = scores + torch.einsum("beyxqd,qmd->beyxqm", asked, call.pose).unsqueeze(-1)
    places = _taken(spatial.flatten(1, 2), 1, position)  # [P, H, W, N, d]
    if call.regular:
        scores = scores + torch.einsum("beyxpd,pyxnd->beyxpn", asked, places).unsqueeze(-2)
    else:
        of_places = torch.einsum("beyxqd,pyxnd->beyxpqn", asked, places).unsqueeze(-2)
        scores = scores.unsqueeze(4) + of_places  # [B, E, H, W, P, Q, M, N]
    scores = (scores / head_dim**0.5).masked_fill(
        ~visible.view(height, width, *[1] * (scores.ndim - 5), -1), -torch.inf
    )
    attention = scores.flatten(-2).softmax(-1)  # over poses and pixels together
    if not call.regular:
        attention = attention.sum(5)
    return without_border((attention @ values.flatten(4, 5)).permute(0, 1, 4, 2, 3, 5), call.crop)


def _taken(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """x at indices in the place of an axis; unlike those of x[:, index], its gradients can be mapped over."""
    return x.index_select(dim, index.flatten()).unflatten(dim, index.shape)


def _window(height: int, width: int, window: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For every pixel and each of the N pixels it may see: their relative position as an index of the flat window, the
    index of the pixel seen, and whether it is in the window and in the picture; [H, W, N] each."""
    rows, columns = window.shape
    here = torch.arange(height, device=window.device)[:, None, None], torch.arange(width, device=window.device)[:, None]
    if window.numel() <= height * width:
        down, right = _places(rows, columns, window.device)
        row, column = here[0] + down - rows // 2, here[1] + right - columns // 2
    else:
        row, column = _places(height, width, window.device)
    down, right = row - here[0] + rows // 2, column - here[1] + columns // 2
    visible = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    visible = visible & (down >= 0) & (down < rows) & (right >= 0) & (right < columns)
    position, pixel = (down * columns + right).where(visible, 0), (row * width + column).where(visible, 0)
    return position, pixel, visible & window.flatten()[position]


def _places(rows: int, columns: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Row and column of every cell, one row after the other; without a remainder, which ONNX has not for any size."""
    row, column = torch.arange(rows, device=device)[:, None], torch.arange(columns, device=device)
    return row.expand(rows, columns).reshape(-1), column.expand(rows, columns).reshape(-1)
