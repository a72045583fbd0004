"""Means over pictures."""

import torch
from torch import Tensor
from torchmetrics import Metric

__all__ = ["MeanOfPictures"]


class MeanOfPictures(Metric):
    """The mean of what batches of several sizes come to, over all processes; what is not a number stays in it.

        mean = Σ_b n_b v_b / Σ_b n_b

    `torchmetrics.MeanMetric` takes NaN out, or else takes no notice of the sizes (its nan_strategy="disable", 1.9).
    """

    total: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("total", "count"):  # in float32 whatever the network computes in: a half stops counting at 256
            self.add_state(name, torch.zeros((), dtype=torch.float32), dist_reduce_fx="sum")

    def update(self, values: Tensor, sizes: Tensor) -> None:
        """Add batches: their values, and how many pictures each has, both [batches]."""
        with torch.inference_mode(False):  # what is made here is added to elsewhere
            self.set_dtype(torch.promote_types(self.total.dtype, values.dtype))
        for part in (values.to(self.total.dtype) * sizes).unbind():  # one by one: the same bits however they are told
            self.total = self.total + part  # not in place: what inference has made cannot be changed elsewhere
        self.count = self.count + sizes.sum()

    def compute(self) -> Tensor:
        return self.total / self.count
