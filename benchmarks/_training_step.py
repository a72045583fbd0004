"""A step of training on noise: forward, backward and Adam; what it is made of, and how long it takes."""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import gsa
from gsa.training import CudaGraph

__all__ = ["MODES", "NETWORKS", "make_step", "seconds_of"]

# Names with (preset, what is changed, side, pictures of an epoch); or, for a preset, what makes a network of digits.
NETWORKS: dict[str, tuple[Any, dict, int, int]] = {
    "rotmnist_gsa": ("rotmnist_gsa", {}, 28, 10_000),
    "R4_CNN": ("rotmnist_r4_cnn", {}, 28, 10_000),
    "R4": ("rotmnist_r4_sa", {}, 28, 10_000),
    "R4 global": ("rotmnist_r4_sa", {"neighbourhood": None}, 28, 10_000),
    "R4 summed": ("rotmnist_r4_sa", {"form": "summed"}, 28, 10_000),
    "PCam R4": ("pcam_r4_sa", {}, 96, 262_144),
    "R8": ("rotmnist_r8_sa", {}, 28, 10_000),
    "R16": ("rotmnist_r16_sa", {}, 28, 10_000),
}
# How a step gets to the device → mode of torch.compile.
MODES = {
    "eager": None,
    "one graph": None,
    "one graph, compiled": "default",
    "graphs": "reduce-overhead",
    "compiled": "default",
}
REPEATS, SECONDS = 10, 3.0  # steps that are timed: as many as either allows, and one at least


def make_step(
    name: str, batch: int, mode: str, device: str, shared: Callable[[nn.Module], nn.Module] = lambda network: network
) -> Callable[[], object]:
    """A step of a network by its name; `shared` makes it one of several that are trained together."""
    torch.manual_seed(0)
    preset, changes, side, _ = NETWORKS[name]
    network = (preset(device=device) if callable(preset) else gsa.create_model(preset, **changes)).to(device)
    whole = mode.startswith("one graph")
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=device != "cpu", capturable=whole)
    told = {"in_channels": 1, "num_classes": 10} if callable(preset) else gsa.models.preset(preset).keywords
    images = torch.rand(batch, told["in_channels"], side, side, device=device)
    labels = torch.randint(told["num_classes"], (batch,), device=device)
    if MODES[mode]:
        network.compile(mode=MODES[mode])
    trained = shared(network)

    def step() -> None:
        if MODES[mode]:
            torch.compiler.cudagraph_mark_step_begin()
        optimizer.zero_grad()
        F.cross_entropy(trained(images), labels).backward()
        optimizer.step()

    return _as_one_graph(step) if whole else step


def _as_one_graph(step: Callable[[], None]) -> Callable[[], object]:
    """All that a step launches, recorded once; after steps of its own, in which kernels are chosen."""
    graph = CudaGraph()
    with graph.aside():
        for _ in range(3):
            step()
    with graph.recording():
        step()
    return partial(_replay, graph, step)


def _replay(graph: CudaGraph, step: Callable[[], None]) -> None:
    """The step is kept for its tensors, which lie where they were recorded only as long as somebody has them."""
    graph.replay()


def seconds_of(step: Callable[[], object], device: str) -> float:
    """The median of some steps, after three that do not count."""

    def timed() -> float:
        start = time.perf_counter()
        step()
        if device != "cpu":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    first = [timed() for _ in range(3 if device != "cpu" else 1)]
    found: list[float] = []
    while len(found) < REPEATS and sum(found) < SECONDS:
        found.append(timed())
    return statistics.median(found or first)
