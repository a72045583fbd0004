"""The pictures of a report."""

from pathlib import Path

import torch
from torch import Tensor

from gsa import viz
from gsa.groups import group
from gsa.training._build import Parts
from gsa.training._report import measured_group

__all__ = ["draw_gallery"]

PICTURES = 64  # turned to every angle


def draw_gallery(folder: Path, report: dict, parts: Parts, confusion: Tensor | None) -> None:
    """learning, angles, orbit, encodings, attention, confusion and symmetry .png, as far as there is something to draw.

    Args:
        folder: where they go.
        report: of the run.
        parts: of the run, with the trained network.
        confusion: counts of the test, [K, K]; None where nothing was tested.
    """
    network = parts.network.eval()
    pictures, labels = parts.data.parts["test"].first(PICTURES)
    classify = parts.logits  # of raw pictures: the zeros that turning brings into the corners are black
    figures = {
        "angles": viz.draw_angles(classify, pictures, labels, group("R24")),
        "symmetry": viz.draw_errors(report["equivariance_error_before"], report["equivariance_error"]),
    }
    if report["history"]:
        figures["learning"] = viz.draw_learning(report["history"])
    if confusion is not None:
        figures["confusion"] = viz.draw_confusion(confusion)
    lifting = next((module for module in network.modules() if getattr(module, "lifts", False)), None)
    if lifting is not None:
        figures["orbit"] = viz.draw_orbit(
            pictures[0], lambda raw: lifting(parts.normalised(raw)), {"logits": classify}, measured_group(network)
        )
        with torch.no_grad():
            spatial = lifting.acted_encoding(*pictures.shape[-2:])
            maps = lifting.attention(parts.normalised(pictures[:1]))[0].mean(0)  # over heads: [|H|, H, W, U, V]
        figures["encodings"] = viz.draw_encodings(spatial, lifting.group)
        row, column = divmod(int(pictures[0].mean(0).argmax()), pictures.shape[-1])  # the brightest pixel
        figures["attention"] = viz.draw_attention(pictures[0], maps[:, row, column], (row, column), lifting.group)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=110)
