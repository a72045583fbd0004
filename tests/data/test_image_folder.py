"""Pictures in folders."""

import shutil

import numpy
import pytest
from PIL import Image

from gsa.data import ImageFolderDataModule


def write_pictures(root, parts=("train", "test"), classes=("cat", "dog"), count=10, suffix="jpg", side=(40, 32)):
    """root/<part>/<class>/<number>, as CIFAR-10's JPEG folders are laid out."""
    random = numpy.random.default_rng(0)
    for part in parts:
        for index, name in enumerate(classes):
            folder = root / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                pixels = random.integers(0, 128, (side[1], side[0], 3), dtype=numpy.uint8) + 100 * (index % 2)
                Image.fromarray(pixels.astype(numpy.uint8)).save(folder / f"{number}.{suffix}")


def test_a_validation_part_is_set_apart(tmp_path):
    write_pictures(tmp_path)
    module = ImageFolderDataModule(tmp_path, size=16, batch_size=4, val_share=0.2)
    module.setup()
    assert {part: len(d) for part, d in module.parts.items()} == {"train": 16, "test": 20, "val": 4}
    train, val = (set(module.parts[part].dataset.indices) for part in ("train", "val"))
    assert not train & val and module.num_classes == 2
    images, _ = next(iter(module.train_dataloader()))
    assert images.shape == (4, 3, 16, 16)


def test_a_validation_folder_is_used(tmp_path):
    write_pictures(tmp_path, parts=("train", "val", "test"))
    module = ImageFolderDataModule(tmp_path, batch_size=4)
    module.setup()
    assert [len(module.parts[part]) for part in ("train", "val", "test")] == [20, 20, 20]


def test_a_file_that_is_not_a_picture_is_named(tmp_path):
    write_pictures(tmp_path)
    bad = tmp_path / "train" / "cat" / "3.jpg"
    bad.write_bytes(b"not a picture")
    module = ImageFolderDataModule(tmp_path, batch_size=4)
    module.setup()
    with pytest.raises(ValueError, match="3.jpg cannot be read as a picture"):
        for key in range(len(module.parts["train"])):
            module.parts["train"][key]
        for key in range(len(module.parts["val"])):
            module.parts["val"][key]


def test_classes_must_agree(tmp_path):
    write_pictures(tmp_path)
    write_pictures(tmp_path, parts=("val",), classes=("cat", "dig"))
    with pytest.raises(ValueError, match="should hold the classes of train"):
        ImageFolderDataModule(tmp_path).setup()


def test_folders_must_be_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="train is not a folder"):
        ImageFolderDataModule(tmp_path).setup()


@pytest.mark.parametrize("link, to", [("test", "train"), ("val/dog", "../train/dog")])
def test_two_parts_never_share_a_folder(tmp_path, link, to):
    write_pictures(tmp_path, parts=("train", "test", "val"))
    shutil.rmtree(tmp_path / link)
    (tmp_path / link).symlink_to(to)
    with pytest.raises(ValueError, match="every class of every part must have a folder of its own"):
        ImageFolderDataModule(tmp_path, batch_size=4).setup()


def test_animations_are_no_other_files(tmp_path):
    write_pictures(tmp_path, suffix="gif", count=3)
    module = ImageFolderDataModule(tmp_path, batch_size=1)
    module.setup()
    assert len(module.parts["test"]) == 6
