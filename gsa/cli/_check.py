"""gsa check"""

import json
import math
import sys
from argparse import Namespace

import torch
from torch import Tensor, nn

from gsa.cli._subject import of_tokens, subject
from gsa.files import one_line, refuse_unwritable
from gsa.groups import Field
from gsa.symmetry import Action, FeaturePermutations, GroupAction, LayerReport, Shifts, TokenPermutations

__all__ = ["run"]

_AXES = {"tokens": 1, "tokens-first": 0, "features": 1}  # of the tokens
_APART = {
    "tokens": "if the module takes [L, N, D], as PyTorch's do by default, say --permute tokens-first",
    "tokens-first": "if the module takes [N, L, D], say --permute tokens",
}


def run(options: Namespace) -> int:
    """The errors of a network and of its layers under each element of a symmetry, on random pictures or tokens.

    Exit code 1 where an exact element of the symmetry that is claimed is broken, or an error is not a number.
    """
    what = str(options.checkpoint or options.network or "")
    if not what or (options.checkpoint and options.network and ":" not in options.network):
        raise ValueError(
            "say what to check once: a name, a run, or module:attribute (beside --checkpoint, what builds the network "
            "of that run); gsa check --help shows examples"
        )
    said = [f"--{name}" for name in ("group", "shift", "permute") if getattr(options, name)]
    if len(said) > 1:
        raise ValueError(f"say one symmetry: --group, --shift or --permute, but got {' and '.join(said)}")
    if not 0 < options.tolerance < math.inf:
        raise ValueError(f"--tolerance must be positive and finite, but got {options.tolerance}")
    if options.depth < 0:
        raise ValueError(f"--depth must be at least 0, for the whole network alone, but got {options.depth}")
    if options.picture and options.picture.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--picture must end in .png, .svg or .pdf, but got {options.picture}")
    if options.picture:
        refuse_unwritable("--picture", options.picture)
    for name in ("takes", "returns"):
        if (field := getattr(options, name)) and (options.shift or options.permute):
            raise ValueError(f"--{name} is for --group, but got --{name} {field} with another symmetry")
    if options.margin and not options.shift:
        raise ValueError(f"--margin is for --shift, but got --margin {options.margin} without it")
    network, inputs, claimed = _permuted(what, options) if options.permute else _turned(what, options)
    symmetry, network, inputs = claimed or GroupAction("R4M"), network.double(), inputs.double()
    _refuse_unfit(what, network, inputs)
    if options.permute in _APART and not _tokens_meet(network, inputs, _AXES[options.permute]):
        print(f"gsa: no token sees another: {_APART[options.permute]}", file=sys.stderr)
    report = LayerReport.of(network, inputs, symmetry, options.tolerance, options.backward)
    errors = report.errors[list(report.errors)[-1]]
    broken = [g for g, error in errors.items() if not math.isfinite(error)]
    if claimed:
        broken = sorted({*broken, *report.broken})
    if options.json:
        print(json.dumps(report.as_dict() | {"claimed": claimed is not None}, indent=1))
    else:
        print(_told(what, report, claimed, broken, options.depth))
    if options.picture:
        from gsa.viz import draw_layers

        draw_layers(report, options.depth).savefig(options.picture, dpi=150)
    return 1 if broken else 0


def _refuse_unfit(what: str, network: nn.Module, inputs: Tensor) -> None:
    """A network that cannot be run on random inputs of this size; whatever it raises."""
    try:
        with torch.no_grad():
            network(inputs)
    except Exception as error:
        raise ValueError(
            f"{what} must take one tensor of floating numbers, of the shape {list(inputs.shape)} here (--input), but "
            f"raised {type(error).__name__}: {one_line(error)}{_of_precision(error)}"
        ) from error


def _of_precision(error: Exception) -> str:
    """Of tensors that a network makes while it runs, of another precision than what it is given."""
    if not any(word in str(error) for word in ("dtype", "Double", "double")):
        return ""
    return " (a network is checked in float64: what it makes while it runs has to be of the dtype of its input)"


def _turned(what: str, options: Namespace) -> tuple[nn.Module, Tensor, Action | None]:
    """A network of pictures, and what is said of it, or its own group; None where there is neither."""
    network, images, own = subject(what, options.input, options.network if options.checkpoint else None)
    if options.shift:
        return network, images, Shifts(*map(_pixels, options.shift), margin=options.margin)
    fields = [_field(said) for said in (options.takes, options.returns)]
    if options.group:
        claimed = GroupAction(options.group, *fields)
        if tuple(claimed.exact) == (0,):
            raise ValueError(
                f"of {options.group} no element but the identity maps the pixel grid to itself, so a network cannot be "
                "held to it: --shift tries translations, --group R4 quarter turns"
            )
        return network, images, claimed
    if own is not None and own.order > 1:
        return network, images, GroupAction(own, *fields)
    if options.takes or options.returns:
        raise ValueError(f"--takes and --returns need --group, as {what} says none")
    return network, images, None


def _field(said: str | None) -> Field:
    """What channels are, in words between commas, or as Python has them; without one, scalars."""
    names = [name.strip(" []'\"") for name in (said or "scalar").split(",")]
    kinds = [int(name) if name.isdecimal() else name for name in names]
    return kinds if len(kinds) > 1 else kinds[0]


def _permuted(what: str, options: Namespace) -> tuple[nn.Module, Tensor, Action]:
    """A module of tokens, and their orders or those of features."""
    axis = _AXES[options.permute]
    network, tokens = of_tokens(what, options.input, axis)
    return network, tokens, _orders(options.permute == "features", tokens, axis)


def _orders(of_features: bool, inputs: Tensor, axis: int) -> Action:
    """Backwards, moved on by one, and at random: of the tokens of [3, L, D] or [L, 3, D], or of features."""
    length = inputs.shape[2 if of_features else axis]
    if length < 2:
        raise ValueError(
            f"other orders need at least 2 {'features' if of_features else 'tokens'}, but --input gives {length}"
        )
    forward = torch.arange(length)
    orders = forward.flip(0), forward.roll(1), torch.randperm(length, generator=torch.Generator().manual_seed(0))
    symmetry = FeaturePermutations(*orders) if of_features else TokenPermutations(*orders, axis=axis)
    symmetry.elements = ["backwards", "moved on by one", "at random"]
    return symmetry


@torch.no_grad()
def _tokens_meet(network: nn.Module, inputs: Tensor, axis: int) -> bool:
    """Whether what becomes of the last token depends on the first one; where outputs are no tokens, so it is held."""
    changed = inputs.clone()
    changed.select(axis, 0).normal_(generator=torch.Generator().manual_seed(1))
    before, after = network(inputs), network(changed)
    if not isinstance(before, Tensor) or before.ndim != 3 or before.shape[axis] != inputs.shape[axis]:
        return True
    return not torch.equal(before.select(axis, -1), after.select(axis, -1))


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
    errors = report.errors[whole]
    for g in sorted({*errors, *broken}):  # a margin may leave nothing of the whole, but something of a layer
        if g in broken:
            note = "BROKEN" if not errors.get(g, math.inf) <= report.tolerance else "BROKEN by a layer"
        else:
            note = "not claimed" if claimed is None and g else "exact" if g in measured.exact else "sampled"
        error = f"{errors[g]:.1e}" if g in errors else "–      "
        lines.append(f"    {measured.elements[g]:20s} {error}  {note}")
    lines += ["", report.table(depth)]
    return "\n".join(lines)
