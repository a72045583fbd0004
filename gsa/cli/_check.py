"""gsa check"""

import json
import math
from argparse import Namespace

from gsa.cli._subject import subject
from gsa.groups import Group
from gsa.symmetry import Action, GroupAction, LayerReport, Shifts

__all__ = ["run"]


def run(options: Namespace) -> int:
    """The errors of a network and of its layers under each element of a symmetry, on random pictures.

    Exit code 1 where an exact element of the symmetry that is claimed is broken, or an error is not a number.
    """
    what = str(options.checkpoint or options.network or "")
    if not what or (options.checkpoint and options.network):
        raise ValueError("say what to check once: a name, a run, or module:attribute; gsa check --help shows examples")
    if options.group and options.shift:
        raise ValueError("say one symmetry: --group or --shift, but got both")
    if options.margin and not options.shift:
        raise ValueError(f"--margin is for --shift, but got --margin {options.margin} alone")
    network, images, own = subject(what, options.input)
    claimed = _claimed(options, own)
    symmetry = claimed or GroupAction("R4M")
    report = LayerReport.of(network.double(), images.double(), symmetry, options.tolerance, options.backward)
    errors = report.errors[list(report.errors)[-1]]
    broken = [g for g, error in errors.items() if not math.isfinite(error) or (claimed and g in report.broken)]
    if options.picture:
        from gsa.viz import draw_layers

        draw_layers(report, options.depth).savefig(options.picture, dpi=150)
    if options.json:
        print(json.dumps(report.as_dict() | {"claimed": claimed is not None}, indent=1))
    else:
        print(_told(what, report, claimed, broken, options.depth))
    return 1 if broken else 0


def _claimed(options: Namespace, own: Group | None) -> Action | None:
    """What is said, or the network's own group; None where there is neither."""
    if options.shift:
        return Shifts(*map(_pixels, options.shift), margin=options.margin)
    if options.group:
        return GroupAction(options.group)
    return GroupAction(own) if own is not None and own.order > 1 else None


def _pixels(shift: str) -> tuple[int, int]:
    try:
        down, right = map(int, shift.split(","))
    except ValueError:
        raise ValueError(f"--shift must be pixels down and right, such as 16,0, but got {shift!r}") from None
    return down, right


def _told(what: str, report: LayerReport, claimed: Action | None, broken: list[int], depth: int) -> str:
    """A line for each element, and a table of the layers."""
    measured, whole = report.symmetry, list(report.errors)[-1]
    change = "error of its input's gradient" if report.backward else "relative change of what it returns"
    lines = [f"{what} ({claimed.name if claimed else 'no symmetry claimed'}): {change}"]
    for g, error in report.errors[whole].items():
        note = "not claimed" if claimed is None and g else "exact" if g in measured.exact else "sampled"
        lines.append(f"    {measured.elements[g]:20s} {error:.1e}  {'BROKEN' if g in broken else note}")
    lines += ["", report.table(depth)]
    return "\n".join(lines)
