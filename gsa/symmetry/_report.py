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
from gsa.symmetry._gradients import THE_INPUT, gradient_errors
from gsa.symmetry._group_action import GroupAction, action
from gsa.symmetry._hints import hint
from gsa.symmetry._layers import errors_given_to, errors_of_layers, layer_errors, layered, unjudged, within
from gsa.symmetry._norm import size

__all__ = ["LayerReport"]

_MOST_COLUMNS = 8
_MOST_NAMED = 4


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
        return self._worst(self.errors[layer])

    @property
    def first_broken(self) -> tuple[str, float, float] | None:
        """The first layer that breaks an exact element, with the worst error before and after it; None if none does.

        Before it is the layer that stands before it; what is done between the two counts as its own, unless `given`
        tells. Of gradients, in the order in which they arrive, and of submodules judged apart.
        """
        before = 0.0
        for layer, errors in (self.apart or self.errors).items():
            if (after := self._worst(errors)) > self.tolerance:
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
            "verdict": self._verdict(),
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
        return "\n".join([*lines, *self._verdict()])

    def _verdict(self) -> list[str]:
        if self.first_broken is not None:
            layer, before, after = self.first_broken
            if self.backward:
                return [
                    f"first broken on the way back at {layer}, by what it goes into: {before:.1e} before, "
                    f"{after:.1e} after (each submodule judged apart, on unbroken outputs)"
                ]
            why = [f"{list(self.errors)[-1]} breaks it, {self.hint}"] if self.hint else []
            where = [*self._between(layer, before, after), *self._in_another_order(layer), *self._kept_later(layer)]
            return [*where, *why, *self._silent()]
        if self.apart is None or not self.broken:
            return self._silent()
        if not set(self.broken) <= self.apart.get(THE_INPUT, {}).keys():
            return ["which layer breaks it is not told: the output of one of them says nothing of a broken element"]
        return ["no derivative breaks it by itself; outputs do, of which the report of the forward pass tells"]

    def _between(self, layer: str, before: float, after: float) -> list[str]:
        """Whether the first broken layer breaks it, or what is done before it, and in which module."""
        if not self.broken:
            return [f"the whole keeps it; {layer} is {after:.1e} off, unless what it returns is no map of the input"]
        rows = list(self.errors)
        last = rows[rows.index(layer) - 1] if layer != rows[0] else "the input"
        is_whole = layer == rows[-1]
        other = " or what is not judged" if self.unjudged and (is_whole or not self.given.get(layer)) else ""
        if is_whole:
            return [f"first broken after {last}, by {layer} itself{other}: {before:.1e} before, {after:.1e} after"]
        place = None
        for name, errors in self.given.items():
            if (given := self._worst(errors)) > self.tolerance:
                where = f"in {place}, before {name}" if place else f"between {last} and {name}"
                return [f"first broken {where}: {before:.1e} before, {given:.1e} in what {name} gets"]
            place = name if errors else place
        return [f"first broken by {layer}{other}: {before:.1e} before it, {after:.1e} after"]

    def _in_another_order(self, layer: str) -> list[str]:
        """Which layer is the first that breaks it if maps may be counted otherwise, where that is not the one named."""
        worst = {name: self._worst(errors) for name, errors in self.reordered.items()}
        first = next((name for name, error in worst.items() if error > self.tolerance), None)
        off = f"{worst[first]:.1e}" if first else ""
        if worst.get(layer, math.inf) <= self.tolerance:
            orders = "in another order (poses numbered otherwise, or among the channels)"
            then = f"; then {first} is the first that breaks it: {off}" if first else ""
            return [f"{layer} keeps it if its maps are {orders}{then}"]
        if first not in (None, layer):
            return [f"of features with other poses, {first} is the first that breaks it in any order: {off}"]
        return []

    def _kept_later(self, layer: str) -> list[str]:
        """Where a later layer keeps it, the first that breaks it for good: maps of attention are none of the input."""
        rows = list(self.errors)
        later = rows[rows.index(layer) + 1 :]
        last = next((name for name in later[::-1] if self.errors[name] and self.worst(name) <= self.tolerance), None)
        if last is None or not self.broken:
            return []
        return [
            f"{last}, which comes later, keeps it: if it is made of {layer}, which then returns no map of the input, "
            f"{later[later.index(last) + 1]} is the first that breaks it: {self.worst(last):.1e} before"
        ]

    def _silent(self) -> list[str]:
        """Which outputs and layers say nothing, and which parameters."""
        lines = []
        if self.beside:
            whole, shapes = list(self.errors)[-1], ", ".join(map(str, self.beside))
            lines.append(f"of the tuple that {whole} returns, only what comes first is judged, not {shapes}")
        if self.zero:
            lines.append(
                f"all zero as yet, so that what they may break is not seen: {', '.join(self.zero[:_MOST_NAMED])} "
                "(seen in their gradients: backward=True, or --backward)"
            )
        if not self.unjudged:
            return lines
        some = [f"{name} {shape}" for name, shape in list(self.unjudged.items())[:_MOST_NAMED]]
        more = f" and {len(self.unjudged) - len(some)} more" if len(self.unjudged) > len(some) else ""
        lines.append(
            f"not judged, as no outputs of such shapes are moved by {self.symmetry.name}: {', '.join(some)}{more}"
        )
        return lines

    def _cell(self, layer: str, elements: list[int]) -> str:
        errors = {g: self.errors[layer][g] for g in elements if g in self.errors[layer]}
        if not errors:
            return "–  "
        element = max(errors, key=lambda g: size(errors[g]))
        if element not in self.symmetry.exact:
            return f"{errors[element]:.1e} ~"
        return f"{errors[element]:.1e}" + ("  " if errors[element] <= self.tolerance else " ✗")

    def _worst(self, errors: Mapping[int, float]) -> float:
        return max((size(errors[g]) for g in self.symmetry.exact if g in errors), default=0.0)


def _still_zero(module: nn.Module) -> list[str]:
    """Such as embeddings of positions before training; biases and gains, of one axis, begin so."""
    return [name for name, value in module.named_parameters() if value.ndim > 1 and value.numel() and not value.any()]
