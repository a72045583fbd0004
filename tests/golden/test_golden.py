"""Short runs end with the weights of before; runs, checkpoints and exports of before load, go on and are tested."""

import json
import shutil

import pytest
import torch
import yaml
from hydra.utils import get_object
from omegaconf import OmegaConf

import gsa
from gsa.models import Preset
from gsa.runner import train
from gsa.runner._instances import make
from gsa.runner._older import network_as_meant
from gsa.saved import read_checkpoint, write_checkpoint
from tests.golden.freeze import PLACE, STOPPED, short_run
from tests.golden.runs import FROZEN, RUNS, digest, rounding, sizes, weights
from tests.runs import composed

SLOW = ("rotmnist_r4_sa", "pcam_r4m_sa")  # pictures of 28 and 64 pixels
KNOWN = json.loads((FROZEN / "weights.json").read_text())


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def compare(found, digest_there, sizes_there):
    """Bit for bit where this machine rounds like the one that was asked, nearly where it does not.

    Biases that a softmax does not see have gradients of rounding errors, which Adam makes steps of: hence 0.01.
    """
    assert sizes(found) == pytest.approx(sizes_there, rel=0.02, abs=0.01)
    if digest_there is not None:
        assert digest(found) == digest_there


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in RUNS
])  # fmt: skip
def test_short_runs_end_with_the_weights_of_before(name, tmp_path):
    compare(short_run(name, str(tmp_path)), KNOWN["digests"].get(rounding(), {}).get(name), KNOWN["sizes"][name])


def test_other_weights_are_noticed():
    there = {"w": torch.ones(3)}
    other = {"w": torch.tensor([1.0, 1.0, 1.0 + 2**-23])}
    assert digest(other) != digest(there)
    with pytest.raises(AssertionError):
        compare(other, digest(there), sizes(there))
    with pytest.raises(AssertionError):
        compare({"w": torch.full((3,), 1.1)}, None, sizes(there))


@pytest.fixture
def old_run(tmp_path):
    """A copy of the frozen run, whose checkpoints name the place where it was."""

    def moved(value):
        if isinstance(value, dict):
            return {moved(key): moved(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [moved(inner) for inner in value]
        return value.replace(PLACE, str(tmp_path / "run")) if isinstance(value, str) else value

    shutil.copytree(FROZEN / "run", tmp_path / "run")
    for file in (tmp_path / "run" / "checkpoints").iterdir():
        write_checkpoint(moved(read_checkpoint(file)), file)
    return tmp_path / "run"


def test_an_old_run_and_an_old_export_are_loaded():
    pictures = torch.rand(3, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    logits = {key: torch.tensor(value) for key, value in json.loads((FROZEN / "logits.json").read_text()).items()}
    for name in ("run", "export"):
        torch.testing.assert_close(gsa.load(FROZEN / name)(pictures), logits[name])
    program = torch.export.load(FROZEN / "export" / "model.pt2").module()
    torch.testing.assert_close(program(pictures), logits["export"])


def test_an_export_older_than_borders_and_windows_is_loaded_as_it_was(monkeypatch):
    """Its keywords are those of 23 November 2026; `rotmnist_gsa` has others by now, and some that it does not know."""
    pictures = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    logits = torch.tensor(json.loads((FROZEN / "logits.json").read_text())["export_before_borders"])
    folder = FROZEN / "export_before_borders"
    torch.testing.assert_close(gsa.load(folder)(pictures), logits)
    written = json.loads((folder / "config.json").read_text())["model"]
    composed_then = {"_target_": "gsa.create_model"} | written
    trained = make(OmegaConf.create(network_as_meant(composed_then))).eval()
    trained.load_state_dict(gsa.load(folder).state_dict())
    torch.testing.assert_close(trained(pictures), logits)
    monkeypatch.setattr(Preset, "as_written", lambda preset, written: preset.keywords | written)  # planted
    with pytest.raises(AssertionError):
        torch.testing.assert_close(gsa.load(folder)(pictures), logits)


def test_a_configuration_that_states_few_keywords_means_the_network_of_today():
    model = {"_target_": "gsa.create_model", "name": "rotmnist_gsa", "group": "R4", "crops": [1] * 5}
    assert network_as_meant(model) == model


@pytest.mark.parametrize("how", ["auto", "path"])
def test_an_old_run_goes_on_and_ends_as_it_would_have(old_run, how):
    path = "auto" if how == "auto" else f"{old_run}/checkpoints/last.ckpt"
    _, objects = train(composed(*STOPPED, f"ckpt_path={path}", folder=str(old_run)))
    end = json.loads((FROZEN / "run_ends.json").read_text())
    last = read_checkpoint(old_run / "checkpoints" / "last.ckpt")
    compare(weights(last), end["digest"] if end["rounding"] == rounding() else None, end["sizes"])
    if end["rounding"] == rounding():
        assert {key: objects["report"][key] for key in end["report"]} == end["report"]


def test_an_old_configuration_is_trained_as_it_stands(old_run, tmp_path):
    config = OmegaConf.create(yaml.safe_load((old_run / "config.yaml").read_text()))
    config.output_dir = config.trainer.default_root_dir = str(tmp_path / "again")
    for callback in (config.callbacks.best, config.callbacks.last):
        callback.dirpath = str(tmp_path / "again" / "checkpoints")
    assert train(config)[1]["report"]["epochs"] == 3


def test_an_old_run_is_tested(old_run, tmp_path):
    best = f"ckpt_path={old_run}/checkpoints/best.ckpt"
    metrics, _ = train(composed(*STOPPED, "train=false", best, folder=str(tmp_path / "test")))
    assert metrics.keys() == {
        f"{part}/{name}" for part in ("val", "test") for name in ("accuracy", "balanced_accuracy")
    }


def test_names_in_old_configurations_are_still_there():
    for name in ("gsa.training.ddp", "gsa.training.warmup_cosine", "gsa.training.constant", "gsa.training.steps",
                 "gsa.cli.RefuseBadConfig", "gsa.create_model", "gsa.data.DigitsDataModule"):  # fmt: skip
        assert callable(get_object(name))
