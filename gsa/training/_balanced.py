"""Accuracy in which every class counts alike."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torchmetrics import Metric

__all__ = ["BalancedAccuracy"]


class BalancedAccuracy(Metric):
    """The mean, over the classes that there are pictures of, of the share of each that was answered rightly.

        1/K Σ_k right_k / count_k

    torchmetrics' mean over classes counts one as missed of which there is no picture, if it was answered.

    Args:
        num_classes: K.
    """

    right: Tensor
    count: Tensor

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.num_classes = num_classes
        for name in ("right", "count"):
            self.add_state(name, torch.zeros(num_classes, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, answers: Tensor, labels: Tensor) -> None:
        """Add a batch: predicted and true classes, of whole numbers [B]."""
        of_class = F.one_hot(labels.long(), self.num_classes)  # whose sums are the same every time on a GPU, too
        self.count = self.count + of_class.sum(0)
        self.right = self.right + of_class.mul((answers == labels)[:, None]).sum(0)

    def compute(self) -> Tensor:
        """A number in [0, 1]; NaN of no picture."""
        there = self.count > 0
        return (self.right[there].float() / self.count[there]).mean()
