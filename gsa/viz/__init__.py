"""Pictures; matplotlib is imported when one is drawn."""

from gsa.viz._orbit import draw_orbit

__all__ = ["draw_orbit"]
