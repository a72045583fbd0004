"""What a run asks of data, whoever has written them: numbers, names, and its place in them after a stop."""

from collections.abc import Mapping, Sequence
from typing import Any

import lightning

__all__ = ["DescribedData"]


class DescribedData(lightning.LightningDataModule):
    """Labelled pictures in three parts, with what reports and checkpoints say of them.

    Attributes:
        name, source: of the data set, as reports show them.
        num_classes, in_channels, image_size: of the pictures.
        mean, std: by channel, of pictures with values in [0, 1]; batches are normalised with them.
        white, channels, framing: how files are read, as of `ImageFolderDataModule`.
        for_test_only: whether there are no pictures but those of the test, for networks that are trained.
        parts: {"train", "val", "test"} → pictures, after `setup`.
        digests: {"train", "val", "test"} → of which files they are, and {"train contents", …} → of what these hold,
            after `setup`; empty of data that do not change.
        left_out: path and label of files that cannot be read, after `setup`.
        group_of: of every file that is in a group, such as a patient, that group, after `setup`.
        redrawn: parts that are drawn from files otherwise than until 26 November 2026, after `setup`.
    """

    name: str
    source: str
    num_classes: int
    in_channels: int
    image_size: int
    mean: Sequence[float]
    std: Sequence[float]
    white: int | Sequence[int] | None = None
    channels: str = "colour"
    framing: str = "centre"
    for_test_only = False
    digests: Mapping[str, str] = {}
    left_out: Sequence[tuple[str, int]] = ()
    group_of: Mapping[str, str] = {}
    redrawn: Sequence[str] = ()
    parts: Mapping[str, Any]
    batch_size: int
    _alone = 0  # epochs that were begun without a trainer

    def batches_per_epoch(self, trainer: lightning.Trainer | None = None) -> int:
        """Training batches of an epoch, as many as the trainer takes, or the one that has the data; all without one."""
        batches, trainer = self._batches(), trainer or self.trainer
        limit = 1.0 if trainer is None else trainer.limit_train_batches
        return min(batches, limit) if isinstance(limit, int) else int(batches * limit)

    def pictures_of(self, batches: int) -> int:
        """Seen in so many training batches of an epoch, the last of which may have fewer than the others."""
        return min(batches * self.batch_size, len(self.parts["train"]))

    def pictures_at_once(self, part: str) -> int:
        """In a batch of all processes together."""
        return getattr(self, f"{part}_dataloader")().batch_size * self._rank()[1]

    def describe(self) -> dict[str, str | int]:
        """What a report says of the data; sizes of the parts once they are loaded."""
        left_out = {"left_out": len(self.left_out)} if self.left_out else {}
        return {"name": self.name, "source": self.source} | {part: len(d) for part, d in self.parts.items()} | left_out

    def picture_format(self) -> dict[str, Any]:
        """What a trained network has to know to be shown other pictures, in plain values."""
        read: dict[str, Any] = {"pages": True} if self.channels == "pages" else {}
        if self.framing == "whole":
            read["whole"] = True
        if self.white is not None:
            read["white"] = self.white if isinstance(self.white, int) else list(self.white)
        return {
            "data": self.name,
            **{name: int(getattr(self, name)) for name in ("in_channels", "image_size", "num_classes")},
            "mean": [float(value) for value in self.mean],
            "std": [float(value) for value in self.std],
            "classes": list(self.classes),
            **read,
        }

    @property
    def classes(self) -> Sequence[str]:
        """Names of the labels."""
        return [str(label) for label in range(self.num_classes)]

    def _resumed_at(self) -> tuple[int, int]:
        """Epoch, and training batches of it that have been seen: not 0, 0 in a resumed run.

        Workers look ahead before Lightning tells the sampler its epoch, and Lightning leaves the skipping to us.
        """
        if self.trainer is None:
            return 0, 0
        loop: Any = self.trainer.fit_loop
        seen = loop.epoch_loop.batch_progress.current.processed
        goes_on = loop.restarting and seen < self.batches_per_epoch()  # else Lightning counts from 0
        return loop.epoch_progress.current.processed, seen if goes_on else 0

    def _next_epoch(self) -> int:
        """Without a trainer, each time that training pictures are gone through is the next."""
        self._alone += 1
        return self._alone - 1

    def _rank(self, batch_size: int = 0) -> tuple[int, int]:
        """Which of how many processes this is; refused if batches of so many pictures cannot be shared out."""
        if self.trainer is None:
            return 0, 1
        connector = getattr(self.trainer, "_accelerator_connector", None)
        if self.trainer.world_size > 1 and getattr(connector, "use_distributed_sampler", False):
            raise ValueError(
                "each process takes its share of every batch already, and would get a share of that only: expected "
                "Trainer(use_distributed_sampler=False), but got True, Lightning's default"
            )
        if batch_size % (world := self.trainer.world_size):
            raise ValueError(
                f"batch_size is that of the whole run and must be divisible by its {world} processes, "
                f"but got {batch_size}"
            )
        return self.trainer.global_rank, world

    def _batches(self) -> int:
        """Training batches of an epoch, all of them."""
        raise NotImplementedError
