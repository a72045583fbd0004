"""Pictures that belong together come into one part."""

import shutil
from functools import partial
from pathlib import Path
from unicodedata import normalize

import numpy
import pytest

from gsa.data import ImageFolderDataModule
from gsa.data._division import by_groups, dealt_out_by_groups
from gsa.data._parts import rows_of
from gsa.data.folder._groups import groups_of
from tests.data.folders import write_pictures


def write_patients(root, patients=("p0", "p1", "p2", "p3"), classes=("cat", "dog"), count=5):
    """root/<class>/<patient>/<patient>_<number>.png"""
    for name in classes:
        write_pictures(root, parts=(name,), classes=patients, count=count, suffix="png", side=(8, 8))
        for patient in patients:
            for file in (root / name / patient).iterdir():
                file.rename(file.with_name(f"{patient}_{file.name}"))


def patients_of(module):
    """Part → names that files begin with, of every class."""
    module.setup()
    found = {part: rows_of(pictures.dataset) for part, pictures in module.parts.items()}
    return {part: {Path(files.files[row][0]).name[:2] for row in rows} for part, (files, rows) in found.items()}


@pytest.mark.parametrize("groups", ["folder", r"(p\d+)_"])
def test_a_group_comes_into_one_part_whatever_the_class(tmp_path, groups, recwarn):
    write_patients(tmp_path)
    found = {seed: patients_of(ImageFolderDataModule(tmp_path, 8, batch_size=1, split_seed=seed, groups=groups))
             for seed in range(4)}  # fmt: skip
    for parts in found.values():
        assert [len(parts[part]) for part in ("train", "val", "test")] == [2, 1, 1]
        assert set.union(*parts.values()) == {"p0", "p1", "p2", "p3"}
    again = patients_of(ImageFolderDataModule(tmp_path, 8, batch_size=1, groups=groups))
    assert again == found[0] and len({str(sorted(parts["test"])) for parts in found.values()}) > 1
    assert not recwarn.list


def test_without_groups_they_are_torn_apart_which_is_told(tmp_path):
    """Planted: what the test above would notice."""
    write_patients(tmp_path, classes=("cat",))
    write_pictures(tmp_path, parts=(".",), classes=("dog",), suffix="png", side=(8, 8))
    with pytest.warns(
        UserWarning, match=r"the classes hold folders \(p0, p1, p2, p3\): .* several parts; data.groups=folder keeps"
    ):
        parts = patients_of(ImageFolderDataModule(tmp_path, 8, batch_size=1))
    assert parts["train"] & parts["test"]


def test_folders_that_look_like_the_classes_are_asked_about(tmp_path):
    write_patients(tmp_path, classes=("p0", "p1"), patients=("a1", "b1"))
    message = r"the folders p0, p1 are taken as classes, though each holds the folders a1, b1: are these the classes\?"
    with pytest.warns(UserWarning, match=message):
        ImageFolderDataModule(tmp_path, 8, batch_size=1).setup()


def test_classes_are_as_even_as_groups_of_any_size_allow():
    random = numpy.random.default_rng(0)
    sizes = random.integers(1, 30, 60)
    groups = [str(group) for group, size in enumerate(sizes) for _ in range(size)]
    labels = random.choice(3, len(groups), p=[0.6, 0.3, 0.1]).tolist()
    for seed in range(3):
        parts = by_groups(labels, groups, {"test": 0.2, "val": 0.1}, seed, str)
        assert sorted(row for part in parts for row in part) == list(range(len(labels)))
        for label in range(3):
            counts = [sum(labels[row] == label for row in part) for part in parts]
            assert numpy.array(counts) / sum(counts) == pytest.approx([0.2, 0.1, 0.7], abs=0.06)


def test_groups_of_one_size_give_every_part_its_share_of_every_class():
    """A hundred patients with fifty cells each. Planted: the first to be dealt out have most of the rarest class."""
    random = numpy.random.default_rng(0)
    groups = [str(group) for group in range(100) for _ in range(50)]
    labels = numpy.concatenate([random.choice(4, 50, p=random.dirichlet([1] * 4)) for _ in range(100)]).tolist()
    for seed in range(3):
        parts = by_groups(labels, groups, {"test": 0.2, "val": 0.08}, seed, str)
        counts = numpy.array([numpy.bincount([labels[row] for row in part], minlength=4) for part in parts])
        assert counts.sum(1) / 5000 == pytest.approx([0.2, 0.08, 0.72], abs=0.011)
        assert counts / counts.sum(0) == pytest.approx(numpy.array([[0.2], [0.08], [0.72]]).repeat(4, 1), abs=0.03)


