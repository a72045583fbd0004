import pytest
from hydra import compose, initialize_config_module

from gsa import cli

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


@pytest.fixture
def configure(tmp_path):
    """configure("key=value", …) → the composed configuration of a run in tmp_path / "run"."""
    cli.register()

    def composed(*overrides, folder="run"):
        with initialize_config_module("gsa.configs", version_base="1.3"):
            return compose("train", [f"output_dir='{tmp_path / folder}'", *overrides])

    return composed


@pytest.fixture
def small(configure):
    """The same, of a small network and a few steps."""

    def composed(*overrides, batches=4, **options):
        limits = [f"trainer.limit_{part}_batches={batches}" for part in ("train", "val", "test")]
        return configure(*SMALL, *limits, "trainer.max_epochs=2", *overrides, **options)

    return composed
