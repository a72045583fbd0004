"""Whether the numbers in files of more than 8 bits fit what is taken for white."""

import os
import warnings
from collections.abc import Mapping, Sequence

from gsa.files import printable

__all__ = ["warn_of_brightness"]

_DARK = 4  # times below what a file could hold, where two of its bits or more are never used
_SHARE = 0.1  # of files that are dark, from which on it is said

Pages = Sequence[Mapping[str, tuple[int, int]]]  # path → brightest number, and the largest it could hold; page by page


def warn_of_brightness(
    brightest: Mapping[str, Sequence[tuple[int, int] | None]],
    white: int | Sequence[int] | None,
    root: str | os.PathLike[str],
) -> None:
    """Warn of files that come out dark or all white, or each on a scale of its own.

    Args:
        brightest: path → of every page that is read, as of `PictureReader.brightest`.
        white: as of `PictureReader`.
        root: that paths are shown below.
    """
    read = {path: pairs for path, pairs in brightest.items() if any(pairs)}
    if not read:
        if white is not None:
            _warn(f"data.white={_written(white)} is for numbers of more than 8 bits, but no file has such numbers")
        return
    count = max(map(len, read.values()))
    pages = [{path: pair for path, pairs in read.items() if (pair := pairs[page])} for page in range(count)]
    if white is not None:
        _warn_of_light_files(pages, [*white] if isinstance(white, Sequence) else [white] * count, root)
        if count > 1 and not isinstance(white, Sequence):  # one for all, whatever each is
            _warn_of_dark_files([{path: (v, white) for path, (v, _) in page.items()} for page in pages], root)
    else:
        _warn_of_different_scales(pages, root)
        _warn_of_dark_files(pages, root)


def _warn_of_light_files(pages: Pages, whites: Sequence[int], root: str | os.PathLike[str]) -> None:
    light = [path for page, white in zip(pages, whites, strict=True) for path, (v, _) in page.items() if v > white]
    if light:
        used = [max((value for value, _ in page.values()), default=0) for page in pages]
        _warn(
            f"files of more than 8 bits use values up to {_written(used)} of {_most(pages)}, such as "
            f"{_below(light[0], root)}: those above data.white={_written(whites)} are all white"
        )


def _warn_of_different_scales(pages: Pages, root: str | os.PathLike[str]) -> None:
    first: dict[int, str] = {}
    for page in pages:
        for path, (_, most) in page.items():
            first.setdefault(most, _below(path, root))
    if len(first) > 1:
        listed = ", ".join(f"up to {most} ({path})" for most, path in sorted(first.items()))
        _warn(
            f"files of more than 8 bits hold numbers of different sizes, {listed}, and each is scaled by its own, so "
            "that a number is light in one and dark in another: data.white=… says what is white in all of them"
        )


def _warn_of_dark_files(pages: Pages, root: str | os.PathLike[str]) -> None:
    """A few hot pixels, or files that are brighter than the rest, hide nothing."""
    dark = [{path: value for path, (value, most) in page.items() if value * _DARK <= most} for page in pages]
    many = [bool(found) and len(found) >= _SHARE * len(page) for found, page in zip(dark, pages, strict=True)]
    if not any(many):
        return
    every = [{path: value for path, (value, _) in page.items()} for page in pages]
    used = [
        max((found if is_dark else values).values(), default=255)
        for found, is_dark, values in zip(dark, many, every, strict=True)
    ]
    enough = _written([2 ** max(value.bit_length(), 1) - 1 for value in used])
    most_often = max(dark, key=len)
    _warn(
        f"{len(most_often)} of {max(map(len, pages))} files of more than 8 bits, such as "
        f"{_below(next(iter(most_often)), root)}, use values up to {_written(used)} of {_most(pages)} only, so that "
        f"they come out dark and coarse: data.white={enough} makes {enough} white"
    )


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=5)


def _most(pages: Pages) -> int:
    return max(most for page in pages for _, most in page.values())


def _below(path: str, root: str | os.PathLike[str]) -> str:
    return printable(os.path.relpath(path, root))


def _written(values: int | Sequence[int]) -> str:
    """One number, or those of several pages as they are written on a command line."""
    numbers = [values] if isinstance(values, int) else list(values)
    return str(numbers[0]) if len(numbers) == 1 else f"[{','.join(map(str, numbers))}]"
