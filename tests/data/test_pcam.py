"""PatchCamelyon files in the official layout."""

import h5py
import numpy
import pytest

from gsa.data import PCamDataModule


def write_pcam(root, count=6, edit=None):
    """Six files as they are published: x [N, 96, 96, 3] and y [N, 1, 1, 1], both uint8."""
    (root / "pcam").mkdir(parents=True)
    random = numpy.random.default_rng(0)
    for part in ("train", "valid", "test"):
        arrays = {
            "x": random.integers(0, 256, (count, 96, 96, 3), dtype=numpy.uint8),
            "y": (numpy.arange(count) % 2).astype(numpy.uint8).reshape(-1, 1, 1, 1),
        }
        if edit:
            edit(part, arrays)
        for key, array in arrays.items():
            with h5py.File(root / "pcam" / f"camelyonpatch_level_2_split_{part}_{key}.h5", "w") as file:
                file[key] = array


def test_patches_and_labels_are_read(tmp_path):
    write_pcam(tmp_path)
    module = PCamDataModule(tmp_path, batch_size=2)
    module.setup()
    images, labels = next(iter(module.val_dataloader()))
    assert images.shape == (6, 3, 96, 96) and labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert module.describe() == {"name": "pcam", "source": "official files", "train": 6, "val": 6, "test": 6}


def label_two(part, arrays):
    if part == "valid":
        arrays["y"][4] = 2


@pytest.mark.parametrize(
    "edit, message",
    [
        (label_two, "split_valid_y.h5, row 4: labels must be 0 or 1, but got 2"),
        (lambda part, a: a.update(x=a["x"][:, :64]), r"train_x.h5 should hold 'x': \(N, 96, 96, 3\) of uint8"),
        (lambda part, a: a.update(x=a["x"].astype(float)), "of uint8, but holds .* of float64"),
        (lambda part, a: a.update(y=a["y"][:3]), "holds 6 patches, but .* 3 labels"),
    ],
)
def test_wrong_files_are_named_before_training(tmp_path, edit, message):
    write_pcam(tmp_path, edit=edit)
    with pytest.raises(ValueError, match=message):
        PCamDataModule(tmp_path, batch_size=2).setup()


def test_a_cut_file_is_named(tmp_path):
    write_pcam(tmp_path)
    file = tmp_path / "pcam" / "camelyonpatch_level_2_split_test_x.h5"
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(ValueError, match="test_x.h5 is not a whole HDF5 file"):
        PCamDataModule(tmp_path, batch_size=2).setup()


def test_without_files_it_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="data.download=true"):
        PCamDataModule(tmp_path).setup()
