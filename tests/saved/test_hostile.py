"""Files whose digest is right and whose content is not: refused in one line, before anything large is made."""

import hashlib
import io
import re
import resource
import time
import zipfile

import pytest
import torch

import gsa
from gsa import cli
from gsa.models import pretrained_folder, read_export, write_export
from gsa.saved import read, write_checkpoint

NAME = "digits_gsa"


def checkpoint_of_the_package(**changes):
    """The network that comes with the package, as a run would have saved it, with some of its keywords changed."""
    config, weights = read_export(pretrained_folder(NAME))
    return {
        "state_dict": {f"network.{name}": value for name, value in weights.items()},
        "hyper_parameters": {"run": {"model": {"_target_": "gsa.create_model", **config["model"], **changes}}},
        "pictures": dict(config["pictures"]),
    }


def refusal(path):
    """What `read` says of a file, in one line and within seconds, without asking for much memory."""
    begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError) as caught:
        read(path)
    assert time.process_time() - begin < 5  # of the process
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes
    message = str(caught.value)
    assert str(path) in message and "\n" not in message and len(message) < 900
    return message


@pytest.mark.parametrize("changes, message", [
    ({"group": "R100000"}, "group of more than 360 rotations"),
    ({"group": "R" + "9" * 5000}, "group of more than 360 rotations"),
    ({"group": "R360M"}, "those of its digits_gsa|make no digits_gsa"),
    ({"neighbourhood": 100_001}, "neighbourhood must be at most 511"),
    ({"group": "R360M", "neighbourhood": 511}, "windows of 511×511 pixels in 720 poses"),
    ({"group": "R360", "neighbourhoods": [3, 255]}, "windows of 255×255 pixels in 360 poses"),
    ({"group": "R360M", "stem_neighbourhood": 37}, "those of its digits_gsa|make no digits_gsa"),
    ({"channels": 10**9}, "channels must be at most 20,"),
    ({"channels": 10**30}, "channels must be at most 20,.* a number of more than 20 digits"),
    ({"channels": 20_000, "num_heads": 20_000, "head_dim": 20_000}, "make no digits_gsa|those of its digits_gsa"),
    ({"blocks": [10**9, 1]}, "blocks must be at most"),
    ({"pools": [0] * 100_000}, "a value of pools that is none of a network"),
    ({"expansion": [4000] * 2}, "make no digits_gsa|those of its digits_gsa"),
    ({"channels": 8}, r"those of its digits_gsa: other shapes: lifting"),
    ({"channels": float("nan")}, "make no digits_gsa: channels must be a positive integer"),
    ({"pools": None}, "make no digits_gsa"),
    ({"dropout": "x"}, "make no digits_gsa"),
    ({"encoding": {"a": 1}}, "a value of encoding that is none of a network"),
    ({"name": "digits_next"}, "not known here, 'digits_next'"),
    ({"name": ["digits_gsa"]}, "not known here, no name"),
    ({"features_only": True}, "not known here, 'features_only'"),
    ({"_target_": ["os.system"]}, "no _target_"),
])  # fmt: skip
def test_keywords_that_ask_for_what_the_weights_are_not(tmp_path, changes, message):
    file = tmp_path / "a.ckpt"
    write_checkpoint(checkpoint_of_the_package(), file)
    read(file)
    write_checkpoint(checkpoint_of_the_package(**changes), file)
    found = refusal(file)
    assert re.search(message, found), found


@pytest.mark.parametrize("key, value", [
    ("image_size", 10**9), ("image_size", "12"), ("num_classes", 10**9), ("num_classes", 3), ("in_channels", 3),
    ("mean", [float("nan")]), ("std", [0.0]), ("mean", 0.5), ("classes", "0123456789"), ("classes", [1] * 10),
    ("newer", 1), ("data", None),
])  # fmt: skip
def test_pictures_that_no_network_knows(tmp_path, key, value):
    checkpoint = checkpoint_of_the_package()
    checkpoint["pictures"][key] = value
    write_checkpoint(checkpoint, tmp_path / "a.ckpt")
    assert "does not say what pictures" in refusal(tmp_path / "a.ckpt")


