"""The algebra of planar symmetries and their action on pictures and features."""

from gsa.groups._action import act_on_plane, is_on_grid, sample_bilinearly
from gsa.groups._fields import Field, kinds_of
from gsa.groups._group import Element, Group
from gsa.groups._planar import group

__all__ = [
    "Element",
    "Field",
    "Group",
    "act_on_plane",
    "group",
    "is_on_grid",
    "kinds_of",
    "sample_bilinearly",
]
