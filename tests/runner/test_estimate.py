"""What a run will take is told before it begins, and telling it changes nothing."""

from pathlib import Path

import pytest
import torch

from gsa.report import peak_memory_mb
from gsa.runner import build, train
from gsa.runner._estimate import Estimate, _launching, _median, estimated


def test_it_is_counted_from_steps_reading_and_validation(small, monkeypatch):
    monkeypatch.setattr("gsa.runner._estimate._timed", lambda work, device: (work(), 1.0)[1])
    run = build(small("trainer.limit_val_batches=1.0", batches=7))
    run.data.setup()
    # 2 epochs of 7 batches, each a step and its reading, and of 200 pictures for validation, 16 a second
    found = estimated(run)
    assert found.seconds == pytest.approx(2 * (7 * (1 + 1) + 200 / 16)) and found.reading == 0.5
    run.config.data.num_workers = 1
    assert estimated(run).reading == 0.0
    for batches, pictures in ((1, 100), (9, 200)):  # and no more than there are
        run.trainer.limit_val_batches = batches
        assert estimated(run).seconds == pytest.approx(2 * (7 * 1 + pictures / 16))
    run.config.compile = True  # which takes longer at first
    assert estimated(run) is None


def test_long_steps_are_judged_by_few_pictures_and_not_tried(small, monkeypatch):
    """Planted: steps that are tried."""
    monkeypatch.setattr("gsa.runner._estimate._timed", lambda work, device: (work(), 5.0)[1])
    monkeypatch.setattr("gsa.runner._estimate._training_step", lambda *_: pytest.fail)
    run = build(small("trainer.limit_val_batches=1.0", batches=7))
    run.data.setup()
    found = estimated(run)
    assert found.by_few_pictures and found.seconds == pytest.approx(2 * (7 * 3 * 16 * 5 + 200 * 5))
    assert str(found) == "about 89 min, judged by few pictures, as a step takes more than a minute"
    monkeypatch.setattr("gsa.runner._estimate._timed", lambda work, device: (work(), 1.5)[1])  # of 16 pictures, too
    with pytest.raises(pytest.fail.Exception):
        estimated(run)


def test_the_first_lines_come_before_steps_are_tried(small, monkeypatch, capsys):
    said = []
    monkeypatch.setattr("gsa.runner._run.estimated", lambda run: said.append(capsys.readouterr().out))
    train(small())
    assert said[0].startswith("network ") and "\ndevice " in said[0] and "\nfolder " in said[0]


def test_the_network_and_the_random_numbers_stay_as_they_are(small):
    run = build(small("model.dropout=0.3"))
    run.data.setup()
    before = {name: value.clone() for name, value in run.network.state_dict().items()}
    drawn = torch.get_rng_state()
    found = estimated(run)
    assert found.seconds > 0 and found.memory_mb > 100
    assert torch.equal(torch.get_rng_state(), drawn) and all(p.grad is None for p in run.network.parameters())
    assert all(torch.equal(value, before[name]) for name, value in run.network.state_dict().items())


def test_it_stands_on_the_screen_and_in_the_report(small, capsys):
    _, objects = train(small())
    found = objects["report"]["estimate"]
    assert f"estimate     {Estimate(**found)}\n" in capsys.readouterr().out
    _, again = train(small(f"ckpt_path='{objects['folder']}/checkpoints/best.ckpt'", "train=false", folder="test"))
    assert again["report"]["estimate"] is None


@pytest.mark.parametrize("seconds, told", [(5, "5 s"), (80, "80 s"), (600, "10 min"), (12000, "3.3 h")])
def test_it_is_told_in_units_that_are_read_at_a_glance(seconds, told):
    assert str(Estimate(seconds, 1234, 0.1)) == f"about {told}, 1.2 GB of memory"


def test_it_says_what_to_do_about_reading():
    assert str(Estimate(80, 1234, 0.4)).endswith(
        "; 40 % of it reads pictures, which data.num_workers=2 has other processes do"
    )


def test_it_says_what_to_do_about_launches(small, monkeypatch):
    told = "the GPU waits to be told what to do: compile=graph tells it whole steps at once"
    assert str(Estimate(80, 1234, 0.0, 0.9)).endswith(f"; {told}") and told not in str(Estimate(80, 1234, 0.0, 0.7))
    run, took = build(small("optimizer=muon")), iter([0.0, 3.0, 4.0])
    monkeypatch.setattr("gsa.training._recordable._ON", ("cpu",))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr("gsa.runner._estimate.time.perf_counter", lambda: next(took))
    assert _launching(run, lambda: None) == 0.75
    run.trainer.accumulate_grad_batches = 2  # steps that are not recorded
    assert _launching(run, lambda: None) == 0.0


def test_memory_of_a_whole_validation_is_that_of_few_pictures_times_their_number(small, monkeypatch):
    """Planted: the peak of the 16 that were tried, of 100."""
    monkeypatch.setattr("gsa.runner._estimate._timed", lambda work, device: (work(), 1.9)[1])
    few = (400.0, 480.0, 500.0)  # before and after them, and by steps
    told = iter([*few, 450.0, *few, 900.0])
    monkeypatch.setattr("gsa.runner._estimate.peak_memory_mb", lambda device: next(told))
    run = build(small("data.eval_batch_size=100", batches=7))
    run.data.setup()
    assert estimated(run).memory_mb == pytest.approx(450 + 80 * 100 / 16)
    monkeypatch.setattr("gsa.runner._estimate._timed", lambda work, device: (work(), 1e-3)[1])
    assert estimated(run).memory_mb == 900  # of all, that were tried


def test_one_step_that_was_disturbed_does_not_count(monkeypatch):
    monkeypatch.setattr("gsa.runner._estimate._STEPS", 5)
    took = iter([0.3, 1.6, 0.2])
    assert _median(lambda: next(took)) == 0.3 and not [*took]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="of Linux")
def test_every_run_of_a_process_has_its_own_peak(small):
    taken = bytearray(1 << 30)  # as by a larger network before
    before = peak_memory_mb(torch.device("cpu"))
    del taken
    _, objects = train(small())
    assert objects["report"]["peak_memory_mb"] < before - 500
