"""PatchCamelyon files in the official layout."""

import shutil

import h5py
import numpy
import pytest
import torch

from gsa.data import PCamDataModule


def write_pcam(root, count=6, edit=None):
    """Six files as they are published: x [N, 96, 96, 3] and y [N, 1, 1, 1], both uint8."""
    (root / "pcam").mkdir(parents=True)
    random = numpy.random.default_rng(0)
    for part in ("train", "valid", "test"):
        arrays = {
            "x": random.integers(0, 256, (count, 96, 96, 3), dtype=numpy.uint8),
            "y": (numpy.arange(count) % 2).astype(numpy.uint8).reshape(-1, 1, 1, 1),
        }
        if edit:
            edit(part, arrays)
        for key, array in arrays.items():
            with h5py.File(root / "pcam" / f"camelyonpatch_level_2_split_{part}_{key}.h5", "w") as file:
                file[key] = array


def test_patches_and_labels_are_read(tmp_path):
    write_pcam(tmp_path)
    module = PCamDataModule(tmp_path, batch_size=2)
    module.setup()
    images, labels = next(iter(module.val_dataloader()))
    assert images.shape == (6, 3, 96, 96) and labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert module.describe() == {"name": "pcam", "source": "official files", "train": 6, "val": 6, "test": 6}


def test_a_batch_is_read_at_once(tmp_path, monkeypatch):
    write_pcam(tmp_path)
    module = PCamDataModule(tmp_path, batch_size=4, augmentation=["turns", "crops"])
    module.setup()
    part, keys, opened = module.parts["train"], [(1, 5), (0, 2), (1, 0)], []
    alone = [part[key] for key in keys]
    original = h5py.File
    monkeypatch.setattr(h5py, "File", lambda *arguments: opened.append(arguments) or original(*arguments))
    together = part.__getitems__(keys)
    assert len(opened) == 1
    for picture, label, (expected, own) in zip(*together, alone, strict=True):
        assert torch.equal(picture, expected) and label == own


def label_two(part, arrays):
    if part == "valid":
        arrays["y"][4] = 2


@pytest.mark.parametrize(
    "edit, message",
    [
        (label_two, "split_valid_y.h5, row 4: labels must be 0 or 1, but got 2"),
        (
            lambda part, a: a.update(x=a["x"][:, :64]),
            r"train_x.h5 is not .*: it should hold 'x': \(N, 96, 96, 3\) of uint8",
        ),
        (lambda part, a: a.update(x=a["x"].astype(float)), "of uint8, but holds .* of float64"),
        (lambda part, a: a.update(y=a["y"][:3]), "holds 6 patches, but .* 3 labels"),
    ],
)
def test_wrong_files_are_named_before_training(tmp_path, edit, message):
    write_pcam(tmp_path, edit=edit)
    with pytest.raises(ValueError, match=message):
        PCamDataModule(tmp_path, batch_size=2).setup()


def test_a_cut_file_is_named(tmp_path):
    write_pcam(tmp_path)
    file = tmp_path / "pcam" / "camelyonpatch_level_2_split_test_x.h5"
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(ValueError, match="test_x.h5 is not a file of PatchCamelyon: .*truncated"):
        PCamDataModule(tmp_path, batch_size=2).setup()


def external_storage(file, outside):
    file.create_dataset("y", (6, 1, 1, 1), "u1", external=[(str(outside), 0, 6)])


def external_link(file, outside):
    with h5py.File(outside, "w") as other:
        other["y"] = numpy.zeros((6, 1, 1, 1), numpy.uint8)
    file["y"] = h5py.ExternalLink(str(outside), "/y")


def soft_link(file, outside):
    with h5py.File(outside, "w") as other:
        other["y"] = numpy.zeros((6, 1, 1, 1), numpy.uint8)
    file["there"], file["y"] = h5py.ExternalLink(str(outside), "/"), h5py.SoftLink("/there/y")


def virtual(file, outside):
    layout = h5py.VirtualLayout((6, 1, 1, 1), "u1")
    layout[:] = h5py.VirtualSource(str(outside), "y", shape=(6, 1, 1, 1))
    file.create_virtual_dataset("y", layout)


def never_stored(file, outside):
    file.create_dataset("y", (6, 1, 1, 1), "u1")


def chunks_left_out(file, outside):
    file.create_dataset("y", (6, 1, 1, 1), "u1", chunks=(3, 1, 1, 1), compression="gzip")[:3] = 0


@pytest.mark.parametrize(
    "make, message",
    [
        (external_storage, "it should hold 'y' itself, but refers to other files"),
        (external_link, "it should hold 'y': "),
        (soft_link, "it should hold 'y': "),
        (virtual, "it should hold 'y' itself, but refers to other files"),
        (never_stored, "it declares 6 bytes, but has .*, of which 0 hold them"),
        (chunks_left_out, "it declares 6 bytes, but has"),
    ],
)
def test_what_is_not_in_the_file_is_not_read(tmp_path, make, message):
    write_pcam(tmp_path)
    (tmp_path / "outside").write_bytes(bytes(6))
    with h5py.File(tmp_path / "pcam" / "camelyonpatch_level_2_split_train_y.h5", "w") as file:
        make(file, tmp_path / "outside")
    with pytest.raises(ValueError, match=f"train_y.h5 is not a file of PatchCamelyon: {message}"):
        PCamDataModule(tmp_path, batch_size=2).setup()


