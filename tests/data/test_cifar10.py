"""CIFAR-10's official files."""

import gzip
import hashlib
import io
import pickle
import tarfile
from pathlib import Path

import numpy
import pytest
import torch
from torchvision.datasets import CIFAR10

from gsa.data import CIFAR10DataModule
from tests.data.test_downloads import Server


def test_every_part_has_its_own_pictures_labels_and_colours(tmp_path, monkeypatch):
    """Classes 0 to 8 in the files of training, 9 in that of the test; every picture's red is its label."""
    folder = tmp_path / CIFAR10.base_folder
    folder.mkdir()
    for name, _ in CIFAR10.train_list + CIFAR10.test_list:
        classes = numpy.arange(10_000) % 9 if name != "test_batch" else numpy.full(10_000, 9)
        data = (classes[:, None] + numpy.repeat([0, 100, 200], 1024)).astype(numpy.uint8)  # red, green, blue
        (folder / name).write_bytes(pickle.dumps({"data": data, "labels": classes.tolist()}))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": list("abcdefghij")}))
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda path, md5=None: True)
    module = CIFAR10DataModule(tmp_path)
    module.setup()
    sizes = {part: len(module.parts[part]) for part in ("train", "val", "test")}
    assert sizes == {"train": 45_000, "val": 5_000, "test": 10_000}
    train, val = (set(module.parts[part].dataset.indices) for part in ("train", "val"))
    assert not train & val
    for part, classes in (("train", range(9)), ("val", range(9)), ("test", [9])):
        pictures, labels = module.parts[part].first(100)
        assert pictures.shape == (100, 3, 32, 32) and set(labels.tolist()) == set(classes)
        expected = labels[:, None] + torch.tensor([0, 100, 200])
        assert ((255 * pictures).round() == expected[:, :, None, None]).all()


def test_other_files_in_their_place_are_refused_unread(tmp_path):
    folder = tmp_path / CIFAR10.base_folder
    folder.mkdir()
    for name, _ in CIFAR10.train_list + CIFAR10.test_list:
        (folder / name).write_bytes(b"cos\nmkdir\n(S'" + str(tmp_path / "canary").encode() + b"'\ntR.")
    with pytest.raises(FileNotFoundError, match="were not found whole"):
        CIFAR10DataModule(tmp_path).setup()
    assert not (tmp_path / "canary").exists()
    with pytest.raises(AttributeError):  # the plant: unpickled trustingly, it runs
        pickle.loads((folder / "test_batch").read_bytes()).get("data")
    assert (tmp_path / "canary").exists()


def test_an_archive_that_is_not_the_official_one_never_gets_its_name(tmp_path, monkeypatch):
    with Server(lambda number, stream: stream.write(b"not the archive" * 10_000)) as server:
        monkeypatch.setattr(CIFAR10, "url", server.url)
        with pytest.raises(ValueError, match="could not be fetched in 3 attempts"):
            CIFAR10DataModule(tmp_path, download=True).prepare_data()
    assert server.requests == 3 and not (tmp_path / CIFAR10.filename).exists()


def member(name, **kind):
    info = tarfile.TarInfo(name)
    for key, value in kind.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    "members",
    [
        [member("../canary", size=3)],
        [member("/tmp/gsa_canary", size=3)],
        [member("link", type=tarfile.SYMTYPE, linkname="../"), member("link/canary", size=3)],
        [member("hard", type=tarfile.LNKTYPE, linkname="../precious"), member("hard", size=3)],
        [member("pipe", type=tarfile.FIFOTYPE)],
        [member("cut", size=10_000)],
    ],
    ids=["up", "absolute", "link", "hard link", "pipe", "cut"],
)
def test_what_is_unpacked_stays_in_its_folder(tmp_path, monkeypatch, members):
    """The digest is patched to be that of the hostile archive: the second wall, behind the first."""
    (tmp_path / "precious").write_bytes(b"old")
    root = tmp_path / "root"
    root.mkdir()
    archive = root / CIFAR10.filename
    with tarfile.open(archive, "w:gz") as tar:
        for info in members:
            tar.addfile(info, io.BytesIO(b"new".ljust(info.size)) if info.size else None)
    if members[0].name == "cut":
        archive.write_bytes(gzip.compress(gzip.decompress(archive.read_bytes())[:600]))
    monkeypatch.setattr(CIFAR10, "tgz_md5", hashlib.md5(archive.read_bytes()).hexdigest())
    with pytest.raises(ValueError, match=r"python.tar.gz could not be unpacked: [^\n]*$"):
        CIFAR10DataModule(root, download=True).prepare_data()
    assert {file.name for file in tmp_path.iterdir()} == {"root", "precious"}
    assert (tmp_path / "precious").read_bytes() == b"old" and not Path("/tmp/gsa_canary").exists()


def test_files_that_are_there_need_no_folder_that_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(CIFAR10DataModule, "_is_there", lambda self: True)
    CIFAR10DataModule(tmp_path / "nowhere", download=True).prepare_data()
    assert not (tmp_path / "nowhere").exists()
