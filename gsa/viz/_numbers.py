"""What matplotlib is given, which knows no half precision."""

import numpy
from torch import Tensor

__all__ = ["numbers"]


def numbers(tensor: Tensor) -> numpy.ndarray:
    """A tensor of any dtype and device as numbers in double precision."""
    return tensor.detach().cpu().double().numpy()
