"""Symmetry to be seen and played with: one page that needs no server."""

from gsa.explore._page import page
from gsa.explore._turning import turning, without_action
from gsa.explore._words import words

__all__ = ["page", "turning", "without_action", "words"]
