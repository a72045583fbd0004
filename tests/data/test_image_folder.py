"""Pictures in folders."""

from contextlib import nullcontext

import numpy
import pytest
from PIL import Image

from gsa.cli._predict import _files
from gsa.data import ImageFolderDataModule
from gsa.data.folder._class_folders import ClassFolders
from tests.data.folders import write_pictures


def test_a_validation_part_is_set_apart(tmp_path):
    write_pictures(tmp_path)
    module = ImageFolderDataModule(tmp_path, size=16, batch_size=4, val_share=0.2)
    module.setup()
    assert {part: len(d) for part, d in module.parts.items()} == {"train": 16, "test": 20, "val": 4}
    train, val = (set(module.parts[part].dataset.indices) for part in ("train", "val"))
    assert not train & val and module.num_classes == 2
    images, _ = next(iter(module.train_dataloader()))
    assert images.shape == (4, 3, 16, 16)


def test_every_class_is_in_training_and_validation_by_its_share(tmp_path):
    """Planted: a class of which a share of all pictures would often take both; and another draw, which is noticed."""
    write_pictures(tmp_path, count=40)
    write_pictures(tmp_path, classes=("eel",), count=2)

    def drawn(split_seed, val_share=0.5):
        module = ImageFolderDataModule(tmp_path, 8, val_share, 4, split_seed)
        module.setup()
        return module

    for seed in range(4):
        module = drawn(seed)
        for part in ("train", "val"):
            labels = [label for _, label in module.parts[part]]
            assert [labels.count(label) for label in range(3)] == [20, 20, 1]
    first, second = drawn(0).digests, drawn(1).digests
    assert {part for part in first if first[part] != second[part]} >= {"train", "val"} and drawn(0).digests == first
    (tmp_path / "train" / "eel" / "0.jpg").unlink()
    with pytest.raises(
        ValueError, match="each of 2 parts, but eel has 1, of which val_share takes 1: it takes at least 2"
    ):
        drawn(0)


def test_shares_that_leave_nothing_are_named(tmp_path):
    write_pictures(tmp_path, parts=("all",), count=20)
    with pytest.raises(
        ValueError,
        match="3 parts, but cat has 20, of which test_share takes 18, val_share takes 2: it takes at least 25 di",
    ):
        ImageFolderDataModule(tmp_path / "all", 8, val_share=0.9, test_share=0.9).setup()


def test_stacks_are_counted(tmp_path, recwarn):
    write_pictures(tmp_path, parts=("all",), suffix="tif")
    ImageFolderDataModule(tmp_path / "all", 8, batch_size=4).setup()
    assert not recwarn.list
    page = Image.new("L", (8, 8))
    for shade, name in enumerate(("dog/3.tif", "cat/b\n.tif")):
        Image.new("L", (8, 8), shade).save(tmp_path / "all" / name, save_all=True, append_images=[page])
    with pytest.warns(
        UserWarning,
        match=r"pages, of which only the first is read without data.channels=pages \(2\): cat/b\\n.tif, dog/3.tif$",
    ):
        ImageFolderDataModule(tmp_path / "all", 8, batch_size=4).setup()


def test_transparent_pictures_are_counted(tmp_path, recwarn):
    """Planted: black strokes on nothing, which are read as black on black. A channel that is opaque says nothing."""
    write_pictures(tmp_path, parts=("all",))
    Image.new("RGBA", (8, 8), (9, 9, 9, 255)).save(tmp_path / "all" / "cat" / "opaque.png")
    ImageFolderDataModule(tmp_path / "all", 8, batch_size=4).setup()
    assert not recwarn.list
    Image.new("RGBA", (8, 8)).save(tmp_path / "all" / "cat" / "strokes.png")
    with pytest.warns(UserWarning, match=r"transparent pixels, .* most often black: .* \(1\): cat/strokes.png$"):
        ImageFolderDataModule(tmp_path / "all", 8, batch_size=4).setup()


@pytest.mark.parametrize("largest, white, warning", [
    (2992, None, "20 of 20 files .* cat.0.tif, use values up to 2992 of 65535 only, .* dark .*: data.white=4095 makes"),
    (2992, 4095, None),
    (2992, 1023, "up to 2992 of 65535, such as cat.0.tif: those above data.white=1023 are all white"),
    (40_000, None, None),
])  # fmt: skip
def test_dark_files_are_told_of(tmp_path, recwarn, largest, white, warning):
    random = numpy.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for number in range(10):
            pixels = random.integers(0, largest + 1, (8, 8)).astype(numpy.uint16)
            pixels[0, 0] = largest
            Image.fromarray(pixels).save(tmp_path / name / f"{number}.tif")
    module = ImageFolderDataModule(tmp_path, 8, batch_size=1, white=white)
    with pytest.warns(UserWarning, match=warning) if warning else nullcontext():
        module.setup()
    assert not [one for one in recwarn.list if warning is None]
    assert module.picture_format().get("white") == white
    brightest, _ = module.parts["train"].first(4)
    assert float(brightest.max()) == pytest.approx(1 if white == 1023 else largest / (white or 65535), abs=0.003)


