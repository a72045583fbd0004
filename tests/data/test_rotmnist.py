"""The official archive in its layout, everything that can be wrong with it, and the generated split."""

import hashlib
import http.server
import math
import os
import random
import subprocess
import sys
import threading
import zipfile

import numpy
import pytest
import torch

from gsa.data import RotMNISTDataModule, turned_mnist
from gsa.data import _amat as amat
from gsa.data import _rotmnist as rotmnist
from gsa.data._download import ATTEMPTS

TRAIN, TEST = amat.MEMBERS
ROWS = {TRAIN: 12, TEST: 5}


def rows(count, seed=0):
    """Pixels and labels as the archive writes them: 785 numbers, three blanks between."""
    generator = numpy.random.default_rng(seed)
    pixels, labels = generator.random((count, 784)), generator.integers(0, 10, count)
    lines = ["   " + "   ".join(f"{v:.8f}" for v in (*row, label)) for row, label in zip(pixels, labels, strict=True)]
    return lines, pixels, labels


def write(root, members):
    """An archive at its official place; its digest."""
    file = root / amat.ARCHIVE
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, lines in members.items():
            archive.writestr(name, "\n".join(lines) + "\n")
    return hashlib.md5(file.read_bytes()).hexdigest()


def official(edit=None):
    members = {TRAIN: rows(12)[0], TEST: rows(5, seed=1)[0]}
    if edit:
        edit(members)
    return members


def visible(folder):
    """Names of the files but for the lock."""
    return {file.name for file in folder.iterdir() if not file.name.endswith(".lock")}


def test_the_archive_is_read_in_order_and_kept_compactly(tmp_path):
    md5 = write(tmp_path, official())
    amat.prepare_archive(tmp_path, md5=md5, members=ROWS)
    pictures, labels = amat.read_cache(tmp_path, rows=17)
    _, pixels, expected = rows(12)
    torch.testing.assert_close(pictures[:12].double(), torch.from_numpy(pixels).view(-1, 1, 28, 28), atol=3e-4, rtol=0)
    assert labels[:12].tolist() == expected.tolist() and pictures.shape == (17, 1, 28, 28)
    assert visible(tmp_path) == {amat.ARCHIVE, "rotmnist_pictures.npy", "rotmnist_labels.npy"}
    (tmp_path / amat.ARCHIVE).unlink()
    amat.prepare_archive(tmp_path, md5=md5, members=ROWS)  # the cache is enough


def test_the_module_splits_the_official_rows(tmp_path):
    for file, array in zip(
        amat.cache_files(tmp_path),
        (numpy.zeros((62_000, 784), numpy.float16), (numpy.arange(62_000) % 10).astype(numpy.uint8)),
        strict=True,
    ):
        numpy.save(file, array)
    module = RotMNISTDataModule(tmp_path)
    module.prepare_data()
    module.setup()
    assert module.describe() == {
        "name": "rotmnist", "source": "official archive", "train": 10_000, "val": 2_000, "test": 50_000,
    }  # fmt: skip
    assert [module.parts[part][0][1] for part in ("train", "val", "test")] == [0, 0, 0]


def test_a_wrong_digest_is_refused_before_anything_is_read(tmp_path):
    write(tmp_path, official())
    with pytest.raises(ValueError, match=f"MD5 should be {amat.MD5}, but is"):
        amat.prepare_archive(tmp_path, members=ROWS)
    assert visible(tmp_path) == {amat.ARCHIVE}


def test_without_the_archive_it_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="data.download=true, or use data.source=mnist"):
        RotMNISTDataModule(tmp_path).prepare_data()


