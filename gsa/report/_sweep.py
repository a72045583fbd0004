"""The picture of a sweep."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from gsa import viz
from gsa.files import printable
from gsa.report._letters import all_letters

__all__ = ["draw_sweep"]

_log = logging.getLogger(__name__)


def draw_sweep(file: Path, runs: Mapping[str, Sequence[Sequence[Mapping[str, float]]]], metric: str) -> bool:
    """Draw how the runs of a sweep went; whether it could be drawn, or else why it could not is logged.

    Args:
        file: where the picture goes, a .png.
        runs, metric: as in `gsa.viz.draw_runs`.
    """
    try:
        with all_letters():
            named = {printable(name).replace("$", r"\$"): histories for name, histories in runs.items()}  # no formulas
            viz.draw_runs(named, metric).savefig(file, dpi=110)
    except Exception as error:
        _log.warning("the picture %s could not be drawn: %s", file, error, exc_info=True)
        return False
    return True