def test_a_validation_folder_is_used(tmp_path):
    write_pictures(tmp_path, parts=("train", "val", "test"))
    module = ImageFolderDataModule(tmp_path, batch_size=4)
    module.setup()
    assert [len(module.parts[part]) for part in ("train", "val", "test")] == [20, 20, 20]


@pytest.mark.parametrize("flat", [False, True])
def test_files_that_are_no_pictures_are_listed_and_refused_or_left_out(tmp_path, flat):
    write_pictures(tmp_path)
    root = tmp_path / "train" if flat else tmp_path
    for name in ("cat/3.jpg", "dog/0.jpg"):
        (tmp_path / "train" / name).write_bytes(b"not a picture")
    with pytest.raises(
        ValueError, match=r"(?s)^2 of [24]0 files .*cat/3.jpg cannot be read.*and 1 more: [train/]*dog/0.jpg$"
    ):
        ImageFolderDataModule(root, batch_size=4).setup()
    module = ImageFolderDataModule(root, batch_size=4, unreadable="skip")
    with pytest.warns(UserWarning, match=r"(?s)^2 of [24]0 files are left out.*cat/3.jpg.*dog/0.jpg"):
        module.setup()
    for part in module.parts.values():
        assert all(part[key][0].isfinite().all() for key in range(len(part)))
    assert sum(map(len, module.parts.values())) == (18 if flat else 38)


def test_a_class_without_a_readable_file_is_refused(tmp_path):
    write_pictures(tmp_path, count=3)
    for file in (tmp_path / "train" / "cat").iterdir():
        file.write_bytes(b"")
    with pytest.raises(
        ValueError, match="every class must have files that can be read, but of one class none can, such as .*cat"
    ):
        ImageFolderDataModule(tmp_path, batch_size=1, unreadable="skip").setup()


def test_plain_class_folders_are_divided_the_same_way_every_time_with_every_class_in_every_part(tmp_path):
    write_pictures(tmp_path, parts=("all",), classes=("cat", "dog"), count=30)
    write_pictures(tmp_path, parts=("all",), classes=("eel",), count=4)

    def indices(split_seed, val_share=0.25):
        module = ImageFolderDataModule(tmp_path / "all", 8, val_share, 4, split_seed, test_share=0.2)
        module.setup()
        counts = {
            part: [sum(found == label for _, found in data) for label in range(3)]
            for part, data in module.parts.items()
        }
        return counts, {part: data.dataset.indices for part, data in module.parts.items()}

    counts, parts = indices(0)
    assert counts == {"train": [18, 18, 2], "val": [6, 6, 1], "test": [6, 6, 1]}
    assert indices(0) == (counts, parts) and indices(1)[1] != parts
    assert indices(0, val_share=0.5)[1]["test"] == parts["test"]
    assert sorted(index for part in parts.values() for index in part) == list(range(64))
    for number in (0, 1):
        (tmp_path / "all" / "eel" / f"{number}.jpg").unlink()
    with pytest.raises(
        ValueError,
        match="pictures in each of 3 parts, but eel has 2, .*: it takes at least 3 different ones$",
    ):
        indices(0)


@pytest.mark.parametrize("white", [4095.0, True, 0])
def test_what_cannot_be_white_is_refused(white):
    with pytest.raises(ValueError, match="white must be an integer of at least 1, or None, but got"):
        ImageFolderDataModule(white=white)


def test_animations_are_no_other_files(tmp_path):
    write_pictures(tmp_path, suffix="gif", count=3)
    module = ImageFolderDataModule(tmp_path, batch_size=1)
    module.setup()
    assert len(module.parts["test"]) == 6


