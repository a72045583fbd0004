"""Maps that return nearly the same of any input, and inputs that nothing moves, say nothing of a symmetry."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from gsa.symmetry._norm import relative_error

__all__ = ["another", "refuse_silence", "refuse_stillness"]

_LITTLE, _MANY = 1e-3, 1000  # what other inputs have to change of an output, and how many times its error


def refuse_silence(
    run: Callable[[Tensor], Tensor], x: Tensor, output: Tensor, errors: Iterable[float], name: str
) -> None:
    """Refuse to judge a map by small errors where other inputs hardly change what it returns, which has none larger.

        ‖Φ(x′) − Φ(x)‖ / ‖Φ(x)‖ ≤ 10⁻³ and ≤ 1000 errors, or 0

    Args:
        run: the map.
        x: its input.
        output: what it has made of that.
        errors: found so far.
        name: of the map.

    Raises:
        ValueError: such a map.
    """
    largest = max(errors, default=0.0)
    if not largest <= _LITTLE:
        return
    other = run(another(x))
    if torch.equal(other, output):
        raise ValueError(
            f"{name} returns the same whatever it is given, which says nothing of a symmetry: is the input "
            f"{list(x.shape)} empty, or are its last weights still zero, as those of torchvision's transformers are?"
        )
    if (change := relative_error(other, output)) <= min(_LITTLE, _MANY * largest):
        raise ValueError(
            f"{name} returns nearly the same whatever it is given (another input changes {change:.1e} of it, the "
            f"symmetry {largest:.1e}), which says nothing of a symmetry: judge what it makes before its last bias, or "
            "trained weights"
        )


def refuse_stillness(x: Tensor, moved: Iterable[Tensor], name: str) -> None:
    """Refuse to judge by an input that stays as it is, for which any map commutes.

    Args:
        x: the input; an empty one is left to `refuse_silence`, and one of a single pixel can be no other, while what is
            made of it may have poses.
        moved: what a symmetry makes of it; where it is nothing, nothing is asked.
        name: of the symmetry.

    Raises:
        ValueError: such an input.
    """
    stays = (torch.equal(other, x) for other in moved)
    if x.numel() and x.shape[-2:].numel() > 1 and next(stays, False) and all(stays):
        raise ValueError(
            f"{name} moves nothing of this input: expected one that is changed, as random numbers are, but the given "
            f"{list(x.shape)} stays as it is, of which every map keeps the symmetry"
        )


def another(x: Tensor) -> Tensor:
    """Random numbers in the place of some input, by a seed that nobody else has; whole ones in another order."""
    generator = torch.Generator().manual_seed(0x5EED)
    if x.is_floating_point() or x.is_complex():
        kind = torch.complex64 if x.is_complex() else torch.float32
        return torch.rand(x.shape, generator=generator, dtype=kind, device="cpu").to(x)
    order = torch.randperm(x.numel(), generator=generator, device="cpu").to(x.device)
    return x.flatten()[order].view_as(x)