@pytest.mark.parametrize("seed", range(10))
def test_few_groups_of_some_classes_each_are_moved_until_every_part_has_all(seed):
    """Twenty patients with some of ten kinds of cells: dealt out alone, mostly a part would lack a kind."""
    random = numpy.random.default_rng(seed)
    kinds = [random.choice(10, 4, replace=False) for _ in range(20)]
    groups, labels = zip(
        *((str(row), int(random.choice(kinds[row]))) for row in random.integers(20, size=300)), strict=True
    )
    parts = by_groups(labels, groups, {"test": 0.2, "val": 0.2}, 0, str)
    assert sorted(row for part in parts for row in part) == list(range(300))
    assert all({labels[row] for row in part} == {*labels} for part in parts)
    assert sum(len({groups[row] for row in part}) for part in parts) == len({*groups})
    test, val, train = map(len, parts)
    assert 0.1 < test / 300 < 0.35 and 0.1 < val / 300 < 0.35 and train > 120


def test_large_groups_are_tested_as_often_as_small_ones():
    """Patients with few pictures and with many; planted: dealt out by size, the large ones would all be trained on."""
    random = numpy.random.default_rng(0)
    sizes = (1 + random.lognormal(1, 0.8, 100)).astype(int)
    groups, labels = numpy.repeat(numpy.arange(100), sizes).astype(str).tolist(), random.integers(2, size=sizes.sum())
    tested = numpy.zeros(100)
    for seed in range(60):
        test, *_ = by_groups(labels.tolist(), groups, {"test": 0.2, "val": 0.08}, seed, str)
        tested[[int(group) for group in {groups[row] for row in test}]] += 1
        assert 0.15 < len(test) / len(labels) < 0.25
    assert tested[sizes.argsort()[-10:]].mean() / 60 == pytest.approx(0.2, abs=0.05)
    assert tested[sizes.argsort()[:50]].mean() / 60 == pytest.approx(0.2, abs=0.05)


def test_what_is_equal_is_dealt_out_alike_on_every_processor():
    """As sums are added in another order there; here as classes are in another order."""

    def wanted(shares, held):
        return numpy.outer(shares, held.sum(0))

    random = numpy.random.default_rng(0)
    for _ in range(100):
        groups, labels = random.integers(40, size=400).astype(str).tolist(), random.integers(5, size=400)
        for shares in ((0.2, 0.2, 0.2, 0.2, 0.2), (0.2, 0.1, 0.7)):
            one, other = (
                dealt_out_by_groups(given.tolist(), groups, partial(wanted, shares), 0)[0]
                for given in (labels, 4 - labels)
            )
            assert one.tolist() == other.tolist()


def test_accents_are_one_sign_or_two():
    """As macOS writes them; planted: other names are other groups."""
    for groups, below in (("folder", "{}/a.png"), (r"of (.*?)\.png", "of {}.png")):
        names = [below.format(normalize(form, name)) for name in ("Zoë", "Zoe") for form in ("NFC", "NFD")]
        assert groups_of(names, groups) == ["Zoë", "Zoë", "Zoe", "Zoe"]


def test_a_large_group_is_for_training():
    groups = ["all"] * 100 + [name for name in "abc" for _ in range(10)]
    assert [len(part) for part in by_groups([0] * 130, groups, {"test": 0.2, "val": 0.1}, 0, str)] == [20, 10, 100]


def test_a_class_in_too_few_groups_is_refused(tmp_path):
    write_patients(tmp_path, patients=("p0", "p1"))
    with pytest.raises(
        ValueError, match="groups in each of 3 parts, but cat has 2, .* val_share takes 1: it takes at least 3$"
    ):
        ImageFolderDataModule(tmp_path, 8, batch_size=1, groups="folder").setup()


