"""By what the epoch is chosen whose weights are kept."""

import itertools

import pytest
import torch

from gsa.runner import ConfigError, train
from gsa.training._balanced import BalancedAccuracy


@pytest.mark.parametrize("chosen", ["val/accuracy", "val/balanced_accuracy"])
def test_an_epoch_is_chosen_by_what_is_asked_for(small, tmp_path, monkeypatch, chosen):
    """Planted: balanced accuracies that fall, so that the two choices differ."""
    falling = itertools.count(1)
    monkeypatch.setattr(BalancedAccuracy, "compute", lambda metric: torch.tensor(1 / next(falling)))
    options = "trainer.max_epochs=6", "seed=5", f"callbacks.best.monitor={chosen}", f"objective={chosen}"
    metrics, objects = train(small(*options))
    rows, report = objects["history"], objects["report"]
    epoch = report["best_epoch"]
    assert (epoch == 0) == ("balanced" in chosen) and report["chosen_by"] == chosen.replace("/", "_")
    assert metrics[chosen] == report[chosen.replace("/", "_")] == max(row[chosen] for row in rows)
    assert all(metrics[name] == rows[epoch][name] for name in metrics if name.startswith("val/"))
    assert ("by balanced accuracy (" in (tmp_path / "run" / "report.txt").read_text()) == ("balanced" in chosen)


@pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`, callbacks")
def test_a_run_goes_on_choosing_as_it_began(small, tmp_path):
    """Planted: without callbacks, in which nothing is chosen, it may."""
    train(small("trainer.max_epochs=1", "scheduler=constant"))
    last = tmp_path / "run" / "checkpoints" / "last.ckpt"
    options = ("trainer.max_epochs=2", "scheduler=constant", f"ckpt_path='{last}'")
    with pytest.raises(ConfigError, match=r"monitor \('val/accuracy' there, 'val/balanced_accuracy' here\)"):
        train(small(*options, "callbacks.best.monitor=val/balanced_accuracy", folder="other"))
    train(small(*options, "callbacks=none", folder="other"))
