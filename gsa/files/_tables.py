"""Tables that spreadsheets and programs read."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["prediction_table", "table"]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Comma-separated values in UTF-8, with the mark by which spreadsheets know it: read it as "utf-8-sig".

    An apostrophe stands before words that spreadsheets would take for a formula.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*map(_cell, row)] for row in [header, *rows])
    return text.getvalue().encode("utf-8-sig", errors="backslashreplace")


def prediction_table(
    known: Mapping[str, Sequence[object]], chances: Sequence[Sequence[float]], classes: Sequence[str]
) -> bytes:
    """`table` with a line a picture: what is known of it, its likeliest class, and every class's probability.

    Args:
        known: columns, such as "path", by their names.
        chances: probabilities [N, K].
        classes: names of the K classes.
    """
    rows = (
        [*of_picture, classes[values.index(max(values))], *(f"{value:.6g}" for value in values)]
        for *of_picture, values in zip(*known.values(), map(list, chances), strict=True)
    )
    return table([*known, "prediction", *classes], rows)


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    is_formula = value[:1] in ("=", "@", "\t", "\r") or (value[:1] in ("+", "-") and not _NUMBER.fullmatch(value))
    return f"'{value}" if is_formula else value