def test_a_small_file_that_declares_much_is_refused_before_it_is_read(tmp_path):
    write_pcam(tmp_path)
    for key, item in (("x", (96, 96, 3)), ("y", (1, 1, 1))):
        with h5py.File(tmp_path / "pcam" / f"camelyonpatch_level_2_split_train_{key}.h5", "w") as file:
            file.create_dataset(key, (10**11, *item), "u1", chunks=(1000, *item), compression="gzip")
    with pytest.raises(ValueError, match="it declares 2,764,800,000,000,000 bytes, but has"):
        PCamDataModule(tmp_path, batch_size=2).setup()


def test_a_chunk_that_unpacks_to_much_is_refused(tmp_path):
    write_pcam(tmp_path, count=1)
    chunk = (10_000, 96, 96, 3)
    with h5py.File(tmp_path / "pcam" / "camelyonpatch_level_2_split_train_x.h5", "w") as file:
        file.create_dataset("x", (1, 96, 96, 3), "u1", chunks=chunk, maxshape=(None, 96, 96, 3))[:] = 0
    with pytest.raises(ValueError, match="chunks must have at most 268,435,456 bytes"):
        PCamDataModule(tmp_path, batch_size=1).setup()


def test_compressed_files_are_read(tmp_path):
    write_pcam(tmp_path)
    file = tmp_path / "pcam" / "camelyonpatch_level_2_split_test_x.h5"
    with h5py.File(file) as opened:
        pictures = opened["x"][:]
    with h5py.File(file, "w") as opened:
        opened.create_dataset("x", data=pictures, chunks=(4, 96, 96, 3), compression="gzip")
    module = PCamDataModule(tmp_path, batch_size=2)
    module.setup()
    assert torch.equal(module.parts["test"].first(6)[0], torch.from_numpy(pictures).movedim(-1, 1) / 255)
    with pytest.raises(IndexError):
        module.parts["test"].dataset[6]


def test_damage_that_is_met_later_is_named(tmp_path):
    write_pcam(tmp_path)
    module = PCamDataModule(tmp_path, batch_size=2)
    module.setup()
    (tmp_path / "pcam" / "camelyonpatch_level_2_split_test_x.h5").write_bytes(b"")
    with pytest.raises(ValueError, match="test_x.h5 is not a file of PatchCamelyon"):
        module.parts["test"][0]


def stem(root, part):
    return root / "pcam" / f"camelyonpatch_level_2_split_{part}"


def test_without_files_it_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="data.download=true"):
        PCamDataModule(tmp_path).setup()
    write_pcam(tmp_path)
    with pytest.raises(FileNotFoundError, match="train_x.h5 is not there, but is in .*: set data.root"):
        PCamDataModule(tmp_path / "pcam").setup()
    file = stem(tmp_path, "valid_y.h5")
    file.rename(f"{file}.gz")
    with pytest.raises(FileNotFoundError, match="valid_y.h5 is not there, but .*valid_y.h5.gz is: gunzip"):
        PCamDataModule(tmp_path).setup()


def test_files_that_are_copies_of_one_another_are_refused(tmp_path):
    write_pcam(tmp_path)
    for key in "xy":
        shutil.copy(stem(tmp_path, f"train_{key}.h5"), stem(tmp_path, f"test_{key}.h5"))
    with pytest.raises(ValueError, match="no pictures in common, but .*train_x.h5 and .*test_x.h5 hold the same"):
        PCamDataModule(tmp_path).setup()


@pytest.mark.parametrize("key, row", [("x", 3), ("y", 1)])
def test_other_files_are_told_by_their_digests(tmp_path, key, row):
    """By which a run that goes on refuses them."""
    write_pcam(tmp_path)
    (module := PCamDataModule(tmp_path, batch_size=2)).setup()
    before = dict(module.digests)
    with h5py.File(stem(tmp_path, f"valid_{key}.h5"), "r+") as file:
        file[key][row] = (255 if key == "x" else 1) - file[key][row]
    (module := PCamDataModule(tmp_path, batch_size=2)).setup()
    assert [part for part in before if module.digests[part] != before[part]] == ["val"]


def test_archives_are_not_kept(tmp_path, monkeypatch):
    def unpacked(root, split, download):
        if split == "train":
            write_pcam(tmp_path)
            for file in list((tmp_path / "pcam").iterdir()):
                file.with_name(f"{file.name}.gz").write_bytes(b"")

    monkeypatch.setattr("gsa.data._pcam.PCAM", unpacked)
    (module := PCamDataModule(tmp_path, download=True, batch_size=2)).prepare_data()
    module.setup()
    assert len(list((tmp_path / "pcam").glob("*.h5"))) == 6 and not list((tmp_path / "pcam").glob("*.gz"))
