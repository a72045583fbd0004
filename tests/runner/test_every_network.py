"""Every network that can be named can be trained: a step, its validation, its test and its report."""

import pytest
import torch

import gsa
from gsa.models import preset
from gsa.runner import train
from tests.data.test_image_folder import write_pictures


@pytest.mark.slow
@pytest.mark.parametrize("name", gsa.list_models())
def test_it_is_trained_for_a_step(configure, tmp_path, name):
    side = preset(name).image_size
    write_pictures(tmp_path / "pictures", side=(side, side))
    limits = [f"trainer.limit_{part}_batches=1" for part in ("train", "val", "test")]
    data = ("data=imagefolder", f"data.root={tmp_path / 'pictures'}", f"data.size={side}", "data.batch_size=2")
    metrics, objects = train(configure(f"model={name}", *data, *limits, "trainer.max_epochs=1"))
    assert 0 <= metrics["test/accuracy"] <= 1 and objects["report"]["model"] == name
    assert all(torch.isfinite(p).all() for p in objects["network"].parameters())
