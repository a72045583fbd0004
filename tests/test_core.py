"""What `pip install gsa-nets` brings is enough for layers, networks, trained weights, exports, first commands."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gsa

ROOT = Path(gsa.__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODULES = {
    "hydra-core": "hydra",
    "scikit-learn": "sklearn",
    "Pillow": "PIL",
    "PyYAML": "yaml",
    "filelock": None,
    "python-dotenv": "dotenv",
}
WITHOUT = """
import sys
from importlib.machinery import PathFinder
class Others:
    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in {missing!r} else PathFinder.find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Others()
"""


def test_what_needs_another_system_is_told_from_what_is_not_installed():
    code = WITHOUT.format(missing={"fcntl"}) + "from gsa import cli; cli.train()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = "gsa-train: this needs Linux or macOS, on Windows WSL, as there is no fcntl here\n"
    assert (done.returncode, done.stderr) == (2, said)


def with_the_core_alone(code: str, folder: Path) -> subprocess.CompletedProcess:
    """Run code where nothing can be imported that the extras `train` and `hub` bring (filelock comes with torch)."""
    extras = PROJECT["optional-dependencies"]
    names = [re.match(r"[\w.-]+", line)[0] for line in extras["train"] + extras["hub"]]
    missing = {MODULES.get(name, name.replace("-", "_")) for name in names}
    code = WITHOUT.format(missing=missing) + code
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


LIBRARY = f"""
import torch, gsa
images = torch.rand(2, 3, 12, 12)
lifting = gsa.nn.LiftingSelfAttention(gsa.group("R4"), in_channels=3, out_channels=8)
gsa.symmetry.assert_equivariant(lifting, images, gsa.group("R4"))
gsa.nn.replace_convolutions(torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1)), gsa.group("R4"))(images)
assert gsa.create_model("digits_gsa", pretrained=True).eval()(images[:, :1]).shape == (2, 10)
for place in ("run", "export"):
    gsa.load({str(ROOT / "tests/golden/frozen")!r} + "/" + place)(images[:, :1])
gsa.saved.export(gsa.saved.read("digits_gsa"), "there")
from gsa import cli
assert cli.main(["list"]) == 0 and cli.main(["check", "--checkpoint", "there"]) == 0
assert cli.main(["predict", "a.png"]) == 2
cli.train()
"""


def test_layers_networks_weights_and_exports_need_the_core_alone(tmp_path):
    done = with_the_core_alone(LIBRARY, tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.endswith('gsa-train: hydra is not installed: pip install "gsa-nets[train]"\n')
    assert 'rotmnist_vit: torchvision is not installed: pip install "gsa-nets[train]"' in done.stderr
    assert 'gsa: rich is not installed: pip install "gsa-nets[train]"' in done.stderr
    assert "rotmnist_gsa" in done.stdout and "rotmnist_vit" not in done.stdout


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("import gsa.runner", "train"),
        ("import gsa.training", "train"),
        ("import gsa; gsa.data", "train"),
        ("import gsa.report", "train"),
        ("import gsa.hub", "hub"),
        ("import gsa; gsa.viz.draw_learning([])", "train"),
        ("import lightning", None),  # planted
    ],
)
def test_what_is_missing_is_named_with_the_extra_that_brings_it(tmp_path, code, extra):
    done = with_the_core_alone(code, tmp_path)
    said = re.search(r'^ModuleNotFoundError: \w+ is not installed: pip install "gsa-nets\[(\w+)\]"$', done.stderr, re.M)
    assert done.returncode == 1 and "ModuleNotFoundError" in done.stderr
    assert (said and said[1]) == extra
