"""A sentence of three words, small enough to follow by hand: what encodings of position do to its attention."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gsa.symmetry._norm import relative_error

__all__ = ["ENCODINGS", "Sentence", "sentence", "sentence_errors", "sinusoidal", "sinusoidal_similarity"]

ENCODINGS = ("none", "absolute", "sinusoidal", "rotary")

_WORDS = ("Love", "conquers", "all")
_EMBEDDINGS = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
_QUERY = ((1.0, 0.0), (1.0, 1.0))
_KEY = ((1.0, 1.0), (0.0, 1.0))
_VALUE = ((2.0, 0.0), (0.0, 3.0))


@dataclass(frozen=True)
class Sentence:
    """Attention of the three words, step by step, all in float64; a row is a word in its present place.

    Attributes:
        words: in their present order.
        positions: of the words in the text, int64 [3].
        embeddings: X, [3, 2].
        added: p, the encoding that is added, [3, 2]; zeros with "none" and "rotary".
        inputs: X + p, [3, 2].
        query_weight, key_weight, value_weight: W_Q, W_K, W_V, [2, 2]; rows multiply from the left, Q = X W_Q.
        query, key, value: [3, 2], before they are turned.
        turned_query, turned_key: what meets in the scores, [3, 2]: turned by their positions with "rotary".
        scores: turned_query · turned_key / √2, [3, 3], a row for each query.
        attention: softmax of every row.
        output: attention · value, [3, 2].
    """

    words: tuple[str, ...]
    positions: Tensor
    embeddings: Tensor
    added: Tensor
    inputs: Tensor
    query_weight: Tensor
    key_weight: Tensor
    value_weight: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    turned_query: Tensor
    turned_key: Tensor
    scores: Tensor
    attention: Tensor
    output: Tensor

    def in_text(self, length: int) -> Tensor:
        """The output where the words stand in a text of `length` words, and zeros elsewhere: [length, 2]."""
        return self.output.new_zeros(length, 2).index_copy(0, self.positions, self.output)


def sentence(encoding: str = "none", order: Sequence[int] = (0, 1, 2), position: int = 0) -> Sentence:
    """Self-attention of "Love conquers all": softmax(QKᵀ/√2) V with one head of two channels.

    The numbers are our own: Love = (1, 0), conquers = (0, 1), all = (1, 1), and small whole numbers for the weights.

    Args:
        encoding: "none"; "absolute" adds a word's position to both of its channels; "sinusoidal" adds (sin, cos) of it;
            "rotary" turns queries and keys by it, in radians.
        order: which word stands first, second, third.
        position: of the first word in its text, 0 or more.

    Raises:
        ValueError: another encoding, an order that is no permutation, a negative position.
    """
    if encoding not in ENCODINGS:
        raise ValueError(f"encoding must be one of {', '.join(ENCODINGS)}, but got {encoding!r}")
    if sorted(order) != [0, 1, 2]:
        raise ValueError(f"order must hold 0, 1 and 2 once each, but got {list(order)}")
    if position < 0:
        raise ValueError(f"position must be 0 or more, but got {position}")
    positions = position + torch.arange(3)
    embeddings = torch.tensor(_EMBEDDINGS, dtype=torch.float64)[list(order)]
    added = torch.zeros_like(embeddings)
    if encoding == "absolute":
        added = positions[:, None].expand(3, 2).double()
    if encoding == "sinusoidal":
        added = sinusoidal(positions, 2)
    inputs = embeddings + added
    weights = [torch.tensor(weight, dtype=torch.float64) for weight in (_QUERY, _KEY, _VALUE)]
    query, key, value = (inputs @ weight for weight in weights)
    turned = [_turned(t, positions) if encoding == "rotary" else t for t in (query, key)]
    scores = turned[0] @ turned[1].T / 2**0.5
    attention = scores.softmax(1)
    words = tuple(_WORDS[i] for i in order)
    inside = (*weights, query, key, value, *turned, scores, attention, attention @ value)
    return Sentence(words, positions, embeddings, added, inputs, *inside)


def sentence_errors(encoding: str = "none", length: int = 16) -> dict[str, float]:
    """What an encoding leaves of the sentence's symmetries: the worst over all orders, and over all places in a text.

    Without one, the order of the words permutes attention and output; adding positions breaks this; rotary keeps what
    words do to one another wherever the sentence stands. The outputs of the three words alone are then invariant; as
    rows of the text they are shifted with it, which is the equivariance.
    Source: "Visualizing equivariances in transformer neural networks".

    Args:
        encoding: as in `sentence`.
        length: words of the text, at least 4.

    Returns:
        {"orders": of attention and output; "scores", "attention", "output": when the sentence is shifted; "text": of
        the output as rows of the text, against the shifted rows: relative errors}.

    Raises:
        ValueError: a text of fewer words, in which there is nowhere to shift the sentence.
    """
    if length < 4:
        raise ValueError(f"a text must have at least 4 words for three to be shifted in it, but got {length}")
    plain = sentence(encoding)
    errors = dict.fromkeys(("orders", "scores", "attention", "output", "text"), 0.0)
    for order in itertools.permutations(range(3)):
        found, new = sentence(encoding, order), list(order)
        attention = relative_error(found.attention, plain.attention[new][:, new])
        errors["orders"] = max(errors["orders"], attention, relative_error(found.output, plain.output[new]))
    for shift in range(1, length - 2):
        found = sentence(encoding, position=shift)
        for name in ("scores", "attention", "output"):
            errors[name] = max(errors[name], relative_error(getattr(found, name), getattr(plain, name)))
        moved = plain.in_text(length).roll(shift, 0)
        errors["text"] = max(errors["text"], relative_error(found.in_text(length), moved))
    return errors


def sinusoidal(positions: Tensor, channels: int) -> Tensor:
    """p(t) = (sin ω₀t, cos ω₀t, sin ω₁t, …), ω_i = 10000^(−2i/channels): [N] → [N, channels], in float64.

    Source: Vaswani et al. 2017. Raises ValueError where channels are not even.
    """
    if channels < 2 or channels % 2:
        raise ValueError(f"channels must be even, 2 or more, but got {channels}")
    frequencies = 10000.0 ** (-torch.arange(0, channels, 2, dtype=torch.float64) / channels)
    phase = positions.double()[:, None] * frequencies
    return torch.stack((phase.sin(), phase.cos()), dim=-1).flatten(1)


def sinusoidal_similarity(
    channels: int = 64, length: int = 64, query: Tensor | None = None, key: Tensor | None = None
) -> dict[str, float]:
    """Dot products of sinusoidal encodings see distances only, p(s)·p(t) = Σ_i cos ω_i(s − t), and decay with them.

    In the attention matrix, softmax(p W_Q (p W_K)ᵀ/√C), that is so of maps that are the identity. Maps at random favour
    no distance: what is near has to be learned.

    Source: "Visualizing equivariances in transformer neural networks" (similarity that decays).

    Args:
        channels: of the encoding, even.
        length: positions 0 to length − 1.
        query, key: W_Q and W_K, [channels, channels]; the identity when None.

    Returns:
        {"distances": relative error of seeing distances only; "near", "far": mean of p(s)·p(t) over distances of the
        first and of the last quarter, relative to distance 0; "attention": mean weight at the nearest quarter of
        distances over that at the farthest}.
    """
    encoding, place = sinusoidal(torch.arange(length), channels), torch.arange(length)
    products, distance = encoding @ encoding.T, (place[:, None] - place).abs()
    first, quarter = products[0], max(length // 4, 1)
    asked, found = (encoding if weight is None else encoding @ weight for weight in (query, key))
    attention = (asked @ found.T / channels**0.5).softmax(1)
    near, far = (distance > 0) & (distance <= quarter), distance >= length - quarter
    return {
        "distances": relative_error(products, first[distance]),
        "near": (first[1 : quarter + 1].mean() / first[0]).item(),
        "far": (first[-quarter:].mean() / first[0]).item(),
        "attention": (attention[near].mean() / attention[far].mean()).item(),
    }


def _turned(x: Tensor, positions: Tensor) -> Tensor:
    """Every row turned by its position, in radians."""
    cosine, sine = positions.double().cos(), positions.double().sin()
    first, second = x.unbind(1)
    return torch.stack((first * cosine - second * sine, first * sine + second * cosine), dim=1)
