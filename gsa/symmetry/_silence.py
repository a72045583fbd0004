"""Maps that return the same of any input commute with everything, and say nothing of a symmetry."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

__all__ = ["another", "refuse_silence"]


def refuse_silence(
    run: Callable[[Tensor], Tensor], x: Tensor, output: Tensor, errors: Iterable[float], name: str
) -> None:
    """Refuse to judge a map by errors of nothing but zeros where it returns the same of any input, which has no errors.

    Args:
        run: the map.
        x: its input.
        output: what it has made of that.
        errors: found so far.
        name: of the map.

    Raises:
        ValueError: such a map.
    """
    if not any(errors) and x.is_floating_point() and torch.equal(run(another(x)), output):
        raise ValueError(
            f"{name} returns the same whatever it is given, which says nothing of a symmetry: is the input "
            f"{list(x.shape)} empty, or are its last weights still zero, as those of torchvision's transformers are?"
        )


def another(x: Tensor) -> Tensor:
    """Random numbers in the place of some input, by a seed that nobody else has."""
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(0x5EED)).to(x)
