"""gsa statements"""

import json
import re
import shutil
import textwrap
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from gsa._nearest import nearest
from gsa.symmetry.statements import Example, Figures, examples

__all__ = ["run"]

_COLUMN = 30  # where names end


def run(options: Namespace) -> int:
    """Statements of the literature on small networks at random: figures that vanish where they hold, and contrasts.

    Exit code 1 where a figure that should vanish does not, or a contrast does.
    """
    chosen = _chosen(options.words, examples())
    figures: dict[str, Figures] = {}
    for example, before in zip(chosen, [None, *chosen], strict=False):
        if not options.list:
            figures[example.name] = example.measured(options.seed)
        if not options.json:
            told = _listed(example) if options.list else _told(example, figures[example.name])
            print(_heading(example, before) + told, flush=True)
    if options.json:
        print(json.dumps({e.name: _facts(e, figures.get(e.name)) for e in chosen}, indent=1, ensure_ascii=False))
    elif not options.list:
        print(f"\n{_summary(list(figures.values()), options.seed)}")
    return 1 if any(found.faults() for found in figures.values()) else 0


def _chosen(words: Sequence[str], known: Mapping[str, Example]) -> list[Example]:
    """Those of a name; of another word, all in whose name, sentence or source a word begins with it.

    Raises:
        ValueError: a word of none.
    """
    names: set[str] = set()
    texts = {name: f"{name} {example.sentence} {example.source}" for name, example in known.items()}
    for word in words:
        begins = re.compile(rf"(?<!\w){re.escape(word)}", re.IGNORECASE)
        found = {word} & known.keys() or {name for name, text in texts.items() if begins.search(text)}
        if not found:
            vocabulary = [*known, *sorted({*re.findall(r"[^\W\d_]{3,}", " ".join(texts.values()).lower())})]
            raise ValueError(f"no statement is called {word!r}, or has such a word{nearest(word, vocabulary)}")
        names |= found
    return [example for name, example in known.items() if name in names or not words]


def _heading(example: Example, before: Example | None) -> str:
    """The source, where it is another than that of the example before."""
    if before is not None and before.source == example.source:
        return ""
    gap = "" if before is None else "\n"
    return f"{gap}{_wrapped(example.source)}\n{'=' * min(len(example.source), _width())}\n"


def _listed(example: Example) -> str:
    return _wrapped(example.sentence, example.name)


def _told(example: Example, figures: Figures) -> str:
    """The sentence, and below it the name with the functions that measure, the figures, and what is wrong with them."""
    lines = ["", _wrapped(example.sentence), _wrapped(", ".join(example.functions), f"    {example.name}")]
    for title, found in (("0 up to rounding", figures.zeros), ("differs", figures.contrasts)):
        told = (f"{name} {_digits(figure)}".replace(" ", "\N{NO-BREAK SPACE}") for name, figure in found.items())
        lines.append(_wrapped(" · ".join(told), f"    {title}"))
    lines += [_wrapped(fault, "    BROKEN") for fault in figures.faults()]
    return "\n".join(lines)


def _summary(figures: Sequence[Figures], seed: int) -> str:
    count = sum(len(found.zeros) + len(found.contrasts) for found in figures)
    broken = sum(len(found.faults()) for found in figures)
    verdict = f"{broken} of {count} figures BROKEN" if broken else f"all {count} figures as they should be"
    return _wrapped(f"{len(figures)} statement{'s' * (len(figures) != 1)} with seed {seed}: {verdict}")


def _facts(example: Example, figures: Figures | None) -> dict[str, Any]:
    facts = {"sentence": example.sentence, "source": example.source, "functions": example.functions}
    return facts if figures is None else facts | vars(figures) | {"broken": figures.faults()}


def _digits(figure: float) -> str:
    """One digit of what is tiny, two of what is not."""
    if 0 < abs(figure) < 1e-3:
        return f"{figure:.0e}"
    return f"{figure:.2g}" if abs(figure) < 100 else f"{figure:.0f}"


def _wrapped(text: str, title: str = "") -> str:
    """Lines as wide as the terminal, behind a column of titles if there is one."""
    indent = " " * _COLUMN if title else ""
    lines = textwrap.wrap(text, _width() - len(indent), break_on_hyphens=False, break_long_words=False)
    told = f"{title:{len(indent)}s}" + f"\n{indent}".join(lines)
    return told.replace("\N{NO-BREAK SPACE}", " ")


def _width() -> int:
    return max(shutil.get_terminal_size((120, 24)).columns, 2 * _COLUMN)
