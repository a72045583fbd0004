"""Figures that notebooks show: imported, with matplotlib, when one is drawn."""

from io import BytesIO

from matplotlib.figure import Figure

__all__ = ["NotebookFigure"]


class NotebookFigure(Figure):
    """A figure that is shown where it is the last word of a cell; of pyplot, which would keep it, it knows nothing."""

    def _repr_png_(self) -> bytes:
        written = BytesIO()
        self.savefig(written, format="png")
        return written.getvalue()
