"""What Lightning has no public name for, in one place; tried with the versions that pyproject.toml allows."""

import os
import signal
from datetime import timedelta
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, GradientAccumulationScheduler, ModelCheckpoint
from lightning.pytorch.loops.optimization.automatic import ClosureResult
from lightning.pytorch.plugins import MixedPrecision
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = [
    "BATCH_NORM",
    "accumulated",
    "answer",
    "batches_done",
    "data_of",
    "ends_epoch",
    "environment_of",
    "forget_requeueing",
    "fuses",
    "in_mid_epoch",
    "is_alone",
    "is_ddp",
    "is_idle",
    "keep_patience",
    "leave_out_idle_hooks",
    "leave_signals_alone",
    "looks_for_anomalies",
    "meeting_of",
    "result_of",
    "resume_accumulation",
    "resume_between_epochs",
    "save_now",
    "scales_gradients",
    "started_from_outside",
    "stay_stopped",
    "strategy_timeout",
    "synchronise_batch_norm_on_gpus_only",
    "synchronises_batch_norm",
]

BATCH_NORM = _BatchNorm  # every batch norm, of any number of axes
_OF_A_STEP = (
    "on_train_batch_start",
    "on_before_zero_grad",
    "on_before_backward",
    "on_after_backward",
    "on_before_optimizer_step",
    "on_train_batch_end",
)


def accumulated(trainer: Any, epoch: int) -> int:
    """Batches of a step in an epoch: the trainer's number, or what a callback says."""
    for callback in trainer.callbacks:
        if isinstance(callback, GradientAccumulationScheduler):
            return callback.get_accumulate_grad_batches(epoch)
    return trainer.accumulate_grad_batches


def result_of(closure: Any) -> Tensor | None:
    """The loss that the closure of a step will tell the loop; None where it was not run."""
    return None if closure._result is None else closure._result.loss


def answer(closure: Any, loss: Tensor) -> None:
    """Have the closure of a step, run or not, tell the loop this loss."""
    closure._result = ClosureResult(loss)


def batches_done(trainer: lightning.Trainer) -> int:
    """Training batches of the epoch at hand that have been begun, the one at hand among them."""
    return trainer.fit_loop.epoch_loop.batch_progress.current.ready


def in_mid_epoch(trainer: lightning.Trainer) -> bool:
    """Whether some of the training batches of the epoch at hand have been begun, and not all."""
    return 0 < batches_done(trainer) < trainer.num_training_batches


def ends_epoch(trainer: lightning.Trainer) -> bool:
    """Whether the training batch at hand, which is done, is the last one before the metrics are looked at."""
    loop = trainer.fit_loop.epoch_loop
    return loop.batch_progress.is_last_batch or loop._is_training_done or trainer.should_stop


def keep_patience(trainer: Any, checkpoint: dict[str, Any]) -> None:
    """Have a resumed run wait as long as its configuration says: Lightning takes the patience of the checkpoint."""
    for callback in trainer.callbacks:
        state = checkpoint.get("callbacks", {}).get(callback.state_key)
        if isinstance(callback, EarlyStopping) and state is not None:
            state["patience"] = callback.patience
            if state["wait_count"] < callback.patience:
                state["stopped_epoch"] = 0


def stay_stopped(trainer: Any) -> None:
    """Have a resumed run that early stopping had ended end at once: Lightning knows that it was, and goes on."""
    if any(isinstance(callback, EarlyStopping) and callback.stopped_epoch for callback in trainer.callbacks):
        trainer.should_stop = True


def strategy_timeout(trainer: lightning.Trainer) -> timedelta | None:
    """How long processes wait for one another; None where their strategy does not say."""
    return getattr(trainer.strategy, "_timeout", None)


def data_of(trainer: Any) -> Any:
    """The data module that a trainer is at work on, an attribute that it does not declare."""
    return trainer.datamodule


def save_now(trainer: lightning.Trainer, callback: ModelCheckpoint) -> None:
    """What a callback saves, wherever the trainer is."""
    callback._save_topk_checkpoint(trainer, callback._monitor_candidates(trainer))


def scales_gradients(trainer: lightning.Trainer) -> bool:
    """Whether half precision has a scaler, which leaves out steps that are not finite by itself."""
    return getattr(trainer.precision_plugin, "scaler", None) is not None


def forget_requeueing(trainer: lightning.Trainer) -> None:
    """Keep Lightning from what its requeueing by SLURM has left in a folder (hpc_ckpt_1.ckpt).

    It would prefer that to the weights of the network, in a test, too.
    """
    connector: Any = trainer._checkpoint_connector
    kind = type(connector)
    connector.__class__ = type(kind.__name__, (kind,), {"_hpc_resume_path": None})


