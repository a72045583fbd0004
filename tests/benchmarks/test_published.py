"""Every row of the published tables can be trained."""

from pathlib import Path

import accuracy
import published
import pytest

import gsa
from gsa import runner
from tests.test_commands import refusal


def test_every_row_with_a_published_figure_is_an_experiment():
    folder = Path(gsa.__file__).parent.parent / "configs" / "experiment"
    rows = [row for table in published.PUBLISHED.values() for row in table]
    networks = {f"{gsa.models.preset(name).data}/{name.partition('_')[2]}" for name in gsa.list_models()}
    assert len(rows) == len(set(rows))
    longer = [*published.QUICK.values(), *published.LONG.values(), published.PUBLISHED_TIMES]
    rows += [row.split()[0] for rows_of_it in longer for row in rows_of_it]
    assert not [row for row in rows if row not in networks and not (folder / f"{row}.yaml").exists()]
    assert sum(figure is not None for figures in published.PUBLISHED.values() for figure in figures.values()) == 20 + 9


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", sorted({row for name in published.PUBLISHED for row in accuracy.every_row(name) if " " in row})
)
def test_a_row_that_changes_an_experiment_is_not_refused(row):
    runner.register()
    assert refusal(f"experiment={row}") is None