def test_training_reads_what_predict_reads_and_counts_what_is_passed_over(tmp_path):
    write_pictures(tmp_path, parts=("all",), count=5, suffix="jfif")
    root = tmp_path / "all"
    for name in ("cat/._0.jfif", "dog/.hidden.png", "dog/Thumbs.db", "cat/.ipynb_checkpoints/0.png"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"not a picture")
    module = ImageFolderDataModule(root, batch_size=1)
    module.setup()
    read = ClassFolders(root).pictures(None, may_lack=False)["all"].files
    assert sorted(path for path, _ in read) == sorted(map(str, _files([root])[0]))
    assert sum(map(len, module.parts.values())) == 10
    for name in ("cat/a.HEIC", "cat/b.ppm", "dog/c.heic", "dog/notes"):
        (root / name).write_bytes(b"passed over")
    with pytest.warns(
        UserWarning, match=r"of the files in .*all, 4 are passed over \(.heic: 2, .ppm: 1, no ending: 1\); exp"
    ):
        ImageFolderDataModule(root, batch_size=1).setup()


def test_who_has_a_spreadsheet_of_labels_is_told_to_save_it(tmp_path):
    (tmp_path / "LICENSE.txt").write_text("")
    (tmp_path / "labels.xlsx").write_text("")
    with pytest.raises(FileNotFoundError, match="if their labels are in labels.xlsx: save it as CSV, for data.labels"):
        _ = ImageFolderDataModule(tmp_path).num_classes


def test_who_has_a_table_of_labels_is_told_how_to_name_it(tmp_path):
    write_pictures(tmp_path, parts=("all",), count=3)
    (tmp_path / "all" / "dog").rename(tmp_path / "all" / "cat" / "images")
    (tmp_path / "all" / "Labels.CSV").write_text("file,label")
    with pytest.raises(ValueError, match=r"'cat'\]; if their labels are in Labels.CSV: data.labels=.*/Labels.CSV$"):
        _ = ImageFolderDataModule(tmp_path / "all").num_classes


@pytest.mark.parametrize("parts", [("train", "test"), ("train", "val", "test"), None])
def test_the_first_pictures_that_are_looked_at_are_of_all_classes(tmp_path, parts):
    """limit_test_batches, or limit_val_batches, takes the first."""
    if parts is None:
        write_pictures(tmp_path / "all", parts=(".",), count=40)
    else:
        write_pictures(tmp_path, parts=parts, count=40)
    module = ImageFolderDataModule(tmp_path / "all" if parts is None else tmp_path, size=8, val_share=0.4)
    module.setup()
    for part in ("val", "test"):
        pictures = module.parts[part]
        assert {int(pictures[index][1]) for index in range(8)} == {0, 1}


def test_another_seed_has_the_same_parts_in_the_same_order(tmp_path):
    write_pictures(tmp_path, parts=("all",), count=20)
    digests = []
    for seed in (0, 1):
        module = ImageFolderDataModule(tmp_path / "all", 8, batch_size=4, seed=seed)
        module.setup()
        digests.append(module.digests)
    assert digests[0] == digests[1]


def test_pictures_of_which_half_is_not_seen_are_told_of_and_shown_as_a_whole_where_that_is_asked_for(tmp_path):
    """Planted: the object is beside the central square."""
    for number in range(8):
        pixels = numpy.zeros((16, 40, 3), numpy.uint8)
        pixels[:, :8] = 255 if number % 2 else 100
        (folder := tmp_path / ("dark", "light")[number % 2]).mkdir(exist_ok=True)
        pixels[0, 20] = number  # no copies
        Image.fromarray(pixels).save(folder / f"{number}.png")
    centre, whole = (ImageFolderDataModule(tmp_path, 16, batch_size=1, framing=f) for f in ("centre", "whole"))
    with pytest.warns(UserWarning, match=r"outside the central square, .*framing=whole shows \(8\): dark/0"):
        centre.setup()
    whole.setup()
    assert centre.parts["train"].first(8)[0].max() < 0.1
    pictures, labels = whole.parts["train"].first(8)
    assert (pictures[:, :, 6:10, 0].mean((1, 2)) > 0.8).equal(labels == 1) and 0 < labels.sum() < len(labels)
    assert "whole" not in centre.picture_format() and whole.picture_format()["whole"] is True


def test_a_folder_that_was_refused_is_looked_at_again(tmp_path):
    """As in a notebook: the module has kept nothing of what was wrong."""
    write_pictures(tmp_path, parts=("training", "test"))
    module = ImageFolderDataModule(tmp_path, 8, batch_size=1)
    with pytest.raises(ValueError, match="rename training to train"):
        module.setup()
    (tmp_path / "training").rename(tmp_path / "train")
    module.setup()
    assert all(len(pictures) for pictures in module.parts.values()) and not module.for_test_only
