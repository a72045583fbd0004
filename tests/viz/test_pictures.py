"""Every picture shows what it is given."""

import pytest
import torch

import gsa
from gsa import viz
from gsa.symmetry import GroupAction, LayerReport
from gsa.viz._heads import _directions


def test_learning_has_a_line_for_each_part():
    rows = [{"epoch": e, "train/loss": 1.0 / (e + 1), "val/accuracy": e / 3, "val/loss": 2.0} for e in range(3)]
    loss, accuracy = viz.draw_learning(rows).axes
    assert [list(line.get_ydata()) for line in loss.lines] == [[1.0, 0.5, 1 / 3], [2.0] * 3]
    assert list(accuracy.lines[1].get_xdata()) == [1, 2, 3]
    viz.draw_learning([])


@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 50])
def test_epochs_are_whole(epochs):
    figure = viz.draw_learning([{"epoch": epoch, "val/loss": 1.0} for epoch in range(epochs)])
    figure.canvas.draw()
    low, high = figure.axes[0].get_xlim()
    ticks = [tick for tick in figure.axes[0].get_xticks() if low <= tick <= high]
    assert ticks and all(tick == int(tick) for tick in ticks)


def test_angles_of_an_invariant_function_are_flat_and_of_another_are_not():
    pictures = torch.zeros(4, 1, 9, 9)
    pictures[:, 0, 4, 4:] = torch.rand(4, 5)
    labels = torch.tensor([0, 1, 0, 1])
    columns = torch.stack((torch.ones(81), torch.arange(81.0)), dim=1)

    def invariant(x):
        return torch.stack((x.flatten(1).amax(1), x.flatten(1).mean(1) * 0), dim=1)

    def other(x):
        return x.flatten(1) @ columns

    turns = gsa.group("R4")
    for function, flat in ((invariant, True), (other, False)):
        accuracy, logits = viz.draw_angles(function, pictures, labels, turns).axes
        right = logits.lines[0].get_ydata()
        assert (max(right) - min(right) < 1e-6) == flat
        assert list(accuracy.lines[0].get_xdata()) == [0, 90, 180, 270, 360]


def test_angles_tell_the_right_logit_from_the_best_wrong_one():
    logits, labels = torch.tensor([[5.0, 1, 2], [3, 7, 4]]), torch.tensor([0, 1])
    accuracy, told = viz.draw_angles(lambda x: logits, torch.zeros(2, 1, 3, 3), labels, "Z2").axes
    assert [list(line.get_ydata()) for line in (*accuracy.lines, *told.lines)] == [[1, 1], [6, 6], [3, 3]]


def test_mirrors_are_no_angles():
    with pytest.raises(ValueError, match="a group of rotations, such as R24, but got R4M"):
        viz.draw_angles(lambda x: x.flatten(1), torch.rand(1, 1, 3, 3), torch.tensor([0]), gsa.group("R4M"))


def test_confusion_shows_counts_and_shares():
    figure = viz.draw_confusion(torch.tensor([[3, 1], [0, 0]]))
    shown = [(text.get_text(), *text.get_position()) for text in figure.axes[0].texts]
    assert shown == [("3", 0, 0), ("1", 1, 0)]  # at its column and row
    assert figure.axes[0].images[0].get_array().tolist() == [[0.75, 0.25], [0, 0]]


def test_confusion_has_the_names_of_the_classes():
    axis = viz.draw_confusion(torch.eye(2, dtype=torch.int64), ["cat", "dog"]).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["cat", "dog"]


@pytest.mark.parametrize("classes, named", [(12, True), (60, True), (61, False)])
def test_many_classes_have_names_that_can_be_read(classes, named):
    names = [f"a cell of the kind {index}" for index in range(classes)]
    figure = viz.draw_confusion(torch.eye(classes, dtype=torch.int64), names)
    axis = figure.axes[0]
    assert [label.get_text() == name for label, name in zip(axis.get_yticklabels(), names, strict=False)][-1:] == [
        named
    ]
    assert not named or not any(overlap(figure, labels) for labels in (axis.get_xticklabels(), axis.get_yticklabels()))


