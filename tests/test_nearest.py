"""The word that was meant."""

import pytest

from gsa._nearest import nearest

KEYS = "paths.data", "optimizer.lr", "trainer.max_epochs", "seed"


@pytest.mark.parametrize("word, meant", [("lr", "optimizer.lr"), ("epochs", "trainer.max_epochs"), ("sed", "seed")])
def test_the_last_part_or_its_end_may_stand_for_the_whole(word, meant):
    assert nearest(word, KEYS) == f" (the nearest is {meant!r})"
    assert nearest(word, ()) == ""


def test_what_is_like_none_is_another_word():
    assert nearest("img_size", ("num_classes", "head_dim")) == ""
    assert nearest("in_chans", ("num_classes", "in_channels")) == " (the nearest is 'in_channels')"
