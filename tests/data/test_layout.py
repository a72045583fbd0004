"""Which folders are parts, and which are classes."""

import os
import shutil

import pytest

from gsa.data import ImageFolderDataModule
from gsa.files.folders import files_inside
from tests.data.folders import write_pictures


def test_classes_must_agree(tmp_path):
    write_pictures(tmp_path)
    write_pictures(tmp_path, parts=("val",), classes=("cat", "dig"))
    with pytest.raises(ValueError, match="should hold the classes of train"):
        ImageFolderDataModule(tmp_path).setup()


def test_folders_must_be_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a folder of folders"):
        ImageFolderDataModule(tmp_path).setup()


def test_pictures_beside_the_classes_are_told_of(tmp_path):
    write_pictures(tmp_path, parts=("all",))
    shutil.copy(tmp_path / "all/cat/0.jpg", tmp_path / "all/loose.jpg")
    with pytest.warns(UserWarning, match=r"itself \(1\) are of no class and passed over, such as loose.jpg"):
        ImageFolderDataModule(tmp_path / "all", batch_size=1).setup()


def test_a_class_without_pictures_names_the_endings_that_are_read(tmp_path):
    write_pictures(tmp_path, parts=("all",), suffix="ppm")
    message = (
        r"no pictures in .*cat; of the files in it, 10 are passed over \(.ppm: 10\); expected .apng, .* folder away"
    )
    with pytest.raises(FileNotFoundError, match=message):
        ImageFolderDataModule(tmp_path / "all", batch_size=1).setup()


@pytest.mark.parametrize("parts, named", [
    (("Train", "Test"), "holds Test, Train: rename Test to test, Train to train$"),
    (("train", "valid", "test"), "holds valid: rename valid to val$"),
    (("validation", "testing"), "holds testing, validation: rename testing to test, validation to val$"),
    (("train", "test", "extra"), "holds extra$"),
])  # fmt: skip
def test_parts_under_other_names_are_refused(tmp_path, parts, named):
    write_pictures(tmp_path, parts=parts)
    with pytest.raises(ValueError, match=f"perhaps val and nothing beside them, but {named}"):
        _ = ImageFolderDataModule(tmp_path, batch_size=4).num_classes


def test_hidden_folders_are_no_classes_and_one_class_is_too_few(tmp_path):
    write_pictures(tmp_path, parts=("all",))
    (tmp_path / "all" / ".ipynb_checkpoints").mkdir()
    assert ImageFolderDataModule(tmp_path / "all", batch_size=4).classes == ["cat", "dog"]
    shutil.rmtree(tmp_path / "all" / "cat")
    with pytest.raises(ValueError, match=r"two classes at least, but .* has \['dog'\]$"):
        _ = ImageFolderDataModule(tmp_path / "all", batch_size=4).num_classes


def test_a_root_that_is_one_folder_too_high_is_told_of(tmp_path):
    write_pictures(tmp_path, parts=("data",))
    with pytest.raises(ValueError, match=r"has \['data'\]: did you mean data.root=.*/data\?$"):
        _ = ImageFolderDataModule(tmp_path).num_classes


@pytest.mark.parametrize("part", ["train", "test"])
def test_one_class_in_a_part_is_too_few(tmp_path, part):
    write_pictures(tmp_path, parts=(part,), classes=("cat",))
    (tmp_path / "test" / "cat").mkdir(parents=True, exist_ok=True)
    with pytest.raises(ValueError, match=rf"two classes at least, but .*/{part} has \['cat'\]$"):
        _ = ImageFolderDataModule(tmp_path).num_classes


def test_of_two_ways_to_a_folder_every_system_takes_the_same(tmp_path, monkeypatch):
    """Whichever it lists first."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "0.jpg").touch()
    (tmp_path / "a" / "c").symlink_to(tmp_path / "b")
    found, walk = [], os.walk

    def backwards(top, **options):
        for place, below, names in walk(top, **options):
            below.sort(reverse=True)
            yield place, below, names

    for way in (walk, backwards):
        monkeypatch.setattr(os, "walk", way)
        found.append([os.path.relpath(path, tmp_path) for path in files_inside(tmp_path)])
    assert found[0] == found[1]
