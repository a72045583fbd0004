"""Symmetry to be seen and played with: one page that needs no server."""

from gsa.explore._page import page
from gsa.explore._turning import turning
from gsa.explore._weights import weights
from gsa.explore._words import words

__all__ = ["page", "turning", "weights", "words"]
