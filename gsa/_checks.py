"""Arguments of layers and networks out of their range are refused in the same words: the rule and what was given."""

from numbers import Integral
from typing import Any

from torch import Tensor
from torch.fx import Proxy

__all__ = [
    "check_choice",
    "check_floating",
    "check_kind",
    "check_pixels",
    "check_positive",
    "check_probability",
    "check_tensor",
    "is_count",
]


def is_count(value: Any, least: int = 0) -> bool:
    """Whether a value is an integer of at least `least`, and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_positive(**values: int) -> None:
    """Refuse what is not a positive integer.

    Raises:
        ValueError: naming the first.
    """
    for name, value in values.items():
        if not is_count(value, least=1):
            raise ValueError(f"{name} must be a positive integer, but got {value!r}")


def check_pixels(**values: int) -> None:
    """Refuse what is no number of pixels.

    Raises:
        ValueError: naming the first.
    """
    for name, value in values.items():
        if not is_count(value):
            raise ValueError(f"{name} must be a number of pixels, 0 or more, but got {value!r}")


def check_probability(**values: float) -> None:
    """Refuse what is not a number in [0, 1).

    Raises:
        ValueError: naming the first.
    """
    for name, value in values.items():
        if not isinstance(value, int | float) or not 0 <= value < 1:
            raise ValueError(f"{name} must be a probability in [0, 1), but got {value!r}")


def check_choice(choices: tuple[str, ...], **values: str) -> None:
    """Refuse what is not among the choices.

    Raises:
        ValueError: naming the first.
    """
    for name, value in values.items():
        if value not in choices:
            raise ValueError(f"{name} must be one of {choices}, but got {value!r}")


def check_kind(kind: type, **values: object) -> None:
    """Refuse what is not an object of a class.

    Raises:
        ValueError: naming the first.
    """
    for name, value in values.items():
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be of the class {kind.__name__}, but got {value!r}")


def check_tensor(x: object, taker: str) -> None:
    """Refuse arrays and pictures of other libraries, by what takes them.

    Raises:
        ValueError: with the class; what stands for a tensor while torch.fx traces.
    """
    if isinstance(x, Proxy):
        raise ValueError(
            f"{taker} cannot be traced by torch.fx: make a leaf of the module that it is in (leaf_modules); networks "
            "give features by gsa.create_model(…, features_only=True)"
        )
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{taker} needs a torch.Tensor, but got {type(x).__name__}: torch.from_numpy makes one of an array, "
            "torchvision.transforms.functional.to_tensor of a picture"
        )


def check_floating(x: Tensor, taker: str) -> None:
    """Refuse whole numbers, as of pictures that were read as bytes, by what takes them.

    Raises:
        ValueError: with the dtype; what is no tensor.
    """
    check_tensor(x, taker)
    if not (x.is_floating_point() or x.is_complex()):
        raise ValueError(f"{taker} needs floating numbers, as pictures / 255 are, but got {x.dtype}")
