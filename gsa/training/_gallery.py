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
    """learning, angles, orbit, encodings, confusion and symmetry .png, as far as there is something to draw.

    Args:
        folder: where they go.
        report: of the run.
        parts: of the run, with the trained network.
        confusion: counts of the test, [K, K]; None where nothing was tested.
    """
    network, test = parts.network.eval(), parts.data.parts["test"]
    pictures, labels = test.first(PICTURES)

    def classify(raw: Tensor) -> Tensor:  # turning brings zeros into the corners: black before normalisation
        return network(test.normalise(raw))

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
            pictures[0], lambda raw: lifting(test.normalise(raw)), {"logits": classify}, measured_group(network)
        )
        with torch.no_grad():
            spatial = lifting.acted_encoding(*pictures.shape[-2:])
        figures["encodings"] = viz.draw_encodings(spatial, lifting.group)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=110)
