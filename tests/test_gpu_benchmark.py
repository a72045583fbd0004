"""The command for the first day on a GPU works, and sees a kernel that is wrong."""

import argparse
import json
import sys
from pathlib import Path

import pytest
import torch

import gsa
from gsa.ops import _registry

sys.path.insert(0, str(Path(gsa.__file__).parent.parent / "benchmarks"))
import _correct
import _scaling
import _training_step
import gpu


@pytest.fixture
def one_case(monkeypatch):
    monkeypatch.setattr(_correct, "FORMS", {"regular": _correct.FORMS["regular"]})
    monkeypatch.setattr(_training_step, "REPEATS", 1)
    monkeypatch.setattr(gpu, "device_counts", lambda device: [1])
    monkeypatch.setattr(gpu, "cases", lambda quick: iter([("R4_CNN", 2, "eager")]))


def run(folder):
    code = gpu.main(argparse.Namespace(out=folder, device="cpu", quick=True, minutes=1.0))
    rows = [json.loads(line) for line in (folder / "gpu.jsonl").read_text().splitlines()]
    return code, [row for row in rows if row["kind"] == "right"], [row for row in rows if row["kind"] == "timed"]


def test_comparisons_then_times_are_written(one_case, tmp_path):
    code, right, (timed,) = run(tmp_path)
    assert code == 0 and len(right) >= 4 and all(row["right"] for row in right)
    assert timed["step"] > 0 and timed["epoch"] == timed["step"] * 5000
    text = (tmp_path / "gpu.md").read_text()
    assert "torch" in text and "triton" in text and "| R4_CNN | 2 | eager | " in text
    assert (tmp_path / "gpu.png").stat().st_size > 1000


@pytest.mark.parametrize("wrong", ["forward", "backward", "missing"])
def test_a_wrong_kernel_is_seen(one_case, tmp_path, monkeypatch, wrong):
    tiled = _registry._BACKENDS["tiled"]

    def forward(call):
        if wrong == "missing":
            raise RuntimeError("no kernel image")
        return tiled.forward(call) * (1 + 1e-3 * (wrong == "forward"))

    def backward(grad, call, needed):
        *others, pose = tiled.backward(grad, call, needed)
        return *others, pose * (1 + 1e-3 * (wrong == "backward"))

    monkeypatch.setitem(_registry._BACKENDS, "tiled", _registry.Backend(forward, backward, tiled.refusal, ""))
    code, right, timed = run(tmp_path)
    planted = [row for row in right if row["backend"] == "tiled" and row["dtype"] == "float32"]
    assert code == 1 and planted and not any(row["right"] for row in planted) and len(timed) == 1
    assert all(row["right"] for row in right if row["backend"] != "tiled")
    of = {"forward": "output", "backward": "pose", "missing": "RuntimeError: no kernel image"}[wrong]
    assert {row["of"] for row in planted} == {of}
    assert f"| {of} | 1e-05 | **wrong** |" in (tmp_path / "gpu.md").read_text()


def test_a_case_that_fails_or_takes_too_long_costs_no_other(monkeypatch):
    def never(*_):
        while True:
            pass

    monkeypatch.setattr(gpu, "make_step", never)
    assert gpu.measure("R4", 8, "eager", "cpu", 0.1)["failed"] == "TimeIsUp: longer than 0 s"
    monkeypatch.setattr(gpu, "make_step", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("of 80 GB\nmore")))
    assert gpu.measure("R4", 8, "eager", "cpu", 9)["failed"] == "OutOfMemoryError: of 80 GB"


def test_devices_are_doubled(monkeypatch):
    counts = {}
    for count in (1, 2, 6, 8):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        counts[count] = list(_scaling.device_counts("cuda"))
    assert counts == {1: [1], 2: [1, 2], 6: [1, 2, 4, 6], 8: [1, 2, 4, 8]}


def test_what_several_devices_do_is_told_as_that_of_one(monkeypatch, tmp_path):
    rates = {1: 100.0, 2: 190.0}

    def measured(name, batch, count, device, seconds):
        if count not in rates:
            raise TimeoutError("longer than 20 s")
        return rates[count]

    monkeypatch.setattr(gpu, "pictures_a_second", measured)
    folder = gpu.Folder(tmp_path)
    for count in (1, 2, 4):
        folder.add("scaled", gpu.scale("R4", 64, count, "cuda", 20))
    text = (tmp_path / "gpu.md").read_text()
    assert "| R4, 64 | 1 | 100 | 1.00 |" in text and "| R4, 64 | 2 | 190 | 1.90 |" in text
    assert "| R4, 64 | 4 | TimeoutError: longer than 20 s | |" in text


@pytest.mark.slow
def test_the_whole_command_works(tmp_path):
    """On two processes of the CPU, too; the planted failure is one that never ends."""
    assert gpu.main(argparse.Namespace(out=tmp_path, device="cpu", quick=True, minutes=1.0)) == 0
    rows = [json.loads(line) for line in (tmp_path / "gpu.jsonl").read_text().splitlines()]
    assert [row["devices"] for row in rows if row["kind"] == "scaled" and row["rate"] > 0] == [1, 2] * len(gpu.SCALED)
    with pytest.raises(TimeoutError, match="longer than 0 s"):
        _scaling.pictures_a_second("R4_CNN", 2, 2, "cpu", 0.1)
