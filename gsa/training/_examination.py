"""What a test shows beside its accuracy."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torchmetrics.classification import MulticlassCalibrationError, MulticlassConfusionMatrix

from gsa.training._answers import Answers
from gsa.training._auroc import widest

__all__ = ["Examination", "Findings", "Mistake"]

_KEPT = 12  # mistakes
_BELOW_ONE = 1 - 2**-24  # the largest float32


class Mistake(NamedTuple):
    """A picture [C, H, W], as the network was given it, that was taken for another class than its own."""

    confidence: float  # probability of the class it was taken for
    picture: Tensor
    label: int
    predicted: int
    row: int  # of the test part


@dataclass
class Findings:
    """What a test has shown.

    Attributes:
        confusion: counts [K, K], true class by predicted class.
        calibration_error: expected calibration error, Σ_b n_b/N |accuracy_b − confidence_b| over 15 bins of confidence
            (Guo et al. 2017, equation 3).
        mistakes: the most confident first; of several processes, those of the first one's share.
        rows: of the test part, [N]; fewer than all, where only some were tested.
        labels: of these pictures, [N].
        chances: probabilities of the classes, [N, K].
    """

    confusion: Tensor
    calibration_error: float
    mistakes: list[Mistake] = field(repr=False)
    rows: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)
    chances: Tensor = field(repr=False)


class Examination(nn.Module):
    """Collects `Findings` over the batches of a test.

    Args:
        num_classes: K.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.confusion = MulticlassConfusionMatrix(num_classes)
        self.calibration = MulticlassCalibrationError(num_classes, n_bins=15)
        self.answers = Answers()
        self.mistakes: list[Mistake] = []

    def reset(self) -> None:
        """Forget what came before."""
        for metric in (self.confusion, self.calibration, self.answers):
            metric.reset()
        self.mistakes = []

    def update(self, pictures: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Take a batch: pictures [B, C, H, W], logits [B, K], labels [B]."""
        logits = logits.detach()
        chances = logits.float().softmax(-1)
        self.confusion.update(logits, labels)
        self.calibration.update(chances.clamp(max=_BELOW_ONE), labels)  # whose bins end below 1
        self.answers.update(labels, logits.to(widest(logits)).softmax(-1))  # of which the smaller is not yet zero
        confidences, predicted = chances.max(-1)
        for index in torch.nonzero(predicted != labels).flatten().tolist():
            confidence = float(confidences[index])
            if len(self.mistakes) < _KEPT or confidence > self.mistakes[-1].confidence:
                row = int(self.answers.rows[-1][index])
                picture = pictures[index].detach().cpu()
                found = Mistake(confidence, picture, int(labels[index]), int(predicted[index]), row)
                self.mistakes = sorted([*self.mistakes, found], key=lambda one: -one.confidence)[:_KEPT]

    def result(self) -> Findings:
        """What all batches together show; to be asked for while all processes are there."""
        rows, labels, chances = (tensor.cpu() for tensor in self.answers.compute())
        # torchmetrics takes away the axis of a single picture
        answers = rows.reshape(-1), labels.reshape(-1), chances.reshape(-1, self.confusion.num_classes)
        return Findings(self.confusion.compute().cpu(), float(self.calibration.compute()), self.mistakes, *answers)
