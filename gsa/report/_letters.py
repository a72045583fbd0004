"""Names of classes and files as matplotlib can draw them, in whatever script."""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from gsa.files import printable

__all__ = ["all_letters", "class_labels", "short_label"]

_WIDEST = 20  # letters of a label
_FONTS = (  # what systems have for letters that matplotlib's own font lacks
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans JP", "Noto Sans SC", "Noto Sans KR", "WenQuanYi Micro Hei"),
    *("Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Arial Unicode MS", "Microsoft YaHei", "Yu Gothic"),
    *("Malgun Gothic", "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Thai", "Nirmala UI", "Leelawadee UI"),
)
_STAYS = "\u200e"  # what stands beside a name that is written from right to left


@contextmanager
def all_letters() -> Iterator[None]:
    """Have figures that are saved here take letters from whichever font has them."""
    import matplotlib

    with matplotlib.rc_context({"font.family": _families()}):
        yield


def class_labels(names: list[str]) -> list[str]:
    """Short ones of classes; numbers where no font has their letters, which would all be the same boxes."""
    known = _letters()  # once, as large fonts have many

    def label(number: int, name: str) -> str:
        return short_label(name) if known.issuperset(map(ord, printable(name))) else f"no. {number}"

    return [label(number, name) for number, name in enumerate(names)]


def short_label(name: object) -> str:
    """A printable name for matplotlib, which takes what is between two $ for a formula: of long ones both ends."""
    text = printable(str(name))
    half = _WIDEST // 2
    text = (text if len(text) <= _WIDEST else f"{text[:half]}…{text[1 - half :]}").replace("$", r"\$")
    is_leftwards = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return f"{_STAYS}{text}{_STAYS}" if is_leftwards else text


def _families() -> list[str]:
    """Of the fonts that are installed, matplotlib's own first."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return ["DejaVu Sans", *(font for font in _FONTS if font in installed)]


def _letters() -> set[int]:
    """All that some font has, as numbers."""
    from matplotlib.font_manager import findfont, get_font

    return set().union(*(get_font(findfont(family)).get_charmap() for family in _families()))
