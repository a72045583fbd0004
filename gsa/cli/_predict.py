"""gsa predict"""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from torch import Tensor

from gsa._streams import note, stop_telling
from gsa.cli._subject import found
from gsa.files import one_line, prediction_table, printable, refuse_unwritable, write_whole
from gsa.files.folders import ENDINGS, files_inside, is_called_a_picture, passed_over
from gsa.files.pictures import BENEATH, has_pages, has_transparency, is_square_of
from gsa.groups import Group, group
from gsa.models import Network, PictureFormat
from gsa.saved import Saved, read

__all__ = ["run"]

_SHIPPED = "rotmnist_gsa"  # speaks where no other is chosen
_SHOWN = 5  # files of a note
_FAR = 0.8  # standard deviations of a pixel, between the mean of a picture and that of the network's


class _Asked(NamedTuple):
    """A file, probabilities [moves, num_classes] or why there are none, and whether it looks like a negative."""

    path: Path
    chances: Tensor | ValueError
    is_negative: bool


def run(options: Namespace) -> int:
    """Say what every picture is, a line each, and write all probabilities; pictures that cannot be read come last.

    Returns:
        0, or 1 where some pictures were left out, or 2 where all were.

    Raises:
        ValueError: options out of their range, folders without pictures, a file of a network that cannot be read.
    """
    _refuse(options)
    device = _device(options.device)
    files, others = _files(options.pictures)
    saved = read(options.checkpoint or _SHIPPED, found(options.network) if options.network else None)
    if options.checkpoint is None:
        _note(f"by {_SHIPPED} of the package, which knows digits; --checkpoint outputs/… for one of yours")
    saved.network.to(device)
    table: list[tuple[Path, Tensor]] = []
    left_out: list[ValueError] = []
    negatives: list[Path] = []
    try:
        with _progress() as progress:
            bar = progress.add_task("", total=len(files))
            moves = group("R4M" if options.poses else "Z2")
            for path, chances, is_negative in _asked(files, saved, moves, options.batch, options.invert):
                if isinstance(chances, ValueError):
                    left_out.append(chances)
                else:
                    negatives += [path] if is_negative else []
                    table.append((path, chances[0]))
                    _tell(_line(path, chances[0], saved.pictures, options.top), options.csv)
                    if options.poses:
                        _tell(_turned(chances, saved), options.csv)
                progress.advance(bar)
    finally:  # of what was stopped, too
        if options.csv is not None and table:
            paths, said = zip(*table, strict=True)
            known = {"path": paths}
            write_whole(options.csv, prediction_table(known, torch.stack(said).tolist(), saved.pictures.classes))
            if (looked := len(table) + len(left_out)) < len(files):
                _note(f"{options.csv} has {len(table)} of the {looked} pictures that were looked at, of {len(files)}")
    if others:
        _note(f"of the files in folders, {passed_over(others)}")
    if left_out:
        _note(f"left out {len(left_out)} of {len(files)} pictures:", *left_out)
    _tell_what_was_not_read([path for path, _ in table], saved.pictures)
    side = saved.pictures.image_size
    if _of_one_scale(saved.pictures) and (scaled := [path for path, _ in table if not is_square_of(path, side)]):
        _note(
            f"{len(scaled)} of {len(files)} pictures are not {side}×{side} and were scaled, such as "
            f"{printable(str(scaled[0]))}, though the network knows {saved.pictures.data} as its files are: cut larger "
            "ones into tiles of that side"
        )
    if negatives:
        _note(_doubt(negatives, len(files), saved.pictures))
    return 0 if not left_out else 1 if table else 2


def _tell_what_was_not_read(paths: Sequence[Path], known: PictureFormat) -> None:
    """What is told of files in training, too."""
    reader = known.reader()
    if not reader.reads_pages:
        if stacks := [path for path in paths if has_pages(path)]:
            _note(f"of {len(stacks)} with several pages the first was read:", *_few(stacks))
        if transparent := [path for path in paths if has_transparency(path)]:
            _note(f"{len(transparent)} with transparent pixels, {BENEATH}", *_few(transparent))
    if known.white is not None and (light := [path for path in paths if reader.is_over_white(path)]):
        _note(f"{len(light)} with values above what was white in training ({known.white}):", *_few(light))


def _few(paths: Sequence[Path]) -> list[str]:
    more = [f"… and {len(paths) - _SHOWN} more"] if len(paths) > _SHOWN else []
    return [*(printable(str(path)) for path in paths[:_SHOWN]), *more]


def _tell(text: str, table: Path | None) -> None:
    """On the screen, as long as somebody reads; the table is written all the same."""
    try:
        print(text)
    except OSError as error:
        if table is None and not isinstance(error, BrokenPipeError):
            raise
        stop_telling()


def _note(text: str, *pictures: object) -> None:
    """Beside what is asked for, with the pictures that are meant."""
    note("\n    ".join([f"gsa: {text}", *map(str, pictures)]))


