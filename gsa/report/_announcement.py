"""What a run says of itself before it begins."""

from typing import Any

import torch
from omegaconf import OmegaConf

from gsa import ops
from gsa.nn import SelfAttention
from gsa.report._subject import Subject

__all__ = ["announcement"]


def announcement(run: Subject) -> str:
    """Network, data, classes, channels, recipe, device, and folder, a line each."""
    config, data = run.config, run.data.describe()
    name = config.model.get("name") or type(run.network).__name__
    parameters = sum(parameter.numel() for parameter in run.network.parameters())
    group = getattr(getattr(run.network, "group", None), "name", None)
    start = config.get("start_from")
    lines = {
        "network": f"{name}{f', group {group}' if group else ''}, {parameters:,} parameters, seed {config.seed}",
        "data": f"{data['name']} ({data['source']}), {data['train']} / {data['val']} / {data['test']} for training / "
        "validation / test",
        "classes": data.get("classes"),
        "channels": data.get("channels"),
        "recipe": _recipe(config, run.data.batch_size) if config.train else "none: the checkpoint is tested",
        "weights": f"at first those of {start}" if start and not config.ckpt_path else None,
        "device": _device(run),
        "checkpoint": config.ckpt_path,
        "folder": f"{config.output_dir}  (config.yaml has every key, network.txt every layer)",
    }
    return "\n".join(f"{name:12s} {text}" for name, text in lines.items() if text)


def _recipe(config: Any, batch_size: int) -> str:
    """How long, how fast, in the words of the configuration."""

    def target(node: Any) -> str:
        return node._target_.rpartition(".")[2]

    steps = config.trainer.accumulate_grad_batches
    words = [
        f"{config.trainer.max_epochs} epoch{'s' if config.trainer.max_epochs > 1 else ''}",
        f"batches of {batch_size}{f' × {steps}' if steps > 1 else ''}",
        f"{target(config.optimizer)} {OmegaConf.select(config, 'optimizer.lr', default='')}".rstrip(),
        target(config.scheduler),
    ]
    if config.ema is not None:
        words.append(f"averaged weights {config.ema}")
    if config.data.get("augmentation"):
        words.append(f"augmentation {', '.join(config.data.augmentation)}")
    return ", ".join(words)


def _device(run: Subject) -> str:
    """Where it runs, in which precision, and on which backend attention does."""
    device, trainer = run.trainer.strategy.root_device, run.trainer
    threads = torch.get_num_threads()
    words = [f"{device}, {threads} thread{'s' if threads > 1 else ''}" if device.type == "cpu" else f"{device}"]
    if trainer.world_size > 1:
        words.append(f"{trainer.world_size} processes")
    words.append(f"precision {trainer.precision}")
    if any(isinstance(module, SelfAttention) for module in run.network.modules()):
        words.append(f"attention on {ops.choose(device, torch.float32).name}")
    return ", ".join(words)
