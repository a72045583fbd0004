"""Cross-validation: the folds are all pictures, each in one of them."""

import shutil

import numpy
import pytest

from gsa.data import ImageFolderDataModule
from gsa.data.folder._folds import in_fold
from gsa.runner import train
from tests.data.folders import write_pictures


def parts_of(root, fold, **options):
    """Part → paths of its files below the root."""
    module = ImageFolderDataModule(root, 8, batch_size=2, fold=fold, **options)
    module.setup()
    return {part: {str(path)[len(str(root)) + 1 :] for path, _ in found.files} for part, found in module.parts.items()}


def all_in(root):
    return {str(path.relative_to(root)) for path in root.rglob("*.jpg")}


def in_groups(root):
    """The files of a class in folders of three."""
    for file in root.glob("*/*.jpg"):
        group = file.parent / f"p{int(file.stem) // 3}"
        group.mkdir(exist_ok=True)
        file.rename(group / file.name)


@pytest.mark.parametrize("groups", [None, "folder"])
def test_every_picture_is_tested_once_by_who_has_not_seen_it(tmp_path, groups):
    root = tmp_path / "all"
    write_pictures(tmp_path, parts=("all",), count=31)
    shutil.copy(root / "cat" / "0.jpg", root / "cat" / "900.jpg")  # which is found together with its original
    if groups:
        in_groups(root)
        shutil.move(root / "cat" / "p300" / "900.jpg", root / "cat" / "p0" / "900.jpg")
    tested = []
    for number in range(1, 6):
        parts = parts_of(root, f"{number}/5", groups=groups)
        tested.append(parts["test"])
        assert set.union(*parts.values()) == all_in(root) and sum(map(len, parts.values())) == len(all_in(root))
        for kind in ("cat", "dog"):
            counts = {part: sum(path.startswith(kind) for path in paths) for part, paths in parts.items()}
            assert counts["val"] and abs(counts["test"] - 6.3) <= (4 if groups else 1.8)
        if groups:
            of = [{path.rpartition("/")[0][4:] for path in parts[part]} for part in parts]
            assert not (of[0] & of[1] or of[0] & of[2] or of[1] & of[2])
    assert set.union(*tested) == all_in(root) and sum(map(len, tested)) == len(all_in(root))
    together = {path for path in all_in(root) if path.endswith(("/0.jpg", "/900.jpg")) and path.startswith("cat")}
    assert sum(together <= fold for fold in tested) == 1
    assert parts == parts_of(root, "5/5", groups=groups) != parts_of(root, "5/5", groups=groups, split_seed=1)


@pytest.mark.parametrize("fold", ["0/5", "6/5", "1/1", "5", 5, "a/b", "-1/5", "1/5/5"])
def test_what_is_no_fold_is_refused(fold):
    with pytest.raises(ValueError, match="fold must be one of at least two, such as 1/5 … 5/5, or None, but got"):
        ImageFolderDataModule(fold=fold)


def test_more_folds_than_pictures_or_groups_are_refused(tmp_path):
    write_pictures(tmp_path, parts=("all",), count=10)
    with pytest.raises(ValueError, match="different pictures in each of 11 folds, but cat has 10: take fewer"):
        parts_of(tmp_path / "all", "1/11")
    in_groups(tmp_path / "all")
    with pytest.raises(ValueError, match="groups in each of 5 folds, but cat has 4: take fewer"):
        parts_of(tmp_path / "all", "1/5", groups="folder")


def test_pictures_that_are_in_parts_have_no_folds(tmp_path):
    write_pictures(tmp_path)
    with pytest.raises(ValueError, match="fold divides pictures that are in no parts yet, but .* holds train, test"):
        parts_of(tmp_path, "1/5")


def test_a_run_says_which_fold_it_tests_and_goes_on_with_that(small, tmp_path):
    write_pictures(tmp_path, parts=("all",), count=20)
    own = ("data=imagefolder", "data.size=16", "data.batch_size=4", f"data.root={tmp_path / 'all'}", "data.fold=2/5")
    _, objects = train(small(*own, "trainer.max_epochs=1"))
    assert objects["report"]["data"]["source"] == "all, fold 2/5" and objects["report"]["split"]["test"] == 8
    last = f"ckpt_path='{tmp_path / 'run' / 'checkpoints' / 'last.ckpt'}'"
    with pytest.raises(ValueError, match="tested on its own fold, .* with data.fold=2/5, not 3/5"):
        train(small(*own[:-1], "data.fold=3/5", last, "train=false", folder="other"))
    train(small(*own, last, "train=false", folder="again"))
    with pytest.raises(ValueError, match=r"data.fold \('2/5' there, '3/5' here\)"):
        train(small(*own[:-1], "data.fold=3/5", last, "trainer.max_epochs=1"))


@pytest.mark.parametrize("seed", range(5))
def test_classes_are_shared_out_evenly(seed):
    """Of every class as many, but for one, and of all, too; a rare one is in every fold."""
    labels = [0] * 50 + [1] * 31 + [2] * 6 + [3] * 22
    contents = [str(row) for row in range(len(labels))]
    folds = [in_fold(labels, contents, None, (number, 5), seed, str)[1] for number in range(1, 6)]
    counts = numpy.array([numpy.bincount(numpy.array(labels)[fold], minlength=4) for fold in folds])
    assert (numpy.ptp(counts, axis=0) <= 1).all() and numpy.ptp(counts.sum(1)) <= 1 and counts.all()
    assert sorted(row for fold in folds for row in fold) == list(range(len(labels)))


def test_where_one_fold_is_refused_all_are():
    """A class that is in few groups, of which two are one patient's: planted, three folds of it."""
    labels, groups = [0] * 9 + [1] * 3, [f"p{n}" for n in range(9)] + ["p0", "p1", "p2"]
    for number in range(1, 4):
        rest, test = in_fold(labels, groups, groups, (number, 3), 0, str)
        assert sorted(rest + test) == list(range(12)) and {labels[row] for row in test} == {0, 1}
    for number in range(1, 5):
        with pytest.raises(ValueError, match="groups in each of 4 folds, but 1 has 3"):
            in_fold(labels, groups, groups, (number, 4), 0, str)


def test_one_picture_is_tested_and_reported(small, tmp_path):
    write_pictures(tmp_path, parts=("all",), count=20)
    own = ("data=imagefolder", "data.size=16", "data.batch_size=4", f"data.root={tmp_path / 'all'}")
    train(small(*own, "trainer.max_epochs=1", "data.eval_batch_size=1", "trainer.limit_test_batches=1"))
    assert len((tmp_path / "run" / "test.csv").read_text().splitlines()) == 2
