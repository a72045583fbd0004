"""Errors of other libraries, in a message of one line."""

__all__ = ["one_line"]

_LONGEST = 300


def one_line(error: BaseException) -> str:
    """The first line of what an error says that has one, without control characters; its kind where it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = "".join(letter for letter in lines[0] if letter.isprintable()) if lines else type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
