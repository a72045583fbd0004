"""Runs beside one another, as those of a sweep."""

from gsa import viz


def test_runs_of_one_name_have_a_mean_as_far_as_all_of_them_go():
    """Against the epoch and against the time; planted: epochs that were not validated, and a run that never was."""

    def history(*accuracies, seconds=60):
        rows = [{"epoch": e, "seconds": seconds, "val/accuracy": value} for e, value in enumerate(accuracies)]
        return [{k: v for k, v in row.items() if v is not None} for row in rows]

    runs = {"fast": [history(0.1, 0.3, 0.5), history(0.3, 0.5, seconds=120)], "one": [history(0.2, None, 0.4)]}
    figure = viz.draw_runs(runs | {"none": [history(None), []]})
    epochs, minutes = ([(*line.get_xdata(), *line.get_ydata()) for line in axis.lines] for axis in figure.axes)
    assert epochs == [(1, 2, 3, 0.1, 0.3, 0.5), (1, 2, 0.3, 0.5), (1, 2, 0.2, 0.4), (1, 3, 0.2, 0.4)]
    assert minutes == [(1, 2, 3, 0.1, 0.3, 0.5), (2, 4, 0.3, 0.5), (1.5, 3, 0.2, 0.4), (1, 3, 0.2, 0.4)]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fast (mean of 2)", "one"]
    many = viz.draw_runs({f"run {number}": [history(0.5)] for number in range(12)})
    assert [line.get_color() for line in many.axes[0].lines][-3:] == ["C9", "0.8", "0.8"]
    viz.draw_runs({}).canvas.draw()
