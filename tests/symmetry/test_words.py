"""The sentence of three words: every number by hand, and what each encoding of position keeps."""

import math

import pytest
import torch
from torch import nn

from gsa.symmetry import statements as S

EXACT = 1e-13

# Queries, keys and values of Love, conquers, all, from X = (1, 0), (0, 1), (1, 1) by
# W_Q = (1 0; 1 1), W_K = (1 1; 0 1), W_V = (2 0; 0 3).
QUERIES, KEYS, VALUES = ((1, 0), (1, 1), (2, 1)), ((1, 1), (0, 1), (1, 2)), ((2, 0), (0, 3), (2, 3))


def attended(scores, values):
    """softmax(scores/√2) and its product with the values, number by number."""
    weights, outputs = [], []
    for row in scores:
        powers = [math.exp(score / math.sqrt(2)) for score in row]
        weights.append([power / sum(powers) for power in powers])
        outputs.append([sum(w * value[c] for w, value in zip(weights[-1], values, strict=True)) for c in (0, 1)])
    return weights, outputs


def close(actual, expected):
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-14)


def test_golden_numbers_without_positions():
    found = S.sentence()
    assert found.words == ("Love", "conquers", "all") and found.positions.tolist() == [0, 1, 2]
    for matrix, expected in ((found.query, QUERIES), (found.key, KEYS), (found.value, VALUES)):
        assert matrix.tolist() == [list(row) for row in expected]
    scores = [[1, 0, 1], [2, 1, 3], [3, 1, 4]]
    close(found.scores, [[score / math.sqrt(2) for score in row] for row in scores])
    weights, outputs = attended(scores, VALUES)
    close(found.attention, weights)
    close(found.output, outputs)


def test_golden_numbers_with_indices():
    """X + p = (1, 0), (1, 2), (3, 3): queries (1, 0), (3, 2), (6, 3); keys (1, 1), (1, 3), (3, 6)."""
    found = S.sentence("absolute")
    assert found.added.tolist() == [[0, 0], [1, 1], [2, 2]] and S.sentence("rotary").added.abs().max() == 0
    scores, values = [[1, 1, 3], [5, 9, 21], [9, 15, 36]], [[2, 0], [2, 6], [6, 9]]
    assert found.value.tolist() == values
    close(found.attention, attended(scores, values)[0])
    close(found.output, attended(scores, values)[1])


def test_golden_numbers_with_waves():
    found = S.sentence("sinusoidal", position=4)
    x = [[a + math.sin(p), b + math.cos(p)] for (a, b), p in zip(((1, 0), (0, 1), (1, 1)), (4, 5, 6), strict=True)]
    close(found.inputs, x)
    scores = [[(a + b) * c + b * (c + d) for c, d in x] for a, b in x]  # (a + b, b)·(c, c + d)
    values = [[2 * a, 3 * b] for a, b in x]
    close(found.output, attended(scores, values)[1])


def test_golden_numbers_turned():
    """R(i)q · R(j)k = q · R(j − i)k."""
    scores = []
    for i, (a, b) in enumerate(QUERIES):
        turns = [(math.cos(j - i), math.sin(j - i)) for j in range(3)]
        scores.append([a * (x * c - y * s) + b * (x * s + y * c) for (x, y), (c, s) in zip(KEYS, turns, strict=True)])
    for position in (0, 7):
        found = S.sentence("rotary", position=position)
        close(found.attention, attended(scores, VALUES)[0])
        close(found.output, attended(scores, VALUES)[1])


def test_what_every_encoding_keeps():
    errors = {encoding: S.sentence_errors(encoding) for encoding in S.ENCODINGS}
    orders = {encoding: error.pop("orders") for encoding, error in errors.items()}
    assert orders.pop("none") < EXACT and min(orders.values()) > 0.1
    for encoding in ("none", "rotary"):
        assert max(errors[encoding].values()) < EXACT
    for encoding in ("absolute", "sinusoidal"):  # the planted failure of shifts
        assert min(errors[encoding].values()) > 0.1


