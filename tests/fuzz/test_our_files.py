"""Damaged copies of what a run writes and reads again: read as before, or refused in one named line."""

import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from safetensors.torch import save

from gsa.files import signed
from gsa.models import pretrained_folder, read_export
from gsa.report import read_report, write_report
from gsa.runner._config_file import read_config, write_config
from gsa.saved import read, write_checkpoint
from tests.fuzz.edits import edits
from tests.runs import SMALL, composed

MARK = b"\nsha256:"
FEW, MANY = 10, 200
CONFIG, WEIGHTS = read_export(pretrained_folder("digits_gsa"))


def state_of(path):
    """What `read` makes of a file, to be compared."""
    saved = read(path)
    return saved.network.state_dict(), saved.pictures, saved.network.group


def same(found, expected):
    """Bit for bit."""
    if isinstance(expected, torch.Tensor):
        return torch.equal(found, expected)
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, tuple):
        return all(map(same, found, expected))
    return found == expected


def outcome(function, path, expected):
    """What has become of a file: "identical", "refused", or a sentence of what should not have been."""
    try:
        return "identical" if same(function(path), expected) else "other values"
    except (ValueError, OSError) as error:
        message = str(error)
        folder = str(path if path.is_dir() else path.parent)
        named = "\n" not in message and folder in message and len(message) < 1200
        return "refused" if named else f"not in one named line: {message}"
    except BaseException as error:
        return f"a traceback: {type(error).__name__}: {error}"


def sealed(content):
    """With the digest that a checkpoint of this content has."""
    return content + MARK + hashlib.sha256(content).hexdigest().encode()


def checkpoint(place):
    file = place / "a.ckpt"
    run = {"model": {"_target_": "gsa.create_model", **CONFIG["model"]}}
    state = {f"network.{name}": value for name, value in WEIGHTS.items()}
    write_checkpoint({"state_dict": state, "hyper_parameters": {"run": run}, "pictures": CONFIG["pictures"]}, file)
    return file


def of_checkpoint(place):
    """A checkpoint as it is."""
    file = checkpoint(place)
    return file, state_of, file.read_bytes(), file.write_bytes


def of_checkpoint_signed_again(place):
    """The archive inside, with a digest that is right."""
    file = checkpoint(place)
    return file, state_of, file.read_bytes().rpartition(MARK)[0], lambda content: file.write_bytes(sealed(content))


def of_pickle_signed_again(place):
    """The pickle inside the archive, which is whole, with a digest that is right."""
    file = checkpoint(place)
    with zipfile.ZipFile(io.BytesIO(file.read_bytes().rpartition(MARK)[0])) as archive:
        records = [(name, archive.read(name)) for name in archive.namelist()]

    def write(pickled):
        with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
            for name, content in records:
                archive.writestr(name, pickled if name.endswith("data.pkl") else content)
        file.write_bytes(sealed(stream.getvalue()))

    return file, state_of, next(content for name, content in records if name.endswith("data.pkl")), write


def of_weights(place):
    """model.safetensors of an export."""
    return of_export(place, "model.safetensors")


def of_keywords(place):
    """config.json of an export."""
    return of_export(place, "config.json")


def of_export(place, name):
    for file in pretrained_folder("digits_gsa").iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    return place, state_of, (place / name).read_bytes(), (place / name).write_bytes


def of_weights_signed_again(place):
    """model.safetensors, with a digest in config.json that is right."""
    of_export(place, "config.json")
    written = {key: CONFIG[key] for key in ("model", "pictures")}

    def write(content):
        (place / "model.safetensors").write_bytes(content)
        (place / "config.json").write_bytes(signed(written, content))

    return place, state_of, save(WEIGHTS), write


def of_configuration(place):
    """config.yaml."""
    config = composed(*SMALL, "seed=7", folder=place)
    write_config(OmegaConf.to_yaml(config, resolve=True), place)
    file = place / "config.yaml"
    return file, read_config, file.read_bytes(), file.write_bytes


def of_report(place):
    """report.json."""
    write_report({"val_accuracy": 0.5, "test_accuracy": None, "history": [{"loss": 0.1, "seconds": 3}]}, place)
    return place, read_report, (place / "report.json").read_bytes(), (place / "report.json").write_bytes


# What is compared with a digest is identical or refused. Whoever can compute the digest can change values; those are
# finite and of the network all the same.
GUARDED = (of_checkpoint, of_weights, of_keywords, of_configuration, of_report)
SIGNED_AGAIN = (of_checkpoint_signed_again, of_pickle_signed_again, of_weights_signed_again)


def outcomes(file_of, place, count, seed=0):
    path, function, content, write = file_of(place)
    write(content)
    expected = function(path)
    for damaged in edits(content, count, seed):
        write(damaged)
        yield outcome(function, path, expected)


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("file_of", GUARDED + SIGNED_AGAIN)
def test_a_damaged_file_is_read_as_before_or_refused_in_one_line(file_of, tmp_path, count):
    allowed = {"identical", "refused"} | ({"other values"} if file_of in SIGNED_AGAIN else set())
    found = list(outcomes(file_of, tmp_path, count))
    assert set(found) <= allowed, set(found) - allowed
    assert "refused" in found


def trusting(path, beside=b""):
    """`read_signed`, which compares nothing."""
    values = json.loads(path.read_bytes())
    return {key: value for key, value in values.items() if key != "sha256"}, True


PLANTS = {
    of_checkpoint: {"gsa.saved._checkpoint._verified": lambda path: Path(path).read_bytes().rpartition(MARK)[0]},
    of_weights: {"gsa.models._weight_files.read_signed": trusting},
    of_configuration: {"gsa.runner._config_file._MARK": b"# nothing of the kind"},
    of_report: {"gsa.report._description.read_signed": trusting},
}


@pytest.mark.parametrize("file_of", PLANTS)
def test_without_its_digest_damage_is_not_noticed(file_of, tmp_path, monkeypatch):
    """The plant: a reader that compares nothing."""
    made = file_of(tmp_path)
    for name, broken in PLANTS[file_of].items():
        monkeypatch.setattr(name, broken)
    assert set(outcomes(lambda place: made, tmp_path, 40)) - {"identical", "refused"}
