"""Group-equivariant self-attention for vision."""

from gsa.groups import Group, group

__version__ = "0.1.0"
__all__ = ["Group", "group"]
