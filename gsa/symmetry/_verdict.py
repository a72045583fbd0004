"""What is said of the errors of layers, in words."""

import math
from typing import TYPE_CHECKING

from gsa.symmetry._gradients import THE_INPUT

if TYPE_CHECKING:
    from gsa.symmetry._report import LayerReport

__all__ = ["verdict"]

_MOST_NAMED = 4


def verdict(report: "LayerReport") -> list[str]:
    """What stands below the table of a report: where it is broken first, why that may be, and what is not judged."""
    if report.first_broken is not None:
        layer, before, after = report.first_broken
        if report.backward:
            return [
                f"first broken on the way back at {layer}, by what it goes into: {before:.1e} before, "
                f"{after:.1e} after (each submodule judged apart, on unbroken outputs)"
            ]
        why = [f"{list(report.errors)[-1]} breaks it, {report.hint}"] if report.hint else []
        where = [
            *_between(report, layer, before, after),
            *_in_another_order(report, layer),
            *_kept_later(report, layer),
        ]
        return [*where, *why, *_silent(report)]
    if report.apart is None or not report.broken:
        return _silent(report)
    if not set(report.broken) <= report.apart.get(THE_INPUT, {}).keys():
        return ["which layer breaks it is not told: the output of one of them says nothing of a broken element"]
    return ["no derivative breaks it by itself; outputs do, of which the report of the forward pass tells"]


def _between(report: "LayerReport", layer: str, before: float, after: float) -> list[str]:
    """Whether the first broken layer breaks it, or what is done before it, and in which module."""
    if not report.broken:
        return [f"the whole keeps it; {layer} is {after:.1e} off, unless what it returns is no map of the input"]
    rows = list(report.errors)
    last = rows[rows.index(layer) - 1] if layer != rows[0] else "the input"
    is_whole = layer == rows[-1]
    other = " or what is not judged" if report.unjudged and (is_whole or not report.given.get(layer)) else ""
    if is_whole:
        return [f"first broken after {last}, by {layer} itself{other}: {before:.1e} before, {after:.1e} after"]
    place = None
    for name, errors in report.given.items():
        if (given := report.worst_of(errors)) > report.tolerance:
            where = f"in {place}, before {name}" if place else f"between {last} and {name}"
            return [f"first broken {where}: {before:.1e} before, {given:.1e} in what {name} gets"]
        place = name if errors else place
    return [f"first broken by {layer}{other}: {before:.1e} before it, {after:.1e} after"]


def _in_another_order(report: "LayerReport", layer: str) -> list[str]:
    """Which layer is the first that breaks it if maps may be counted otherwise, where that is not the one named."""
    worst = {name: report.worst_of(errors) for name, errors in report.reordered.items()}
    first = next((name for name, error in worst.items() if error > report.tolerance), None)
    off = f"{worst[first]:.1e}" if first else ""
    if worst.get(layer, math.inf) <= report.tolerance:
        orders = "in another order (poses numbered otherwise, or among the channels)"
        then = f"; then {first} is the first that breaks it: {off}" if first else ""
        return [f"{layer} keeps it if its maps are {orders}{then}"]
    if first not in (None, layer):
        return [f"of features with other poses, {first} is the first that breaks it in any order: {off}"]
    return []


def _kept_later(report: "LayerReport", layer: str) -> list[str]:
    """Where a later layer keeps it, the first that breaks it for good: maps of attention are none of the input."""
    rows = list(report.errors)
    later = rows[rows.index(layer) + 1 :]
    last = next((name for name in later[::-1] if report.errors[name] and report.worst(name) <= report.tolerance), None)
    if last is None or not report.broken:
        return []
    return [
        f"{last}, which comes later, keeps it: if it is made of {layer}, which then returns no map of the input, "
        f"{later[later.index(last) + 1]} is the first that breaks it: {report.worst(last):.1e} before"
    ]


def _silent(report: "LayerReport") -> list[str]:
    """Which outputs and layers say nothing, and which parameters."""
    lines = []
    if report.beside:
        whole, shapes = list(report.errors)[-1], ", ".join(map(str, report.beside))
        lines.append(f"of the tuple that {whole} returns, only what comes first is judged, not {shapes}")
    if report.zero:
        lines.append(
            f"all zero as yet, so that what they may break is not seen: {', '.join(report.zero[:_MOST_NAMED])} "
            "(seen in their gradients: backward=True, or --backward)"
        )
    if not report.unjudged:
        return lines
    some = [f"{name} {shape}" for name, shape in list(report.unjudged.items())[:_MOST_NAMED]]
    more = f" and {len(report.unjudged) - len(some)} more" if len(report.unjudged) > len(some) else ""
    lines.append(
        f"not judged, as no outputs of such shapes are moved by {report.symmetry.name}: {', '.join(some)}{more}"
    )
    return lines
