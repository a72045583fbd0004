"""What the submodules of a network return, heard while it runs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from gsa._compiled import as_written

__all__ = ["heard", "tensor_of"]


@contextmanager
def heard(module: nn.Module, hear: Callable[[str, Tensor], Tensor | None]) -> Iterator[None]:
    """While it runs, what submodules return is heard, as it is returned; the module itself is not.

    One that is compiled runs as it was written.

    Args:
        module: any network.
        hear: given the name of a submodule, "name (2)" when it is called again, and what it returns, or the first
            tensor of several; a tensor that it returns itself takes the place of that.
    """
    calls: dict[str, int] = {}

    def listen(name: str, layer: nn.Module, inputs: Any, output: Any) -> Any:
        calls[name] = calls.get(name, 0) + 1
        if (tensor := tensor_of(output)) is None:
            return None
        other = hear(name if calls[name] == 1 else f"{name} ({calls[name]})", tensor)
        if other is None or isinstance(output, Tensor):
            return other
        parts = (other if part is tensor else part for part in output)
        return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)

    with ExitStack() as stack:
        for name, layer in module.named_modules():
            if layer is not module:
                stack.callback(layer.register_forward_hook(partial(listen, name)).remove)
        stack.enter_context(as_written(module))
        yield


def tensor_of(output: Any) -> Any:
    """What a layer returns, or the first tensor of several; None if there is none of floating numbers."""
    parts = output if isinstance(output, tuple | list) else (output,)
    return next((part for part in parts if isinstance(part, Tensor) and part.is_floating_point()), None)
