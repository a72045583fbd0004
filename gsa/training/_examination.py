"""What a test shows beside its accuracy."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torchmetrics.classification import MulticlassCalibrationError, MulticlassConfusionMatrix

__all__ = ["Examination", "Findings", "Mistake"]

_KEPT = 12  # mistakes


class Mistake(NamedTuple):
    """A picture [C, H, W], as the network was given it, that was taken for another class than its own."""

    confidence: float  # probability of the class it was taken for
    picture: Tensor
    label: int
    predicted: int


@dataclass
class Findings:
    """What a test has shown.

    Attributes:
        confusion: counts [K, K], true class by predicted class.
        calibration_error: expected calibration error, Σ_b n_b/N |accuracy_b − confidence_b| over 15 bins of confidence
            (Guo et al. 2017, equation 3).
        mistakes: the most confident first; of several processes, those of the first one's share.
    """

    confusion: Tensor
    calibration_error: float
    mistakes: list[Mistake]


class Examination(nn.Module):
    """Collects `Findings` over the batches of a test.

    Args:
        num_classes: K.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.confusion = MulticlassConfusionMatrix(num_classes)
        self.calibration = MulticlassCalibrationError(num_classes, n_bins=15)
        self.mistakes: list[Mistake] = []

    def reset(self) -> None:
        """Forget what came before."""
        self.confusion.reset()
        self.calibration.reset()
        self.mistakes = []

    def update(self, pictures: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Take a batch: pictures [B, C, H, W], logits [B, K], labels [B]."""
        logits = logits.detach()
        chances = logits.float().softmax(-1)
        self.confusion.update(logits, labels)
        self.calibration.update(chances, labels)
        confidences, predicted = chances.max(-1)
        for index in torch.nonzero(predicted != labels).flatten().tolist():
            confidence = float(confidences[index])
            if len(self.mistakes) < _KEPT or confidence > self.mistakes[-1].confidence:
                found = Mistake(confidence, pictures[index].detach().cpu(), int(labels[index]), int(predicted[index]))
                self.mistakes = sorted([*self.mistakes, found], key=lambda one: -one.confidence)[:_KEPT]

    def result(self) -> Findings:
        """What all batches together show; to be asked for while all processes are there."""
        return Findings(self.confusion.compute().cpu(), float(self.calibration.compute()), self.mistakes)
