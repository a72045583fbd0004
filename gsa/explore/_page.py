"""The page: its parts, with the data put in."""

import copy
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import torch

from gsa.explore._turning import turning, without_action
from gsa.explore._words import words
from gsa.saved import Saved
from gsa.symmetry import LayerReport

__all__ = ["page"]

_SCRIPTS = ("data.js", "draw.js", "turn.js", "words.js", "layers.js", "tabs.js")  # in the order in which they run


def page(
    saved: Saved, name: str = "digits_gsa", steps: int = 72, reports: Mapping[str, LayerReport] | None = None
) -> str:
    """One HTML document that holds all it needs, styles, programs and data, and works without a server.

    Args:
        saved: a trained network; see `turning`.
        name: of the network, as it is shown.
        steps: angles in a full turn; a multiple of 4.
        reports: of other networks, by name, which are shown layer by layer beside the trained one.

    Raises:
        ValueError: what `turning` refuses.
    """
    shown = {**(reports or {}), **_own_reports(saved, name)}
    layers = [{"name": what, **report.as_dict()} for what, report in shown.items()]
    return filled({"name": name, "turn": turning(saved, steps), "words": words(), "layers": layers})


def _own_reports(saved: Saved, name: str) -> dict[str, LayerReport]:
    """Of the network and of its twin without the group, in float64, on random pictures."""
    pictures, generator = saved.pictures, torch.Generator().manual_seed(0)
    sides = (3, pictures.in_channels, pictures.image_size, pictures.image_size)
    images = pictures.normalise(torch.rand(sides, generator=generator)).double()
    precise = copy.deepcopy(saved.network).double()
    return {
        name: LayerReport.of(precise, images, precise.group),
        f"{name} without the group": LayerReport.of(without_action(precise), images, precise.group),
    }


def filled(data: dict[str, Any]) -> str:
    """The page with these data; nothing in them can end the element that they stand in."""
    parts = files("gsa.explore") / "page"
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    scripts = "\n".join((parts / script).read_text(encoding="utf-8") for script in _SCRIPTS)
    document = (parts / "index.html").read_text(encoding="utf-8")
    filling = {"STYLE": (parts / "style.css").read_text(encoding="utf-8"), "SCRIPT": scripts, "DATA": text}
    for mark, content in filling.items():
        document = document.replace(f"{{{{{mark}}}}}", content, 1)
    return document