@pytest.mark.parametrize("count, channels", [(1, 1), (5, 3)])
def test_mistakes_have_a_picture_and_a_caption_each(count, channels):
    pictures, captions = torch.rand(count, channels, 6, 6), [f"taken for {index}" for index in range(count)]
    axes = viz.draw_mistakes(pictures, captions).axes
    assert [axis.get_title() for axis in axes[:count]] == captions and not any(a.images for a in axes[count:])


def test_encodings_have_a_row_for_each_pose_and_turn_with_it(float64):
    group = gsa.group("R4")
    layer = gsa.nn.LiftingSelfAttention(group, 1, 4, num_heads=2, head_dim=6, neighbourhood=5)
    figure = viz.draw_encodings(layer.acted_encoding(9, 9), group, channels=3)
    assert len(figure.axes) == 4 * 3
    shown = [torch.tensor(axis.images[0].get_array().tolist()) for axis in figure.axes[::3]]
    for pose in range(4):
        torch.testing.assert_close(shown[pose], group.act(shown[0][None, None], pose)[0, 0])


def test_errors_have_a_bar_before_and_after_for_each_element():
    before, after = (
        {"0°": {"error": error, "exact": True}, "45°": {"error": 2 * error, "exact": False}} for error in (0.1, 0.3)
    )
    figure = viz.draw_errors(before, after)
    axis = figure.axes[0]
    assert [bar.get_height() for bar in axis.patches] == [0.1, 0.2, 0.3, 0.6]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "before training",
        "after",
        "exact ones stay below (float32)",
    ]
    figure.canvas.draw()
    assert not figure.legends[0].get_window_extent().overlaps(axis.get_window_extent())  # no bar is hidden
    assert [t.get_text() for t in axis.get_xticklabels()] == ["0°\nexact", "45°\nsampled"]


@pytest.mark.parametrize("name, group, columns", [("digits_r4_sa", "R16", 8), ("digits_z2_sa", "R4", 4)])
def test_the_orbit_of_a_larger_group_is_thinned_out(name, group, columns):
    network = gsa.create_model(name).eval()
    figure = viz.draw_orbit(torch.rand(1, 12, 12), network.lifting, {"logits": network}, gsa.group(group))
    rows = 1 + network.group.order + 1
    assert len(figure.axes) == columns * rows + 1  # the scale


def test_the_orbit_shows_what_is_made_of_every_turned_picture():
    group, image, lifting = gsa.group("R4"), torch.rand(1, 6, 6), gsa.nn.LiftingSelfAttention("R4", 1, 2)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 3))
    axes = viz.draw_orbit(image, lifting, {"logits": network}, group, channel=1).axes[:-1]  # the last is the scale
    for g in range(group.order):
        moved = group.act(image[None], g)
        with torch.no_grad():
            shown = [moved[0, 0], *lifting(moved)[0, 1]]
            logits = network(moved)[0]
        column = axes[g :: group.order]
        for axis, expected in zip(column, shown, strict=False):
            torch.testing.assert_close(torch.tensor(axis.images[0].get_array().tolist()), expected)
        assert [bar.get_height() for bar in column[-1].patches] == logits.tolist()


def test_attention_has_a_panel_for_each_pose_on_its_pixel():
    group = gsa.group("R4")
    attention = torch.rand(4, 5, 5)
    figure = viz.draw_attention(torch.rand(1, 9, 9), attention, (2, 6), group)
    picture, *panels, _ = figure.axes  # the last is the scale
    assert [patch.get_bbox().extents.tolist() for patch in picture.patches] == [[3.5, -0.5, 8.5, 4.5]] * 2
    for axis, weights in zip(panels, attention, strict=True):
        (window,) = axis.images
        assert torch.equal(torch.tensor(window.get_array().tolist()), weights)
        assert list(window.get_extent()) == [3.5, 8.5, 4.5, -0.5]  # five pixels, the sixth column in their midst


