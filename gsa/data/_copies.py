"""Files with the same content: a picture that was trained on would be tested, or be of two classes."""

from collections.abc import Mapping

from gsa.files import printable

__all__ = ["refuse_copies"]


def refuse_copies(contents: Mapping[str, str], places: Mapping[str, str], kind: str) -> None:
    """Refuse the same content in two places.

    Args:
        contents: path → digest of what the file holds.
        places: path → where it is: its class, or its part; of those paths that are looked at.
        kind: of the places, for messages, such as "class".

    Raises:
        ValueError: naming two files, and how many there are.
    """
    first: dict[str, str] = {}
    pairs = [(first.setdefault(contents[path], path), path) for path in places]
    if wrong := [(one, other) for one, other in pairs if places[one] != places[other]]:
        one, other = (printable(path) for path in wrong[0])
        raise ValueError(
            f"a picture must be in one {kind} only, but of the files {len(wrong)} hold the same as one in another "
            f"{kind}, such as {other} and {one}"
        )
