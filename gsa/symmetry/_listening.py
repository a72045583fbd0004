"""What the submodules of a network return, heard while it runs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from gsa._compiled import as_written

__all__ = ["answers", "beside", "heard", "tensor_of"]


@contextmanager
def heard(module: nn.Module, hear: Callable[[str, Tensor], Tensor | None]) -> Iterator[None]:
    """While it runs, what submodules return is heard, as it is returned; the module itself is not.

    One that is compiled runs as it was written.

    Args:
        module: any network.
        hear: given the name of a submodule, "name (2)" when it is called again, and what it returns, or the first
            tensor of several; a tensor that it returns itself takes the place of that, unless that lies deeper.
    """
    calls: dict[str, int] = {}

    def listen(name: str, layer: nn.Module, inputs: Any, output: Any) -> Any:
        calls[name] = calls.get(name, 0) + 1
        if (tensor := tensor_of(output)) is None:
            return None
        other = hear(name if calls[name] == 1 else f"{name} ({calls[name]})", tensor)
        if other is None or isinstance(output, Tensor):
            return other
        if not isinstance(output, tuple | list) or not any(part is tensor for part in output):
            return None  # it lies deeper, and stays
        parts = (other if part is tensor else part for part in output)
        return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)

    with ExitStack() as stack:
        for name, layer in module.named_modules():
            if layer is not module:
                stack.callback(layer.register_forward_hook(partial(listen, name)).remove)
        stack.enter_context(as_written(module))
        yield


def tensor_of(output: Any) -> Any:
    """What a layer returns, or the first tensor of several; None if there is none of numbers with fractions."""
    return next(filter(_has_fractions, _tensors(output)), None)


def answers(output: Any) -> list[Tensor]:
    """What a network returns, to be judged: every tensor of lists and dictionaries, whole numbers as float64.

    Of a tuple it is the first part that has numbers with fractions, as others may be weights or states; see `beside`.
    """
    if isinstance(output, tuple):
        return next((answers(part) for part in output if tensor_of(part) is not None), [])
    return [each.clone() if _has_fractions(each) else each.cpu().double() for each in _tensors(output)]


def beside(output: Any) -> list[Tensor]:
    """Tensors of a tuple that are not among its `answers`."""
    if not isinstance(output, tuple):
        return []
    first, *others = [part for part in output if tensor_of(part) is not None] or [()]
    return [*beside(first), *filter(_has_fractions, _tensors(others))]


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, tuple | list | Mapping):
        for part in output.values() if isinstance(output, Mapping) else output:
            yield from _tensors(part)


def _has_fractions(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()
