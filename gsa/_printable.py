"""Text from elsewhere, shown so that it moves no cursor and rings no bell."""

__all__ = ["printable"]


def printable(text: str) -> str:
    """The text, with characters that cannot be printed written as escapes, such as \\x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
