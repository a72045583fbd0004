"""From a folder of pictures to a network that knows them, with one command and nothing more."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from PIL import Image

import gsa
from gsa.files import printable
from gsa.runner import ConfigError, train
from gsa.runner._fitting import _refuse_other_classes, refuse_other_format, refuse_other_training
from gsa.runner._nodes import with_network
from gsa.saved import read_checkpoint, write_checkpoint
from tests.cells import write_cells
from tests.data.test_image_folder import write_pictures
from tests.forks import python
from tests.runs import SMALL

TRAIN = Path(gsa.__file__).parent.parent / "train.py"


@pytest.mark.slow
def test_a_folder_of_pictures_becomes_a_network_that_knows_them(tmp_path):
    write_cells(tmp_path / "cells")
    subprocess.run(
        [sys.executable, TRAIN, "data=imagefolder", f"data.root={tmp_path / 'cells'}"], cwd=tmp_path, check=True
    )
    (file,) = tmp_path.glob("outputs/imagefolder/imagefolder_gsa/*/report.json")
    assert json.loads(file.read_text())["test_accuracy"] >= 0.9


@pytest.mark.parametrize(
    "arguments, brought",
    [
        ("data=imagefolder data.root=x", "imagefolder_gsa"),
        ("-m seed=0,1 data=rotmnist --cfg job", "rotmnist_gsa"),
        ("data=imagefolder model=pcam_gsa", None),
        ("experiment=cifar10/z2m_sa data=imagefolder", None),
        ("data=digits,own", None),
        ("seed=3", None),
    ],
)
def test_data_alone_bring_the_network_that_is_made_for_them(arguments, brought):
    before = arguments.split()
    after = with_network(before)
    assert [one for one in after if one not in before] == ([f"model={brought}"] if brought else [])
    assert [one for one in after if one in before] == before
    if brought:  # options end the choices, so it stands among them
        assert after[after.index(f"model={brought}") - 1].startswith("data=")


def test_in_a_sweep_over_data_their_networks_bring_them():
    """Planted: a choice that has no network of its own, above."""
    given = ["seed=0,1", "data=rotmnist, cifar10", "-m", "seed=0"]
    assert with_network(given) == ["seed=0,1", "model=rotmnist_gsa,cifar10_gsa", "-m", "seed=0"]
    assert with_network(["data=rotmnist,cifar10", "model=digits_gsa"]) == ["data=rotmnist,cifar10", "model=digits_gsa"]


def test_the_recipe_for_own_pictures_averages_no_weights_and_has_steps_enough_for_a_hundred_pictures(configure):
    config = configure(*with_network(["data=imagefolder"]))
    assert (config.model.name, config.ema, config.data.size) == ("imagefolder_gsa", None, 64)
    assert config.optimizer._target_ == "gsa.training.muon"
    assert config.trainer.max_epochs * config.data.least_batches >= 500
    assert configure("model=pcam_gsa", "data=imagefolder").data.least_batches == 0


def test_an_older_run_on_folders_goes_on(configure):
    config = configure("model=digits_r4_sa", "data=imagefolder")
    before = OmegaConf.to_container(config, resolve=True)
    for key in ("test_share", "unreadable", "least_batches", "groups", "white"):
        del before["data"][key]
    refuse_other_training({"hyper_parameters": {"run": before}}, config)
    config.data.least_batches = 3
    with pytest.raises(ValueError, match=r"data.least_batches \(0 there, 3 here\)"):
        refuse_other_training({"hyper_parameters": {"run": before}}, config)


OWN = ("data=imagefolder", "data.size=16", "data.batch_size=4", "trainer.max_epochs=1")


def renamed(root):
    (root / "cat").rename(root / "zebra")


def added(root):
    for number in range(5):
        shutil.copy(root / "dog" / f"{number}.jpg", root / "dog" / f"{number}{number}.jpg")


def of_another_class(root):
    write_pictures(root, parts=(".",), classes=("wolf",))


def replaced(root):
    Image.new("RGB", (9, 9), (9, 99, 199)).save(root / "dog" / "3.jpg")


@pytest.mark.parametrize("change, goes_on, is_tested", [
    (renamed, "other classes than those of the data: 'cat' there alone, 'zebra' here alone", False),
    (of_another_class, "other classes than those of the data: none there alone, 'wolf' here alone", False),
    (added, r"files of the parts train.* were added, removed, renamed, replaced or given", True),
    (replaced, r"files of the parts \w+ were added, removed, renamed, replaced or given", True),
    (lambda root: None, None, True),
])  # fmt: skip
def test_other_pictures_than_those_of_a_checkpoint_are_refused(small, tmp_path, change, goes_on, is_tested):
    """In another place the same ones are the same; and checkpoints of before, which say nothing of files, go on."""
    write_pictures(tmp_path, parts=("all",))
    train(small(*OWN, f"data.root={tmp_path / 'all'}"))
    last, moved = tmp_path / "run" / "checkpoints" / "last.ckpt", tmp_path / "moved"
    (tmp_path / "all").rename(moved)
    change(moved)
    options = (*OWN, f"data.root={moved}", f"ckpt_path='{last}'")
    for wrong, more in ((goes_on, ()), (None if is_tested else goes_on, ("train=false",))):
        if wrong is None:
            warned = pytest.warns(UserWarning, match="some may have been trained on")
            with warned if more and change is added else nullcontext():
                train(small(*options, *more, folder=f"other{len(more)}"))
        else:
            with pytest.raises(ConfigError, match=wrong) as refused:
                train(small(*options, *more, folder=f"other{len(more)}"))
            assert "\n" not in str(refused.value)
    write_checkpoint({key: value for key, value in read_checkpoint(last).items() if key != "digests"}, last)
    if is_tested and change is not added:  # which is a copy, see below
        train(small(*options))


def test_labels_in_a_table_go_on_wherever_it_is_if_they_are_the_same(small, tmp_path):
    root, table = tmp_path / "all", tmp_path / "labels.csv"
    write_pictures(tmp_path, parts=("all",))
    files = [f"{path.relative_to(root)};{path.parent.name}" for path in sorted(root.glob("*/*"))]
    table.write_text("\n".join(["image;dx", *files]))
    named = (*OWN, "data.columns.file=image", "data.columns.label=dx", "data.groups='([0-9])'")
    train(small(*named, f"data.root={root}", f"data.labels={table}"))
    report, last = json.loads((tmp_path / "run" / "report.json").read_text()), "run/checkpoints/last.ckpt"
    assert report["data"]["source"] == "all, labels.csv" and report["test_groups"] == 2
    root.rename(tmp_path / "moved")
    table.rename(tmp_path / "other.csv")
    options = (*named, f"data.root={tmp_path / 'moved'}", f"data.labels={tmp_path / 'other.csv'}")
    train(small(*options, f"ckpt_path='{tmp_path / last}'"))
    (tmp_path / "other.csv").write_text("\n".join(["image;dx", *files[1:], files[0].replace(";cat", ";dog")]))
    with pytest.raises(
        ConfigError, match=r"files of the parts [\w, ]+ were added, removed, renamed, replaced or given"
    ):
        train(small(*options, f"ckpt_path='{tmp_path / last}'", folder="changed"))


def test_a_run_is_not_begun_where_its_folder_would_be_a_class_of_the_next(small, tmp_path):
    write_pictures(tmp_path, parts=("all",))
    with pytest.raises(ConfigError, match="a run's folder must not be in data.root, where every folder is a class"):
        train(small(*OWN, f"data.root={tmp_path / 'all'}", folder="all/outputs/run"))
    assert not (tmp_path / "all" / "outputs").exists()
    with pytest.raises(ConfigError, match="a run's folder must not be in data.root"):
        train(small(*OWN, f"data.root={tmp_path / 'all'}", folder="all"))
    with pytest.raises(ConfigError, match="data.root must be str or PathLike, but got None"):
        train(small(*OWN, "data.root=null"))
    train(small(*OWN, f"data.root={tmp_path / 'all'}", folder="all/.runs/run"))  # which is none


@pytest.mark.filterwarnings("ignore:1 of 20 files are left out")
def test_files_that_are_left_out_are_in_the_report(small, tmp_path):
    write_pictures(tmp_path, parts=("all",))
    lost = tmp_path / "all" / "cat" / "3.jpg"
    lost.write_bytes(b"none")
    train(small(*OWN, f"data.root={tmp_path / 'all'}", "data.unreadable=skip"))
    report, parts = ((tmp_path / "run" / name).read_text() for name in ("report.txt", "parts.csv"))
    assert ", 1 files that cannot be read left out" in report and f"{lost},cat,left out" in parts


@pytest.mark.parametrize("parts", [("train", "test"), ("all",)])
def test_of_checkpoints_that_tell_of_no_files_those_do_not_go_on_whose_parts_are_drawn_anew(small, tmp_path, parts):
    """As until 23 November 2026, when copies were torn apart and a validation part was drawn otherwise."""
    root = tmp_path / "own" / "all" if parts == ("all",) else tmp_path / "own"
    write_pictures(tmp_path / "own", parts=parts)
    if parts == ("all",):
        file = next((root / "cat").iterdir())
        shutil.copy(file, file.with_name(f"copy{file.suffix}"))
    train(small(*OWN, f"data.root={root}"))
    last = tmp_path / "run" / "checkpoints" / "last.ckpt"
    write_checkpoint({key: value for key, value in read_checkpoint(last).items() if key != "digests"}, last)
    options = (*OWN, f"data.root={root}", f"ckpt_path='{last}'")
    with pytest.raises(ConfigError, match="or divided as earlier versions did"):
        train(small(*options))
    with pytest.warns(UserWarning, match="trained on") if parts == ("all",) else nullcontext():
        train(small(*options, "train=false", folder="tested"))


@pytest.mark.filterwarnings("ignore:data.white=4095 is for")
def test_a_checkpoint_is_tested_on_pictures_of_its_own_size(small, tmp_path):
    """In a folder whose name is no text; planted: another size, it takes both, and data that have no key for it."""
    write_pictures(tmp_path, parts=("all",))
    name = b"caf\xe9" if sys.platform == "linux" else b"caf\xc3\xa9"  # others take text alone
    (tmp_path / "all").rename(folder := tmp_path / os.fsdecode(name))
    options = (*OWN, f"data.root='{folder}'")
    train(small(*options))
    assert printable(folder.name) in (tmp_path / "run" / "report.txt").read_text()
    last = tmp_path / "run" / "checkpoints" / "last.ckpt"
    options = (*options, f"ckpt_path='{last}'", "train=false")
    train(small(*options, folder="tested"))
    with pytest.raises(ConfigError, match="on pictures of 16 pixels, but data.size is 24: say data.size=16"):
        train(small(*options, "data.size=24", folder="other"))
    with pytest.raises(ConfigError, match="was trained with data.white=null, but it is 4095 here: say data.white=null"):
        train(small(*options, "data.white=4095", folder="other"))
    with pytest.raises(ConfigError, match="was trained with data.framing=centre, but it is whole here: say data.fram"):
        train(small(*options, "data.framing=whole", folder="other"))
    with pytest.raises(ValueError, match="framing=whole, but it is centre here, and the data have no such key"):
        refuse_other_format({"pictures": {"image_size": 16, "in_channels": 3, "whole": True}}, "run", {
            "image_size": 16, "in_channels": 3}, keys=())  # fmt: skip
    with pytest.raises(ValueError, match="was trained on pictures of 16 pixels, but those of the data have 24$"):
        refuse_other_format(read_checkpoint(last), str(last), {"image_size": 24}, keys=())


@pytest.mark.parametrize("place", ["new", "new/test"])
def test_a_network_is_tested_on_all_of_another_folder(small, tmp_path, recwarn, place):
    """Planted: training on them, which is refused."""
    write_pictures(tmp_path, parts=("all",))
    train(small(*OWN, f"data.root={tmp_path / 'all'}"))
    write_pictures(tmp_path, parts=(place,), count=7)
    options = (*OWN, f"data.root={tmp_path / 'new'}", *(("data.test_share=1",) if place == "new" else ()))
    ckpt = f"ckpt_path='{tmp_path / 'run' / 'checkpoints' / 'last.ckpt'}'"
    metrics, objects = train(small(*options, ckpt, "train=false", "trainer.limit_test_batches=1.0", folder="tested"))
    assert set(metrics) == {"test/accuracy", "test/balanced_accuracy", "test/auroc"}
    assert objects["report"]["used"] == {"train": 0, "val": 0, "test": 14}
    assert objects["report"]["split"] == {"train": 0, "val": 0, "test": 14} and not recwarn.list
    with pytest.raises(ConfigError, match="training needs pictures in .* all are for the test .* needs train=false"):
        train(small(*options, folder="other"))
    with pytest.raises(ValueError, match="imagefolder must have training pictures, but all are for the test"):
        objects["data"].train_dataloader()


def test_a_network_is_tested_on_pictures_of_some_classes(small, tmp_path, recwarn):
    """Planted: without a folder for the others, with which training is refused, and one with no picture at all."""
    write_pictures(tmp_path, parts=("all",), classes=("ant", "cat", "dog"))
    train(small(*OWN, f"data.root={tmp_path / 'all'}"))
    write_pictures(tmp_path, parts=("new",), classes=("ant", "cat"), count=7)
    ckpt = f"ckpt_path='{tmp_path / 'run' / 'checkpoints' / 'last.ckpt'}'"
    options = (*OWN, f"data.root={tmp_path / 'new'}", "data.test_share=1", "trainer.limit_test_batches=1.0")
    with pytest.raises(ValueError, match="'dog' there alone.*; test it with an empty folder .* for each of them"):
        train(small(*options, ckpt, "train=false", folder="tested"))
    (tmp_path / "new" / "dog").mkdir()
    _, objects = train(small(*options, ckpt, "train=false", folder="tested"))
    assert objects["report"]["used"]["test"] == 14 and objects["report"]["class_accuracy"]["dog"] is None
    assert not recwarn.list
    with pytest.raises(ConfigError, match="there are no pictures in .*dog"):
        train(small(*OWN, f"data.root={tmp_path / 'new'}", folder="other"))
    for path in (tmp_path / "new").rglob("*.jpg"):
        path.unlink()
    with pytest.raises(ConfigError, match="there are no pictures in .*dog"):
        train(small(*options, ckpt, "train=false", folder="none"))


def test_of_two_classes_one_may_be_tested(small, tmp_path, recwarn):
    write_pictures(tmp_path, parts=("all",))
    train(small(*OWN, f"data.root={tmp_path / 'all'}"))
    write_pictures(tmp_path, parts=("new",), classes=("dog",), count=7)
    (tmp_path / "new" / "cat").mkdir()
    ckpt = f"ckpt_path='{tmp_path / 'run' / 'checkpoints' / 'last.ckpt'}'"
    options = (*OWN, f"data.root={tmp_path / 'new'}", "data.test_share=1", ckpt, "train=false", "report=true")
    metrics, objects = train(small(*options, folder="tested"))
    assert "test/auroc" not in metrics and objects["report"]["test_auroc"] is None and not recwarn.list


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_picture_that_is_gone_in_training_is_told_in_a_line(tmp_path, workers):
    write_pictures(tmp_path, parts=("all",))
    fault = ("_target_=tests.runner.faults.RemovePictures", f"folder={tmp_path / 'all' / 'cat'}")
    done = python(TRAIN, *SMALL, *OWN, f"data.root={tmp_path / 'all'}", f"data.num_workers={workers}",
                  "data.kept_gb=0", "trainer.max_epochs=2", f"hydra.run.dir={tmp_path / 'run'}",
                  *(f"+callbacks.fault.{key}" for key in fault), cwd=TRAIN.parent)  # fmt: skip
    failed, log = done.stderr.splitlines()[-2:]
    assert done.returncode == 1 and "Traceback" not in done.stderr + done.stdout
    assert re.fullmatch(r"the run has failed: since all were looked at, .*/cat/\d.jpg cannot be read as a .*", failed)
    assert log == f"the log has the rest: {tmp_path / 'run' / 'train.log'}"


def test_classes_in_another_order_are_other_classes():
    checkpoint = {"pictures": {"classes": ["cat", "dog"]}}
    _refuse_other_classes(checkpoint, "last.ckpt", ["cat", "dog"])
    with pytest.raises(ValueError, match="they have another order"):
        _refuse_other_classes(checkpoint, "last.ckpt", ["dog", "cat"])
