"""The official archive in its layout, and everything that can be wrong with it and its cache."""

import hashlib
import os
import time
import zipfile
from multiprocessing import get_context

import numpy
import pytest
import torch

from gsa.data import RotMNISTDataModule
from gsa.data import _amat as amat
from gsa.data import _cache as cache

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
    pictures, labels = cache.read_cache(tmp_path, rows=17)
    _, pixels, expected = rows(12)
    torch.testing.assert_close(pictures[:12].double(), torch.from_numpy(pixels).view(-1, 1, 28, 28), atol=3e-4, rtol=0)
    assert labels[:12].tolist() == expected.tolist() and pictures.shape == (17, 1, 28, 28)
    assert visible(tmp_path) == {amat.ARCHIVE, "rotmnist_pictures.npy", "rotmnist_labels.npy", "rotmnist_digests.json"}
    (tmp_path / amat.ARCHIVE).unlink()
    amat.prepare_archive(tmp_path, md5=md5, members=ROWS)  # the cache is enough


def test_the_module_splits_the_official_rows(tmp_path):
    for file, array in zip(
        cache.cache_files(tmp_path),
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


def prepares(root, md5, notes):
    """In a process of its own: every file that is renamed is noted, and takes a while."""
    rename = os.replace

    def slow(*arguments):
        notes.write_text(notes.read_text() + "renames ")
        time.sleep(0.5)
        rename(*arguments)

    os.replace = slow
    amat.prepare_archive(root, md5=md5, members=ROWS)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("first_dies", [False, True])
def test_one_process_prepares_the_others_wait_and_a_dead_one_is_no_obstacle(tmp_path, first_dies):
    root, notes = tmp_path / "root", [tmp_path / "first", tmp_path / "second"]
    root.mkdir()
    md5 = write(root, official())
    processes = [get_context("fork").Process(target=prepares, args=(root, md5, note)) for note in notes]
    for process, note in zip(processes, notes, strict=True):
        note.write_text("")
        process.start()
        while not notes[0].read_text():
            time.sleep(0.01)
    if first_dies:
        processes[0].kill()
    processes[0].join()
    assert len(list(root.glob(".*.part"))) == first_dies
    processes[1].join(60)
    assert processes[1].exitcode == 0 and notes[1].read_text().count("renames") == (3 if first_dies else 0)
    assert cache.read_cache(root, rows=17)[0].shape == (17, 1, 28, 28)
    assert visible(root) == {amat.ARCHIVE, "rotmnist_pictures.npy", "rotmnist_labels.npy", "rotmnist_digests.json"}


def test_a_prepared_folder_that_is_read_only_is_enough(tmp_path, monkeypatch):
    md5 = write(tmp_path, official())
    amat.prepare_archive(tmp_path, md5=md5, members=ROWS)

    def refuse(*arguments):
        raise PermissionError("read-only")

    monkeypatch.setattr(amat, "alone_in", refuse)  # the first thing that would be written
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
    pictures, labels = cache.cache_files(tmp_path)
    canary = tmp_path / "canary"
    numpy.save(labels, numpy.zeros(62_000, numpy.uint8))
    numpy.save(pictures, numpy.array([Canary(canary)], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not a cache of numbers"):
        cache.read_cache(tmp_path)
    torch.save(Canary(canary), pictures)
    with pytest.raises(ValueError, match="not a cache of numbers"):
        cache.read_cache(tmp_path)
    assert not canary.exists()
    torch.load(pictures, weights_only=False)  # the plant: loaded trustingly, it does run
    assert canary.exists()


def prepared(root):
    md5 = write(root, official())
    amat.prepare_archive(root, md5=md5, members=ROWS)
    return cache.cache_files(root)


@pytest.mark.parametrize("which", [0, 1])
def test_another_bit_in_the_cache_is_noticed(tmp_path, which):
    file = prepared(tmp_path)[which]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"{file.name} is not .* SHA-256 should be .*, but is .*; delete it"):
        cache.read_cache(tmp_path, rows=17)
    (tmp_path / "rotmnist_digests.json").write_text("[1]")
    with pytest.raises(ValueError, match="digests.json does not hold digests"):
        cache.read_cache(tmp_path, rows=17)


def test_a_cache_without_digests_is_read(tmp_path):
    prepared(tmp_path)
    before = cache.read_cache(tmp_path, rows=17)
    (tmp_path / "rotmnist_digests.json").unlink()
    assert all(torch.equal(a, b) for a, b in zip(before, cache.read_cache(tmp_path, rows=17), strict=True))


def test_sizes_in_a_cache_are_not_believed(tmp_path):
    file = prepared(tmp_path)[0]
    (tmp_path / "rotmnist_digests.json").unlink()
    content = file.read_bytes()
    file.write_bytes(content.replace(b"(17, 784)", b"(99999999, 784)"))
    with pytest.raises(ValueError, match="should hold .17, 784. of float16|not a cache"):
        cache.read_cache(tmp_path, rows=17)
    file.write_bytes(content)
    os.truncate(file, 1 << 40)  # without storage
    with pytest.raises(ValueError, match="at most 92,192 bytes were expected, but it has 1,099,511,627,776"):
        cache.read_cache(tmp_path, rows=17)


def test_unknown_source():
    with pytest.raises(ValueError, match="source must be 'official' or 'mnist'"):
        RotMNISTDataModule(source="minst")