def test_groups_that_leave_a_part_without_a_class_are_refused_with_the_counts():
    """One large group is alone of two classes in the only possible way."""
    groups = ["a", "a", "b", "b", "c", "d", "e"]
    labels = [0, 1, 0, 1, 0, 1, 2]
    with pytest.raises(ValueError, match="groups in each of 2 parts, but 2 has 1"):
        by_groups(labels, groups, {"val": 0.5}, 0, str)
    held = {"a": (0, 1), "b": (0, 2), "c": (1, 2)}  # any part of one group lacks a class
    groups, labels = zip(*((name, label) for name, found in held.items() for label in found), strict=True)
    with pytest.raises(ValueError, match=r"in each of 2 parts, but of \d they have (0 / 2|2 / 0) \(val, the rest\)"):
        by_groups(labels, groups, {"val": 0.3}, 0, str)


@pytest.mark.parametrize("groups, message", [
    ("(p", "must be a regular expression, but .* is none"),
    ("p", r"one group in brackets, .* but 'p' has 0"),
    ("(p)(1)", "has 2"),
])  # fmt: skip
def test_what_finds_no_groups_is_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        ImageFolderDataModule(groups=groups)


def test_a_path_without_a_group_is_refused(tmp_path):
    write_patients(tmp_path)
    with pytest.raises(ValueError, match=r"'\(p\[0-2\]\)_' is not in 10 of 40, such as p3/p3_0.png"):
        ImageFolderDataModule(tmp_path, 8, batch_size=1, groups="(p[0-2])_").setup()


def test_given_parts_share_no_group(tmp_path):
    write_patients(tmp_path / "train")
    write_patients(tmp_path / "test", patients=("q0", "q1"))
    parts = patients_of(module := ImageFolderDataModule(tmp_path, 8, batch_size=1, groups="folder"))
    assert len(parts["val"]) == 1 and len(parts["train"]) == 3
    assert module.describe()["classes"] == "2: cat 30, dog 30"
    for part in ("train", "test"):  # in no folder, and so of no patient who could be in both
        write_pictures(tmp_path / part, parts=("cat",), classes=[f"loose_{part}"], count=1, suffix="png", side=(8, 8))
        (tmp_path / part / f"cat/loose_{part}/0.png").rename(tmp_path / part / f"cat/{part}.png")
        (tmp_path / part / f"cat/loose_{part}").rmdir()
    ImageFolderDataModule(tmp_path, 8, batch_size=1, groups="folder").setup()
    (tmp_path / "test/cat/q0").rename(tmp_path / "test/cat/p3")
    with pytest.raises(ValueError, match="in one part only, but p3 is in train and in test: move"):
        ImageFolderDataModule(tmp_path, 8, batch_size=1, groups="folder").setup()


def test_copies_in_two_groups_are_refused(tmp_path):
    write_patients(tmp_path)
    shutil.copy(tmp_path / "cat/p0/p0_0.png", tmp_path / "cat/p1/p1_9.png")
    with pytest.raises(ValueError, match=r"in one group only, but .* another group, such as .*p1_9.png and .*p0_0.png"):
        ImageFolderDataModule(tmp_path, 8, batch_size=1, groups="folder").setup()


def test_many_classes_are_abbreviated(tmp_path):
    write_pictures(tmp_path, parts=("all",), classes=[f"k{number}" for number in range(10)], count=3)
    module = ImageFolderDataModule(tmp_path / "all", 8, batch_size=1)
    assert "classes" not in module.describe()
    module.setup()
    assert module.describe()["classes"] == f"10: {', '.join(f'k{number} 3' for number in range(8))}, … and 2 more"


def test_a_group_is_the_first_folder_below_that_of_a_class():
    assert groups_of([str(Path("p0", "left", "a.png")), str(Path("p0", "b.png"))], "folder") == ["p0", "p0"]


@pytest.mark.parametrize("seed", range(3))
def test_a_class_counts_by_its_share_and_not_by_its_pictures(seed):
    """Ten of a common one in every patient, one of a rare one in every other; a fifth of each is for the test."""
    patients = [f"p{number}" for number in range(10)]
    labels, groups = [0] * 100 + [1] * 5, [*numpy.repeat(patients, 10), *patients[::2]]
    test, _ = by_groups(labels, groups, {"test": 0.2}, seed, str)
    assert numpy.bincount(numpy.array(labels)[test]).tolist() == [20, 1]
