"""A network of three classes, and a folder of pictures that it is asked about."""

import pytest

from gsa.models import PictureFormat
from gsa.saved import read

CLASSES = 'cat, "tame"', "dog\n", "hen"


@pytest.fixture
def network(monkeypatch):
    """Of three classes whose names need quotes."""
    from gsa.cli import _predict

    saved = read("digits_gsa")
    saved.network.forward_head = lambda features: features.mean((2, 3, 4))[:, :3]
    known = PictureFormat("imagefolder", 1, 12, 3, (0.5,), (0.5,), CLASSES)
    monkeypatch.setattr(_predict, "read", lambda *_: type(saved)(saved.network.eval(), saved.model, known))
    return saved.network


@pytest.fixture
def folder(tmp_path):
    """Seven pictures at two depths, two of them broken, and what is none."""
    from PIL import Image

    from tests.files.test_pictures import noise

    place = tmp_path / "pictures"
    (place / "b").mkdir(parents=True)
    for index, name in enumerate(("b/2.PNG", "b/1.jpg", "z, or not.png", "a.tif", "m.gif")):
        Image.fromarray(noise(14 + index, 20, ())).save(place / name)
    for name in ("b/0.png", "n.jpeg"):
        (place / name).write_bytes(b"no picture")
    for name in (".hidden.png", "readme.txt"):
        (place / name).write_bytes(b"")
    return place
