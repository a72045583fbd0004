"""Words with and without positions, and what is read of them."""

import torch

from gsa.symmetry._norm import relative_error
from gsa.symmetry.statements._examples._example import Figures, example
from gsa.symmetry.statements._examples._networks import Placed, another_order, encoder
from gsa.symmetry.statements._examples._sources import WORDS
from gsa.symmetry.statements._readouts import readout_errors
from gsa.symmetry.statements._words import sentence, sentence_errors, sinusoidal, sinusoidal_similarity

__all__ = ["EXAMPLES"]


@example(WORDS, sentence)
def words_step_by_step() -> Figures:
    """“Love conquers all”, step by step: Q = XW_Q, scores QKᵀ/√2, their softmax, and its product with the values."""
    found, indices = sentence(), sentence("absolute")
    return Figures(
        {
            "queries": relative_error(found.query, found.embeddings @ found.query_weight),
            "scores": relative_error(found.scores, found.query @ found.key.T / 2**0.5),
            "sums of attention's rows": relative_error(found.attention.sum(1), torch.ones(3)),
            "output": relative_error(found.output, found.scores.softmax(1) @ found.value),
        },
        {"output, with indices added": relative_error(indices.output, found.output)},
    )


@example(WORDS, sentence_errors)
def words_in_another_order() -> Figures:
    """Without positions, words in another order have the same outputs in that order."""
    names = {"absolute": "with indices", "sinusoidal": "with sinusoidal encoding", "rotary": "with rotary encoding"}
    return Figures(
        {"all six orders": sentence_errors("none")["orders"]},
        {name: sentence_errors(encoding)["orders"] for encoding, name in names.items()},
    )


@example(WORDS, sentence_errors)
def shifted_words() -> Figures:
    """Rotary encodings keep what words do to one another wherever their sentence stands in a text."""
    zeros = sentence_errors("rotary")
    del zeros["orders"]
    indices, waves = sentence_errors("absolute"), sentence_errors("sinusoidal")
    return Figures(
        zeros,
        {
            "scores, with indices": indices["scores"],
            "attention, with indices": indices["attention"],
            "attention, sinusoidal": waves["attention"],
        },
    )


@example(WORDS, sinusoidal, sinusoidal_similarity)
def sinusoidal_encodings() -> Figures:
    """Dot products of sinusoidal encodings see distances only, and decay with them."""
    found, encoding = sinusoidal_similarity(), sinusoidal(torch.arange(64), 64)
    lengths = encoding.square().sum(1)
    return Figures(
        {
            "distances only": found["distances"],
            "all of one length": relative_error(lengths, torch.full((64,), 32.0)),
        },
        {"nearest quarter less farthest": found["near"] - found["far"]},
    )


@example(WORDS, readout_errors)
def readouts() -> Figures:
    """A class token, the largest or the mean of all tokens forget their order; tokens side by side do not."""
    tokens, order, projection = torch.randn(2, 6, 8), another_order(6), torch.randn(48, 3)
    transformer, token = encoder(2), torch.randn(8)
    errors = readout_errors(transformer, tokens, order, token, projection)
    contrasts = {"side by side, projected": errors.pop("concatenation")}
    means = (Placed(transformer)(t).mean(1).detach() for t in (tokens[:, order], tokens))
    return Figures(errors, contrasts | {"mean, with positions": relative_error(*means)})


EXAMPLES = (words_step_by_step, words_in_another_order, shifted_words, sinusoidal_encodings, readouts)
