"""How long a run will take, and how much memory, told by a few steps on noise before the first real one."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from lightning.pytorch.utilities.seed import isolate_rng
from torch import nn

from gsa.report import forget_peak_memory, peak_memory_mb
from gsa.runner._build import Run
from gsa.training import AveragedWeights, check_recordable
from gsa.training.adapter import is_alone

__all__ = ["Estimate", "estimated"]

_STEPS, _SECONDS = 5, 2.0  # as many steps as either allows, and one at least
_EVALUATED = 16  # pictures; as many as in validation where that takes no longer than _SECONDS
_MUCH = 0.2  # of a step, which other processes could take over
_NEARLY_ALL = 0.8  # of a step, which a recorded one would not take
_TRAINED = 3  # times that a forward pass takes, with its backward pass
_LONG = 60.0  # seconds of a step, of which none is tried
_UNITS = {"h": 3600, "min": 60, "s": 1}


@dataclass(frozen=True)
class Estimate:
    """What a run is expected to take.

    Attributes:
        seconds: of training and validation.
        memory_mb: at most, of the process; of the device where that is a GPU.
        reading: share of a step in which pictures are read and augmented.
        launching: share of a step in which a GPU is told what to do; 0 where that is not looked at.
        by_few_pictures: whether steps are so long that only a forward pass of few pictures was timed.
    """

    seconds: float
    memory_mb: float
    reading: float = 0.0
    launching: float = 0.0
    by_few_pictures: bool = False

    def __str__(self) -> str:
        unit = next((name for name, seconds in _UNITS.items() if self.seconds >= 1.5 * seconds), "s")
        long = f"about {self.seconds / _UNITS[unit]:.2g} {unit}"
        if self.by_few_pictures:
            return f"{long}, judged by few pictures, as a step takes more than a minute"
        told = [f"{long}, {self.memory_mb / 1000:.2g} GB of memory"]
        if self.reading >= _MUCH:
            share = f"{100 * self.reading:.0f} %"
            told.append(f"{share} of it reads pictures, which data.num_workers=2 has other processes do")
        if self.launching >= _NEARLY_ALL:
            told.append("the GPU waits to be told what to do: compile=graph tells it whole steps at once")
        return "; ".join(told)


def estimated(run: Run) -> Estimate | None:
    """Time a copy of the network in training and in validation; the run itself and its random numbers stay as they are.

    None where it cannot be told: of several processes, of networks that are compiled first, of what is left of a run.
    """
    config, trainer = run.config, run.trainer
    if not config.train or config.ckpt_path or config.compile or not is_alone(trainer):
        return None
    device, many = trainer.strategy.root_device, run.data.eval_batch_size
    with isolate_rng():
        network = trainer.precision_plugin.convert_module(copy.deepcopy(run.network)).to(device)
        step, validate = _training_step(run, network), _validation(run, network)
        validate(1)  # tables are made, and kernels compiled
        of_picture = _timed(lambda: validate(1), device)
        few, for_validation = min(_EVALUATED, many), 0.0
        if few * of_picture < _LONG:  # several take less time each, and before steps no memory that these have left
            forget_peak_memory(device)
            before = peak_memory_mb(device)
            of_picture = _timed(lambda: validate(few), device) / few
            for_validation = (peak_memory_mb(device) - before) * many / few
        if (seconds := _TRAINED * run.data.batch_size * of_picture) > _LONG:
            return Estimate(_of_run(run, seconds, of_picture), peak_memory_mb(device), by_few_pictures=True)
        if device.type == "cuda":  # of other sizes, too
            step()
            validate(few)
        seconds = _timed(step, device)  # memory is taken
        if seconds < _SECONDS:
            seconds = _median(lambda: _timed(step, device))
        launching = _launching(run, step) if device.type == "cuda" else 0.0
        reading = _median(lambda: _timed(lambda: _read(run), device)) if _reads_between_steps(run) else 0.0
        seconds += reading
        of_picture = _timed(lambda: validate(few), device) / few
        memory = peak_memory_mb(device)
        if of_picture * many < _SECONDS:
            of_picture = _timed(lambda: validate(many), device) / many
            memory = peak_memory_mb(device)
        elif few < many:
            forget_peak_memory(device)
            memory = max(memory, peak_memory_mb(device) + for_validation)
    return Estimate(_of_run(run, seconds, of_picture), memory, reading / max(seconds, 1e-9), launching)


def _of_run(run: Run, of_step: float, of_picture: float) -> float:
    """Seconds of all epochs, each of steps and of pictures for validation."""
    trainer, many = run.trainer, run.data.eval_batch_size
    pictures, limit = len(run.data.parts["val"]), trainer.limit_val_batches
    judged = min(pictures, limit * many) if isinstance(limit, int) else pictures * limit
    return (trainer.max_epochs or 1) * (run.data.batches_per_epoch(trainer) * of_step + judged * of_picture)


def _training_step(run: Run, network: nn.Module) -> Callable[[], None]:
    """Forward, backward, optimizer and averaging on noise."""
    optimizer, side = run.classifier.new_optimizer(network), run.data.image_size
    average = None if run.config.ema is None else copy.deepcopy(network)
    pictures = torch.rand(run.data.batch_size, run.data.in_channels, side, side).to(next(network.parameters()))
    labels = torch.randint(run.data.num_classes, (len(pictures),), device=pictures.device)

    def step() -> None:
        network.train()
        optimizer.zero_grad()
        with run.trainer.precision_plugin.forward_context():
            loss = F.cross_entropy(network(pictures), labels)
        loss.backward()
        optimizer.step()
        if average is not None:
            AveragedWeights.move(average, network, run.config.ema)

    return step


def _launching(run: Run, step: Callable[[], None]) -> float:
    """The share of a step after which the host has launched all of it, where steps could be recorded."""
    try:
        check_recordable(run.trainer, run.classifier.new_optimizer())
    except ValueError:
        return 0.0
    if run.config.mixup:
        return 0.0
    device = run.trainer.strategy.root_device  # which is not the current one yet
    torch.cuda.synchronize(device)
    start = time.perf_counter()
    step()
    launched = time.perf_counter()
    torch.cuda.synchronize(device)
    return (launched - start) / (time.perf_counter() - start)


def _validation(run: Run, network: nn.Module) -> Callable[[int], None]:
    """The network on so many pictures of noise."""
    side = run.data.image_size

    def validate(count: int) -> None:
        network.eval()
        pictures = torch.rand(count, run.data.in_channels, side, side).to(next(network.parameters()))
        with torch.no_grad(), run.trainer.precision_plugin.forward_context():
            network(pictures)

    return validate


def _reads_between_steps(run: Run) -> bool:
    return run.config.data.get("num_workers") == 0 and hasattr(run.data.parts["train"], "__getitems__")


def _read(run: Run) -> None:
    """Read and augment a batch: another one every time, of pictures from everywhere."""
    training = run.data.parts["train"]
    training.__getitems__(torch.randint(len(training), (run.data.batch_size,)).tolist())


def _median(measure: Callable[[], float]) -> float:
    found: list[float] = []
    while not found or (len(found) < _STEPS and sum(found) < _SECONDS):
        found.append(measure())
    return sorted(found)[len(found) // 2]


def _timed(work: Callable[[], object], device: torch.device) -> float:
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter() - start
