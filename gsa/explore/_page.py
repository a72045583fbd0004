"""The page: its parts, with the data put in."""

import base64
import copy
import hashlib
import json
import re
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

__all__ = ["filled", "layers", "page", "policy"]

_PARTS = ("data", "draw", "table", "turn", "looks", "words", "orders", "starts", "biases", "layers", "tabs")
_SCRIPTS = tuple(f"{part}.js" for part in _PARTS)  # in the order in which they run
_LIVE = ("asking.js", "own.js", "another.js")  # first, where a server answers


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
    own = {name: (one, saved.network.group) for name, one in zip(names, (saved, plain), strict=True)}
    shown = layers(own, reports or {})
    turn = turning(saved, plain, steps)
    return filled({"names": names, "turn": turn, "words": words(), "weights": weights(), "layers": shown})


def layers(networks: Mapping[str, tuple[Saved, Group]], reports: Mapping[str, LayerReport]) -> list[dict[str, Any]]:
    """Reports by name as values for JSON, last those of the networks, each under the group beside it."""
    own = {name: _report(*measured) for name, measured in networks.items()}
    return [{"name": name, **report.as_dict()} for name, report in {**reports, **own}.items()]


def _report(saved: Saved, group: Group) -> LayerReport:
    """Of a network on random pictures, in float64."""
    pictures, generator = saved.pictures, torch.Generator().manual_seed(0)
    sides = (3, pictures.in_channels, pictures.image_size, pictures.image_size)
    images = pictures.normalise(torch.rand(sides, generator=generator)).double()
    return LayerReport.of(copy.deepcopy(saved.network).double(), images, group)


def filled(data: dict[str, Any], live: bool = False) -> str:
    """The page with these data, live if it asks a server; nothing in them can end the element they stand in."""
    parts = files("gsa.explore") / "page"

    def text(*names: str) -> str:
        return "\n".join((parts / name).read_text(encoding="utf-8") for name in names)

    document = text("index.html")
    filling = {
        "STYLE": text("style.css"),
        "OWN": text("own.html") if live else text("kept.html"),
        "SCRIPT": text(*(_LIVE if live else ()), *_SCRIPTS),
        "DATA": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
    }
    for mark, content in filling.items():
        document = document.replace(f"{{{{{mark}}}}}", content, 1)
    return document


def policy(document: str) -> str:
    """The Content-Security-Policy under which the page's own program and styles run, and nothing else."""
    hashes = []
    for element in ("script", "style"):
        content = re.search(f"<{element}>(.*?)</{element}>", document, re.DOTALL)
        assert content is not None
        hashes.append(base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode())
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
