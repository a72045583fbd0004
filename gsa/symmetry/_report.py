"""Errors layer by layer, judged, and told as text, table and plain values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from gsa.groups import Group
from gsa.symmetry._action import Action
from gsa.symmetry._any_order import InAnyOrder
from gsa.symmetry._assert import TOLERANCES
from gsa.symmetry._evaluating import refuse_no_tensor
from gsa.symmetry._gradients import gradient_errors
from gsa.symmetry._group_action import GroupAction, action
from gsa.symmetry._hints import hint
from gsa.symmetry._layers import errors_given_to, errors_of_layers, layer_errors, layered, unjudged, within
from gsa.symmetry._norm import size
from gsa.symmetry._verdict import verdict

__all__ = ["LayerReport"]

_MOST_COLUMNS = 8


@dataclass(frozen=True, repr=False)
class LayerReport:
    """`layer_errors` or `gradient_errors`, judged: exact elements within a tolerance or broken, others sampled.

    Attributes:
        symmetry: whose elements they are.
        errors: of `layer_errors` or `gradient_errors`.
        tolerance: what exact elements are held to.
        apart: of gradients, the errors of `gradient_errors` with every submodule judged apart; empty where none is
            broken.
        given: the errors of what the first broken submodule is given, and those that it is part of, from the outermost
            one to itself; empty ones where the symmetry does not move that.
        unjudged: submodules whose outputs the symmetry does not move, by name, and the shapes of these.
        beside: shapes of what the whole returns in a tuple behind what is judged.
        hint: of a whole that is broken, why that may be: that it is random, or keeps other fields, or another
            convention.
        reordered: where a layer breaks a group, the errors with the maps of layers in any order (`InAnyOrder`).
        zero: parameters of more than one axis that are all zero, where nothing is broken: what they would break is not
            seen as yet.
    """

    symmetry: Action
    errors: Mapping[str, Mapping[int, float]]
    tolerance: float = 1e-5
    apart: Mapping[str, Mapping[int, float]] | None = None
    given: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    unjudged: Mapping[str, list[int]] = field(default_factory=dict)
    beside: Sequence[list[int]] = ()
    hint: str = ""
    reordered: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    zero: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        module: nn.Module,
        x: Tensor,
        group: Action | Group | str,
        tolerance: float | None = None,
        backward: bool = False,
    ) -> "LayerReport":
        """Measure a module; arguments as in `layer_errors`, or for gradients as in `gradient_errors`.

        The tolerance is that of `assert_equivariant` if it is None, ten times as much for gradients, which cancel.
        """
        module, symmetry = layered(module), action(group)
        refuse_no_tensor(x)
        if tolerance is None:
            tolerance = TOLERANCES.get(x.dtype, 1e-5) * (10 if backward else 1)
        if not backward:
            errors = layer_errors(module, x, symmetry)
            left, beside = unjudged(module, x, errors)
            report = cls(symmetry, errors, tolerance, unjudged=left, beside=beside)
            if not report.broken:
                report = replace(report, zero=_still_zero(module))
            if report.first_broken is None:
                return report
            given = errors_given_to(module, x, symmetry, within(report.first_broken[0]))
            why = hint(module, x, symmetry, tolerance) if report.broken else ""
            reordered = {}
            if type(symmetry) is GroupAction:
                reordered = errors_of_layers(module, x, symmetry, partial(InAnyOrder, symmetry))
            return replace(report, given=given, hint=why, reordered=reordered)
        report = cls(symmetry, gradient_errors(module, x, symmetry), tolerance, {})
        return replace(report, apart=gradient_errors(module, x, symmetry, apart=True)) if report.broken else report

    @property
    def backward(self) -> bool:
        """Whether it is of gradients."""
        return self.apart is not None

    def worst(self, layer: str) -> float:
        """The largest error of a layer under exact elements; infinite where one is not a number."""
        return self.worst_of(self.errors[layer])

    def worst_of(self, errors: Mapping[int, float]) -> float:
        """The largest of some errors by element, as `worst`; 0 where no exact element has one."""
        return max((size(errors[g]) for g in self.symmetry.exact if g in errors), default=0.0)

    @property
    def first_broken(self) -> tuple[str, float, float] | None:
        """The first layer that breaks an exact element, with the worst error before and after it; None if none does.

        Before it is the layer that stands before it; what is done between the two counts as its own, unless `given`
        tells. Of gradients, in the order in which they arrive, and of submodules judged apart.
        """
        before = 0.0
        for layer, errors in (self.apart or self.errors).items():
            if (after := self.worst_of(errors)) > self.tolerance:
                return layer, before, after
            before = after
        return None

    @property
    def broken(self) -> list[int]:
        """Exact elements that the whole module breaks; of gradients, those that break any."""
        rows = list(self.errors.values())
        rows = rows if self.backward else rows[-1:]
        return [g for g in self.symmetry.exact if not all(row.get(g, 0.0) <= self.tolerance for row in rows)]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: errors by layer and element, in words; numbers that are not finite are None.

        The verdict is what stands below the table, line by line.
        """
        name = self.symmetry.elements
        return {
            "group": self.symmetry.name,
            "backward": self.backward,
            "tolerance": self.tolerance,
            "exact": [name[g] for g in self.symmetry.exact],
            "broken": [name[g] for g in self.broken],
            "first_broken": None if self.first_broken is None else self.first_broken[0],
            "unjudged": dict(self.unjudged),
            "verdict": verdict(self),
            "layers": {
                layer: {name[g]: error if math.isfinite(error) else None for g, error in errors.items()}
                for layer, errors in self.errors.items()
            },
        }

    def __repr__(self) -> str:
        return self.table()

    def shown(self, depth: int | None = None) -> list[str]:
        """Names of layers as deep as asked, and of the whole; see `table`."""
        whole = list(self.errors)[-1]
        levels = {name: sum(outer in self.errors for outer in within(name)[:-1]) for name in self.errors}
        return [name for name in self.errors if depth is None or name == whole or levels[name] < depth]

    def table(self, depth: int | None = None) -> str:
        """A row for each layer, a column for each element, and the first layer that breaks one.

        Broken exact elements are marked ✗, others ~, as they are sampled between the pixels; of symmetries of more
        than eight elements, the worst exact and the worst sampled one are shown. A – stands where the shape of an
        output says nothing of an element.

        Args:
            depth: 1 shows the layers of the network itself, 2 theirs as well; all when None. Lists of layers, which do
                nothing themselves, are no level.
        """
        exact, all_elements = self.symmetry.exact, range(len(self.symmetry.elements))
        sampled = [g for g in all_elements if g not in exact]
        columns = {self.symmetry.elements[g]: [g] for g in all_elements}
        if len(columns) > _MOST_COLUMNS:
            columns = {"exact": list(exact)} | ({"sampled": sampled} if sampled else {})
        shown = self.shown(depth)
        wide, cell_wide = max(map(len, shown)), max(9, *map(len, columns))
        lines = [" " * wide + "".join(f"  {name:>{cell_wide}s}" for name in columns)]
        for layer in shown:
            cells = (self._cell(layer, elements) for elements in columns.values())
            lines.append(f"{layer:{wide}s}" + "".join(f"  {cell:>{cell_wide}s}" for cell in cells))
        return "\n".join([*lines, *verdict(self)])

    def _cell(self, layer: str, elements: list[int]) -> str:
        errors = {g: self.errors[layer][g] for g in elements if g in self.errors[layer]}
        if not errors:
            return "–  "
        element = max(errors, key=lambda g: size(errors[g]))
        if element not in self.symmetry.exact:
            return f"{errors[element]:.1e} ~"
        return f"{errors[element]:.1e}" + ("  " if errors[element] <= self.tolerance else " ✗")


def _still_zero(module: nn.Module) -> list[str]:
    """Such as embeddings of positions before training; biases and gains, of one axis, begin so."""
    return [name for name, value in module.named_parameters() if value.ndim > 1 and value.numel() and not value.any()]
