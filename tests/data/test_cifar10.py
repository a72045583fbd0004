"""CIFAR-10's official files."""

import pickle

import numpy
import pytest
from torchvision.datasets import CIFAR10

from gsa.data import CIFAR10DataModule
from tests.data.test_rotmnist import Server


def test_the_parts_are_disjoint(tmp_path, monkeypatch):
    folder = tmp_path / CIFAR10.base_folder
    folder.mkdir()
    for name, _ in CIFAR10.train_list + CIFAR10.test_list:
        index = int(name[-1]) if name[-1].isdigit() else 9
        data = numpy.full((10_000, 3072), index, dtype=numpy.uint8)
        (folder / name).write_bytes(pickle.dumps({"data": data, "labels": [index] * 10_000}))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": list("abcdefghij")}))
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda path, md5=None: True)
    module = CIFAR10DataModule(tmp_path)
    module.setup()
    sizes = {part: len(module.parts[part]) for part in ("train", "val", "test")}
    assert sizes == {"train": 45_000, "val": 5_000, "test": 10_000}
    train, val = (set(module.parts[part].dataset.indices) for part in ("train", "val"))
    assert not train & val and module.parts["test"].first(1)[0].shape == (1, 3, 32, 32)


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


def test_an_archive_that_is_cut_never_gets_its_name(tmp_path, monkeypatch):
    with Server(b"not the archive" * 10_000, whole_from=99) as server:
        monkeypatch.setattr(CIFAR10, "url", server.url)
        with pytest.raises(ValueError, match="could not be fetched in 3 attempts"):
            CIFAR10DataModule(tmp_path, download=True).prepare_data()
    assert server.requests == 3 and not (tmp_path / CIFAR10.filename).exists()
