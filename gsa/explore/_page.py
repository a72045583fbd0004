"""The page: its parts, with the data put in."""

import json
from importlib.resources import files
from typing import Any

from gsa.explore._turning import turning
from gsa.explore._words import words
from gsa.saved import Saved

__all__ = ["page"]

_SCRIPTS = ("data.js", "draw.js", "turn.js", "words.js", "tabs.js")  # in the order in which they run


def page(saved: Saved, name: str = "digits_gsa", steps: int = 72) -> str:
    """One HTML document that holds all it needs, styles, programs and data, and works without a server.

    Args:
        saved: a trained network; see `turning`.
        name: of the network, as it is shown.
        steps: angles in a full turn; a multiple of 4.

    Raises:
        ValueError: what `turning` refuses.
    """
    return filled({"name": name, "turn": turning(saved, steps), "words": words()})


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
