"""How a map is run to be judged: in eval mode, in full precision, and by its name where it fails."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["evaluating", "name_of", "refuse_no_tensor", "saying_dtype"]


def name_of(module: Callable) -> str:
    """What a module, or a function, is called in messages."""
    return type(module).__name__ if isinstance(module, nn.Module) else getattr(module, "__name__", "the function")


def refuse_no_tensor(x: object) -> None:
    """Refuse arrays, lists of pictures and the like.

    Raises:
        ValueError: with the class.
    """
    if not isinstance(x, Tensor):
        raise ValueError(
            f"what is moved needs to be a torch.Tensor, but got {type(x).__name__}: torch.from_numpy makes one of an "
            "array, torch.stack of a list of pictures, which a function around the network can take apart again"
        )


@contextmanager
def saying_dtype(module: Callable, x: Tensor) -> Iterator[None]:
    """What fails inside where an input is not of the dtype of a module's weights is said in words, a ValueError."""
    try:
        yield
    except RuntimeError as error:
        owner = _owner(module)
        parameters = owner.parameters() if owner is not None else ()
        weights = next((p.dtype for p in parameters if p.is_floating_point()), x.dtype)
        if x.dtype == weights:
            raise
        raise ValueError(
            f"the input must be of the dtype that {name_of(module)} takes, such as the {weights} of its weights, but "
            f"is {x.dtype}: {error}"
        ) from error


@contextmanager
def evaluating(module: Callable) -> Iterator[None]:
    """Eval mode inside, and float32 not rounded by GPUs; every submodule's own mode is put back afterwards."""
    owner = _owner(module)
    training = [m for m in owner.modules() if m.training] if owner is not None else []
    try:
        for m in training:
            m.training = False
        with _unrounded():
            yield
    finally:
        for m in training:
            m.training = True


@contextmanager
def _unrounded() -> Iterator[None]:
    """No TF32, whose 10 bits are no module's own error; torch refuses to read its older settings where newer differ."""
    backends: Any = torch.backends
    newer = backends.cudnn.conv, backends.cudnn.rnn, backends.cuda.matmul
    precisions = [setting.fp32_precision for setting in newer]
    products, rounds = None, True
    with suppress(RuntimeError):
        products = torch.get_float32_matmul_precision()
    try:
        _set_all(newer, "ieee")
        with suppress(RuntimeError):
            rounds = backends.cudnn.allow_tf32  # only an older False does not differ now
        torch.set_float32_matmul_precision("highest")
        backends.cudnn.allow_tf32 = False
        _set_all(newer, "ieee")  # which the older have changed
        yield
    finally:
        if products is not None:
            torch.set_float32_matmul_precision(products)
        backends.cudnn.allow_tf32 = rounds
        for setting, precision in zip(newer, precisions, strict=True):
            setting.fp32_precision = precision


def _set_all(settings: Iterable[Any], precision: str) -> None:
    for setting in settings:
        setting.fp32_precision = precision


def _owner(module: Callable) -> nn.Module | None:
    """The module itself, or that of a method or of a partial call."""
    if isinstance(module, partial):
        return _owner(module.func)
    module = getattr(module, "__self__", module)
    return module if isinstance(module, nn.Module) else None
