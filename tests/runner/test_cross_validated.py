"""What the tests of all folds say together."""

import csv
import math

import pytest

from gsa.files import prediction_table, write_whole
from gsa.report import area_interval, difference_interval, read_report, share_interval, write_report
from gsa.runner import train
from gsa.runner._cross_validated import Answered, together
from gsa.runner._sweep_table import sweep_table
from tests.data.test_image_folder import write_pictures
from tests.forks import python
from tests.runner.test_sweeps import SHORT


def write_test(folder, answers, groups=None, classes=("a", "b")):
    """test.csv of pictures of the first class: path → whether it was answered rightly."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {"path": list(answers)} | ({} if groups is None else {"group": [groups[path] for path in answers]})
    known["class"] = [classes[0]] * len(answers)
    chances = [[0.9, 0.1] if right else [0.1, 0.9] for right in answers.values()]
    write_whole(folder / "test.csv", prediction_table(known, chances, classes))
    return folder


def write_job(folder, words, answers, groups=None):
    (folder / ".hydra").mkdir(parents=True)
    (folder / ".hydra" / "overrides.yaml").write_text("".join(f"- {word}\n" for word in words))
    write_report({"val_accuracy": 0.5, "test_accuracy": sum(answers.values()) / len(answers)}, folder)
    write_test(folder, answers, groups)


def test_every_picture_counts_once(tmp_path):
    folders = [write_test(tmp_path / "0", {"p": True, "q": False}), write_test(tmp_path / "1", {"r": True})]
    found = Answered.of_runs(folders)
    assert found.right == {"p": 1, "q": 0, "r": 1} and found.groups == {"p": "p", "q": "q", "r": "r"}


def test_of_several_seeds_it_counts_by_how_often_it_was_right(tmp_path):
    folders = [write_test(tmp_path / str(seed), {"p": seed > 0, "q": seed > 1}) for seed in range(4)]
    assert Answered.of_runs(folders).right == {"p": 0.75, "q": 0.5}


def test_classes_may_be_called_as_columns_are(tmp_path):
    """Planted: a picture in no group, and classes that a reader by names would take for the columns."""
    groups = {"p": "one", "q": "", "r": "one"}
    folder = write_test(tmp_path, {"p": True, "q": True, "r": False}, groups, classes=("class", "group"))
    found = Answered.of_runs([folder])
    assert found.right == {"p": 1, "q": 1, "r": 0} and found.groups == {"p": "one", "q": "q", "r": "one"}
    folder = write_test(tmp_path, {"p": True}, classes=("group", "prediction"))
    assert Answered.of_runs([folder]).groups == {"p": "p"}


@pytest.mark.parametrize(
    "text", ["", "path,class\np,a\n", "path,class,prediction,a,b\np\n", "path,prediction\np,a\n", "\xff"]
)
def test_damaged_files_are_refused(tmp_path, text):
    (tmp_path / "test.csv").write_text(text, encoding="latin-1")
    with pytest.raises((ValueError, csv.Error)):
        Answered.of_runs([tmp_path])


def test_pictures_of_which_one_was_tested_more_often_are_refused(tmp_path):
    folders = [write_test(tmp_path / "0", {"p": True, "q": False}), write_test(tmp_path / "1", {"p": True})]
    with pytest.raises(ValueError, match="every picture must be tested equally often"):
        Answered.of_runs(folders)


def test_the_columns_are_the_intervals():
    pictures = [f"p{n}" for n in range(20)]
    groups = {picture: picture[:2] for picture in pictures}  # p1 and p10 … p19 are of one
    classes = {picture: "rare" if n in (0, 4) else "frequent" for n, picture in enumerate(pictures)}
    first = Answered({picture: 1.0 for picture in pictures}, groups, classes)
    other = Answered({picture: float(n % 4 > 0) for n, picture in enumerate(pictures)}, groups, classes)
    third = Answered({"q": 1.0, "r": 0.0}, {"q": "q", "r": "r"}, {"q": "a", "r": "b"})
    header, one, none, two, three = together([first, None, other, third])
    assert header == ["accuracy over all folds, 95 % interval", "against the first"] and none == ["", ""]
    of_groups = [groups[picture] for picture in pictures]
    low, high = share_interval(list(other.right.values()), of_groups)
    assert two[0] == f"0.7500 of 20, {low:.3f} to {high:.3f}" and one[1] == "" and one[0].startswith("1.0000 of 20, 0.")
    low, high = difference_interval(list(other.right.values()), [1] * 20, of_groups)
    assert two[1] == f"-0.2500, {low:+.3f} to {high:+.3f}" and three == ["0.5000 of 2, 0.095 to 0.905", ""]
    header, _, two = together([first, other], balanced=True)
    labels = list(classes.values())
    low, high = share_interval(list(other.right.values()), of_groups, labels)
    assert header[0].startswith("balanced accuracy over") and two[0] == f"0.4167 of 20, {low:.3f} to {high:.3f}"
    low, high = difference_interval(list(other.right.values()), [1] * 20, of_groups, labels)
    assert two[1] == f"-0.5833, {low:+.3f} to {high:+.3f}"
    assert together([None, None]) == [[], [], []] and together([first])[0] == ["accuracy over all folds, 95 % interval"]


def test_a_sweep_over_folds_ends_with_them(tmp_path):
    """Planted: a network of which a fold is missing, and one whose table of answers is damaged."""
    for job, (model, fold) in enumerate((model, fold) for model in "abcd" for fold in (1, 2)):
        answers = {f"{fold}{n}": model == "a" or n % 2 == 0 for n in range(10)}
        if (model, fold) != ("c", 2):
            write_job(tmp_path / str(job), [f"model={model}", f"data.fold={fold}/2"], answers)
    (tmp_path / "6" / "test.csv").write_text("damaged")
    lines = [[cell.strip() for cell in line.split("  ") if cell] for line in sweep_table(tmp_path).splitlines()]
    at = next(row for row, line in enumerate(lines) if "jobs over data.fold" in line)
    assert lines[at][-2:] == ["accuracy over all folds, 95 % interval", "against the first"]
    of = {line[0]: line for line in lines[at + 1 :]}
    assert of["a"][-2] == "1.0000 of 20, 0.839 to 1.000" and of["b"][-2] == "0.5000 of 20, 0.299 to 0.701"
    assert of["b"][-1].startswith("-0.5000, -0.") and of["d"][-2:] == ["–", "–"] and "c" not in of


def test_folds_whose_epochs_were_chosen_by_the_mean_of_the_classes_are_judged_by_it(tmp_path):
    for fold in (1, 2):
        write_job(tmp_path / str(fold), [f"data.fold={fold}/2"], {f"{fold}{n}": n < 9 for n in range(10)})
        chosen = {"chosen_by": "val_balanced_accuracy", "val_balanced_accuracy": 0.5}
        write_report(read_report(tmp_path / str(fold)) | chosen, tmp_path / str(fold))
    assert "balanced accuracy over all folds, 95 % interval\n" in sweep_table(tmp_path)


def test_groups_are_in_the_tables_and_the_interval(small, tmp_path):
    write_pictures(tmp_path, parts=("all",), count=24)
    for path in sorted((tmp_path / "all").rglob("*.jpg")):
        patient = path.parent / f"patient {int(path.stem) // 4}"
        if int(path.stem) < 20:  # the others are in no group
            patient.mkdir(exist_ok=True)
            path.rename(patient / path.name)
    own = ("data=imagefolder", "data.size=16", "data.batch_size=4", f"data.root={tmp_path / 'all'}")
    _, objects = train(small(*own, "trainer.max_epochs=1", "data.groups=folder", "report=false"))
    report = objects["report"]
    for name in ("parts", "test"):
        with open(tmp_path / "run" / f"{name}.csv", newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        assert all(row["group"] == (row["path"].split("/")[-2] if "patient" in row["path"] else "") for row in rows)
    units = [row["group"] or row["path"] for row in rows]
    assert report["test_groups"] == len(set(units)) < len(units)
    assert report["test_interval"] == list(share_interval([row["class"] == row["prediction"] for row in rows], units))
    right = [row["class"] == row["prediction"] for row in rows]
    assert report["test_balanced_interval"] == list(share_interval(right, units, [row["class"] for row in rows]))
    odds = [math.log(float(row["dog"]) / float(row["cat"])) for row in rows]
    area = area_interval(odds, [row["class"] == "dog" for row in rows], units)
    assert report["test_auroc_interval"] == pytest.approx(area)
    assert area[0] <= report["test_auroc"] <= area[1]
    assert f"of {len(set(units))} groups" in (tmp_path / "run" / "report.txt").read_text()


def test_the_jobs_of_a_sweep_decode_every_file_once(tmp_path):
    """Counted in the process of the sweep."""
    write_pictures(tmp_path, parts=("all",), count=20)
    counted = (
        "import sys, gsa.files.reading as r, gsa.runner; read = r.PictureReader.__call__;"
        f"log = open({str(tmp_path / 'log')!r}, 'a');"
        "r.PictureReader.__call__ = lambda self, path: (print(path, file=log, flush=True), read(self, path))[1];"
        "gsa.runner.main()"
    )
    words = ["-m", *SHORT, "data=imagefolder", f"data.root={tmp_path / 'all'}", "data.size=16", "data.batch_size=4",
             "data.fold=1/2,2/2", f"hydra.sweep.dir={tmp_path / 'folds'}"]  # fmt: skip
    done = python("-c", counted, *words)
    assert done.returncode == 0, done.stderr
    assert (
        len((tmp_path / "log").read_text().splitlines()) == 40
        and "accuracy over all folds, 95 % interval" in done.stdout
    )
