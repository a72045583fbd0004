"""The yardstick of the benchmarks computes the same thing as the op; tables are made of reports."""

import json
import sys
from pathlib import Path

import pytest
import torch

import gsa
from tests.ops.cases import CASES, tensors

sys.path.insert(0, str(Path(gsa.__file__).parent.parent / "benchmarks"))
import direct
import table


@pytest.mark.parametrize("poses, map_", CASES)
def test_the_direct_evaluation_equals_the_op(poses, map_):
    five, window, form = tensors(poses, map_)
    expected = gsa.ops.attend(*five, window, form=form)
    torch.testing.assert_close(direct.attend(*five, window, form=form), expected)


def test_everywhere_replaces_the_op_in_all_layers_and_puts_it_back(float64):
    network, x = gsa.create_model("digits_r4_sa").eval(), torch.rand(1, 1, 16, 16)
    expected, ours = network(x), gsa.ops.attend
    with direct.everywhere():
        assert gsa.ops.attend is direct.attend
        torch.testing.assert_close(network(x), expected)
    assert gsa.ops.attend is ours


def write_report(folder, **changes):
    report = {
        "model": "a", "parameters": 1000, "epochs": 2, "seed": 0, "machine": "m",
        "val_accuracy": 0.5, "test_accuracy": 0.4,
        "equivariance_error": {"90°": {"error": 1e-7, "exact": True}, "45°": {"error": 0.1, "exact": False}},
        "data": {"name": "d", "source": "s"}, "split": {"train": 3, "val": 2, "test": 1},
        "used": {"train": 3, "val": 2, "test": 1},
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report | changes))


def test_the_table_has_mean_and_spread_over_seeds(tmp_path):
    write_report(tmp_path / "0")
    write_report(tmp_path / "1", seed=1, test_accuracy=0.6)
    write_report(tmp_path / "2", model="b", seed=0)
    rows = [line for line in table.table(table.reports([tmp_path])).splitlines() if line.startswith(("| a", "| b"))]
    assert rows == [
        "| a | 1,000 | 6 | 0, 1 | 50.0 ± 0.0 | 50.0 ± 14.1 | 1.0e-07 |",
        "| b | 1,000 | 6 | 0 | 50.0 | 40.0 | 1.0e-07 |",
    ]


def test_runs_on_different_data_do_not_share_a_table(tmp_path):
    write_report(tmp_path / "0")
    write_report(tmp_path / "1", split={"train": 4, "val": 2, "test": 1})
    with pytest.raises(ValueError, match="different data"):
        table.reports([tmp_path])
    with pytest.raises(ValueError, match="no report.json"):
        table.reports([tmp_path / "nowhere"])
