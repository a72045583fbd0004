"""Tables that spreadsheets and programs read."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["prediction_table", "table"]


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Comma-separated values in UTF-8, with the mark by which spreadsheets know it: read it as "utf-8-sig"."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
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
