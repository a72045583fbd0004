"""gsa check"""

import json
import math
from argparse import Namespace

from gsa.cli._subject import subject
from gsa.groups import Group, group
from gsa.symmetry import LayerReport

__all__ = ["run"]


def run(options: Namespace) -> int:
    """The equivariance error of a network and of its layers under each element of a group, on random pictures.

    Exit code 1 where an exact element of the group that is claimed is broken, or an error is not a number.
    """
    what = str(options.checkpoint or options.network or "")
    if not what or (options.checkpoint and options.network):
        raise ValueError("say what to check once: a name, a run, or module:attribute; gsa check --help shows examples")
    network, images, own = subject(what, options.input)
    claimed = group(options.group) if options.group else own if own is not None and own.order > 1 else None
    report = LayerReport.of(network.double(), images.double(), claimed or group("R4M"), options.tolerance)
    errors = report.errors[list(report.errors)[-1]]
    broken = [g for g, error in errors.items() if not math.isfinite(error) or (claimed and g in report.broken)]
    if options.json:
        print(json.dumps(report.as_dict() | {"claimed": claimed is not None}, indent=1))
    else:
        print(_told(what, report, claimed, broken, options.depth))
    return 1 if broken else 0


def _told(what: str, report: LayerReport, claimed: Group | None, broken: list[int], depth: int) -> str:
    """A line for each element, and a table of the layers."""
    measured, exact = report.group, report.group.grid_elements
    whole = list(report.errors)[-1]
    lines = [f"{what} ({claimed.name if claimed else 'no symmetry claimed'}): relative change of what it returns"]
    for g, error in report.errors[whole].items():
        note = "not claimed" if claimed is None and g else "exact" if g in exact else "sampled"
        lines.append(f"    {measured.describe(g):20s} {error:.1e}  {'BROKEN' if g in broken else note}")
    lines += ["", report.table(depth)]
    return "\n".join(lines)
