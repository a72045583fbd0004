"""Examples of the statements: what should vanish does, contrasts do not, and a wrong one is noticed."""

import inspect
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import gsa
from gsa.symmetry import statements
from gsa.symmetry.statements import Figures, examples
from gsa.symmetry.statements._examples import _permutations
from gsa.symmetry.statements._examples._networks import Placed, another_order, encoder

EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_should_vanish_does_and_contrasts_do_not(name):
    figures = EXAMPLES[name].measured()
    assert figures.zeros and figures.contrasts and not figures.faults()


def names_in(code):
    """Whatever a function calls, and those that are written inside it."""
    inside = (constant for constant in code.co_consts if inspect.iscode(constant))
    return set(code.co_names).union(*map(names_in, inside))


def test_every_function_is_played_and_named_where_it_is():
    functions = {name for name in statements.__all__ if inspect.isfunction(getattr(statements, name))} - {"examples"}
    assert functions == {function for example in EXAMPLES.values() for function in example.functions}
    for example in EXAMPLES.values():
        helpers, own = vars(inspect.getmodule(example.measure)), names_in(example.measure.__code__)
        inside = [helpers[name].__code__ for name in own if name.startswith("_") and inspect.isfunction(helpers[name])]
        assert own & functions <= {*example.functions} <= own.union(*map(names_in, inside)), example.name


def test_sources_are_those_of_the_table_and_sentences_are_sentences():
    page = (Path(gsa.__file__).parent.parent / "docs" / "coverage.md").read_text()
    assert {example.source for example in EXAMPLES.values()} == {
        line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")
    }
    assert all(example.sentence.endswith(".") and len(example.sentence) <= 110 for example in EXAMPLES.values())


@pytest.mark.parametrize(
    "zeros, contrasts, told",
    [
        ({"output": 2e-9}, {}, "'output' must be 0 up to rounding, but is 2e-09"),
        ({"output": math.nan}, {}, "'output' must be 0 up to rounding, but is nan"),
        ({}, {"with positions": 1e-4}, "'with positions' must differ, by more than 0.001, but is 0.0001"),
        ({}, {"with positions": math.nan}, "'with positions' must differ, by more than 0.001, but is nan"),
        ({}, {"with positions": math.inf}, "'with positions' must differ, by more than 0.001, but is inf"),
    ],
)
def test_figures_that_are_not_so_are_told(zeros, contrasts, told):
    assert Figures({"first": 0.0} | zeros, {"second": 1.0} | contrasts).faults() == [told]


def test_a_network_that_knows_places_is_noticed(monkeypatch):
    monkeypatch.setattr(_permutations, "encoder", lambda *layers: Placed(encoder(*layers)))  # planted
    assert "'encoder' must be 0" in EXAMPLES["tokens-forward"].measured().faults()[0]
    assert len(EXAMPLES["tokens-backward"].measured().faults()) >= 4


def test_the_callers_numbers_and_dtype_stay_as_they_are():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with torch.no_grad():
        figures = EXAMPLES["tokens-backward"].measured(1)  # which needs gradients
    assert torch.equal(torch.rand(3), expected) and torch.get_default_dtype() == torch.float32
    assert figures.contrasts == EXAMPLES["tokens-backward"].measured(1).contrasts
    assert figures.contrasts != EXAMPLES["tokens-backward"].measured(2).contrasts


def test_they_stay_where_an_example_fails():
    def fail():
        assert torch.get_default_dtype() == torch.float64 and torch.rand(()).dtype == torch.float64
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        replace(EXAMPLES["tokens-forward"], measure=fail).measured()
    assert torch.get_default_dtype() == torch.float32
    for seed in (-1, 2**63):
        with pytest.raises(ValueError, match=f"seed must be 0 or more, and less than 2⁶³, but got {seed}"):
            EXAMPLES["tokens-forward"].measured(seed)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_another_order_moves_everything(count):
    for _ in range(20):
        order, stay = another_order(count), torch.arange(count)
        assert torch.equal(order.sort().values, stay) and not (order == stay).any()
        assert count == 2 or not torch.equal(order[order], stay)
