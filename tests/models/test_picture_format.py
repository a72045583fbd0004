"""What a network knows of its pictures."""

import pytest
import torch

from gsa.models import PictureFormat

FORMAT = {
    "data": "shapes", "in_channels": 1, "image_size": 12, "num_classes": 2, "mean": [0.5], "std": [0.2],
    "classes": ["cat", "dog"],
}  # fmt: skip


def test_classes_keep_their_names_as_long_as_there_are_as_many():
    known = PictureFormat.of(FORMAT)
    assert "white" not in known.plain() and PictureFormat.of(known.plain()) == known
    assert known.white is None and PictureFormat.of(FORMAT | {"white": 4095}).white == 4095
    of_pages = PictureFormat.of(FORMAT | {"pages": True, "white": [4095] * FORMAT["in_channels"]})
    assert of_pages.pages and PictureFormat.of(of_pages.plain()) == of_pages
    whole = PictureFormat.of(FORMAT | {"whole": True})
    assert whole.reader().whole and not known.reader().whole and PictureFormat.of(whole.plain()) == whole
    assert "whole" not in known.plain()
    assert known.with_classes(2).classes == ("cat", "dog") and known.with_classes(3).classes == ("0", "1", "2")


@pytest.mark.parametrize("change", [
    {"std": [0.0]}, {"std": [-1.0]}, {"std": [10**400]}, {"mean": [float("nan")]}, {"mean": [0.5, 0.5]},
    {"mean": ["0.5"]}, {"image_size": 0}, {"image_size": 8193}, {"in_channels": 0}, {"num_classes": -1},
    {"white": 0}, {"white": 1.5}, {"classes": ["cat"]}, {"classes": ["cat", 2]}, {"data": 1},
    {"pages": 1}, {"whole": None},
    {"white": [4095]}, {"pages": True, "white": [1, 2, 3, 4]}, {"pages": True, "white": [0]},
])  # fmt: skip
def test_values_that_are_of_no_pictures_are_refused(change):
    with pytest.raises(ValueError):
        PictureFormat.of(FORMAT | change)


def test_every_channel_is_normalised_with_its_own_numbers():
    known = PictureFormat.of(FORMAT | {"in_channels": 2, "mean": [0.5, 0.25], "std": [0.5, 0.125]})
    assert known.normalise(torch.ones(2, 1, 1)).flatten().tolist() == [1, 6]
