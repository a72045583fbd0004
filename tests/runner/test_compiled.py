"""Networks are compiled where they are trained and tested, each job of a sweep anew."""

import pytest
import torch

import gsa
from gsa.report import symmetry_of
from gsa.runner import train
from gsa.saved import read_checkpoint


@pytest.mark.slow
def test_a_compiled_network_trains_and_its_checkpoint_has_the_same_keys(small, tmp_path):
    train(small("compile=true"))
    keys = read_checkpoint(tmp_path / "run" / "checkpoints" / "best.ckpt")["state_dict"].keys()
    assert {k.removeprefix("network.") for k in keys} == gsa.create_model("digits_z2_sa").state_dict().keys()


def test_a_network_is_compiled_where_it_is_trained_and_tested_only(small, monkeypatch):
    """Its symmetry is measured on the CPU before and after: it would be compiled for that first."""
    seen = []

    def compiled(function, **options):
        assert options["dynamic"] is None
        seen.append(options["mode"])

        def run(*arguments):
            seen.append("compiled")
            return function(*arguments)

        return run

    def watched(run):
        count = len(seen)
        found = symmetry_of(run)
        assert "compiled" not in seen[count:]
        seen.append("symmetry")
        return found

    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setattr("gsa.runner._run.symmetry_of", watched)
    train(small("compile=reduce-overhead"))
    assert list(dict.fromkeys(seen)) == ["symmetry", "reduce-overhead", "compiled"] and seen[-1] == "symmetry"


def test_jobs_of_a_sweep_are_compiled_each(small, monkeypatch):
    """Dynamo compiles the code that networks share so often only: what it knows of one is forgotten after it."""
    forgotten = []
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    monkeypatch.setattr(torch.compiler, "reset", lambda: forgotten.append(True))
    train(small("trainer.max_epochs=1"))
    assert not forgotten
    train(small("compile=true", "trainer.max_epochs=1", folder="compiled"))
    assert forgotten == [True]


def test_norms_that_processes_share_break_the_graph_whose_parts_have_no_symbols(small, monkeypatch):
    """Which inductor cannot compile where a part meets a second size."""
    seen = []
    monkeypatch.setattr(torch, "compile", lambda function, **options: seen.append(options["dynamic"]) or function)
    monkeypatch.setattr("gsa.runner._compiling.is_alone", lambda trainer: False)
    train(small("compile=true", "trainer.max_epochs=1"))
    assert seen == [False]
