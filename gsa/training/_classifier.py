"""A network, its loss and its optimizer as a Lightning module."""

import lightning
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchmetrics.classification import MulticlassAccuracy

__all__ = ["Classifier"]


class Classifier(lightning.LightningModule):
    """Cross-entropy training with AdamW, a linear warm-up and a cosine to zero.

    Args:
        network: [B, C, H, W] → logits [B, num_classes].
        num_classes: number of classes.
        learning_rate: at the end of the warm-up.
        weight_decay: of AdamW.
        warm_up: share of all steps.

    Logs train/loss, val/loss, val/accuracy and test/accuracy.
    """

    def __init__(
        self,
        network: nn.Module,
        num_classes: int,
        learning_rate: float = 0.01,
        weight_decay: float = 0.01,
        warm_up: float = 0.15,
    ) -> None:
        super().__init__()
        self.network = network
        self.learning_rate, self.weight_decay, self.warm_up = learning_rate, weight_decay, warm_up
        self.accuracy = nn.ModuleDict(
            {part: MulticlassAccuracy(num_classes, average="micro") for part in ("val", "test")}
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        images, labels = batch
        loss = F.cross_entropy(self(images), labels)
        self.log("train/loss", loss, prog_bar=True, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        images, labels = batch
        logits = self(images)
        self.accuracy["val"](logits, labels)
        self.log("val/loss", F.cross_entropy(logits, labels))
        self.log("val/accuracy", self.accuracy["val"], prog_bar=True)

    def test_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        images, labels = batch
        self.accuracy["test"](self(images), labels)
        self.log("test/accuracy", self.accuracy["test"])

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        steps = int(self.trainer.estimated_stepping_batches)
        rising = max(round(self.warm_up * steps), 1)
        schedule = torch.optim.lr_scheduler.SequentialLR(
            optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=rising),
                torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps - rising, 1)),
            ],
            milestones=[rising],
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
