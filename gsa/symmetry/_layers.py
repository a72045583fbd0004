"""Where a network loses a symmetry: the error of every layer's output, in the order in which they are reached."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gsa import groups
from gsa.groups import Group
from gsa.symmetry._measure import evaluating, relative_error

__all__ = ["LayerReport", "layer_errors"]

_MOST_COLUMNS = 8


def layer_errors(module: nn.Module, x: Tensor, group: Group | str) -> dict[str, dict[int, float]]:
    """How far the output of every submodule, as a function of the network's input, is from commuting with a group.

        error(g) = ‖F(L_g x) − L_g F(x)‖ / ‖F(x)‖,   F: input → output of the submodule

    The network is run in eval mode, without gradients. What L_g does is decided by the shape of an output: [B, K] has
    to be invariant, [B, C, H, W] and [B, H, W, C] are images, as are features of one pose, [B, C, 1, H, W],
    [B, C, |H|, H, W] are features of the group, and [B, N, C] are tokens on a square grid, perhaps with one of a class
    before them, which stays. Outputs of other shapes, and those that are no tensors, are left out; of a tuple, the
    first tensor counts.

    Args:
        module: any network of one tensor.
        x: pictures [B, C, H, W], or features [B, C, |H|, H, W].
        group: any group, or its name.

    Returns:
        {name of a submodule: {element index: relative error}} in the order in which submodules finish; one that is
        called again is called "name (2)". The whole module stands last, under the name of its class.

    Raises:
        ValueError: an output of the module itself of another shape.
    """
    group = groups.group(group)
    found: dict[str, dict[int, float]] = {}
    outputs: dict[str, Tensor] = {}

    def keep(name: str, output: Tensor) -> None:
        if _moved(output, group, 0) is not None:
            outputs[name] = output.clone()  # the next layer may work in place

    with torch.no_grad(), evaluating(module):
        whole = type(module).__name__
        with _heard(module, keep):
            keep(whole, _tensor(module(x)))
        if whole not in outputs:
            raise ValueError(
                f"{whole} must return [B, K], an image, tokens on a square grid, or a feature [B, C, "
                f"{group.order}, H, W] of floating numbers"
            )
        _leave_out_tables(module, torch.rand_like(x), outputs)
        found = {name: {} for name in outputs}
        for element in range(group.order):

            def compare(name: str, output: Tensor, element: int = element) -> None:
                if name in outputs:
                    before = outputs[name]
                    found[name][element] = relative_error(
                        output, _moved(before, group, element), before.double().norm()
                    )

            with _heard(module, compare):
                compare(whole, _tensor(module(group.act(x, element))))
    return found


def _leave_out_tables(module: nn.Module, other: Tensor, outputs: dict[str, Tensor]) -> None:
    """Take away what does not depend on the input: tables that some layer makes for itself, such as encodings."""
    constant: set[str] = set()

    def compare(name: str, output: Tensor) -> None:
        if name in outputs and torch.equal(output, outputs[name]):
            constant.add(name)

    with _heard(module, compare):
        module(other)
    for name in constant:
        del outputs[name]


@dataclass(frozen=True)
class LayerReport:
    """`layer_errors`, judged: exact elements within a tolerance or broken, others sampled.

    Attributes:
        group: whose elements they are.
        errors: of `layer_errors`.
        tolerance: what exact elements are held to.
    """

    group: Group
    errors: Mapping[str, Mapping[int, float]]
    tolerance: float = 1e-5

    @classmethod
    def of(cls, module: nn.Module, x: Tensor, group: Group | str, tolerance: float = 1e-5) -> "LayerReport":
        """Measure a module; arguments as in `layer_errors`."""
        return cls(groups.group(group), layer_errors(module, x, group), tolerance)

    def worst(self, layer: str) -> float:
        """The largest error of a layer under exact elements; infinite where one is not a number."""
        return max(_size(self.errors[layer][g]) for g in self.group.grid_elements)

    @property
    def first_broken(self) -> tuple[str, float, float] | None:
        """The first layer that breaks an exact element, with the worst error before and after it; None if none does."""
        before = 0.0
        for layer in self.errors:
            if (after := self.worst(layer)) > self.tolerance:
                return layer, before, after
            before = after
        return None

    @property
    def broken(self) -> list[int]:
        """Exact elements that the whole module breaks."""
        errors = self.errors[list(self.errors)[-1]]
        return [g for g in self.group.grid_elements if not errors[g] <= self.tolerance]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: errors by layer and element, in words; numbers that are not finite are None."""
        name = self.group.describe
        return {
            "group": self.group.name,
            "tolerance": self.tolerance,
            "exact": [name(g) for g in self.group.grid_elements],
            "broken": [name(g) for g in self.broken],
            "first_broken": None if self.first_broken is None else self.first_broken[0],
            "layers": {
                layer: {name(g): error if math.isfinite(error) else None for g, error in errors.items()}
                for layer, errors in self.errors.items()
            },
        }

    def __str__(self) -> str:
        return self.table()

    def table(self, depth: int | None = None) -> str:
        """A row for each layer, a column for each element, and the first layer that breaks one.

        Broken exact elements are marked ✗, others ~, as they are sampled between the pixels; of groups of more than
        eight elements, the worst exact and the worst sampled one are shown.

        Args:
            depth: 1 shows the layers of the network itself, 2 theirs as well; all when None.
        """
        exact, all_elements = self.group.grid_elements, range(self.group.order)
        sampled = [g for g in all_elements if g not in exact]
        columns = {self.group.describe(g): [g] for g in all_elements}
        if len(columns) > _MOST_COLUMNS:
            columns = {"exact": list(exact)} | ({"sampled": sampled} if sampled else {})
        whole = list(self.errors)[-1]
        shown = [name for name in self.errors if depth is None or name == whole or name.count(".") < depth]
        wide = max(map(len, shown))
        lines = [" " * wide + "".join(f"  {name:>9s}" for name in columns)]
        for layer in shown:
            worst = [max(elements, key=lambda g: _size(self.errors[layer][g])) for elements in columns.values()]
            lines.append(f"{layer:{wide}s}" + "".join(f"  {self._cell(g, self.errors[layer][g]):>9s}" for g in worst))
        if self.first_broken is not None:
            layer, before, after = self.first_broken
            lines.append(f"first broken by {layer}: {before:.1e} before it, {after:.1e} after")
        return "\n".join(lines)

    def _cell(self, element: int, error: float) -> str:
        if element not in self.group.grid_elements:
            return f"{error:.1e} ~"
        return f"{error:.1e}" + ("  " if error <= self.tolerance else " ✗")


