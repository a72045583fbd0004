"""Files of more than 8 bits that come out dark, all white, or each on a scale of its own."""

import pytest

from gsa.data.folder._brightness import warn_of_brightness

DEEP, FULL = (4000, 65535), (60000, 65535)


def files(*kinds):
    """So many of each: path → the brightest numbers of its pages."""
    pairs = [pages for count, pages in kinds for _ in range(count)]
    return {f"root/{number}.tif": pages for number, pages in enumerate(pairs)}


@pytest.mark.parametrize("brightest, white, message", [
    (files((20, [DEEP])), None, "20 of 20 files .* such as 0.tif, use values up to 4000 of 65535 .*data.white=4095"),
    (files((18, [FULL]), (2, [DEEP])), None, "2 of 20 files of more than 8 bits, such as 18.tif, use values up"),
    (files((19, [DEEP]), (1, [FULL])), None, "19 of 20 files .* data.white=4095 makes 4095 white"),
    (files((9, [DEEP, FULL]), (1, [DEEP, None])), None, r"10 of 10 .*up to \[4000,60000\] .*data.white=\[4095,65535\]"),
    (files((9, [None, DEEP])), None, r"9 of 9 .*up to \[255,4000\] .*data.white=\[255,4095\]"),
    (files((9, [FULL]), (9, [(60000, 2**32 - 1)])), None, r"different sizes, up to 65535 \(0.tif\), up to 42949672"),
    (files((9, [FULL])), 4095, "up to 60000 of 65535, such as 0.tif: those above data.white=4095 are all white"),
    (files((9, [DEEP, FULL])), (4095, 50000), r"\[4000,60000\] .*: those above data.white=\[4095,50000\] are"),
    (files((9, [DEEP, (12, 65535)])), 10000, r"9 of 9 .*up to \[4000,12\] of 10000 only, .*data.white=\[4095,15\]"),
    (files((9, [None])), 4095, "data.white=4095 is for numbers of more than 8 bits, but no file has such numbers"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:9 of 9|9 of 18")
def test_what_does_not_fit_is_told(brightest, white, message):
    with pytest.warns(UserWarning, match=message):
        warn_of_brightness(brightest, white, "root")


@pytest.mark.parametrize("brightest, white", [
    (files((20, [FULL])), None), (files((19, [FULL]), (1, [DEEP])), None), (files((20, [DEEP])), 4095),
    (files((20, [None])), None), (files((20, [DEEP, FULL])), (4095, 65535)), ({}, None),
    (files((20, [DEEP, (12, 65535)])), (10000, 10000)), (files((20, [(12, 65535)])), 10000),
])  # fmt: skip
def test_what_fits_is_not(brightest, white, recwarn):
    warn_of_brightness(brightest, white, "root")
    assert not recwarn.list
