"""CIFAR-10 and PatchCamelyon, from files as they are handed out, at full size."""

import math

import pytest

import gsa
from gsa.runner import train
from tests.data.test_image_folder import write_pictures
from tests.data.test_pcam import write_pcam


def test_cifar10_as_an_image_folder(small, tmp_path):
    write_pictures(tmp_path / "cifar10", classes=("airplane", "bird"), count=8, side=(32, 32))
    metrics, objects = train(small(
        "experiment=cifar10/z2m_sa", "data=imagefolder", f"data.root={tmp_path / 'cifar10'}", "data.batch_size=4",
        "model=cifar10_z2m_sa", "model.channels=4", batches=2,
    ))  # fmt: skip
    assert objects["report"]["group"] == "Z2M" and objects["network"].num_classes == 2
    assert objects["report"]["data"]["name"] == "imagefolder" and 0 <= metrics["test/accuracy"] <= 1
    errors = objects["report"]["equivariance_error"].values()
    assert max(e["error"] for e in errors) < 1e-5


def test_patchcamelyon_from_files_in_the_official_layout(small, tmp_path):
    write_pcam(tmp_path)
    _, objects = train(small(
        "experiment=pcam/r4_sa", f"data.root={tmp_path}", "data.batch_size=2", "model=pcam_r4_sa", "model.channels=4",
        "trainer.max_epochs=1", batches=2,
    ))  # fmt: skip
    errors = objects["report"]["equivariance_error"].values()
    assert max(e["error"] for e in errors) < 1e-5 and objects["report"]["split"]["val"] == 6


ROWS = [name for name in gsa.list_models() if name.startswith(("cifar10_", "pcam_"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_every_row_of_cifar10_and_patchcamelyon_takes_steps_at_full_size(configure, tmp_path, name):
    data, _, row = name.partition("_")
    if data == "pcam":
        write_pcam(tmp_path / "files")
    else:
        write_pictures(tmp_path / "files", classes=("airplane", "bird"), count=8, side=(32, 32))
    folder = [] if data == "pcam" else ["data=imagefolder"]
    _, objects = train(configure(
        f"experiment={data}/{row}", *folder, f"data.root={tmp_path / 'files'}", "data.batch_size=2",
        "trainer.accelerator=cpu", "trainer.max_epochs=1", "callbacks=quiet", "logger=none", "report=false",
        *(f"trainer.limit_{part}_batches=2" for part in ("train", "val", "test")),
    ))  # fmt: skip
    report = objects["report"]
    assert report["used"]["train"] == 4 and math.isfinite(report["history"][0]["train/loss"])
    if report["group"] != "Z2":
        assert max(e["error"] for e in report["equivariance_error"].values() if e["exact"]) < 1e-4