def _size(error: float) -> float:
    return error if math.isfinite(error) else math.inf


@contextmanager
def _heard(module: nn.Module, hear: Callable[[str, Tensor], None]) -> Iterator[None]:
    """While it runs, what submodules return is heard, as it is returned; the module itself is not."""
    calls: dict[str, int] = {}

    def listener(name: str) -> Callable[..., None]:
        def listen(layer: nn.Module, inputs: Any, output: Any) -> None:
            calls[name] = calls.get(name, 0) + 1
            if (tensor := _tensor(output)) is not None:
                hear(name if calls[name] == 1 else f"{name} ({calls[name]})", tensor)

        return listen

    with ExitStack() as stack:
        for name, layer in module.named_modules():
            if layer is not module:
                stack.callback(layer.register_forward_hook(listener(name)).remove)
        yield


def _tensor(output: Any) -> Any:
    """What a layer returns, or the first tensor of several; None if there is none."""
    parts = output if isinstance(output, tuple | list) else (output,)
    return next((part for part in parts if isinstance(part, Tensor) and part.is_floating_point()), None)


def _moved(output: Tensor, group: Group, element: int) -> Any:
    """L_g of an output, as its shape says; None of a shape that says nothing."""
    if output.ndim == 2:
        return output
    if output.ndim == 5 and output.shape[2] == group.order:
        return group.act(output, element)
    if output.ndim == 5 and output.shape[2] == 1:
        return group.act(output.squeeze(2), element).unsqueeze(2)
    if output.ndim == 4:
        last = output.shape[1] == output.shape[2] != output.shape[3]  # channels
        return group.act(output.movedim(-1, 1), element).movedim(1, -1) if last else group.act(output, element)
    if output.ndim == 3:
        count = output.shape[1]
        for first in (0, 1):  # token of a class
            side = math.isqrt(count - first)
            if side > 1 and side * side == count - first:
                grid = output[:, first:].mT.unflatten(2, (side, side))
                moved = group.act(grid, element).flatten(2).mT
                return torch.cat((output[:, :first], moved), dim=1)
    return None
