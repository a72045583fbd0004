"""Small transformers without biases have none, and learn."""

import biases
import pytest
import torch


@pytest.mark.parametrize("kind", biases.KINDS, ids=str)
def test_transformers_without_biases_have_none_and_learn(kind):
    """Planted: a bias that is left in one."""
    network = biases.transformer(kind)
    names = [name for name, _ in network.named_parameters() if name.endswith("bias")]
    assert bool(names) is kind.has_biases and network(torch.rand(3, 8, 8)).shape == (3, 10)
    black = network(torch.zeros(2, 8, 8))
    assert kind.has_biases or not kind.is_rotary or not black.any()  # nothing in, nothing out
    if kind == biases.Kind(False, "rms", True):
        network[1].bias = torch.nn.Parameter(torch.ones(biases.CHANNELS))
        assert network(torch.zeros(2, 8, 8)).any()
        found = biases.measured(kind, seed=0, epochs=4)
        assert found["as trained"] > 20 and found.keys() == biases.CHANGES.keys()


def test_every_head_of_the_rotary_transformers_sees_rows_and_columns():
    """By their differences alone."""
    heads = biases.turned(torch.ones(1, biases.HEADS, biases.SIDE**2, biases.CHANNELS // biases.HEADS))
    scores = (heads @ heads.mT)[0]
    here, row, column = scores[:, 0, 0], scores[:, 0, biases.SIDE], scores[:, 0, 1]
    assert (here - row).min() > 0.1 and (here - column).min() > 0.1
    torch.testing.assert_close(scores[:, 5, 5 + biases.SIDE], row)
    torch.testing.assert_close(scores[:, 5, 6], column)