@pytest.mark.parametrize("shapes, pixel, message", [
    (((1, 1, 9, 9), (4, 5, 5)), (2, 6), r"one picture, \[C, H, W\], but got \[1, 1, 9, 9\]"),
    (((1, 9, 9), (4, 9, 9, 5, 5)), (2, 6), r"one pixel in 4 poses, \[4, U, V\], but got \[4, 9, 9, 5, 5\]"),
    (((1, 9, 9), (8, 5, 5)), (2, 6), r"in 4 poses, .* but got \[8, 5, 5\]"),
    (((1, 9, 9), (4, 5, 5)), (9, 0), r"on the 9×9 image, but got \(9, 0\)"),
])  # fmt: skip
def test_attention_that_is_not_of_one_pixel_is_refused(shapes, pixel, message):
    with pytest.raises(ValueError, match=message):
        viz.draw_attention(*map(torch.rand, shapes), pixel, "R4")


def test_encodings_of_another_group_are_refused():
    with pytest.raises(ValueError, match=r"spatial must be \[4, U, V, d\], but got \[8, 5, 5, 3\]"):
        viz.draw_encodings(torch.rand(8, 5, 5, 3), "R4")


def test_heads_are_drawn_where_they_look():
    layer = gsa.nn.GroupSelfAttention("R4", 4, 4, num_heads=5, neighbourhood=3, encoding="quadratic")
    before = layer.encoding.offset.tolist()
    layer.encoding.offset.data += 2
    figure = viz.draw_heads(torch.nn.ModuleDict({"layer": layer}))
    start, now = figure.axes
    assert (start.get_title(), now.get_title()) == ("layer, at the start", "layer, now")
    assert [list(patch.center) for patch in start.patches] == before
    assert [list(patch.center) for patch in now.patches] == layer.encoding.offset.tolist()
    assert start.get_xlim() == now.get_xlim() and start.get_xlim()[1] > 3
    assert "pixels" in start.get_xlabel() and len(start.lines) == 5
    assert [patch.radius for patch in now.patches] == pytest.approx((layer.encoding.sharpness**-0.5).tolist())
    ends = (layer.encoding.offset + 0.2 * layer.encoding.preference).tolist()
    assert [hand.get_xydata()[1].tolist() for hand in now.lines] == [pytest.approx(end) for end in ends]


def test_heads_that_prefer_no_pose_have_no_hands():
    replaced = gsa.nn.replace_convolutions(torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, dilation=2)), "R4")
    (start, now) = viz.draw_heads(replaced[0]).axes
    assert len(start.patches) == 9 and not start.lines
    assert [patch.center for patch in start.patches] == [patch.center for patch in now.patches]  # as filters are read
    with pytest.raises(ValueError, match="heads must have places, .* but Linear has none such"):
        viz.draw_heads(torch.nn.Linear(1, 1))


@pytest.mark.parametrize(
    "group, expected",
    [
        ("Z2M", [[]] * 4),
        ("R2M", [[2, 0], [-2, 0], [2, 0], [-2, 0]]),
        ("R4M", [[2, 0], [0, 2], [-2, 0], [0, -2]]),
    ],
)
def test_hands_point_to_the_preferred_turn(group, expected):
    encoding = gsa.nn.GroupSelfAttention(group, 4, 4, num_heads=4, encoding="quadratic").encoding
    torch.testing.assert_close(_directions(encoding), torch.tensor(expected).float())


@pytest.mark.parametrize("backward", [False, True])
def test_layers_are_drawn_exact_broken_and_sampled_apart(backward):
    errors = {
        "0": {0: 0.0, 1: 1e-3, 2: 1e-7},
        "0.weight": {0: 0.0, 1: 1e-2, 2: float("nan")},
        "whole": {0: 0.0, 1: 0.5, 2: 1e-2},
    }
    report = LayerReport(GroupAction("R4"), errors, 1e-5, {"0.weight": {2: 1.0}} if backward else None)
    report.symmetry.exact = (0, 2)
    axis = viz.draw_layers(report, depth=1).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["0", "0.weight ←", "whole"]
    assert [text.get_text() for text in axis.get_legend().texts] == ["exact", "broken", "sampled"]
    ends = [round(bar.get_x() + bar.get_width(), 9) for bar in axis.patches]
    assert ends == [1e-3, 1e-7, 1e-2, 4, 0.5, 1e-2]  # of each layer the sampled one, then the exact ones
    assert [bar.get_hatch() for bar in axis.patches] == [None, None, None, "//", None, "//"]  # broken
    assert axis.get_xscale() == "log" and ("gradients" in axis.get_xlabel()) == backward


