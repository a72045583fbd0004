"""An empty figure, and what is drawn on it: matplotlib is imported when one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy
from torch import Tensor

from gsa._extras import brought_by

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["as_shown", "check_picture", "empty_figure", "in_lines", "numbers"]


def empty_figure(width: float, height: float) -> Figure:
    """A figure of so many inches that shows nowhere until it is saved, or ends the cell of a notebook.

    Raises:
        ModuleNotFoundError: matplotlib is not installed; with the command that does.
    """
    with brought_by("train"):
        from gsa.viz._notebook import NotebookFigure
    return NotebookFigure(figsize=(width, height), layout="constrained")


def check_picture(image: Tensor) -> None:
    """Refuse what is not one picture.

    Raises:
        ValueError: with the shape.
    """
    if image.ndim != 3:
        raise ValueError(f"image must be one picture, [C, H, W], but got {list(image.shape)}: images[0] is one of many")


def numbers(tensor: Tensor) -> numpy.ndarray:
    """A tensor of any dtype and device in double precision, as matplotlib knows no half."""
    return tensor.detach().cpu().double().numpy()


def as_shown(image: Tensor) -> numpy.ndarray:
    """A picture [C, H, W] as matplotlib takes it: three channels are colours, of others the mean is shown, in grey."""
    shown = numbers(image)
    return shown.transpose(1, 2, 0) if len(shown) == 3 else shown.mean(0)


def in_lines(name: str) -> str:
    """As "mirror, then 90°" in two lines, which would lie over its neighbours in one."""
    return name.replace(", ", ",\n")
