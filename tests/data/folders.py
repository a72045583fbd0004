"""Folders of pictures to be read."""

import numpy
from PIL import Image

__all__ = ["write_pictures"]


def write_pictures(root, parts=("train", "test"), classes=("cat", "dog"), count=10, suffix="jpg", side=(40, 32)):
    """root/<part>/<class>/<number>, as CIFAR-10's JPEG folders are laid out."""
    for part in parts:
        for index, name in enumerate(classes):
            folder = root / part / name
            folder.mkdir(parents=True)
            random = numpy.random.default_rng([*f"{part}/{name}".encode()])
            for number in range(count):
                pixels = random.integers(0, 128, (side[1], side[0], 3), dtype=numpy.uint8) + 100 * (index % 2)
                Image.fromarray(pixels.astype(numpy.uint8)).save(folder / f"{number}.{suffix}")
