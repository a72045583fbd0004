"""A wandb workspace for our runs; saving it needs an account, and `pip install "gsa-nets[dashboard]"`."""

from typing import Any

from gsa._extras import brought_by
from gsa.report._gallery import GALLERY

__all__ = ["dashboard"]

_OF_HEADS = ("heads", "attention", "encodings")


def dashboard(entity: str, project: str) -> Any:
    """A workspace with sections for learning, test, symmetry, pictures and machine; seeds of an experiment in one line.

    Args:
        entity: user or team.
        project: that its runs log to (`logger.wandb.project`).

    Returns:
        `wandb_workspaces.workspaces.Workspace`; its `save()` uploads it.

    Raises:
        ModuleNotFoundError: wandb-workspaces is not installed.
    """
    with brought_by("dashboard"):
        import wandb_workspaces.reports.v2 as panels
        import wandb_workspaces.workspaces as workspaces

    def curve(metric: str) -> Any:
        return panels.LinePlot(title=metric, x="trainer/global_step", y=[metric], groupby="group")

    def bars(metric: str) -> Any:
        return panels.BarPlot(title=metric, metrics=[metric], groupby="group", orientation="h")

    def picture(name: str) -> Any:
        return panels.MediaBrowser(title=name, media_keys=[f"pictures/{name}"])

    sections = {
        "learning": [
            *(curve(f"{part}/{what}") for what in ("accuracy", "loss") for part in ("val", "train")),
            curve("val/balanced_accuracy"),
        ],
        "test": [bars(f"test/{what}") for what in ("accuracy", "balanced_accuracy", "auroc", "loss")],
        "symmetry": [
            bars("symmetry/before/worst_exact"),
            bars("symmetry/after/worst_exact"),
            panels.ScatterPlot(
                title="accuracy and symmetry",
                x=panels.SummaryMetric("symmetry/after/worst_exact"),
                y=panels.SummaryMetric("test/accuracy"),
                log_x=True,
            ),
            *map(picture, ("symmetry", "angles", "orbit")),
        ],
        "where heads look": [picture(name) for name in _OF_HEADS],
        "pictures": [picture(name) for name in GALLERY if name not in (*_OF_HEADS, "symmetry", "angles", "orbit")],
        "machine": [curve("system/seconds_per_epoch"), bars("system/peak_memory_mb")],
    }
    return workspaces.Workspace(
        entity=entity,
        project=project,
        name="group-equivariant self-attention",
        sections=[workspaces.Section(name=name, panels=found, is_open=True) for name, found in sections.items()],
    )