@pytest.mark.parametrize("version, message", [
    ("99.1", r"made by gsa 99\.1, this is gsa .*install that version"), (None, "made by a newer version than gsa"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["checkpoint", "export"])
def test_keywords_of_a_newer_version_are_named_as_such(tmp_path, monkeypatch, version, message, kind):
    place = tmp_path / "a.ckpt" if kind == "checkpoint" else tmp_path / "export"
    if version:
        monkeypatch.setattr("gsa.saved._checkpoint.VERSION", version)
        monkeypatch.setattr("gsa.models._weight_files.VERSION", version)
    checkpoint = checkpoint_of_the_package(telescope=3)
    if kind == "checkpoint":
        write_checkpoint(checkpoint, place)
    else:
        config, weights = read_export(pretrained_folder(NAME))
        write_export(place, {"model": config["model"] | {"telescope": 3}, "pictures": config["pictures"]}, weights)
    found = refusal(place)
    assert re.search(message, found) and "keywords of digits_gsa that are not known here, 'telescope'" in found


@pytest.mark.parametrize("weight, message", [
    (lambda w: w.expand(1000, *w.shape), "no plain tensors"),
    (lambda w: w.to_sparse(), "no plain tensors|not a whole checkpoint"),
    (lambda w: w.to(torch.complex64), "no plain tensors"),
    (lambda w: w.int(), "of other shapes|those of its"),
    (lambda w: [1.0], "no plain tensors"),
    (lambda w: w * float("inf"), "numbers in head.weight that are not finite"),
    (lambda w: w.double() * 1e300, "numbers in head.weight that are not finite"),
])  # fmt: skip
def test_weights_that_are_none(tmp_path, weight, message):
    checkpoint = checkpoint_of_the_package()
    checkpoint["state_dict"]["network.head.weight"] = weight(checkpoint["state_dict"]["network.head.weight"])
    write_checkpoint(checkpoint, tmp_path / "a.ckpt")
    assert re.search(message, refusal(tmp_path / "a.ckpt"))


def test_weights_that_share_their_numbers(tmp_path):
    checkpoint, shared = checkpoint_of_the_package(), torch.zeros(10_000)
    state = checkpoint["state_dict"]
    state |= {
        name: shared[: value.numel()].view_as(value) for name, value in state.items() if value.is_floating_point()
    }
    write_checkpoint(checkpoint, tmp_path / "a.ckpt")
    assert "share their numbers" in refusal(tmp_path / "a.ckpt")


BYTES = b"\x80\x02c__builtin__\nbytearray\nq\x00\x8a\x05\x00\x00\x00\x00\x02\x85R."  # 8 GB of them

CODED = b"\x80\x02" + 30 * b"c_codecs\nencode\n" + b"X\x01\0\0\0a" + 30 * b"X\x03\0\0\0hex\x86R" + b"."  # 2 GB


def archive(pickled, compression=zipfile.ZIP_STORED, name="data.pkl", others=()):
    """A checkpoint with this pickle in it, as torch writes them, and its digest."""
    with zipfile.ZipFile(stream := io.BytesIO(), "w", compression) as file:
        for record, content in ((name, pickled), ("byteorder", b"little"), ("version", b"3\n"), *others):
            file.writestr(f"archive/{record}", content)
    return with_digest(stream.getvalue())


def with_digest(content):
    return content + b"\nsha256:" + hashlib.sha256(content).hexdigest().encode()


@pytest.mark.parametrize("content, message", [
    (archive(BYTES), "it holds bytes"),
    (archive(BYTES, name="DATA.PKL"), "it holds bytes"),
    (archive(b"\x80\x02}.", others=[("DATA.PKL", BYTES)]), "two records of one name"),
    (archive(CODED), "it holds bytes"),
    (archive(b"\x80\x02N." + bytes(50_000_000), zipfile.ZIP_DEFLATED), "its records are larger than the file"),
    (archive(b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b"."), "lie too deep in one another"),
    (archive(b"\x80\x02}X\x0a\x00\x00\x00state_dictNs."), "has no state_dict"),
], ids=["bytearray", "capitals", "twice", "codecs", "bomb", "lists", "nothing"])  # fmt: skip  # archives hold the time
def test_archives_that_unpack_to_more_than_they_are(tmp_path, content, message):
    (tmp_path / "a.ckpt").write_bytes(content)
    assert message in refusal(tmp_path / "a.ckpt")


def unfolding(levels):
    """A dictionary that holds two of itself one level down: 2ⁿ of them for whoever walks through it."""
    value = {}
    for _ in range(levels):
        value = {"a": value, "b": value}
    return value


@pytest.mark.parametrize("made, message", [
    (lambda: unfolding(40), "holds more than 1,000,000 values"),
    (lambda: (found := []).append(found) or found, "holds more than 1,000,000 values"),
    (lambda: unfolding(10), None),
    (lambda: ["_codecs", "bytearray", "/data/my_codecs"], None),
], ids=["unfolding", "itself", "ten levels", "words"])  # fmt: skip
def test_values_that_hold_one_another_again_and_again(tmp_path, made, message):
    """Planted: as few as may be, and words that mean no bytes."""
    values = {**checkpoint_of_the_package(), "more": made()}
    torch.save(values, stream := io.BytesIO())
    (tmp_path / "a.ckpt").write_bytes(with_digest(stream.getvalue()))
    if message is None:
        read(tmp_path / "a.ckpt")
        write_checkpoint(values, tmp_path / "b.ckpt")
    else:
        assert message in refusal(tmp_path / "a.ckpt")
        with pytest.raises(ValueError, match=f"b.ckpt could not be read again: .*{message}"):
            write_checkpoint(values, tmp_path / "b.ckpt")


@pytest.mark.parametrize("text", ["[]", "3", '{"a": ' * 100_000, '{"model": ' + "9" * 5000 + "}", '{"sha256": 1}', "é"])
def test_configurations_of_an_export_that_are_none(tmp_path, text):
    write_export(tmp_path / "e", {"model": {}, "pictures": {}}, {"w": torch.zeros(1)})
    (tmp_path / "e" / "config.json").write_text(text, encoding="latin-1")
    assert "is not a whole export" in refusal(tmp_path / "e")


@pytest.mark.parametrize("command", [("check",), ("predict", "digit.png"), ("export", "--to", "out")])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_command_takes_a_network_that_is_not_finite(tmp_path, capsys, monkeypatch, command, value):
    monkeypatch.chdir(tmp_path)
    checkpoint = checkpoint_of_the_package()
    checkpoint["state_dict"]["network.lifted.0.running_var"] = torch.full((20,), value)
    assert gsa.create_model(NAME).state_dict()["lifted.0.running_var"].shape == (20,)
    write_checkpoint(checkpoint, "a.ckpt")
    assert cli.main([*command, "--checkpoint", "a.ckpt"]) == 2
    said = capsys.readouterr()
    assert not said.out and "numbers in lifted.0.running_var that are not finite" in said.err
    assert [file.name for file in tmp_path.iterdir()] == ["a.ckpt"]
    with pytest.raises(ValueError, match="numbers in lifted.0.running_var that are not finite"):
        gsa.load("a.ckpt", network=gsa.create_model(NAME))  # of one's own
