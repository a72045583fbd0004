"""The pictures of a report."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gsa import viz
from gsa.groups import group
from gsa.nn import LiftingSelfAttention, SelfAttention, crop_border
from gsa.report._letters import all_letters, class_labels, short_label
from gsa.report._subject import Findings, Subject
from gsa.symmetry import measured_group

__all__ = ["GALLERY", "draw_gallery"]

GALLERY = ("learning", "confusion", "mistakes", "angles", "attention", "orbit", "encodings", "heads", "symmetry")

_TURNED = 64  # pictures, to every angle
_LARGEST_MAP = 2**30  # bytes of attention maps written out for one picture

_log = logging.getLogger(__name__)


def draw_gallery(folder: Path, report: dict[str, Any], run: Subject, findings: Findings | None) -> list[str]:
    """Draw what there is to draw of GALLERY, each as a .png.

    Args:
        folder: where they go.
        report: of the run.
        run: with its network trained.
        findings: what the test has shown; None where there was none.

    Returns:
        Names of those that could not be drawn; why is logged, and nothing else is lost.
    """
    run.network.eval()
    failed = []
    for name, draw in _figures(report, run, findings).items():
        try:
            with all_letters():
                draw().savefig(folder / f"{name}.png", dpi=110)
        except Exception as error:
            failed.append(name)
            _log.warning("the picture %s.png could not be drawn: %s", name, error, exc_info=True)
    return failed


def _figures(report: dict[str, Any], run: Subject, findings: Findings | None) -> dict[str, Callable[[], Any]]:
    """Name → what draws it."""
    pictures, labels = run.data.parts["test"].first(_TURNED)
    names = class_labels(list(run.data.classes))
    # of raw pictures: the zeros that turning brings into the corners are black
    figures: dict[str, Callable[[], Any]] = {
        "angles": lambda: viz.draw_angles(run.logits, pictures, labels, group("R24")),
        "symmetry": lambda: viz.draw_errors(report["equivariance_error_before"], report["equivariance_error"]),
    }
    if report["history"]:
        figures["learning"] = lambda: viz.draw_learning(report["history"])
    if findings is not None:
        figures["confusion"] = lambda: viz.draw_confusion(findings.confusion, names)
        if findings.mistakes:
            figures["mistakes"] = lambda: _draw_mistakes(findings, run, names)
    lifting = next((module for module in run.network.modules() if isinstance(module, LiftingSelfAttention)), None)
    if lifting is not None:
        measured = measured_group(getattr(run.network, "group", None))
        figures["orbit"] = lambda: viz.draw_orbit(
            pictures[0], lambda raw: lifting(run.normalised(raw)), {"logits": run.logits}, measured
        )
        figures["encodings"] = lambda: viz.draw_encodings(_encodings(lifting, pictures), lifting.group)
        figures["attention"] = lambda: _draw_attention(lifting, run, pictures[0])
    if any(isinstance(module, SelfAttention) and module.encoding.places_heads for module in run.network.modules()):
        figures["heads"] = lambda: viz.draw_heads(run.network)
    return figures


@torch.no_grad()
def _encodings(lifting: LiftingSelfAttention, pictures: Tensor) -> Tensor:
    return lifting.acted_encoding(*pictures.shape[-2:])


def _draw_mistakes(findings: Findings, run: Subject, names: Sequence[str]) -> Any:
    """The pictures of the test that were taken for another class with the most confidence."""
    part = run.data.parts["test"]
    pictures = part.as_read(torch.stack([one.picture for one in findings.mistakes]))
    taken = "{}, taken for\n{} ({:.0f} %)".format
    captions = [taken(names[one.label], names[one.predicted], 100 * one.confidence) for one in findings.mistakes]
    if (files := part.files) is not None:
        called = [short_label(Path(files[one.row][0]).name) for one in findings.mistakes]
        captions = [f"{caption}\n{name}" for caption, name in zip(captions, called, strict=True)]
    return viz.draw_mistakes(pictures, captions)


def _draw_attention(lifting: LiftingSelfAttention, run: Subject, picture: Tensor) -> Any:
    """Where the pixel that the likeliest class depends on most looks, in every pose, in the mean over heads."""
    height, width = picture.shape[-2:]
    if (needed := bytes_of_maps(lifting, height, width)) > _LARGEST_MAP:
        raise ValueError(
            f"the attention maps of a {height}×{width} picture would take {needed / 2**30:.1f} GB; at most "
            f"{_LARGEST_MAP / 2**30:.0f} GB are written out"
        )
    asked = picture[None].clone().requires_grad_()
    (slope,) = torch.autograd.grad(run.logits(asked).max(), asked)
    inside = crop_border(slope[0].abs().sum(0, keepdim=True), lifting.crop)[0]
    row, column = divmod(int(inside.argmax()), inside.shape[-1])
    with torch.no_grad():
        maps = lifting.attention(run.normalised(picture[None]))[0].mean(0)  # [|H|, H, W, U, V]
    pixel = (row + lifting.crop, column + lifting.crop)
    return viz.draw_attention(picture, maps[:, row, column], pixel, lifting.group)


def bytes_of_maps(lifting: LiftingSelfAttention, height: int, width: int) -> int:
    """What the maps [heads, |H|, H, W, U, V] of one picture take in float32."""
    rows, columns = lifting.neighbourhood.extent(height, width)
    return 4 * lifting.num_heads * lifting.group.order * height * width * rows * columns
