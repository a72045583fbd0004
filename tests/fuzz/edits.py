"""Seeded damage to the bytes of a file."""

import random
from collections.abc import Iterator

__all__ = ["edits"]

_HEADER = 256  # bytes at the front, where every second edit falls


def edits(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """`count` copies of a file, each damaged once: a function of the content, the count and the seed.

    A bit is flipped, a byte replaced, the rest cut off, bytes are put in or taken out, or a run becomes zeros.

    Args:
        content: of the file, at least one byte.
        count: how many copies.
        seed: of place and kind.
    """
    chance = random.Random(seed)
    for _ in range(count):
        place = chance.randrange(min(_HEADER, len(content)) if chance.random() < 0.5 else len(content))
        kind, length = chance.choice(_KINDS), chance.choice((1, 2, 4, 8, 64))
        damaged = bytearray(content)
        kind(damaged, place, length, chance)
        yield bytes(damaged)


def _flip(content: bytearray, place: int, length: int, chance: random.Random) -> None:
    content[place] ^= 1 << chance.randrange(8)


def _replace(content: bytearray, place: int, length: int, chance: random.Random) -> None:
    content[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


def _cut(content: bytearray, place: int, length: int, chance: random.Random) -> None:
    del content[place:]


def _insert(content: bytearray, place: int, length: int, chance: random.Random) -> None:
    content[place:place] = chance.randbytes(length)


def _remove(content: bytearray, place: int, length: int, chance: random.Random) -> None:
    del content[place : place + length]


def _blank(content: bytearray, place: int, length: int, chance: random.Random) -> None:
    run = content[place : place + length]
    content[place : place + length] = bytes(len(run))


_KINDS = (_flip, _replace, _cut, _insert, _remove, _blank)