def test_rows_of_the_text():
    found = S.sentence("rotary", (2, 0, 1), position=3)
    text = found.in_text(8)
    assert found.words == ("all", "Love", "conquers") and torch.equal(text[3:6], found.output)
    assert text[:3].abs().max() == text[6:].abs().max() == 0


def test_waves_see_distances_and_decay():
    found = S.sinusoidal_similarity(64, 64)
    assert found["distances"] < EXACT and found["far"] < 0.6 < found["near"] < 1
    waves = 10000 ** (-torch.arange(32) / 32)
    for name, distances in (("near", torch.arange(1, 17)), ("far", torch.arange(48, 64))):
        assert found[name] == pytest.approx((distances[:, None] * waves).cos().mean().item(), rel=1e-4)


def test_the_decay_is_in_the_attention_matrix_only_where_maps_keep_it():
    """Planted: maps at random, which favour no distance."""
    assert S.sinusoidal_similarity()["attention"] > 2
    drawn = [S.sinusoidal_similarity(64, 64, *torch.randn(2, 64, 64).double() / 8)["attention"] for _ in range(20)]
    assert 0.8 < sum(drawn) / len(drawn) < 1.2


class Reader(nn.Module):
    """One layer of attention over words, and a mean: with an encoding of their places, or without."""

    def __init__(self, encoding, places=8, channels=16):
        super().__init__()
        self.encoding, self.words = encoding, nn.Embedding(12, channels)
        self.attention = nn.MultiheadAttention(channels, 1, batch_first=True)
        self.head = nn.Sequential(nn.Linear(channels, 32), nn.ReLU(), nn.Linear(32, 2))
        place = torch.arange(places)
        self.places = {
            "none": torch.zeros(places, channels),
            "indices": place[:, None].expand(places, channels) / places,
            "sinusoidal": S.sinusoidal(place, channels).float(),
            "learned": nn.Parameter(torch.randn(places, channels) / 2),
        }[encoding]

    def forward(self, words):
        tokens = self.words(words) + self.places
        attended, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        return self.head(tokens + attended).mean(1)


def texts(count):
    """Eight words each, and which of the first two of the vocabulary stands first."""
    words, places = torch.randint(2, 12, (count, 8)), torch.rand(count, 8).argsort(1)[:, :2]
    return words.scatter_(1, places, torch.tensor([0, 1]).expand(count, 2)), (places[:, 0] < places[:, 1]).long()


@pytest.mark.parametrize("encoding", ["none", "indices", "sinusoidal", "learned"])
def test_positions_make_a_sequence_of_a_set(encoding):
    """Planted: none, whose answers are those of a coin."""
    reader, (words, labels) = Reader(encoding), texts(1500)
    optimizer = torch.optim.Adam(reader.parameters(), 0.01)
    for step in range(200):
        batch = slice(step % 10 * 100, step % 10 * 100 + 100)
        optimizer.zero_grad()
        nn.functional.cross_entropy(reader(words[batch]), labels[batch]).backward()
        optimizer.step()
    right = (reader(words[1000:]).argmax(1) == labels[1000:]).double().mean()
    assert 0.4 < right < 0.6 if encoding == "none" else right > 0.9


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"encoding": "relative"}, "encoding must be one of none, absolute, sinusoidal, rotary, but got 'relative'"),
        ({"order": (0, 1, 1)}, "order must hold 0, 1 and 2 once each"),
        ({"position": -1}, "position must be 0 or more, but got -1"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        S.sentence(**arguments)
    with pytest.raises(ValueError, match="channels must be even"):
        S.sinusoidal(torch.arange(3), 3)


@pytest.mark.parametrize("length", [2, 3])
def test_a_text_in_which_nothing_can_be_shifted_is_refused(length):
    with pytest.raises(ValueError, match=f"at least 4 words .* but got {length}"):
        S.sentence_errors("absolute", length)
