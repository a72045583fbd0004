"""What the runner knows of targets without importing them is what they are."""

import pytest
from hydra.utils import get_object
from torch import nn

from gsa._limits import LIMITS
from gsa.runner._signatures import _looked_up, signature

VALUES = (
    -1,
    0,
    0.5,
    1,
    1.5,
    2,
    "mnist",
    "official",
    "skip",
    "keep",
    "grey",
    "whole",
    "test",
    "2/5",
    "6/5",
    "folder",
    "^(p)_",
    "((",
    "cats",
    [],
    ["turns"],
    ["flips", "turn"],
)


def called(target, folder, **arguments):
    """A target with values that it takes, but for one."""
    network = nn.Linear(2, 2)
    if target.startswith("gsa.data."):
        needed = {"root": folder} if "root" in _looked_up(target).parameters else {}
        return get_object(target)(**needed | arguments)
    if target.startswith("torch.optim."):
        return get_object(target)(network.parameters(), **arguments)
    if target == "gsa.training.muon":
        return get_object(target)(network, **arguments)
    return get_object(target)(get_object("torch.optim.SGD")(network.parameters()), steps=10, **arguments)


@pytest.mark.parametrize("target, argument", [(target, name) for target, limits in LIMITS.items() for name in limits])
def test_a_target_refuses_what_is_beyond_its_limits_and_nothing_else(tmp_path, target, argument):
    for name in "ab":
        (tmp_path / name).mkdir()
    limit, parameter = LIMITS[target][argument], signature(target).parameters[argument]
    verdicts = set()
    for value in (value for value in VALUES if parameter.takes(value)):
        try:
            made = called(target, tmp_path, **{argument: value})
            if argument in ("root", "labels"):
                _ = made.num_classes  # looks into it
            within = True
        except (ValueError, FileNotFoundError):
            within = False
        assert limit.holds(value) is within, value
        verdicts.add(within)
    there = {"root": str(tmp_path), "labels": __file__}.get(argument)
    assert verdicts == {True, False} or (there is not None and limit.holds(there))


def test_a_signature_takes_what_its_annotations_say():
    def target(a: int, b: float | None = None, *, c: str | bool = "", **others: object) -> None: ...

    globals()["target"] = target
    found = _looked_up(f"{__name__}.target")
    assert found.open and [parameter.words for parameter in found.parameters.values()] == [
        "int",
        "float or None",
        "str or bool",
    ]
    taken = {
        name: [value for value in (True, 1, 1.5, "x", None, []) if parameter.takes(value)]
        for name, parameter in found.parameters.items()
    }
    assert taken == {"a": [1], "b": [1, 1.5, None], "c": [True, "x"]}


def test_a_signature_takes_its_literals():
    parameter = signature("lightning.Trainer").parameters["precision"]
    assert parameter.takes("bf16-mixed") and parameter.takes(32) and not parameter.takes("bf17")
