"""A picture is in one part and of one class only, whatever its names."""

import shutil
from pathlib import Path

import pytest

from gsa.data import ImageFolderDataModule
from gsa.data._parts import rows_of
from tests.data.folders import write_pictures


def test_plain_class_folders_are_never_the_same(tmp_path):
    write_pictures(tmp_path, parts=("all",))
    (tmp_path / "all" / "fox").symlink_to("dog")
    with pytest.raises(ValueError, match="every class of every part must have a folder of its own"):
        ImageFolderDataModule(tmp_path / "all", batch_size=4).setup()


@pytest.mark.parametrize("link, to", [("test", "train"), ("val/dog", "../train/dog")])
def test_two_parts_never_share_a_folder(tmp_path, link, to):
    write_pictures(tmp_path, parts=("train", "test", "val"))
    shutil.rmtree(tmp_path / link)
    (tmp_path / link).symlink_to(to)
    with pytest.raises(ValueError, match="every class of every part must have a folder of its own"):
        ImageFolderDataModule(tmp_path, batch_size=4).setup()


def test_a_picture_is_never_in_two_parts_or_of_two_classes(tmp_path):
    write_pictures(tmp_path, parts=("all",))
    root = tmp_path / "all"
    (root / "cat" / "again").symlink_to(".")  # a folder within itself is entered once
    module = ImageFolderDataModule(root, batch_size=1)
    module.setup()
    assert sum(map(len, module.parts.values())) == 20
    (root / "dog" / "cat.jpg").symlink_to("../cat/3.jpg")
    with pytest.raises(ValueError, match=r"dog/cat.jpg is .*cat/3.jpg: take the link away"):
        ImageFolderDataModule(root, batch_size=1).setup()


def test_copies_in_two_classes_are_refused(tmp_path):
    write_pictures(tmp_path, parts=("all",))
    for number in (3, 4):
        shutil.copy(tmp_path / f"all/cat/{number}.jpg", tmp_path / f"all/dog/copy{number}.jpg")
    message = "in one class only, but of the files 2 hold .*another class, such as .*dog/copy3.jpg and .*cat/3.jpg"
    with pytest.raises(ValueError, match=f"{message}: take one of each away, or let them be by data.copies=keep"):
        ImageFolderDataModule(tmp_path / "all", batch_size=1).setup()
    with pytest.warns(UserWarning, match=f"{message}$"):
        data = ImageFolderDataModule(tmp_path / "all", batch_size=1, copies="keep")
        data.setup()
    place = {path: part for part, pictures in data.parts.items() for path, _ in pictures.files}
    cats, dogs = tmp_path / "all/cat", tmp_path / "all/dog"
    assert all(place[f"{cats}/{number}.jpg"] == place[f"{dogs}/copy{number}.jpg"] for number in (3, 4))
    with pytest.raises(ValueError, match="copies must be 'refuse' or 'keep', but got 'skip'"):
        ImageFolderDataModule(tmp_path / "all", copies="skip")


def test_a_class_of_copies_alone_that_would_be_missing_in_a_part_is_refused(tmp_path):
    write_pictures(tmp_path, parts=("all",))
    (tmp_path / "all/fox").mkdir()
    for number in range(3):
        shutil.copy(tmp_path / "all/cat/0.jpg", tmp_path / f"all/fox/{number}.jpg")
    with (
        pytest.warns(UserWarning, match="in one class only"),
        pytest.raises(ValueError, match="in each of 3 parts, but those of fox are copies of other classes'"),
    ):
        ImageFolderDataModule(tmp_path / "all", batch_size=1, copies="keep").setup()


@pytest.mark.parametrize("part", ["val", "test"])
def test_copies_in_two_parts_are_refused(tmp_path, part):
    write_pictures(tmp_path, parts=("train", "val", "test"))
    shutil.copy(tmp_path / "train/cat/3.jpg", tmp_path / part / "cat" / "other.jpg")
    with pytest.raises(
        ValueError, match=f"in one part only, but of the files 1 hold .*{part}/cat/other.jpg and .*3.jpg"
    ):
        ImageFolderDataModule(tmp_path, batch_size=1).setup()


@pytest.mark.parametrize("flat", [False, True])
def test_copies_within_a_class_come_into_one_part(tmp_path, flat):
    """Planted: 30 copies of ten files, whose draw by files alone would tear them apart."""
    write_pictures(tmp_path)
    folder = tmp_path / "train" / "cat"
    for number in range(10):
        for again in range(3):
            shutil.copy(folder / f"{number}.jpg", folder / f"{number}-{again}.jpg")
    module = ImageFolderDataModule(tmp_path / "train" if flat else tmp_path, 8, 0.5, 4, test_share=0.3)
    module.setup()
    parts = {
        part: {Path(files.files[row][0]).name[0] for row in rows if files.files[row][1] == 0}
        for part, (files, rows) in ((part, rows_of(pictures.dataset)) for part, pictures in module.parts.items())
    }
    assert not parts["train"] & parts["val"] and (not flat or not parts["test"] & (parts["train"] | parts["val"]))