def resume_accumulation(trainer: Any) -> None:
    """Have an epoch that goes on in its midst accumulate as it began: callbacks say how at its start only."""
    trainer.accumulate_grad_batches = accumulated(trainer, trainer.current_epoch)


def resume_between_epochs(trainer: lightning.Trainer) -> None:
    """Have a run with `max_steps` that is resumed from the end of an epoch begin the next one.

    Lightning takes any run with a number of steps for one without epochs, and enters the finished one again.
    """
    loop: Any = trainer.fit_loop
    loop._iteration_based_training = lambda: False


def fuses(trainer: lightning.Trainer) -> bool:
    """Whether a fused optimizer can be used: in mixed precision Lightning does not clip gradients for one.

    Nor with a scaler, which leaves the first steps out: torch's fused SGD then goes on from momenta never written.
    """
    mixed = isinstance(trainer.precision_plugin, MixedPrecision)
    return not (mixed and (scales_gradients(trainer) or trainer.gradient_clip_val))


def is_alone(trainer: lightning.Trainer) -> bool:
    """Whether one process on one device is all there is."""
    return isinstance(trainer.strategy, SingleDeviceStrategy)


def is_ddp(trainer: lightning.Trainer) -> bool:
    """Whether the processes of a run are whole processes of distributed data parallel training, as `ddp` makes them."""
    strategy = trainer.strategy
    return type(strategy) is DDPStrategy and strategy._start_method == "popen"


def is_idle(owner: object, hook: str, kind: type) -> bool:
    """Whether a hook is what `owner` inherits from `kind`, which does nothing, or is left out."""
    own = getattr(owner, hook)
    return own is None or getattr(own, "__func__", None) is getattr(kind, hook)


def leave_out_idle_hooks(trainer: Any) -> None:
    """Have Lightning pass over the hooks of a step that callbacks inherit: it would call, and time, each of them.

    What it looks for is whether a hook can be called. Ten callbacks cost a step as much as the smallest networks do.
    Callbacks of other people, whose classes may be given hooks later on, are left as they are.
    """
    known = [c for c in trainer.callbacks if type(c).__module__.partition(".")[0] in ("gsa", "lightning")]
    for callback in known:
        for hook in _OF_A_STEP:
            if is_idle(callback, hook, Callback):
                setattr(callback, hook, None)


def leave_signals_alone(trainer: lightning.Trainer) -> None:
    """Keep Lightning from answering Ctrl-C, SIGTERM and SIGUSR1, as it does while it fits, validates or tests.

    And from telling all processes before every batch that it has heard of none, for which each waits for its GPU.
    """
    connector: Any = trainer._signal_connector
    register = type(connector)._register_signal
    ours = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    connector._register_signal = lambda number, handler: None if number in ours else register(number, handler)
    epochs: Any = trainer.fit_loop.epoch_loop
    epochs._broadcast_sigterm_tensor = lambda: None


def looks_for_anomalies(trainer: lightning.Trainer) -> bool:
    """Whether backward passes are watched for NaN."""
    return trainer._detect_anomaly


def meeting_of(trainer: lightning.Trainer) -> tuple[str, int, int, timedelta, torch.device | None]:
    """How a process of `ddp` meets the others: backend, rank of how many, how long it waits, and its GPU.

    Where the first one listens is set in the variables that `torch.distributed` reads.
    """
    strategy: Any = trainer.strategy
    os.environ["MASTER_ADDR"] = strategy.cluster_environment.main_address
    os.environ["MASTER_PORT"] = str(strategy.cluster_environment.main_port)
    gpu = strategy.root_device if strategy.root_device.type == "cuda" else None
    return strategy._get_process_group_backend(), trainer.global_rank, trainer.world_size, strategy._timeout, gpu


def environment_of(trainer: lightning.Trainer) -> Any:
    """What the processes of `ddp` know of one another; None of a trainer that is alone."""
    return trainer.strategy.cluster_environment if isinstance(trainer.strategy, DDPStrategy) else None


def started_from_outside(trainer: lightning.Trainer) -> bool:
    """Whether torchrun, srun or submitit has started the processes."""
    environment = environment_of(trainer)
    return environment is not None and environment.creates_processes_externally


def synchronises_batch_norm(trainer: lightning.Trainer) -> bool:
    """Whether batch norm takes its statistics from the batch of all processes together."""
    return getattr(trainer.strategy, "_layer_sync", None) is not None


def synchronise_batch_norm_on_gpus_only(trainer: lightning.Trainer) -> None:
    """Take `sync_batchnorm` back elsewhere, where PyTorch has none."""
    strategy: Any = trainer.strategy
    if synchronises_batch_norm(trainer) and strategy.root_device.type != "cuda":
        strategy._layer_sync = None
