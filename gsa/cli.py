"""The command `gsa`: networks by name, and what can be done with a trained one.

gsa list
gsa predict PICTURE … [--checkpoint RUN]
gsa check --checkpoint RUN
gsa export --checkpoint RUN --to FOLDER
gsa dashboard ENTITY/PROJECT
"""

import argparse
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gsa.files import printable
from gsa.files.pictures import read_picture
from gsa.groups import group
from gsa.models import create_model, list_models
from gsa.saved import Saved, export, read
from gsa.symmetry import equivariance_error

__all__ = ["main"]


def __getattr__(name: str) -> Any:
    """Names that configurations of version 0.1.0 look for here."""
    if name in ("RefuseBadConfig", "register"):
        from gsa import runner

        return getattr(runner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(arguments: list[str] | None = None) -> int:
    """The command. 0 when all is well; 1 when `check` finds a symmetry broken; 2 when it is asked what it cannot do."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except BrokenPipeError:  # nobody reads on: gsa list | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"gsa: {error}", file=sys.stderr)
        return 2


def list_networks(options: argparse.Namespace) -> int:
    """Every network, its group and its number of parameters."""
    for name in list_models():
        network = create_model(name)
        print(f"{name:24s} {network.group.name:4s} {sum(p.numel() for p in network.parameters()):>10,} parameters")
    return 0


def predict(options: argparse.Namespace) -> int:
    """The likeliest classes of pictures, and whether they stay when the pictures are turned and mirrored."""
    if options.top < 1:
        raise ValueError(f"--top must be at least 1 class, but got {options.top}")
    saved = read(options.checkpoint)
    network, known = saved.network, saved.pictures
    pictures = torch.stack([_read_picture(path, saved) for path in options.pictures])
    moves = group("R4M")
    inside = network.group.matrices
    outside = {g for g in range(moves.order) if not any(torch.equal(moves.matrices[g], m) for m in inside)}
    with torch.no_grad():
        logits = [network(known.normalise(moves.act(pictures, g))) for g in range(moves.order)]
    for index, path in enumerate(options.pictures):
        if not all(of_move[index].isfinite().all() for of_move in logits):
            raise ValueError(f"what the network says of {path} is not finite: it cannot be asked about such pictures")
    turned = [of_move.softmax(-1) for of_move in logits]
    names = [printable(name) for name in known.classes]
    for index, path in enumerate(options.pictures):
        chances, classes = turned[0][index].topk(min(options.top, known.num_classes))
        found = ", ".join(f"{names[c]} {100 * p:.1f} %" for p, c in zip(chances, classes.tolist(), strict=True))
        print(f"{printable(str(path))}: {found}")
        for g in range(1, moves.order):
            chance, label = turned[g][index].max(-1)
            note = f"  (not in {network.group.name})" if g in outside else ""
            print(f"    {moves.describe(g):20s} {names[int(label)]} {100 * chance:.1f} %{note}")
    return 0


def check(options: argparse.Namespace) -> int:
    """The equivariance error of a trained network under each element of its group, on random pictures."""
    saved = read(options.checkpoint)
    network, known = saved.network, saved.pictures
    generator = torch.Generator().manual_seed(0)
    size = (4, known.in_channels, known.image_size, known.image_size)
    pictures = known.normalise(torch.rand(size, generator=generator))
    own = network.group
    measured = own if own.order > 1 else group("R4M")
    errors = equivariance_error(network, pictures, measured)
    exact = {g for g in measured.grid_elements if own.order > 1}
    broken = [
        g for g, error in errors.items() if not math.isfinite(error) or (g in exact and error > options.tolerance)
    ]
    print(f"{saved.model['name']} ({own.name}): relative change of the logits of 4 random pictures")
    for g, error in errors.items():
        note = "exact" if g in exact or g == 0 else "not in its group" if own.order == 1 else "sampled"
        print(f"    {measured.describe(g):20s} {error:.1e}  {'BROKEN' if g in broken else note}")
    return 1 if broken else 0


def write(options: argparse.Namespace) -> int:
    """Weights as safetensors and the configuration beside them."""
    for file in export(read(options.checkpoint), options.to, options.program):
        print(file)
    return 0


def save_dashboard(options: argparse.Namespace) -> int:
    """A workspace for our runs on wandb, for people with an account."""
    import wandb

    from gsa.report import dashboard

    entity, slash, project = options.project.partition("/")
    if not (entity and slash and project) or "/" in project:
        raise ValueError(f"the project must be given as ENTITY/PROJECT, but got {options.project!r}")
    try:
        print(dashboard(entity, project).save().url)
    except wandb.errors.Error as error:
        raise ValueError(f"wandb did not take it: {error}") from error
    return 0


def _read_picture(path: Path, saved: Saved) -> Tensor:
    """[C, image_size, image_size] in [0, 1]: the shorter side scaled, the centre cut out."""
    from torchvision.transforms.functional import to_tensor

    known = saved.pictures
    return to_tensor(read_picture(path, "L" if known.in_channels == 1 else "RGB", known.image_size))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("gsa", description="Group-equivariant self-attention; to train: gsa-train --help")
    commands = parser.add_subparsers(required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        added.set_defaults(run=run)
        return added

    command("list", list_networks)
    for name, run in (("predict", predict), ("check", check), ("export", write)):
        added = command(name, run)
        if name == "predict":
            added.add_argument("pictures", nargs="+", type=Path, metavar="PICTURE")
            added.add_argument("--top", type=int, default=3, help="classes shown (default 3)")
        if name == "check":
            added.add_argument("--tolerance", type=float, default=1e-5, help="of exact elements (default 1e-5)")
        if name == "export":
            added.add_argument("--to", type=Path, required=True, metavar="FOLDER")
            added.add_argument("--program", action="store_true", help="a torch.export program as well")
        shipped = {"default": "rotmnist_gsa"} if name == "predict" else {"required": True}
        added.add_argument(
            "--checkpoint",
            type=Path,
            help="folder of a run, checkpoint, export, or a network that comes trained"
            + (" (default rotmnist_gsa)" if name == "predict" else ""),
            **shipped,
        )
    command("dashboard", save_dashboard).add_argument("project", metavar="ENTITY/PROJECT")
    return parser


if __name__ == "__main__":
    sys.exit(main())
