"""Pictures that are decoded once, and stay in memory."""

import copy
import gc
import os
import pickle

import numpy
import pytest
import torch

from gsa.data import ImageFolderDataModule
from gsa.data._kept import KeptPictures
from gsa.files.reading import PictureReader
from tests.data.test_image_folder import write_pictures


@pytest.fixture
def opened(monkeypatch):
    """Paths that are decoded, from now on."""
    paths, read = [], PictureReader.__call__
    monkeypatch.setattr(PictureReader, "__call__", lambda self, path: paths.append(str(path)) or read(self, path))
    return paths


def data_of(folder, **options):
    return ImageFolderDataModule(folder, size=8, batch_size=4, augmentation=["turns"], **options)


def epoch(data):
    return [torch.cat([x.flatten() for x, _ in loader()]) for loader in (data.train_dataloader, data.test_dataloader)]


def test_files_are_decoded_once_and_batches_are_the_same(tmp_path, opened):
    """Planted: with no room, they are decoded in every epoch."""
    write_pictures(tmp_path, parts=("all",), count=20)
    counts, epochs = [], []
    for gigabytes in (2, 0, float("inf")):
        data = data_of(tmp_path / "all", kept_gb=gigabytes)
        data.setup()
        looked_at = len(opened)
        epochs.append(epoch(data))
        counts.append(len(opened) - looked_at)
        opened.clear()
        assert looked_at == 40
    assert counts[0] == counts[2] == 0 and counts[1] > 30
    for kept, read in zip(epochs[0], epochs[1], strict=True):
        torch.testing.assert_close(kept, read, rtol=0, atol=0)


@pytest.mark.parametrize("workers", [0, 1])
def test_files_that_are_gone_since_are_trained_on(tmp_path, workers):
    """Planted: those that are not kept end the epoch."""
    write_pictures(tmp_path, parts=("all",), count=20)
    kept, read = data_of(tmp_path / "all", num_workers=workers), data_of(tmp_path / "all", kept_gb=0)
    for data in (kept, read):
        data.setup()
    for path in (tmp_path / "all").rglob("*.jpg"):
        path.unlink()
    assert len(epoch(kept)[0]) == len(kept.parts["train"]) // 4 * 4 * 3 * 8 * 8
    with pytest.raises(OSError, match="since all were looked at"):
        epoch(read)


def test_as_many_are_kept_as_there_is_room_for(tmp_path, opened):
    write_pictures(tmp_path, parts=("all",), count=3)
    paths = sorted(map(str, (tmp_path / "all").rglob("*.jpg")))
    pictures = KeptPictures(PictureReader(8), room=3 * 8 * 8 * 2 + 1)
    first = [pictures(path) for path in paths]
    opened.clear()
    for path, expected in zip(paths, first, strict=True):
        numpy.testing.assert_array_equal(pictures(path), expected)
    assert opened == paths[2:]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pictures: pickle.loads(pickle.dumps(pictures))])
def test_copies_keep_nothing(tmp_path, opened, copied):
    write_pictures(tmp_path, parts=("all",), count=1)
    path = next((tmp_path / "all").rglob("*.jpg"))
    pictures = KeptPictures(PictureReader(8), room=1e9)
    expected = pictures(path)
    other = copied(pictures)
    del pictures  # which it would share with
    gc.collect()
    opened.clear()
    for _ in range(2):
        numpy.testing.assert_array_equal(other(path), expected)
    assert len(opened) == 2


@pytest.mark.parametrize("gigabytes", [-1, float("nan")])
def test_room_is_not_negative(tmp_path, gigabytes):
    with pytest.raises(ValueError, match="kept_gb must not be negative, but got"):
        ImageFolderDataModule(tmp_path, kept_gb=gigabytes)


def test_what_another_has_read_alike_is_shared(tmp_path, opened):
    """Planted: a file that was written since, though it is as large, and pictures of another size."""
    write_pictures(tmp_path, parts=("all",), count=4)
    first = data_of(tmp_path / "all", val_share=0.4)
    first.setup()
    assert len(opened) == 8
    opened.clear()
    changed = next((tmp_path / "all").rglob("*.jpg"))
    os.utime(changed, ns=(0, 0))
    second = data_of(tmp_path / "all", val_share=0.4)
    second.setup()
    assert opened == [str(changed)]
    opened.clear()
    other = ImageFolderDataModule(tmp_path / "all", size=9, batch_size=4, val_share=0.4)
    other.setup()
    assert len(opened) == 8


def test_of_a_data_module_that_is_gone_nothing_is_kept(tmp_path, opened):
    write_pictures(tmp_path, parts=("all",), count=4)
    for _ in range(2):
        data = data_of(tmp_path / "all", val_share=0.4)
        data.setup()
        del data
        gc.collect()
    assert len(opened) == 16
