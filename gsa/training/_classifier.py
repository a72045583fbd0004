"""A network, its loss and its optimizer as a Lightning module."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import lightning
import torch
import torch.nn.functional as F
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from gsa._checks import is_count
from gsa._remembered import groups_within
from gsa.training._auroc import AreaUnderROC
from gsa.training._balanced import BalancedAccuracy
from gsa.training._examination import Examination, Findings
from gsa.training._fused import fused_on_gpus, keep_fused
from gsa.training._loss import TrainingLoss
from gsa.training._mean import MeanOfPictures
from gsa.training._older_states import without_empty
from gsa.training._parameters import parameter_groups
from gsa.training._schedules import constant, schedule
from gsa.training.adapter import (
    accumulated,
    data_of,
    ends_epoch,
    fuses,
    in_mid_epoch,
    keep_patience,
    stay_stopped,
)

__all__ = ["Classifier"]

_PARTS = ("train", "val", "test")
_TOGETHER = 50  # training steps that the metrics hear of at once
_ROUNDED = 0.02  # sums of shares in half precision
_OTHERS = (
    "for what is no class of a picture, write a LightningModule of your own, which the optimizers, schedules and "
    "callbacks of gsa.training serve as well"
)


class Classifier(lightning.LightningModule):
    """Cross-entropy training; logs train/loss, train/accuracy, val/loss, val/accuracy, test/loss and test/accuracy.

    So it does val/balanced_accuracy and test/balanced_accuracy, the means of the classes' accuracies. Of two classes it
    logs val/auroc and test/auroc, too: the share of pairs, one picture of each class, in which that of class 1 gets the
    higher probability of it.

    It trains on loaders of pictures [B, C, H, W] and labels [B]. A data module of ours, or `gsa.data.completed` of
    another, also lets a run go on in mid-epoch, counts classes, and has checkpoints say what the pictures are.

    Args:
        network: [B, C, H, W] → logits [B, num_classes].
        num_classes: number of classes.
        optimizer: parameters → optimizer; or network → optimizer, if its first argument is called network.
        scheduler: (optimizer, steps=number of steps) → schedule of the learning rate, advanced at every step; torch's
            own are taken, too (`gsa.training.schedule`). The rate stays as it is where none is given.
        config: plain values that describe the run; stored in its checkpoints as hyperparameters.
        loss: what is minimised; plain cross-entropy when None.

    Raises:
        ValueError: fewer than two classes; an optimizer or a schedule in place of what makes one; a loss of another
            class; in a step, labels that are no classes of pictures.

    Attributes:
        part: "train", "val" or "test", whichever its last batch was of.
        findings: what the last test has shown; None before.
    """

    part: str | None = None
    findings: Findings | None = None

    def __init__(
        self,
        network: nn.Module,
        num_classes: int,
        optimizer: Callable[[Any], Optimizer],
        scheduler: Callable[..., LRScheduler] = constant,
        config: dict[str, Any] | None = None,
        loss: TrainingLoss | None = None,
    ) -> None:
        super().__init__()
        if not is_count(num_classes, least=2):
            raise ValueError(f"num_classes must be 2 or more, but got {num_classes!r}: {_OTHERS}")
        for name, make in (("optimizer", optimizer), ("scheduler", scheduler)):
            if not callable(make):
                raise ValueError(
                    f"{name} must be a function that makes one, such as a class or functools.partial(class, …), "
                    f"but got {type(make).__name__}"
                )
        if not isinstance(loss, TrainingLoss | None):
            raise ValueError(
                f"loss must be a TrainingLoss, or of a subclass, but got {type(loss).__name__}: of classes; {_OTHERS}"
            )
        self.training_loss = loss or TrainingLoss(num_classes)
        self.network = network
        self.make_optimizer, self.make_scheduler = optimizer, scheduler
        self.accuracy = nn.ModuleDict({f"{part}_": MeanOfPictures() for part in _PARTS})
        self.mean_loss = nn.ModuleDict({f"{part}_": MeanOfPictures() for part in _PARTS})
        # What the metrics have not heard of yet: loss, how many were right, of how many.
        self._seen: dict[str, list[tuple[Tensor, Tensor, int]]] = {part: [] for part in _PARTS}
        judged = ("val_", "test_")
        self.balanced = nn.ModuleDict({part: BalancedAccuracy(int(num_classes)) for part in judged})
        self.auroc = nn.ModuleDict({part: AreaUnderROC() for part in judged if num_classes == 2})
        self.examination = Examination(int(num_classes))  # of numpy, torchmetrics would not take one
        if config:
            self.save_hyperparameters(config, logger=False)

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images)

    def on_fit_start(self) -> None:
        if self.training_loss.balanced:
            data = data_of(self.trainer)
            if not hasattr(data, "class_counts"):
                raise ValueError(
                    "weights of classes need data that are counted, such as gsa.data.completed(your_data, seed), "
                    f"but got {type(data).__name__}"
                )
            self.training_loss.count(data.class_counts())

    def on_train_start(self) -> None:
        stay_stopped(self.trainer)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        return self._step("train", batch)

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int, dataloader_idx: int = 0) -> None:
        self._step("val", batch, dataloader_idx)

    def test_step(self, batch: tuple[Tensor, Tensor], index: int, dataloader_idx: int = 0) -> None:
        self._step("test", batch, dataloader_idx)

    def predict_step(self, batch: Any, index: int) -> Tensor:
        return self(batch[0] if isinstance(batch, list | tuple) else batch)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """With what the network needs to be used: how pictures are normalised, and what the classes are called."""
        data = data_of(self.trainer)
        if hasattr(data, "picture_format"):
            checkpoint["pictures"], checkpoint["digests"] = data.picture_format(), dict(data.digests)
        checkpoint["groups"] = groups_within(self.network)
        self._count("train")
        if in_mid_epoch(self.trainer):  # sums of the epoch so far, of every process
            checkpoint["train_metrics"] = {
                name: {key: self._of_all(value) for key, value in metric.metric_state.items()}
                for name, metric in self._train_metrics().items()
            }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """With the metrics of an epoch that goes on in its midst: of every process, or of all in the first."""
        if self._trainer is None:  # `load_from_checkpoint`
            return
        states, count = checkpoint.get("optimizer_states", []), len(list(self.network.parameters()))
        checkpoint["optimizer_states"] = [without_empty(state, count) for state in states]
        keep_patience(self.trainer, checkpoint)
        for name, state in checkpoint.get("train_metrics", {}).items():
            metric = self._train_metrics()[name]
            for key in state.keys() & metric.metric_state.keys():  # of earlier versions there were others
                of_all = state[key].view(-1, *getattr(metric, key).shape)  # which saved their sum
                if len(of_all) == self.trainer.world_size:
                    setattr(metric, key, of_all[self.global_rank])
                elif self.global_rank == 0:
                    setattr(metric, key, of_all.sum(0))

    def on_test_epoch_start(self) -> None:
        self.examination.reset()

    def on_test_epoch_end(self) -> None:
        self.findings = self.examination.result()

    def _step(self, part: str, batch: tuple[Tensor, Tensor], loader: int = 0) -> Tensor:
        if loader:
            raise ValueError(f"weights are judged on one loader, but {part} has several: join their data")
        self.part = part
        images, labels = batch
        self._check_labels(part, labels)
        if part == "train":
            images, targets = self.training_loss.mix(images, labels)
            logits = self(images)
            loss = self.training_loss(logits, targets)
            labels = targets if targets.ndim == 1 else targets.argmax(-1)  # of mixed pictures, the larger share
        else:
            logits = self(images)
            loss = F.cross_entropy(logits, labels)
        answers = logits.argmax(-1)
        self._note(part, loss.detach(), (answers == labels).sum(), len(labels))
        if f"{part}_" in self.balanced:
            balanced: Any = self.balanced[f"{part}_"]
            balanced.update(answers, labels)
        if f"{part}_" in self.auroc:
            auroc: Any = self.auroc[f"{part}_"]
            auroc.update(logits, labels)
        if part == "test":
            self.examination.update(images, logits, labels)
        if part != "train":
            self._log(part)
        return loss

    def _check_labels(self, part: str, labels: Tensor) -> None:
        """Classes int64 [B]; or of training pictures that are mixed already, their shares of them [B, num_classes]."""
        is_mixed = part == "train" and labels.is_floating_point() and labels.ndim == 2
        if is_mixed and labels.shape[1] == self.training_loss.num_classes:
            # asked once in a while: a GPU is waited for
            if self._seen[part] or bool((labels >= 0).all() & ((labels.sum(1) - 1).abs() < _ROUNDED).all()):
                return
        elif labels.ndim == 1 and labels.dtype in (torch.int64, torch.uint8):  # which torch takes
            return
        raise ValueError(
            f"a classifier learns labels int64 [B], but got {part} ones that are {labels.dtype} {list(labels.shape)}"
            f"{' and no shares, which sum to 1' if is_mixed else ''}: {_OTHERS}"
        )

    def _note(self, part: str, loss: Tensor, right: Tensor, count: int) -> None:
        """What was seen of a batch."""
        self._seen[part].append((loss, right, count))
        if part != "train" or len(self._seen[part]) >= _TOGETHER:
            self._count(part)

    def _count(self, part: str) -> None:
        """Tell the metrics of what was seen since; in training of many steps at once, as every time takes long."""
        if not self._seen[part]:
            return
        losses, right, counts = zip(*self._seen[part], strict=True)
        self._seen[part].clear()
        sizes = torch.tensor(counts, device=losses[0].device)
        mean_loss: Any = self.mean_loss[f"{part}_"]
        accuracy: Any = self.accuracy[f"{part}_"]
        mean_loss.update(torch.stack(losses), sizes)
        accuracy.update(torch.stack(right).float() / sizes, sizes)

    def on_train_batch_end(self, outputs: Any, batch: Any, index: int) -> None:
        if ends_epoch(self.trainer):
            self._count("train")
            self._log("train")  # once, as it takes longer than the metrics themselves

    def _log(self, part: str) -> None:
        """What the metrics come to at the end of the epoch."""
        metrics = {"loss": self.mean_loss, "accuracy": self.accuracy}
        metrics |= {"balanced_accuracy": self.balanced, "auroc": self.auroc}
        shown = {"train": "loss", "val": "accuracy", "test": None}[part]
        for name, kept in metrics.items():
            if f"{part}_" in kept:
                self.log(f"{part}/{name}", kept[f"{part}_"], on_step=False, on_epoch=True, prog_bar=name == shown)

    def _train_metrics(self) -> dict[str, Any]:
        return {"loss": self.mean_loss["train_"], "accuracy": self.accuracy["train_"]}

    def _of_all(self, value: Tensor) -> Tensor:
        """What each process has, one after the other."""
        return self.trainer.strategy.all_gather(value.clone()).view(-1, *value.shape)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        optimizer = self.new_optimizer(fused=fuses(self.trainer))
        rates = schedule(self.make_scheduler, optimizer, self._steps())
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rates, "interval": "step"}}

    def new_optimizer(self, network: nn.Module | None = None, fused: bool = True) -> Optimizer:
        """An optimizer of the network, or of a copy; positions (`sort_parameters`) without weight decay.

        On a GPU one of torch's is fused, unless it is told otherwise, here or in the configuration.
        """
        network = self.network if network is None else network
        make = fused_on_gpus(self.make_optimizer, network) if fused else self.make_optimizer
        first = next(iter(inspect.signature(make).parameters), None)
        return keep_fused(make(network if first == "network" else parameter_groups(network)))

    def _steps(self) -> int | None:
        """Optimizer steps of the whole run; None where neither epochs nor steps are limited.

        Of our data not `trainer.estimated_stepping_batches`: that would start to load before a resumed run knows its
        epoch.
        """
        trainer, limits = self.trainer, []
        if trainer.max_steps >= 0:
            limits.append(trainer.max_steps)
        if trainer.max_epochs is not None and trainer.max_epochs >= 0:
            if hasattr(data := data_of(trainer), "batches_per_epoch"):
                batches = data.batches_per_epoch()
                together = (accumulated(trainer, epoch) for epoch in range(trainer.max_epochs))
                limits.append(sum(math.ceil(batches / count) for count in together))
            else:
                limits.append(int(trainer.estimated_stepping_batches))
        return min(limits, default=None)
