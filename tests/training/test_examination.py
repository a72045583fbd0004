"""What a test shows beside its accuracy."""

import pytest
import torch

from gsa.training import Examination
from gsa.training._answers import Answers


def logits_of(chances):
    return torch.tensor(chances).log()


def test_what_a_test_shows():
    record = Examination(2)
    pictures = torch.arange(4.0).view(4, 1, 1, 1).expand(4, 1, 2, 2)
    record.update(pictures, logits_of([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]]), torch.tensor([0, 0, 1, 1]))
    findings = record.result()
    assert findings.confusion.tolist() == [[1, 1], [1, 1]]
    assert [(round(one.confidence, 3), one.label, one.predicted) for one in findings.mistakes] == [
        (0.8, 0, 1),
        (0.6, 1, 0),
    ]
    assert [one.picture.unique().tolist() for one in findings.mistakes] == [[1.0], [3.0]]
    # each confidence is alone in its bin: |1 − 0.9|, |0 − 0.8|, |1 − 0.7|, |0 − 0.6|
    assert abs(findings.calibration_error - (0.1 + 0.8 + 0.3 + 0.6) / 4) < 1e-6
    assert [one.row for one in findings.mistakes] == [1, 3]
    assert findings.rows.tolist() == [0, 1, 2, 3] and findings.labels.tolist() == [0, 0, 1, 1]
    torch.testing.assert_close(findings.chances[1:3], torch.tensor([[0.2, 0.8], [0.3, 0.7]]).double())
    record.reset()
    record.update(pictures[:1], logits_of([[0.9, 0.1]]), torch.tensor([0]))
    assert record.result().mistakes == [] and record.result().confusion.sum() == 1


def test_the_most_confident_mistakes_are_kept():
    record = Examination(2)
    for confidence in torch.linspace(0.5, 1, 42)[1:-1][torch.randperm(40)]:
        chances = torch.stack((confidence, 1 - confidence))[None]
        record.update(torch.zeros(1, 1, 2, 2), chances.log(), torch.tensor([1]))
    found = [one.confidence for one in record.result().mistakes]
    assert found == sorted(found, reverse=True) and len(found) == 12
    assert min(found) > 0.84


def test_calibration_is_in_fifteen_bins():
    record = Examination(2)
    record.update(torch.zeros(2, 1, 2, 2), torch.tensor([[0.62, 0.38], [0.68, 0.32]]).log(), torch.tensor([0, 1]))
    assert record.result().calibration_error == pytest.approx((0.38 + 0.68) / 2, abs=1e-6)  # 0.15 in one of ten


def test_answers_that_are_certain_are_in_the_last_of_the_bins():
    """Planted: torchmetrics has a bin of their own for probabilities that round to 1."""
    record = Examination(2)
    logits = torch.stack([torch.tensor([30.0, 0.0]), torch.tensor([0.97, 0.03]).log()])
    record.update(torch.zeros(2, 1, 2, 2), logits, torch.tensor([0, 1]))
    assert record.result().calibration_error == pytest.approx((1 + 0.97) / 2 - 0.5, abs=1e-6)


def test_rows_are_counted_over_batches_and_processes(monkeypatch):
    """Of two processes: each has every second picture of two batches, of which one is not full."""
    parts = []
    for rank in range(2):
        for name, value in (("is_initialized", True), ("get_rank", rank), ("get_world_size", 2)):
            monkeypatch.setattr(f"torch.distributed.{name}", lambda value=value: value)
        parts.append(Answers())
        for count in (2, 2 - rank):
            rows = rank + 2 * (torch.arange(count) + (len(parts[-1].rows) and 2))
            parts[-1].update(rows, rows[:, None].float())
    monkeypatch.undo()
    together = Answers()
    for name in ("rows", "labels", "chances"):
        setattr(together, name, [*getattr(parts[0], name), *getattr(parts[1], name)])
    together._update_count = 1
    rows, labels, chances = together.compute()
    assert rows.tolist() == labels.tolist() == chances[:, 0].tolist() == list(range(7))


def test_probabilities_keep_the_order_of_logits_far_apart():
    """In single precision, the smaller ones of both pictures would be zero."""
    record = Examination(2)
    record.update(torch.zeros(2, 1, 2, 2), torch.tensor([[0.0, 200.0], [0.0, 300.0]]), torch.tensor([0, 1]))
    chances = record.result().chances
    assert 0 < chances[1, 0] < chances[0, 0]
