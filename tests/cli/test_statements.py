"""gsa statements: which are chosen, what is printed, and exit codes."""

import json
from dataclasses import replace

import pytest

from gsa import cli
from gsa.symmetry.statements import Figures, examples

TOLD = [
    "A transformer commutes with the order of its tokens, f(PZ) = P f(Z): it is equivariant, and not invariant.",
    "    tokens-forward            token_permutation_error, invariance_error",
    "    0 up to rounding          encoder 3e-16 · attention 2e-16",
    "    differs                   with positions 0.5",
    "",
    "1 statement with seed 0: all 3 figures as they should be",
]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal of the width that the texts below have."""
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def planted(monkeypatch):
    """planted(name=figures, …): the examples of these names, with these figures."""

    def plant(**figures):
        known = {name: examples()[name.replace("_", "-")] for name in figures}
        made = [replace(known[name], measure=lambda found=found: found) for name, found in figures.items()]
        monkeypatch.setattr("gsa.cli._statements.examples", lambda: {example.name: example for example in made})

    return plant


def test_a_sentence_with_its_figures(planted, capsys):
    planted(tokens_forward=Figures({"encoder": 2.6e-16, "attention": 2.1e-16}, {"with positions": 0.501}))
    assert cli.main(["statements"]) == 0
    source, rule, *told = capsys.readouterr().out.splitlines()
    assert source == examples()["tokens-forward"].source and rule == "=" * len(source)
    assert told == ["", *TOLD]


def test_a_wrong_example_is_told(planted, capsys):
    planted(tokens_forward=Figures({"encoder": 0.3}, {"with positions": 0.5}), readouts=Figures({}, {"mean": 0.0}))
    assert cli.main(["statements"]) == 1
    told = capsys.readouterr().out
    assert "    BROKEN                    'encoder' must be 0 up to rounding, but is 0.3" in told
    assert "    BROKEN                    'mean' must differ, by more than 0.001, but is 0" in told
    assert told.endswith("\n2 statements with seed 0: 2 of 3 figures BROKEN\n")
    assert cli.main(["statements", "--json", "encoder"]) == 2, "names of figures are no words of statements"
    assert cli.main(["statements", "--json", "readouts"]) == 1
    assert json.loads(capsys.readouterr().out)["readouts"]["broken"]


def test_all_of_them_at_once_with_another_seed(capsys):
    assert cli.main(["statements", "--seed", "7"]) == 0
    told = capsys.readouterr().out
    assert all(f"\n    {example.name} " in told and example.sentence in told for example in examples().values())
    assert f"\n{len(examples())} statements with seed 7: all " in told and "BROKEN" not in told


def chosen(capsys, *words):
    assert cli.main(["statements", "--list", "--json", *words]) == 0
    return list(json.loads(capsys.readouterr().out))


def test_words_choose(capsys):
    assert chosen(capsys) == list(examples())
    assert chosen(capsys, "steerable", "encryption") == ["encryption", "steerable"]
    assert chosen(capsys, "Dropout") == ["equal-hidden-units"]  # of a sentence
    assert chosen(capsys, "chinese")[0] == "queries-and-keys"  # of a source
    assert "words-step-by-step" in chosen(capsys, "word") and "words-step-by-step" not in chosen(capsys, "ord")
    assert chosen(capsys, "h!", "ENCRYPT") == ["encryption", "all-orders"]


def test_a_list_measures_nothing(planted, capsys):
    planted(tokens_forward=None)
    assert cli.main(["statements", "--list"]) == 0
    *_, first, rest = capsys.readouterr().out.splitlines()
    assert first.startswith(f"tokens-forward                {TOLD[0][:80]}") and TOLD[0].endswith(rest.strip())


def test_lines_are_as_wide_as_the_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "70")
    assert cli.main(["statements", "tokens-forward", "kernel-sums"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 70


@pytest.mark.parametrize(
    "words, message",
    [
        (["tokns"], "gsa: no statement is called 'tokns', or has such a word (the nearest is 'tokens')\n"),
        (
            ["tokens", "stearable"],
            "gsa: no statement is called 'stearable', or has such a word (the nearest is 'steerable')",
        ),
        (["--seed", "-1"], "gsa: seed must be 0 or more, and less than 2⁶³, but got -1\n"),
    ],
)
def test_what_matches_nothing_is_refused(words, message, capsys):
    assert cli.main(["statements", *words]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(message) and not told.out.replace("=", "").strip().endswith("be")
