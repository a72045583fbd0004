"""What a run remembers of an epoch."""

from types import SimpleNamespace

import torch

from gsa.training import History


def test_rates_of_the_last_step_that_was_logged_are_no_part_of_an_epoch():
    """Planted: they are another step's after a resumption."""
    history, found = History(), {"train/loss": torch.tensor(2.0), "lr-Muon/pg1": torch.tensor(0.1)}
    history.on_train_start(None, None)
    history.on_train_epoch_end(SimpleNamespace(callback_metrics=found, current_epoch=0), None)
    (row,) = history.rows
    assert row.keys() == {"epoch", "seconds", "train/loss"}


def test_seconds_before_a_resumption_within_an_epoch_count():
    history = History()
    history.load_state_dict({"rows": [], "seconds": 100.0})
    history.on_train_start(None, None)
    history.on_train_epoch_end(SimpleNamespace(callback_metrics={}, current_epoch=0), None)
    assert 100 <= history.rows[0]["seconds"] < 101
