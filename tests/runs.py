"""Runs that are as small as they can be."""

import copy
from functools import cache

from hydra import compose, initialize_config_module

from gsa import runner
from gsa.runner import _estimate

# The smallest network and the fewest steps that still exercise a whole run.
SMALL = (
    "model=digits_z2_sa",
    "model.channels=4",
    "model.num_heads=1",
    "model.head_dim=3",
    "model.neighbourhood=3",
    "trainer.accelerator=cpu",
    "trainer.enable_progress_bar=false",
    "callbacks=quiet",
    "logger=none",
    "report=false",
)


_estimate._STEPS = 1  # in place of the median of five: how long steps of so small a network take is no test's matter
_registered = cache(runner.register)  # a tenth of a second


def of_few_steps(*overrides, batches=4, folder):
    """Of a small network that is trained for two short epochs."""
    limits = [f"trainer.limit_{part}_batches={batches}" for part in ("train", "val", "test")]
    return composed(*SMALL, *limits, "trainer.max_epochs=2", *overrides, folder=folder)


def composed(*overrides, folder):
    """The configuration of a run in a folder, as the command line would compose it."""
    config = copy.deepcopy(_composed(overrides))
    config.output_dir = str(folder)
    return config


@cache
def _composed(overrides):
    """Every one once: it takes Hydra a tenth of a second or two."""
    _registered()
    with initialize_config_module("gsa.configs", version_base="1.3"):
        return compose("train", list(overrides))