def test_layers_have_a_row_each_and_the_output_is_the_last():
    layers = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.ReLU())
    report = gsa.symmetry.LayerReport.of(layers, torch.rand(1, 1, 6, 6), "R4")
    axis = viz.draw_compared_layers({"one": report, "two": report}).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["0", "1", "output"]
    assert list(axis.lines[1].get_xdata()) == [report.worst("0"), report.worst("1"), report.worst("Sequential")]
    assert axis.lines[2].get_xdata()[0] == report.tolerance
    with pytest.raises(ValueError, match="1 to 4 reports"):
        viz.draw_compared_layers({})


def test_what_is_not_a_number_reaches_the_end_of_the_axis():
    errors = {"output": {1: 0.5}, "second": {1: float("nan")}, "Net": {1: 50.0}}
    report = LayerReport(GroupAction("R2"), errors)
    (axis,) = viz.draw_compared_layers({"mine": report}).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["output", "second", "output"]
    (line, *_) = axis.lines
    assert list(line.get_xdata()) == [0.5, 10.0, 10.0] and axis.get_xlim()[1] == 10
    told = {"0°": {"error": 0.0, "exact": True}, "180°": {"error": float("nan"), "exact": True}}
    (axis,) = viz.draw_errors(told, told).axes
    assert [bar.get_height() for bar in axis.patches[:2]] == [*axis.get_ylim()]
    assert [text.get_text() for text in axis.texts] == ["0", "nan"] * 2


def test_losses_that_are_no_numbers_are_marked():
    rows = [{"epoch": epoch, "train/loss": value} for epoch, value in enumerate([1.0, float("nan"), float("inf"), 0.5])]
    loss, accuracy = viz.draw_learning(rows).axes
    assert [list(line.get_xdata()) for line in loss.lines if line.get_marker() == "x"] == [[2, 3]]
    assert "not a finite number" in loss.get_title() and accuracy.get_title() == "accuracy"


@pytest.mark.parametrize("classes, largest", [(2, 7), (20, 98765), (60, 999)])
def test_counts_of_neighbours_do_not_overlap(classes, largest):
    figure = viz.draw_confusion(torch.full((classes, classes), largest), ["name of a class"] * classes)
    assert not overlap(figure, figure.axes[0].texts[:classes])


def overlap(figure, labels):
    """Whether any two labels lie over each other once the figure is drawn."""
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in labels]
    return any(one.overlaps(other) for index, one in enumerate(boxes) for other in boxes[:index])


@pytest.mark.parametrize("name", ["R4", "R4M", "R8M"])
def test_elements_of_large_groups_can_be_read(name):
    group = gsa.group(name)
    errors = {group.describe(g): {"error": 0.1, "exact": g in group.grid_elements} for g in range(group.order)}
    figure = viz.draw_errors(errors, errors)
    assert not overlap(figure, figure.axes[0].get_xticklabels())
    figure = viz.draw_orbit(torch.rand(1, 8, 8), lambda x: x[:, :, None].repeat(1, 1, group.order, 1, 1), {}, group)
    assert not overlap(figure, [axis.yaxis.label for axis in figure.axes if axis.get_ylabel()])
    encodings = viz.draw_encodings(torch.rand(group.order, 5, 5, 4), group)
    assert not overlap(encodings, [axis.yaxis.label for axis in encodings.axes if axis.get_ylabel()])


def test_labels_that_overlap_are_noticed():
    figure = viz.draw_errors(*2 * [{f"a long name {index}": {"error": 0.1, "exact": True} for index in range(8)}])
    assert overlap(figure, figure.axes[0].get_xticklabels())


def test_arrays_are_drawn_as_tensors_are():
    counts = torch.tensor([[3, 1], [0, 2]])
    assert [text.get_text() for text in viz.draw_confusion(counts.numpy()).axes[0].texts] == ["3", "1", "2"]
    viz.draw_mistakes(torch.rand(2, 1, 4, 4).numpy(), ["a", "b"])
    viz.draw_attention(torch.rand(1, 9, 9).numpy(), torch.rand(4, 5, 5).numpy(), (2, 6), "R4")
    viz.draw_angles(lambda x: x.flatten(1), torch.rand(2, 1, 2, 2).numpy(), counts[0].numpy(), "R4")
