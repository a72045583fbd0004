"""Small coloured pictures in folders, as somebody's own: cells of four classes, turned, of mixed sizes and formats.

python -m tests.cells path/to/pictures
"""

import argparse
from pathlib import Path

import numpy
from PIL import Image, ImageDraw

__all__ = ["CLASSES", "write_cells"]

CLASSES = ("bars", "crosses", "discs", "rings")  # of any colour; forms stay when a picture is turned


def write_cells(root, count=200, seed=0):
    """root/<class>/<number>.{png,jpg}: `count` pictures, evenly over the classes."""
    random = numpy.random.default_rng(seed)
    for index in range(count):
        name = CLASSES[index % len(CLASSES)]
        (root / name).mkdir(parents=True, exist_ok=True)
        _cells(name, random).save(root / name / f"{index:03d}.{('png', 'jpg')[index // 4 % 2]}")


def _cells(form, random):
    """Nine cells on a pale ground, at chance places, of one colour, with noise; all turned at random."""
    width, height = (int(side) for side in random.integers(72, 161, 2))
    ground, colour = random.integers(180, 240, 3), random.integers(20, 150, 3)
    picture = Image.new("RGB", (width, height), tuple(ground.tolist()))
    unit = min(width, height) / 64
    for x, y in random.uniform(0.1, 0.9, (9, 2)) * (width, height):
        shade = tuple((colour * random.uniform(0.8, 1.2)).astype(int).tolist())
        picture.paste(shade, (int(x - 12 * unit), int(y - 12 * unit)), _cell(form, unit, random.uniform(0, 360)))
    picture = picture.rotate(random.uniform(0, 360), Image.Resampling.BILINEAR, fillcolor=tuple(ground.tolist()))
    noisy = numpy.asarray(picture) + random.normal(0, 12, (height, width, 3))
    return Image.fromarray(noisy.clip(0, 255).astype(numpy.uint8))


def _cell(form, unit, angle):
    """A mask, 24 units wide, of a cell that is turned."""
    mask = Image.new("L", (int(24 * unit), int(24 * unit)))
    draw = ImageDraw.Draw(mask)
    sides = {"bars": [(2, 8)], "crosses": [(1.5, 6), (6, 1.5)], "discs": [(4.5, 4.5)], "rings": [(5.5, 5.5)]}[form]
    for across, along in sides:
        box = [(12 + side) * unit for side in (-across, -along, across, along)]
        draw.ellipse(box, fill=0 if form == "rings" else 255, outline=255, width=max(round(2 * unit), 1))
    return mask.rotate(angle, Image.Resampling.BILINEAR)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the folders of the classes")
    write_cells(parser.parse_args().folder)
