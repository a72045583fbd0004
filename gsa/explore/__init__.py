"""Symmetry to be seen and played with: one page, saved without a server, or served by `gsa.explore.server`."""

from gsa.explore._page import page
from gsa.explore._turning import turning
from gsa.explore._weights import weights
from gsa.explore._words import words

__all__ = ["page", "turning", "weights", "words"]