def _refuse(options: Namespace) -> None:
    """What would otherwise fail after all pictures have been looked at, too."""
    for name, value, of in (("--top", options.top, "class"), ("--batch", options.batch, "picture")):
        if value < 1:
            raise ValueError(f"{name} must be at least 1 {of}, but got {value}")
    if options.network and (":" not in options.network or options.checkpoint is None):
        raise ValueError(
            "--network must be what builds the network of a run, as module:attribute, beside its --checkpoint, but "
            f"got {options.network}"
        )
    if options.csv is not None:
        if is_called_a_picture(options.csv) or (options.csv in options.pictures and options.csv.is_file()):
            raise ValueError(
                f"--csv must be a table, such as out.csv, but got {options.csv}, which is called a picture"
            )
        refuse_unwritable("--csv", options.csv)


def _device(name: str) -> torch.device:
    """A device that is here.

    Raises:
        ValueError: one that is not, or a name that is none.
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"--device must be a device that torch finds here, but got {name}: {one_line(error)}"
        ) from None
    return device


def _files(places: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The files that were named, and those in folders at any depth, sorted, that are called as pictures are; others.

    Raises:
        ValueError: a folder that has none, or a pattern that stands for none.
    """
    files: dict[Path, None] = {}
    others: list[Path] = []
    for place in places:
        if any(sign in place.name for sign in "*?") and not place.exists():
            raise ValueError(
                f"there is no file called {place}: the shell puts names in the place of * and ?, if there are such "
                "files and the word stands without quotes"
            )
        found = [place]
        if place.is_dir():
            inside = sorted(map(Path, files_inside(place)))
            found = [p for p in inside if is_called_a_picture(p)]
            others += [p for p in inside if not is_called_a_picture(p)]
            if not found:
                raise ValueError(f"there are no pictures in the folder {place}; expected files of {', '.join(ENDINGS)}")
        files |= dict.fromkeys(found)
    return list(files), others


def _asked(files: Sequence[Path], saved: Saved, moves: Group, batch: int, invert: bool) -> Iterator[_Asked]:
    """What the network says of each file, or of its negative, in turn, moved by each element."""
    for start in range(0, len(files), batch):
        found = [(path, _read(path, saved.pictures, invert)) for path in files[start : start + batch]]
        pictures = [picture for _, picture in found if isinstance(picture, Tensor)]
        chances = iter(_chances(torch.stack(pictures), saved, moves) if pictures else ())
        for path, picture in found:
            answer = picture if isinstance(picture, ValueError) else next(chances)
            if isinstance(answer, Tensor) and not answer.isfinite().all():
                answer = ValueError(f"what the network says of {printable(str(path))} is not finite")
            yield _Asked(path, answer, isinstance(picture, Tensor) and _is_negative(picture, saved.pictures))


def _read(path: Path, known: PictureFormat, invert: bool) -> Tensor | ValueError:
    """[C, image_size, image_size] in [0, 1]: the shorter side scaled, the centre cut out."""
    try:
        picture = known.read(path)
    except ValueError as error:
        return error
    return 1 - picture if invert else picture


def _of_one_scale(known: PictureFormat) -> bool:
    """Whether a network was trained on colour pictures that were all of one side, as no folders of pictures are."""
    return known.in_channels > 1 and known.data != "imagefolder"


def _is_negative(picture: Tensor, known: PictureFormat) -> bool:
    """Whether its brightness is far from that of the network's pictures, and that of its negative is not."""
    own, inverted = (float(known.normalise(p).mean()) for p in (picture, 1 - picture))
    return abs(own) > max(_FAR, 3 * abs(inverted))


def _doubt(negatives: Sequence[Path], count: int, known: PictureFormat) -> str:
    usual = "dark" if sum(known.mean) / len(known.mean) < 0.5 else "light"
    return (
        f"{len(negatives)} of {count} pictures look like negatives of those the network was trained on, which are "
        f"mostly {usual}, such as {printable(str(negatives[0]))}; --invert shows it their negatives"
    )


def _chances(pictures: Tensor, saved: Saved, moves: Group) -> Tensor:
    """[B, C, H, W] → probabilities [B, moves, num_classes]."""
    device = next(saved.network.parameters()).device
    with torch.no_grad():
        moved = (saved.pictures.normalise(moves.act(pictures, g)).to(device) for g in range(moves.order))
        return torch.stack([saved.network(each).softmax(-1) for each in moved], 1).cpu()


def _line(path: Path, chances: Tensor, known: PictureFormat, top: int) -> str:
    """A file and its likeliest classes."""
    best, classes = chances.topk(min(top, known.num_classes))
    return f"{printable(str(path))}: " + ", ".join(
        f"{printable(known.classes[c])} {100 * p:.1f} %" for p, c in zip(best, classes.tolist(), strict=True)
    )


def _turned(chances: Tensor, saved: Saved) -> str:
    """The likeliest class of a picture under each move, a line each."""
    moves, own = group("R4M"), saved.network.group if isinstance(saved.network, Network) else group("Z2")
    lines = []
    for g in range(1, moves.order):
        chance, label = chances[g].max(-1)
        inside = any(torch.equal(moves.matrices[g], matrix) for matrix in own.matrices)
        name = printable(saved.pictures.classes[int(label)])
        note = "" if inside else f"  (not in {own.name})"
        lines.append(f"    {moves.describe(g):20s} {name} {100 * chance:.1f} %{note}")
    return "\n".join(lines)


def _progress() -> Progress:
    """A bar on the terminal, beside what is printed; nothing where errors go elsewhere."""
    console = Console(stderr=True)
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    shared = console.is_terminal and sys.stdout.isatty()
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True, redirect_stdout=shared)
