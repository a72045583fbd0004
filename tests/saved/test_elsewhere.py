"""Exports that run without gsa: in PyTorch's own operators, and as ONNX."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

import gsa
from gsa import cli
from gsa.models import write_export
from gsa.saved import export, read

NETWORKS = {
    "digits_gsa": {},  # with heads of positions
    "digits_r4_sa": {},
    "rotmnist_r4_sa": {"group": "R8", "form": "regular", "neighbourhood": 3, "channels": 8},
    "rotmnist_z2_sa": {"group": "Z2M", "neighbourhood": None, "channels": 8},  # all pixels
    "rotmnist_r4_cnn": {},
    "cifar10_gsa": {
        "blocks": (0, 0, 1),
        "neighbourhoods": (5,),
        "expansion": (1, 1, 2),
    },  # heads of positions as matrices
}
QUICK = ["digits_gsa"]
ALL = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NETWORKS]
ALONE = """
import sys, torch
images, logits = torch.load(sys.argv[2])
found = torch.export.load(sys.argv[1]).module()(images)
assert not [name for name in sys.modules if name.split(".")[0] == "gsa"]
torch.testing.assert_close(found, logits, rtol=1e-4, atol=1e-4)
"""


def unpacked(file):
    """All bytes of a file, of those in it if it is an archive."""
    if not zipfile.is_zipfile(file):
        return file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        return b"".join(map(archive.read, archive.namelist()))


def exported(tmp_path, name, **formats):
    """An export of a network with weights at random, its pictures, three of them and their logits."""
    torch.manual_seed(0)
    network = gsa.create_model(name, **NETWORKS[name])
    channels, side = {"digits": (1, 12), "rotmnist": (1, 28), "cifar10": (3, 32)}[gsa.models.preset(name).data]
    pictures = {"data": "d", "in_channels": channels, "image_size": side, "num_classes": 10, "mean": [0.5] * channels,
                "std": [0.5] * channels, "classes": list("0123456789")}  # fmt: skip
    write_export(
        tmp_path / "whole", {"model": {"name": name} | NETWORKS[name], "pictures": pictures}, network.state_dict()
    )
    *_, file = export(read(tmp_path / "whole"), tmp_path / "elsewhere", **formats)
    assert not any(str(Path(place).parent).encode() in unpacked(file) for place in (gsa.__file__, torch.__file__))
    images = torch.rand(3, channels, side, side)
    with torch.no_grad():
        return file, images, network.eval()(images)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_plain_program_runs_without_gsa_for_any_batch(tmp_path, name):
    file, images, logits = exported(tmp_path, name, plain=True)
    torch.save((images, logits), tmp_path / "expected")
    subprocess.run([sys.executable, "-c", ALONE, file, tmp_path / "expected"], check=True, cwd=tmp_path)


@pytest.mark.parametrize("name", ALL)
def test_onnx_gives_the_same_logits_for_any_batch(tmp_path, name):
    runtime = pytest.importorskip("onnxruntime")
    file, images, logits = exported(tmp_path, name, onnx=True)
    session = runtime.InferenceSession(file)
    (given,) = session.get_inputs()
    assert given.name == "images" and [output.name for output in session.get_outputs()] == ["logits"]
    for batch in (1, 3):
        (found,) = session.run(None, {given.name: images[:batch].numpy()})
        torch.testing.assert_close(torch.from_numpy(found), logits[:batch], rtol=1e-4, atol=1e-4)


def test_a_missing_package_is_named_before_anything_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("gsa.saved._export.find_spec", lambda name: None)
    assert cli.main(["export", "--checkpoint", "digits_gsa", "--to", str(tmp_path / "new"), "--onnx"]) == 2
    assert 'pip install "gsa-nets[onnx]"' in capsys.readouterr().err and not (tmp_path / "new").exists()
