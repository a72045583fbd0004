"""config.yaml and report.json, as a run reads them again: whole, or named in one line and passed over."""

import json

import pytest
from omegaconf import OmegaConf

from gsa.report import read_report, write_report
from gsa.runner import train
from gsa.runner._config_file import read_config, write_config
from gsa.runner._resume import finished_report

REPORT = {"val_accuracy": 0.5, "test_accuracy": None, "history": [{"loss": 0.5}]}


@pytest.fixture
def folder(configure, tmp_path):
    config = configure("model=rotmnist_z2_sa", "ckpt_path=auto", "seed=7")
    (tmp_path / "run").mkdir()
    write_config(OmegaConf.to_yaml(config, resolve=True), tmp_path / "run")
    write_report(REPORT, tmp_path / "run")
    return tmp_path / "run"


def refusal(function, place):
    with pytest.raises(ValueError) as caught:
        function(place)
    message = str(caught.value)
    assert str(place) in message and "\n" not in message and len(message) < 900
    return message


def test_what_is_written_is_what_is_read(folder, configure):
    assert read_report(folder) == REPORT and json.loads((folder / "report.json").read_text()).items() > REPORT.items()
    config = configure("model=rotmnist_z2_sa", "ckpt_path=auto", "seed=7")
    assert read_config(folder / "config.yaml") == config == OmegaConf.load(folder / "config.yaml")
    assert finished_report(config) == REPORT


def test_what_is_not_finite_is_null(tmp_path):
    """Of other programs' parsers few read NaN."""

    def refuse(constant):
        raise AssertionError(constant)

    write_report(REPORT | {"history": [{"loss": float("nan")}, {"loss": float("inf")}]}, tmp_path)
    values = json.loads((tmp_path / "report.json").read_text(), parse_constant=refuse)
    assert values["history"] == [{"loss": None}, {"loss": None}] == read_report(tmp_path)["history"]


@pytest.mark.parametrize("change, message", [
    (lambda c: c[: len(c) // 2], "expected the digest"),
    (lambda c: c.replace(b"seed: 7", b"seed: 8"), r"by hand or by damage: .*hydra\.run\.dir"),
    (lambda c: c.partition(b"\n")[2][:700].rpartition(b"\n")[0], "no value of"),
    (lambda c: b"", "no value of data"),
    (lambda c: b"\xff\xfe\x00", "codec can't decode"),
    (lambda c: b"[" * 100_000, "nested too deeply"),
    (lambda c: b"a: " + b"{a: " * 5_000, "nested too deeply"),
    (lambda c: b"a: &a [1, 1]\nb: &b [*a, *a]", "values that repeat others"),
    (lambda c: b"seed: " + b"9" * 5000, "integer string conversion"),
    (lambda c: c.partition(b"\n")[2].replace(b"seed: 7", b"seed: seven"), "a wrong value of seed"),
    (lambda c: b"data: 1\nmodel: 1\noptimizer: 1\nscheduler: 1\ntrainer: 1\nseed: 1", "a wrong value of data"),
    (lambda c: b"- 1", "no value of data"),
    (lambda c: b"seed: 2001-99-99", "not the configuration"),
    (lambda c: b"seed: ${", "not the configuration"),
])  # fmt: skip
def test_a_damaged_configuration_is_named_and_passed_over(folder, configure, change, message):
    file = folder / "config.yaml"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(ValueError, match=message):
        read_config(file)
    refusal(lambda _: read_config(file), file)
    assert finished_report(configure("model=rotmnist_z2_sa", "ckpt_path=auto", "seed=7")) is None


@pytest.mark.parametrize("tag", ["python/object/apply:os.mkdir", "python/object/new:os.mkdir", "python/name:os.mkdir"])
def test_no_code_in_a_configuration_runs(folder, tmp_path, tag):
    (folder / "config.yaml").write_text(f"seed: !!{tag} ['{tmp_path / 'canary'}']\n")
    assert "could not determine a constructor" in refusal(read_config, folder / "config.yaml")
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize("change, message", [
    (lambda c: c[:-20], "is damaged"),
    (lambda c: c.replace(b"0.5", b"0.6"), "has changed; expected the digest"),
    (lambda c: b"[" * 100_000, "is damaged"),
    (lambda c: b"[]", "is damaged"),
    (lambda c: b"{}", "no number at val_accuracy"),
    (lambda c: b'{"val_accuracy": "1", "test_accuracy": 1}', "no number at val_accuracy"),
    (lambda c: b"\xff", "is damaged"),
    (lambda c: b"9" * 5000, "is damaged"),
])  # fmt: skip
def test_a_damaged_report_is_named_and_its_run_not_called_finished(folder, configure, change, message):
    file = folder / "report.json"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(ValueError, match=message):
        read_report(folder)
    refusal(lambda _: read_report(folder), file)
    assert finished_report(configure("model=rotmnist_z2_sa", "ckpt_path=auto", "seed=7")) is None


@pytest.mark.parametrize("name", ["config.yaml", "report.json"])
def test_a_run_goes_on_from_its_checkpoint_whatever_is_damaged_beside_it(small, tmp_path, capsys, name):
    """With a seed that was drawn, which the checkpoint knows; and with other values it is still another run."""
    train(small("trainer.max_epochs=1", "ckpt_path=auto", "seed=null"))
    file = tmp_path / "run" / name
    file.write_bytes(file.read_bytes()[:-30])
    before = read_report(tmp_path / "run") if name == "config.yaml" else None
    with pytest.raises(ValueError, match=r"other values of optimizer\.lr"):
        train(small("trainer.max_epochs=1", "ckpt_path=auto", "seed=null", "optimizer.lr=0.5"))
    train(small("trainer.max_epochs=1", "ckpt_path=auto", "seed=null"))
    said = capsys.readouterr().out
    assert said.count("passed over") == 1 and str(file) in said and "going on from" in said
    after = read_report(tmp_path / "run")
    assert after["epochs"] == 1 and (before is None or after["test_accuracy"] == before["test_accuracy"])
    assert read_config(tmp_path / "run" / "config.yaml").seed == after["seed"]
