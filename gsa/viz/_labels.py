"""Names of elements of a group, for pictures."""

__all__ = ["in_lines"]


def in_lines(name: str) -> str:
    """As "mirror, then 90°" in two lines, which would lie over its neighbours in one."""
    return name.replace(", ", ",\n")
