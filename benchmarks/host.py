"""What a training step costs beside the network: processor time of a step of ours, and of an empty Lightning step.

    python benchmarks/host.py

The network is one vector, so what is left is the loop, its callbacks, the metrics and the optimizer (SGD in all). In
between, the empty step with what the recipe has torch and Lightning do: gradients clipped, labels smoothed.
Batches of 16 of scikit-learn's digits, medians over the steps of three epochs, one after the other, several times over.
"""

import argparse
import statistics
import sys
import time
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import lightning
import torch
import torch.nn.functional as F
from _machine import add_record, save
from hydra import compose, initialize_config_module
from lightning.pytorch.callbacks import Callback
from omegaconf import DictConfig
from torch import Tensor, nn

from gsa import runner
from gsa.data import DigitsDataModule

OVERRIDES = ("trainer.max_epochs=3", "callbacks=quiet", "logger=none", "test=false", "trainer.limit_val_batches=1")


class Vector(nn.Module):
    """The smallest network that learns: the same logits for all pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(10))

    def forward(self, images: Tensor) -> Tensor:
        return images.mean((1, 2, 3))[:, None] * self.logits


class Empty(lightning.LightningModule):
    """What Lightning does for any module."""

    def __init__(self, smoothing: float) -> None:
        super().__init__()
        self.network, self.smoothing = Vector(), smoothing

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        return F.cross_entropy(self.network(batch[0]), batch[1], label_smoothing=self.smoothing)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


class Clock(Callback):
    """Processor time at the beginning of every step."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_batch_start(self, *anything: Any) -> None:
        self.times.append(time.process_time())

    @property
    def milliseconds(self) -> float:
        return 1e3 * statistics.median(b - a for a, b in zip(self.times[10:], self.times[11:], strict=False))


def empty(clip: float | None = None, smoothing: float = 0.0) -> float:
    clock = Clock()
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", limit_val_batches=0, callbacks=[clock], gradient_clip_val=clip, **quiet
    )
    trainer.fit(Empty(smoothing), DigitsDataModule(batch_size=16))
    return clock.milliseconds


def configured(folder: str) -> DictConfig:
    with initialize_config_module("gsa.configs", version_base="1.3"):
        return compose("train", [f"output_dir={folder}/run", *OVERRIDES])


def ours(config: DictConfig) -> float:
    run, clock = runner.build(config), Clock()
    run.data.setup()
    run.classifier.network = Vector()
    run.classifier.make_optimizer = partial(torch.optim.SGD, lr=1e-3)
    run.trainer.callbacks.append(clock)
    run.trainer.fit(run.classifier, run.data)
    return clock.milliseconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    runner.register()
    lines = [
        "| run | empty step of Lightning, ms | clipped and smoothed, ms | step of ours, ms |",
        "|---|---|---|---|",
    ]
    for number in range(options.repeats):
        with TemporaryDirectory() as folder:
            config = configured(folder)
            same = empty(config.trainer.gradient_clip_val, config.label_smoothing)
            lines.append(f"| {number} | {empty():.2f} | {same:.2f} | {ours(config):.2f} |")
    print("\n".join(lines))
    save("host", " ".join(["python benchmarks/host.py", *sys.argv[1:]]), "\n".join(lines))