class Server:
    """A local server that sends a file, all of it or half."""

    def __init__(self, content, whole_from):
        self.requests = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(handler):
                self.requests += 1
                handler.send_response(200)
                handler.send_header("Content-Length", str(len(content)))
                handler.end_headers()
                handler.wfile.write(content if self.requests >= whole_from else content[: len(content) // 2])

            def log_message(handler, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/{amat.ARCHIVE}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("whole_from", [3, 99])
def test_a_download_that_is_cut_is_tried_again_and_never_gets_its_name(tmp_path, monkeypatch, whole_from):
    source, root = tmp_path / "source", tmp_path / "root"
    source.mkdir()
    md5 = write(source, official())
    with Server((source / amat.ARCHIVE).read_bytes(), whole_from) as server:
        monkeypatch.setattr(amat, "URL", server.url)
        if whole_from < 99:
            amat.prepare_archive(root, download=True, md5=md5, members=ROWS)
            assert amat.ARCHIVE in visible(root)
        else:
            with pytest.raises(ValueError, match="could not be fetched in 3 attempts"):
                amat.prepare_archive(root, download=True, md5=md5, members=ROWS)
            assert visible(root) <= {"mnist_rotation_new.part"}
    assert server.requests <= ATTEMPTS


PREPARE = """
import sys
from pathlib import Path
from gsa.data import _amat as amat
root, md5, rows = Path(sys.argv[1]), sys.argv[2], dict(zip(amat.MEMBERS, (12, 5)))
read = amat.read_archive
def told(*arguments):
    print("prepares", flush=True)
    import time; time.sleep(2)
    return read(*arguments)
amat.read_archive = told
amat.prepare_archive(root, md5=md5, members=rows)
"""


@pytest.mark.parametrize("first_dies", [False, True])
def test_one_process_prepares_the_others_wait_and_a_dead_one_is_no_obstacle(tmp_path, first_dies):
    md5 = write(tmp_path, official())
    command = [sys.executable, "-c", PREPARE, str(tmp_path), md5]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "prepares\n"
    second = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    if first_dies:
        first.kill()
    first.communicate()
    told, _ = second.communicate(timeout=60)
    assert second.returncode == 0 and told.count("prepares") == (1 if first_dies else 0)
    assert amat.read_cache(tmp_path, rows=17)[0].shape == (17, 1, 28, 28)


def test_a_prepared_folder_that_is_read_only_is_enough(tmp_path, monkeypatch):
    md5 = write(tmp_path, official())
    amat.prepare_archive(tmp_path, md5=md5, members=ROWS)

    def refuse(*arguments):
        raise PermissionError("read-only")

    monkeypatch.setattr(amat, "FileLock", refuse)  # the first thing that would be written
    amat.prepare_archive(tmp_path, md5=md5, members=ROWS)


def set_number(name, row, column, text):
    def edit(members):
        numbers = members[name][row].split()
        numbers[column] = text
        members[name][row] = "   ".join(numbers)

    return edit


@pytest.mark.parametrize(
    "edit, message",
    [
        (set_number(TRAIN, 7, 100, "nan"), f"{TRAIN}, row 7: pixels must be numbers in"),
        (set_number(TEST, 2, 0, "1.5"), f"{TEST}, row 2: pixels must be numbers in"),
        (set_number(TRAIN, 3, 784, "10.0"), f"{TRAIN}, row 3: labels must be 0 … 9, but got 10"),
        (set_number(TRAIN, 3, 784, "2.5"), f"{TRAIN}, row 3: labels must be 0 … 9, but got 2.5"),
        (set_number(TRAIN, 3, 5, "zero"), f"{TRAIN}, row 3: could not convert"),
        (lambda m: m[TEST].__setitem__(1, "0.5 1"), f"{TEST}, row 1: 784 pixels and a label, but got 2 numbers"),
        (lambda m: m[TEST].pop(), f"{TEST} should hold 5 rows, but has 4"),
        (lambda m: m[TEST].append(m[TEST][0]), f"{TEST} should hold 5 rows, but has more"),
        (lambda m: m.update({"../evil.amat": ["0"]}), "should hold .* but holds .*evil"),
        (lambda m: m.update({"/tmp/evil.amat": ["0"]}), "should hold .* but holds .*evil"),
        (lambda m: m.pop(TEST), "should hold .* but holds"),
        (lambda m: m.update({TEST: [" " * 5 * 785 * 50]}), "would unpack to .* bytes, but 5 rows have at most"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, edit, message):
    root = tmp_path / "inner"
    root.mkdir()
    md5 = write(root, official(edit))
    with pytest.raises(ValueError, match=message):
        amat.prepare_archive(root, md5=md5, members=ROWS)
    assert visible(root) == {amat.ARCHIVE} and [f.name for f in tmp_path.iterdir()] == ["inner"]


class Canary:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_cache_that_holds_code_is_refused_and_does_not_run(tmp_path):
    pictures, labels = amat.cache_files(tmp_path)
    canary = tmp_path / "canary"
    numpy.save(labels, numpy.zeros(62_000, numpy.uint8))
    numpy.save(pictures, numpy.array([Canary(canary)], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not a cache of numbers"):
        amat.read_cache(tmp_path)
    torch.save(Canary(canary), pictures)
    with pytest.raises(ValueError, match="not a cache of numbers"):
        amat.read_cache(tmp_path)
    assert not canary.exists()
    torch.load(pictures, weights_only=False)  # the plant: loaded trustingly, it does run
    assert canary.exists()


def test_random_damage_to_a_cache_is_refused_or_harmless(tmp_path):
    files = amat.cache_files(tmp_path)
    numpy.save(files[0], numpy.zeros((3, 784), numpy.float16))
    numpy.save(files[1], numpy.zeros(3, numpy.uint8))
    whole = files[0].read_bytes()
    chance = random.Random(0)
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[chance.randrange(128)] = chance.randrange(256)  # the header; pixels are checked by value later
        files[0].write_bytes(bytes(damaged[: chance.choice((len(whole), chance.randrange(len(whole))))]))
        try:
            pictures, _ = amat.read_cache(tmp_path, rows=3)
        except ValueError as error:
            assert files[0].name in str(error)
        else:
            assert pictures.shape == (3, 1, 28, 28)


class FakeMNIST:
    def __init__(self, root, train, download):
        count = 60_000 if train else 10_000
        self.data = torch.zeros(count, 28, 28, dtype=torch.uint8)
        self.data[:, 4, 14] = 255  # one bright pixel, ten above the centre
        self.targets = torch.arange(count) % 10 if train else torch.full((count,), 7)


def test_the_generated_split(tmp_path, monkeypatch):
    monkeypatch.setattr(rotmnist, "MNIST", FakeMNIST)
    pictures, labels = turned_mnist(tmp_path, seed=3)
    assert pictures.shape == (62_000, 1, 28, 28) and (labels[60_000:] == 7).all()
    assert labels[:60_000].bincount().tolist() == [6000] * 10 and labels[:10].tolist() != list(range(10))
    place = pictures[:1000].flatten(1).argmax(1)
    angle = torch.atan2(13.5 - place // 28, place % 28 - 13.5) * 180 / math.pi
    assert angle.histc(8, -180, 180).min() > 80  # all directions alike
    again, _ = turned_mnist(tmp_path, seed=3)
    assert torch.equal(pictures[:100], again[:100])
    module = RotMNISTDataModule(tmp_path, source="mnist", split_seed=3)
    module.setup()
    assert "not the official split" in module.describe()["source"] and module.describe()["test"] == 50_000


def test_generating_needs_mnist(tmp_path):
    with pytest.raises(FileNotFoundError, match="set data.root to the folder that holds MNIST/raw"):
        turned_mnist(tmp_path)


def test_unknown_source():
    with pytest.raises(ValueError, match="source must be 'official' or 'mnist'"):
        RotMNISTDataModule(source="minst")
