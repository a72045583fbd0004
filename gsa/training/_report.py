"""What a run says of itself at its end: report.json, and a short text and pictures made from it."""

import json
import platform
import resource
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor

from gsa.groups import Group, group
from gsa.symmetry import equivariance_error
from gsa.training._build import Parts

__all__ = ["describe_run", "measured_group", "summary", "symmetry_of", "write_json"]

_PACKAGES = ("gsa", "torch", "lightning", "torchvision", "hydra-core")


def describe_run(config: DictConfig, parts: Parts, metrics: dict[str, float], before: dict, after: dict) -> dict:
    """The keys of report.json.

    Args:
        config, parts: of the run.
        metrics: "val/accuracy" and "test/accuracy", as far as they were measured.
        before, after: `symmetry_of` the network before and after training.
    """
    rows = parts.history.rows
    seconds = [row["seconds"] for row in rows]
    data = parts.data.describe()
    return {
        "model": config.model.get("name") or type(parts.network).__name__,
        "group": getattr(getattr(parts.network, "group", None), "name", None),
        "form": config.model.get("form") or getattr(parts.network, "form", None),
        "parameters": sum(p.numel() for p in parts.network.parameters()),
        "epochs": len(rows),
        "train_seconds": sum(seconds),
        "seconds_per_epoch": sum(seconds) / len(rows) if rows else None,
        "peak_memory_mb": _peak_memory_mb(parts.trainer.strategy.root_device),
        "val_accuracy": metrics.get("val/accuracy"),
        "test_accuracy": metrics.get("test/accuracy"),
        "equivariance_error": after,
        "equivariance_error_before": before,
        "seed": config.seed,
        "versions": {name: version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "machine": _machine(parts.trainer.strategy.root_device),
        "data": {"name": data["name"], "source": data["source"]},
        "split": {part: data[part] for part in ("train", "val", "test")},
        "used": _used(parts),
        "history": rows,
    }


def symmetry_of(network: Callable[[Tensor], Tensor], pictures: Tensor, measured: Group) -> dict[str, dict]:
    """Relative change of the logits under each element: name → {"error": …, "exact": …}.

    Exact elements move pixels; for the others the error includes what sampling the pictures loses.
    """
    errors = equivariance_error(network, pictures, measured)
    exact = set(measured.grid_elements)
    return {measured.describe(g): {"error": error, "exact": g in exact} for g, error in errors.items()}


def measured_group(network: Any) -> Group:
    """The network's own group; R4 for one without poses."""
    own = getattr(network, "group", None)
    return own if own is not None and own.order > 1 else group("R4")


def summary(report: dict) -> str:
    """The report in a few lines."""
    split, used = report["split"], report["used"]
    lines = [
        f"{report['model']}: group {report['group']}, {report['parameters']:,} parameters, seed {report['seed']}",
        f"data         {report['data']['name']} ({report['data']['source']}), "
        f"{split['train']} / {split['val']} / {split['test']} for training / validation / test",
    ]
    if report["epochs"]:
        lines.append(
            f"training     {report['epochs']} epochs, {report['train_seconds']:.0f} s "
            f"({report['seconds_per_epoch']:.1f} s an epoch), {report['peak_memory_mb']:.0f} MB at most"
        )
    for part, name in (("val", "validation"), ("test", "test")):
        if report[f"{part}_accuracy"] is not None:
            share = f" (of {used[part]} pictures only)" if used[part] < split[part] else ""
            lines.append(f"{name:12s} {100 * report[f'{part}_accuracy']:.2f} %{share}")
    errors = report["equivariance_error"]
    exact = ", ".join(f"{name} {e['error']:.1e}" for name, e in errors.items() if e["exact"])
    which = "exact elements" if report["group"] not in (None, "Z2") else "without being in the group"
    lines.append(f"symmetry     relative change of the logits, {which}: {exact}")
    if sampled := [e["error"] for e in errors.values() if not e["exact"]]:
        lines.append(f"             sampled between the pixels: {max(sampled):.1e} at worst of {len(sampled)} elements")
    return "\n".join(lines)


def write_json(report: dict, folder: Path) -> None:
    """report.json, whole or not at all."""
    part = folder / ".report.json.part"
    part.write_text(json.dumps(report, indent=2) + "\n")
    part.replace(folder / "report.json")


def _used(parts: Parts) -> dict[str, int]:
    """Pictures of one epoch of training, of a validation and of the test; fewer than there are under limits."""
    trainer, loaders = parts.trainer, parts.data
    batches = {
        "train": trainer.num_training_batches if parts.history.rows else 0,
        "val": sum(trainer.num_val_batches or trainer.validate_loop.max_batches),
        "test": sum(trainer.num_test_batches),
    }
    world = trainer.world_size  # batch_size is that of all processes together
    sizes = {
        "train": loaders.batch_size,
        "val": loaders.val_dataloader().batch_size * world,
        "test": loaders.test_dataloader().batch_size * world,
    }
    return {part: min(int(count) * sizes[part], len(loaders.parts[part])) for part, count in batches.items()}


def _peak_memory_mb(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes, but bytes on macOS
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
