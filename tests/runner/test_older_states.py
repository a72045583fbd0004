"""Runs go on whose layers had a parameter of no numbers, as those of version 0.4."""

import pytest
import torch
from torch import nn

from gsa.encodings import QuadraticEncoding
from gsa.runner import train
from gsa.training._older_states import without_empty


@pytest.mark.parametrize("optimizer", ["muon", pytest.param("adamw", marks=pytest.mark.slow), "sgd"])
def test_a_run_goes_on_whose_lifting_layer_had_a_parameter_of_no_numbers(small, tmp_path, monkeypatch, optimizer):
    quadratic = ("model.num_heads=2", "model.head_dim=4", "model.encoding=quadratic")
    options = (*quadratic, f"optimizer={optimizer}", "scheduler=constant")
    options += ("optimizer.momentum=0",) if optimizer == "sgd" else ()  # and nothing is remembered
    whole = train(small(*options, folder="whole"))[1]["network"]
    make = QuadraticEncoding.__init__

    def as_before(self, *arguments, **keywords):
        make(self, *arguments, **keywords)
        if "preference" in self._buffers:
            self.preference = nn.Parameter(self._buffers.pop("preference"))

    with monkeypatch.context() as patch:
        patch.setattr(QuadraticEncoding, "__init__", as_before)
        begun = train(small(*options, "trainer.max_epochs=1"))[1]
        assert any(not p.numel() for p in begun["network"].parameters())
    last = f"ckpt_path='{tmp_path}/run/checkpoints/last.ckpt'"
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="doesn't match the size"):
        patch.setattr("gsa.training._classifier.without_empty", lambda state, count: state)  # planted
        train(small(*options, last))
    gone_on = train(small(*options, last))[1]["network"]
    assert all(map(torch.equal, gone_on.state_dict().values(), whole.state_dict().values()))


def test_of_parameters_without_a_gradient_the_one_of_no_numbers_is_left_out():
    """As those of version 0.4, whose optimizers remembered the others. Planted: as many as there are, or none is."""
    groups = [{"params": [0, 1], "lr": 0.1}, {"params": [2, 3], "lr": 0.2}]
    state = {"state": {index: {"step": torch.ones(())} for index in (0, 1, 3)}, "param_groups": groups}
    assert without_empty(state, 4) == state
    mended = without_empty(state, 3)
    assert [group["params"] for group in mended["param_groups"]] == [[0, 1], [3]]
    assert mended["state"] == state["state"]
