"""The word that was meant."""

import difflib
from collections.abc import Iterable

__all__ = ["nearest"]

_LIKE = 0.5  # of 1: less is another word


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like another, in brackets, to stand behind a refusal; nothing where none is.

    Of dotted words the last part may stand for the whole, lr for optimizer.lr, or what it ends in: epochs for
    trainer.max_epochs.
    """
    known = list(known)
    ends = {name.rpartition(".")[2]: name for name in known}
    parts = [name for end, name in ends.items() if end.endswith(f"_{word}")]
    closest = [ends[word]] if word in ends else parts or difflib.get_close_matches(word, known, n=1, cutoff=_LIKE)
    return f" (the nearest is {closest[0]!r})" if closest else ""
