"""What is minimised."""

import math
from collections.abc import Sequence
from contextlib import suppress

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["TrainingLoss"]


class TrainingLoss:
    """Cross-entropy, on pictures that may be mixed in pairs, of classes that may weigh differently.

        loss = − Σ_b Σ_c w_c ((1 − ε) t_bc + ε / num_classes) log softmax(logits_b)_c / Σ_b Σ_c w_c t_bc

    Source: label smoothing, Szegedy et al. 2016; mixup, Zhang et al. 2018.

    Args:
        num_classes: number of classes.
        label_smoothing: ε, the share of the targets t that is spread evenly over all classes.
        mixup: α; every batch is λ x + (1 − λ) x′ with λ ~ Beta(α, α) and x′ the same pictures, one place on; targets
            alike. 0 mixes nothing.
        balanced: classes weigh w_c = N / (num_classes · N_c), so that rare ones count as much as others.
        weights: w_c, of every class; alike when None.

    Raises:
        ValueError: a number out of its range, weights of other classes, or of balanced ones; when it is called,
            balanced classes of which none have been counted.
    """

    def __init__(
        self,
        num_classes: int,
        label_smoothing: float = 0.0,
        mixup: float = 0.0,
        balanced: bool = False,
        weights: Sequence[float] | Tensor | None = None,
    ) -> None:
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be a share in [0, 1), but got {label_smoothing}")
        if not 0 <= mixup < math.inf:
            raise ValueError(f"mixup must be the α of a Beta distribution, or 0, but got {mixup}")
        self.num_classes, self.label_smoothing, self.mixup, self.balanced = (
            num_classes,
            label_smoothing,
            mixup,
            balanced,
        )
        if weights is not None and balanced:
            raise ValueError("balanced classes weigh by their numbers, and take no weights")
        self.weight = None if weights is None else _by_class(weights, num_classes)

    def count(self, of_class: Tensor) -> None:
        """Weigh classes by the number of training pictures of each, [num_classes]."""
        if not self.balanced:
            raise ValueError("classes are not weighed by their numbers here: pass balanced=True")
        self.weight = of_class.sum() / (self.num_classes * of_class.clamp_min(1))

    def mix(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Pictures [B, C, H, W] as they are trained on, and their targets: labels [B], or shares [B, num_classes]."""
        if not self.mixup:
            return images, labels
        from torchvision.transforms.v2 import MixUp  # takes a second to import

        # It draws shares in the dtype of the pictures, which cannot be a half.
        mixed, shares = MixUp(alpha=self.mixup, num_classes=self.num_classes)(_precise(images), labels)
        return mixed.to(images.dtype), shares

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        if self.balanced and self.weight is None:
            raise ValueError("balanced classes weigh by the numbers of their pictures: call count(…) first")
        if self.weight is not None:
            self.weight = self.weight.to(logits)  # once: a step is not to wait for it
        weight = self.weight
        shared = torch.distributed.is_available() and torch.distributed.is_initialized()
        if weight is None or (targets.ndim == 1 and not shared):
            return F.cross_entropy(logits, targets, weight, label_smoothing=self.label_smoothing)
        if targets.ndim == 1:
            targets = F.one_hot(targets, self.num_classes).to(weight)
        # Where targets are no labels, PyTorch divides by the number of pictures instead of their weights.
        smooth = (1 - self.label_smoothing) * targets + self.label_smoothing / self.num_classes
        total = (weight * targets).sum().detach()
        if shared:  # gradients are averaged over the processes, which so divide by one sum
            torch.distributed.all_reduce(total)
            total /= torch.distributed.get_world_size()
        return -(weight * smooth * logits.log_softmax(-1)).sum() / total


def _by_class(weights: Sequence[float] | Tensor, num_classes: int) -> Tensor:
    with suppress(TypeError, ValueError, RuntimeError, OverflowError):  # of what is no list of numbers
        found = torch.as_tensor(weights, dtype=torch.float32)
        if found.shape == (num_classes,) and bool(((found > 0) & (found < math.inf)).all()):
            return found
    raise ValueError(f"weights must be {num_classes} positive numbers, one of each class, but got {weights}")


def _precise(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
