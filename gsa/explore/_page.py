"""The page: its parts, with the data put in."""

import copy
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import torch

from gsa.explore._turning import turning
from gsa.explore._weights import weights
from gsa.explore._words import words
from gsa.groups import Group
from gsa.saved import Saved
from gsa.symmetry import LayerReport

__all__ = ["page"]

_PARTS = ("data", "draw", "turn", "looks", "words", "orders", "starts", "biases", "layers", "tabs")
_SCRIPTS = tuple(f"{part}.js" for part in _PARTS)  # in the order in which they run


def page(
    saved: Saved,
    plain: Saved,
    names: tuple[str, str] = ("digits_gsa", "digits_gsa_z2"),
    steps: int = 72,
    reports: Mapping[str, LayerReport] | None = None,
) -> str:
    """One HTML document that holds all it needs, styles, programs and data, and works without a server.

    Args:
        saved: a trained network; see `turning`.
        plain: one without its group, of the same pictures and trained alike.
        names: of both, as they are shown.
        steps: angles in a full turn; a multiple of 4.
        reports: of other networks, by name, which are shown layer by layer beside the trained ones.

    Raises:
        ValueError: what `turning` refuses.
    """
    own = {name: _report(one, saved.network.group) for name, one in zip(names, (saved, plain), strict=True)}
    layers = [{"name": name, **report.as_dict()} for name, report in {**(reports or {}), **own}.items()]
    turn = turning(saved, plain, steps)
    return filled({"names": names, "turn": turn, "words": words(), "weights": weights(), "layers": layers})


def _report(saved: Saved, group: Group) -> LayerReport:
    """Of a network on random pictures, in float64."""
    pictures, generator = saved.pictures, torch.Generator().manual_seed(0)
    sides = (3, pictures.in_channels, pictures.image_size, pictures.image_size)
    images = pictures.normalise(torch.rand(sides, generator=generator)).double()
    return LayerReport.of(copy.deepcopy(saved.network).double(), images, group)


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
