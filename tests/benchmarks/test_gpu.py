"""The command for the first day on a GPU works, and sees a kernel that is wrong."""

import argparse
import json
import sys
import weakref
from contextlib import nullcontext
from types import SimpleNamespace

import _authors
import _correct
import _occupancy
import _scaling
import _training_step
import gpu
import pytest
import torch

from gsa.ops import _registry


@pytest.fixture
def one_case(monkeypatch):
    monkeypatch.setattr(_correct, "FORMS", {"regular": _correct.FORMS["regular"]})
    monkeypatch.setattr(_training_step, "REPEATS", 1)
    monkeypatch.setattr(gpu, "device_counts", lambda device: [1])
    monkeypatch.setattr(gpu, "cases", lambda quick, names: iter([("R4_CNN", 2, "eager")]))
    monkeypatch.setattr(_occupancy, "occupancy", lambda names, device: iter(()))


def options(folder, **changes):
    return argparse.Namespace(
        **{"out": folder, "device": "cpu", "quick": True, "minutes": 1.0, "authors": None, "networks": None} | changes
    )


def run(folder):
    code = gpu.main(options(folder))
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


def test_networks_that_compile_longest_come_after_the_graphs_of_the_others():
    found = list(gpu.cases(quick=False))
    assert len(found) == len(set(found)) == len(_training_step.NETWORKS) * len(gpu.BATCHES) * len(_training_step.MODES)
    places = {case: place for place, case in enumerate(found)}
    graphs, late = places["R4 global", 512, "one graph"], places["R8", 8, "eager"]
    assert graphs < late < places["R16", 512, "one graph"] < places["rotmnist_gsa", 8, "one graph, compiled"]


@pytest.mark.parametrize("of_a_case", [60, 59.5, 7])
def test_time_is_kept_for_the_kernels(monkeypatch, tmp_path, of_a_case):
    """By a clock that goes on where cases are measured, each as long as it may take or shorter."""
    clock, listed = [0.0], []

    def measured(name, batch, mode, device, seconds):
        clock[0] += min(of_a_case, seconds)
        return {"network": name, "batch": batch, "mode": mode, "failed": "TimeIsUp"}

    monkeypatch.setattr(gpu.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(gpu, "checks", lambda device, quick: iter(()))
    monkeypatch.setattr(gpu, "device_counts", lambda device: [1])
    monkeypatch.setattr(gpu, "measure", measured)
    monkeypatch.setattr(gpu, "at_most", lambda seconds: listed.append(seconds) or nullcontext())
    monkeypatch.setattr(_occupancy, "occupancy", lambda names, device: iter(()))
    gpu.main(options(tmp_path, quick=False, minutes=8.5))
    assert listed == [40] and clock[0] + listed[0] <= 8.5 * 60


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


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder like a clone of the authors' code, whose network keeps a tensor that is no buffer."""
    (tmp_path / "g_selfatt").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").touch()
    (tmp_path / "g_selfatt" / "groups.py").write_text("def SE2(num_elements):\n    return num_elements\n")
    (tmp_path / "models" / "group_transformer.py").write_text(
        "import torch\n\n\nclass GroupTransformer(torch.nn.Module):\n"
        "    def __init__(self, group, image_size, **others):\n"
        "        super().__init__()\n"
        "        self.linear = torch.nn.Linear(image_size**2, 10)\n"
        "        self.scale = torch.tensor(float(group))\n\n"
        "    def forward(self, x):\n"
        "        return self.linear(x.flatten(1)) * self.scale.expand(10)\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield str(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("g_selfatt", "models")]:
        del sys.modules[name]


def test_all_that_the_authors_network_keeps_is_on_the_device(clone):
    network = _authors.authors_network(clone, "R8", 5, "meta")
    assert network.scale.device.type == "meta" and network(torch.rand(2, 1, 28, 28, device="meta")).shape == (2, 10)
    assert _authors.authors_network(clone, "R8", 5).scale == 8
    with pytest.raises(SystemExit, match="with a window"):
        _authors.authors_network(clone, "R8", None)


def test_the_authors_network_is_timed_beside_ours(clone, one_case, tmp_path, monkeypatch):
    monkeypatch.setattr(_training_step, "NETWORKS", networks := dict(_training_step.NETWORKS))
    monkeypatch.setattr(gpu, "NETWORKS", networks)
    monkeypatch.setattr(gpu, "cases", lambda quick, names: iter([(gpu.THEIRS, 2, "eager")]))
    monkeypatch.setattr(gpu, "checks", lambda device, quick: iter(()))
    gpu.main(options(tmp_path / "out", authors=clone))
    text = (tmp_path / "out" / "gpu.md").read_text()
    assert f"| {gpu.THEIRS} | 2 | eager | " in text and "Error" not in text


def test_the_authors_network_is_timed_as_it_is_alone(monkeypatch):
    ours = list(gpu.cases(quick=False)), list(gpu.cases(quick=True))
    monkeypatch.setitem(gpu.NETWORKS, gpu.THEIRS, (None, {}, 28, 10_000))
    more = [set(gpu.cases(quick)) - set(before) for quick, before in zip((False, True), ours, strict=True)]
    assert more == [{(gpu.THEIRS, batch, "eager") for batch in gpu.BATCHES}, {(gpu.THEIRS, 2, "eager")}]


def test_what_a_graph_has_recorded_stays_as_long_as_it_is_replayed(monkeypatch):
    """Its tensors lie where they lay. Planted: nobody has them any more."""
    graph = SimpleNamespace(aside=nullcontext, recording=nullcontext, replay=lambda: None)
    monkeypatch.setattr(_training_step, "CudaGraph", lambda: graph)
    pictures = torch.rand(3)
    still = weakref.ref(pictures)

    def step(pictures=pictures):
        pictures.sum()

    again = _training_step._as_one_graph(step)
    del pictures, step
    again()
    assert still() is not None
    del again
    assert still() is None


def test_kernels_are_told_with_registers_and_warps(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # what Triton would else warn of
    monkeypatch.setattr(_occupancy, "KERNELS", ("forward",))
    gpu.list_kernels(folder := gpu.Folder(tmp_path), options(tmp_path))
    (row,) = folder.kernels
    assert 32 < row["registers"] <= 255 and row["warps"] == 65536 // (32 * -(-row["registers"] // 8) * 8)
    assert f"| R4 | forward | 90 | {row['registers']} | 0 | 0 | {row['warps']} |" in (tmp_path / "gpu.md").read_text()


def test_kernels_that_cannot_be_compiled_say_why(tmp_path, monkeypatch):
    monkeypatch.setattr(_occupancy, "Listing", lambda *_: 1 / 0)
    gpu.list_kernels(gpu.Folder(tmp_path), options(tmp_path))
    assert "| ZeroDivisionError: division by zero | " in (tmp_path / "gpu.md").read_text()


@pytest.mark.slow
def test_the_whole_command_works(tmp_path):
    """On two processes of the CPU, too; the planted failure is one that never ends."""
    assert gpu.main(options(tmp_path, minutes=8.5)) == 0
    rows = [json.loads(line) for line in (tmp_path / "gpu.jsonl").read_text().splitlines()]
    assert [row["devices"] for row in rows if row["kind"] == "scaled" and row["rate"] > 0] == [1, 2] * len(gpu.SCALED)
    with pytest.raises(TimeoutError, match="longer than 0 s"):
        _scaling.pictures_a_second("R4_CNN", 2, 2, "cpu", 0.1)
