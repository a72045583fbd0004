"""Text from elsewhere, shown so that it moves no cursor and fills no screen."""

__all__ = ["one_line", "printable", "printable_lines"]

_LONGEST = 300


def printable(text: str) -> str:
    """The text, with characters that cannot be printed written as escapes, such as \\x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: object) -> str:
    """`printable` line by line."""
    return "\n".join(map(printable, str(text).split("\n")))


def one_line(error: BaseException) -> str:
    """The first line of what an error says that has one, without control characters; its kind where it says nothing.

    With the next one, if that is what it announces.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines[: 2 if lines[0].endswith(":") else 1]) if lines else type(error).__name__
    text = "".join(letter for letter in said if letter.isprintable())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
