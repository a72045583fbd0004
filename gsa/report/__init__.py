"""What is told of a run: report.json, a few lines of text, tables, pictures, and a dashboard."""

from gsa._extras import brought_by

with brought_by("train"):
    from gsa.report._announcement import announcement
    from gsa.report._certainty import area_interval, difference_interval, share_interval
    from gsa.report._description import (
        describe,
        forget_peak_memory,
        peak_memory_mb,
        read_report,
        symmetry_of,
        write_report,
    )
    from gsa.report._gallery import GALLERY, draw_gallery
    from gsa.report._subject import Subject
    from gsa.report._sweep import draw_sweep
    from gsa.report._tables import write_answers, write_parts
    from gsa.report._text import summary
    from gsa.report._wandb import WandbSections, outlive_wandb, show_on_wandb
    from gsa.report._workspace import dashboard

__all__ = [
    "GALLERY",
    "Subject",
    "WandbSections",
    "announcement",
    "area_interval",
    "dashboard",
    "describe",
    "difference_interval",
    "draw_gallery",
    "draw_sweep",
    "forget_peak_memory",
    "outlive_wandb",
    "peak_memory_mb",
    "read_report",
    "share_interval",
    "show_on_wandb",
    "summary",
    "symmetry_of",
    "write_answers",
    "write_parts",
    "write_report",
]
