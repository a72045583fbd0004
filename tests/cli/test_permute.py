"""gsa check --permute: orders of tokens and of features, kept by what treats all alike and broken by a position."""

import json

import pytest
import torch
from torch import nn

from gsa import cli

HERE = __name__


def attends(batch_first=True):
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first)


def second():
    layer = attends(batch_first=False)
    layer.register_forward_pre_hook(lambda _, given: sizes.append([*given[0].shape]))
    return layer


sizes = []


class Placed(nn.Module):
    """Planted: a vector that belongs to the place and not to the token."""

    def __init__(self):
        super().__init__()
        self.first, self.places, self.second = nn.LayerNorm(8), Places(), attends()

    def forward(self, tokens):
        return self.second(self.places(self.first(tokens)))


class Places(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(6, 8))

    def forward(self, tokens):
        return tokens + self.table


@pytest.mark.parametrize("more", [[], ["--backward"]])
def test_attention_keeps_orders_of_tokens_and_a_position_breaks_them(more, capsys):
    said = ["--input", "6,8", "--permute", "tokens", *more]
    assert cli.main(["check", f"{HERE}:attends", *said]) == 0
    told = capsys.readouterr().out
    assert "(orders of tokens)" in told and "at random" in told and "BROKEN" not in told
    assert cli.main(["check", f"{HERE}:Placed", *said, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["claimed"] and told["exact"] == ["backwards", "moved on by one", "at random"] == told["broken"]
    assert told["first_broken"] == ("places.table" if more else "places")
    if not more:
        assert max(told["layers"]["first"].values()) < 1e-10 < 1e-2 < min(told["layers"]["second"].values())


def test_a_table_names_what_breaks_and_tokens_may_come_first(capsys):
    assert cli.main(["check", f"{HERE}:Placed", "--input", "6,8", "--permute", "tokens"]) == 1
    assert "first broken by places: " in (told := capsys.readouterr().out) and "BROKEN" in told
    assert cli.main(["check", f"{HERE}:second", "--input", "6,8", "--permute", "tokens-first"]) == 0
    assert not capsys.readouterr().err and sizes[-1] == [6, 3, 8]
    for module, said, other in (("attends", "tokens-first", "[N, L, D]"), ("second", "tokens", "tokens-first")):
        assert cli.main(["check", f"{HERE}:{module}", "--input", "6,8", "--permute", said]) == 0, "another batch"
        assert "no token sees another" in (told := capsys.readouterr().err) and other in told


def test_orders_of_features_pass_what_treats_them_alike():
    assert cli.main(["check", "torch.nn:GELU", "--input", "1,8", "--permute", "features"]) == 0
    assert cli.main(["check", f"{HERE}:attends", "--input", "6,8", "--permute", "features"]) == 1


@pytest.mark.parametrize(
    "said, message",
    [
        (["--permute", "tokens", "--group", "R4"], "--group, --shift or --permute, but got --group and --permute"),
        (["--permute", "tokens", "--shift", "1,0"], "but got --shift and --permute"),
        (["--permute", "tokens", "--margin", "2"], "--margin is for --shift"),
        (["--permute", "tokens"], "must be given: --input tokens and features, such as 6,16"),
        (["--permute", "tokens", "--input", "3,6,8"], "--input must be tokens and features, such as 6,16, but got"),
        (["--permute", "tokens", "--input", "1,8"], "other orders need at least 2 tokens, but --input gives 1"),
        (["--permute", "features", "--input", "6,1"], "at least 2 features"),
    ],
)
def test_what_cannot_be_permuted_is_refused(said, message, capsys):
    assert cli.main(["check", f"{HERE}:attends", *said]) == 2
    assert message in capsys.readouterr().err


def test_networks_of_pictures_are_refused(capsys):
    assert cli.main(["check", "digits_gsa", "--permute", "tokens", "--input", "6,8"]) == 2
    assert "but digits_gsa takes pictures" in capsys.readouterr().err
