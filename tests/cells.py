"""Small coloured pictures in folders, as somebody's own: cells of four classes, turned, of mixed sizes and formats."""

import numpy
from PIL import Image, ImageDraw

__all__ = ["CLASSES", "write_cells"]

# colour alone tells two of four apart, and so does form; neither changes when a picture is turned
CLASSES = {
    "green_bars": ((60, 130, 90), "bar"),
    "green_rings": ((60, 130, 90), "ring"),
    "purple_bars": ((120, 70, 140), "bar"),
    "purple_rings": ((120, 70, 140), "ring"),
}


def write_cells(root, count=200, seed=0):
    """root/<class>/<number>.{png,jpg}: `count` pictures, evenly over the classes."""
    random = numpy.random.default_rng(seed)
    for index in range(count):
        name = list(CLASSES)[index % len(CLASSES)]
        (root / name).mkdir(parents=True, exist_ok=True)
        _cells(*CLASSES[name], random).save(root / name / f"{index:03d}.{('png', 'jpg')[index // 4 % 2]}")


def _cells(colour, form, random):
    """Nine cells on a pale ground, at chance places, of chance brightness, with noise; the whole turned at random."""
    width, height = (int(side) for side in random.integers(72, 161, 2))
    ground = tuple(int(c) for c in random.integers(190, 240, 3))
    picture = Image.new("RGB", (width, height), ground)
    unit = min(width, height) / 64
    for x, y in random.uniform(0.1, 0.9, (9, 2)) * (width, height):
        shade = tuple(int(c * random.uniform(0.8, 1.2)) for c in colour)
        cell = Image.new("L", (int(24 * unit), int(24 * unit)))
        draw, middle = ImageDraw.Draw(cell), 12 * unit
        across, along = ((2.2, 8), (5.5, 5.5))[form == "ring"]
        box = (middle - across * unit, middle - along * unit, middle + across * unit, middle + along * unit)
        draw.ellipse(box, outline=255, width=max(round(2 * unit), 1), fill=255 if form == "bar" else 0)
        cell = cell.rotate(random.uniform(0, 360), Image.Resampling.BILINEAR)
        picture.paste(shade, (int(x - middle), int(y - middle)), cell)
    picture = picture.rotate(random.uniform(0, 360), Image.Resampling.BILINEAR, fillcolor=ground)
    noisy = numpy.asarray(picture) + random.normal(0, 12, (height, width, 3))
    return Image.fromarray(noisy.clip(0, 255).astype(numpy.uint8))
