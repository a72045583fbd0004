"""The area under the ROC curve of two classes."""

import math
from typing import Any

import torch
from torch import Tensor
from torchmetrics.classification import BinaryAUROC
from torchmetrics.utilities import dim_zero_cat

__all__ = ["AreaUnderROC", "widest"]


class AreaUnderROC(BinaryAUROC):
    """The share of pairs, one picture of each class, in which that of class 1 has the larger logit₁ − logit₀.

    Ties count half; NaN, where a class has no picture. Differences are ordered as they are: probabilities round to 1.
    """

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Add a batch: logits [B, 2], labels [B]."""
        difference = logits[:, 1].to(widest(logits)) - logits[:, 0]
        super().update(0.5 + 0.5 * torch.nn.functional.softsign(difference), labels)  # in [0, 1], in the same order

    def compute(self) -> Any:
        """The area, a number in [0, 1]."""
        state: Any = self
        labels = dim_zero_cat(state.target)
        return super().compute() if labels.unique().numel() == 2 else torch.tensor(math.nan, device=labels.device)


def widest(x: Tensor) -> torch.dtype:
    """The most precise dtype of its device."""
    return torch.float32 if x.device.type == "mps" else torch.float64
