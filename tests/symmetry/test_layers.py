"""Where networks lose a symmetry: the first layer that does is named, in ours and in anybody's."""

import json
import math

import pytest
import torch
from torch import nn

import gsa
from gsa import cli
from gsa.symmetry import GroupAction, LayerReport, Shifts, layer_errors


class Broken(nn.Module):
    """Adds to one pixel, which no symmetry leaves where it is."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        x = self.inner(x).clone()
        x[..., 0, 1] += 1
        return x


def network(group="R4"):
    torch.manual_seed(0)
    found = gsa.create_model("digits_gsa", group=group).double().eval()
    return found, torch.rand(3, 1, 12, 12).double()


def test_every_layer_of_ours_is_exact_and_the_whole_stands_last():
    ours, x = network()
    errors = layer_errors(ours, x, "R4")
    *layers, whole = errors
    assert whole == "GSANet" and len(layers) > 20 and set(layers) <= dict(ours.named_modules()).keys()
    assert layers.index("lifting") < layers.index("stages.0") < layers.index("stages.1")
    assert max(error for of_layer in errors.values() for error in of_layer.values()) < 1e-12
    assert errors[whole] == pytest.approx(gsa.symmetry.equivariance_error(ours, x, "R4"), abs=1e-15)


def test_planted_the_layer_that_breaks_it_is_named_with_the_error_before_and_after():
    ours, x = network()
    ours.stages[0][0] = Broken(ours.stages[0][0])
    report = LayerReport.of(ours, x, "R4")
    layer, before, after = report.first_broken
    assert layer == "stages.0.0" and before < 1e-12 and after > 1e-3
    assert report.broken == [1, 2, 3] and "first broken by stages.0.0" in str(report)
    assert report.as_dict()["first_broken"] == "stages.0.0" and report.as_dict()["broken"] == ["90°", "180°", "270°"]


class Placed(nn.Module):
    """What breaks it is done between two layers."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Conv2d(1, 2, 1), nn.Conv2d(2, 2, 1)
        self.places = nn.Parameter(torch.rand(2, 6, 6))

    def forward(self, x):
        return self.after(self.before(x) + self.places)


def test_what_is_done_between_two_layers_is_not_laid_to_the_second():
    torch.manual_seed(0)
    placed, x = Placed().double(), torch.rand(2, 1, 6, 6).double()
    assert "first broken between before and after: " in str(LayerReport.of(placed, x, "R4"))
    assert "first broken in 0, before 0.after: " in str(LayerReport.of(nn.Sequential(placed), x, "R4"))
    placed.places.data.zero_()
    placed.after = nn.Conv2d(2, 2, 3, padding=1).double()  # planted: the layer itself
    assert "first broken by after: " in str(LayerReport.of(placed, x, "R4"))


def test_pictures_of_another_dtype_are_refused_in_words():
    layer, pictures = nn.Conv2d(1, 2, 3, padding=1).double(), torch.rand(1, 1, 6, 6)
    with pytest.raises(ValueError, match=r"such as the torch.float64 of its weights, but is torch.float32"):
        LayerReport.of(layer, pictures, "R4")
    with pytest.raises(RuntimeError):  # not for the dtype
        LayerReport.of(layer, torch.rand(1, 2, 6, 6).double(), "R4")


def test_layers_that_cannot_be_judged_are_told():
    torch.manual_seed(0)
    lifting = gsa.nn.LiftingSelfAttention("R4", 1, 2).double()
    report = LayerReport.of(nn.Sequential(lifting, nn.Flatten(1, 2)), torch.rand(2, 1, 6, 6).double(), "Z2M")
    assert report.unjudged == {"0": [2, 2, 4, 6, 6]}
    assert "first broken by 1 or what is not judged: " in str(report)
    assert "not judged, as no outputs of such shapes are moved by Z2M: 0 [2, 2, 4, 6, 6]" in str(report)
    assert not LayerReport.of(nn.Sequential(lifting), torch.rand(2, 1, 6, 6).double(), "R4").unjudged
    shifted = LayerReport.of(gsa.create_model("digits_gsa").double(), torch.rand(1, 1, 12, 12).double(), Shifts((1, 0)))
    assert "first broken after input_dropout, by GSANet itself or what is not judged: " in str(shifted)


def test_planted_an_encoding_that_does_not_turn_is_named():
    torch.manual_seed(0)
    ours = gsa.create_model("digits_r4_sa").double().eval()
    layers = {name: layer for name, layer in ours.named_modules() if isinstance(layer, gsa.nn.GroupSelfAttention)}
    name, layer = list(layers.items())[1]
    layer.encoding.inverse_matrices = torch.eye(2).double().expand(4, 2, 2).clone()
    first, _, _ = LayerReport.of(ours, torch.rand(3, 1, 12, 12).double(), "R4").first_broken
    assert first.startswith(name)  # by the map that joins its heads, the first in it to return something


def test_any_network_is_looked_into_and_layers_in_place_do_not_hide_others():
    convolution = nn.Conv2d(1, 4, 3, padding=1, bias=False).double()
    convolution.weight.data = convolution.weight + convolution.weight.flip(-1)  # left is like right
    x = torch.rand(3, 1, 8, 8).double()
    plain = nn.Sequential(
        convolution, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2).double()
    )
    assert max(max(e.values()) for e in layer_errors(plain, x, "Z2M").values()) < 1e-12
    assert LayerReport.of(plain, x, "R4").first_broken[0] == "0"
    shared = nn.Sequential(convolution, nn.Conv2d(4, 1, 1).double(), convolution)
    assert list(layer_errors(shared, x, "Z2M")) == ["0", "1", "0 (2)", "Sequential"]


def test_tokens_are_moved_as_tokens_and_what_knows_no_picture_is_left_out():
    from torchvision.models import VisionTransformer

    torch.manual_seed(0)
    vit = VisionTransformer(16, 4, 2, 2, 8, 16, num_classes=3).double().eval()
    vit.conv_proj.weight.data = vit.conv_proj.weight + vit.conv_proj.weight.flip(-1)  # left is like right
    nn.init.normal_(vit.heads.head.weight)  # which starts at zero
    nn.init.normal_(vit.encoder.pos_embedding)
    report = LayerReport.of(vit, torch.rand(3, 3, 16, 16).double(), "Z2M")
    assert report.worst("conv_proj") < 1e-12
    assert report.first_broken[0] == "encoder.dropout"  # the first module after positions are added
    assert report.broken == [1]
    nn.init.zeros_(vit.encoder.pos_embedding)
    assert LayerReport.of(vit, torch.rand(3, 3, 16, 16).double(), "Z2M").broken == []


def test_tables_that_do_not_depend_on_the_input_are_neither_judged_nor_missed():
    """Planted: a ramp and a list, which some layers make for themselves."""

    class Table(nn.Module):
        def __init__(self, *shape):
            super().__init__()
            self.table = torch.rand(shape).double()

        def forward(self, x):
            return self.table

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.ramp, self.list, self.last = Table(1, 1, 6, 6), Table(7), nn.Tanh()

        def forward(self, x):
            self.ramp(x), self.list(x)
            return self.last(x)

    report = LayerReport.of(Network(), torch.rand(1, 1, 6, 6).double(), "R4")
    assert list(report.errors) == ["last", "Network"] and report.first_broken is None and not report.unjudged


def test_the_command_checks_anything_importable(capsys):
    assert cli.main(["check", "torchvision.models:resnet18", "--input", "3,32,32", "--group", "R4"]) == 1
    said = capsys.readouterr().out
    assert "first broken by conv1" in said and "BROKEN" in said and "ResNet" in said
    assert cli.main(["check", "torchvision.models:resnet18", "--input", "3,32,32"]) == 0  # nothing is claimed
    assert "not claimed" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["digits_gsa", "digits_r8_sa", "digits_z2_sa"])
def test_the_command_checks_names(name, capsys):
    assert cli.main(["check", name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["claimed"] is (told["broken"] == []) is ("z2" not in name)
    assert told["group"] == {"digits_gsa": "R4", "digits_r8_sa": "R8", "digits_z2_sa": "R4M"}[name]
    assert cli.main(["check", name, "--group", "R8M"]) == 1  # more than it has
    assert ("broken in lifting" in capsys.readouterr().out) is ("z2" in name), "features of one pose are images"


@pytest.mark.parametrize("arguments, message", [
    ([], "say what to check once"),
    (["torchvision.models:resnet18"], "must be given, such as --input 3,64,64"),
    (["torchvision.models:resnet18", "--input", "3,64"], "channels, height and width, such as 3,64,64, or of features"),
    (["torchvision.models:nothing", "--input", "3,8,8"], "torchvision.models has no 'nothing'"),
    (["math:pi", "--input", "3,8,8"], "math:pi must be an nn.Module, or make one when it is called, but is float"),
    (["no_such_module:f", "--input", "3,8,8"], "no_such_module"),
])  # fmt: skip
def test_what_cannot_be_checked_is_refused(arguments, message, capsys):
    assert cli.main(["check", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_an_output_that_says_nothing_is_refused():
    with pytest.raises(ValueError, match="Flatten must return"):
        layer_errors(nn.Flatten(0), torch.rand(2, 1, 4, 4), "R4")


class Nothing(nn.Module):
    def forward(self, x):
        return x * math.nan


def test_what_is_not_a_number_is_broken_and_is_told_as_json():
    report = LayerReport.of(nn.Sequential(nn.Conv2d(1, 2, 1), Nothing()), torch.rand(1, 1, 6, 6), "R4")
    assert report.first_broken[0] == "1" and report.worst("1") == math.inf and report.broken == [0, 1, 2, 3]
    told = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert told["verdict"] == report.table().splitlines()[-len(told["verdict"]) :]
    assert told["layers"]["1"]["90°"] is None and told["layers"]["0"]["90°"] < 1e-5


class Averaged(nn.Module):
    """A softmax of scores [B, heads, N, N], which are no picture, on the way to what is invariant."""

    def __init__(self):
        super().__init__()
        self.soft = nn.Softmax(-1)

    def forward(self, x):
        tokens = x.flatten(2).mT[:, None]
        return (self.soft(tokens @ tokens.mT) @ tokens).mean((1, 2))


def test_a_row_within_is_not_laid_to_a_whole_that_keeps_it():
    report = LayerReport.of(Averaged().double(), torch.rand(2, 1, 4, 4).double(), "R4")
    assert report.broken == [] and report.worst("soft") > 1e-2
    assert "the whole keeps it; soft is " in str(report) and "first broken" not in str(report)
    planted = nn.Sequential(nn.Conv2d(1, 1, 3), Averaged()).double()  # the whole does not
    assert "first broken by 0: " in str(LayerReport.of(planted, torch.rand(2, 1, 6, 6).double(), "R4"))


class Spot(nn.Module):
    """Adds to one pixel, in place."""

    def forward(self, x):
        x[..., 0, 1] += 1
        return x


def test_a_layer_in_place_is_not_taken_for_what_it_is_given():
    report = LayerReport.of(nn.Sequential(nn.Conv2d(1, 2, 1), Spot()), torch.rand(1, 1, 6, 6), "R4")
    assert "first broken by 1: " in str(report)
    assert list(report.given["1"]) == [0, 1, 2, 3] and max(report.given["1"].values()) < 1e-5


def test_a_table_is_as_deep_and_as_wide_as_it_says():
    inner = nn.Sequential(nn.Conv2d(1, 2, 1), nn.SiLU())
    network, x = nn.Sequential(inner, nn.Conv2d(2, 1, 1)), torch.rand(1, 1, 6, 6)
    report = LayerReport.of(network, x, "R8")
    assert report.shown() == ["0.0", "0.1", "0", "1", "Sequential"] == report.shown(2)
    assert report.shown(1) == ["0", "1", "Sequential"] and "315°" in report.table()  # eight columns
    in_lists = gsa.create_model("digits_gsa").eval()  # whose stages are a list, which is no level
    assert {"stages.0", "stages.1"} < set(LayerReport.of(in_lists, torch.rand(1, 1, 12, 12), "R4").shown(1))
    many = LayerReport.of(network, x, "R8M").table()
    assert "exact" in many and "sampled" in many and "315°" not in many
    assert "nan ✗" in LayerReport(GroupAction("R8M"), {"0": {0: 0.0, 2: math.nan, 4: 0.0}}).table()  # is the worst


def test_of_a_module_that_returns_a_tuple_the_first_tensor_counts():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = nn.AvgPool2d(2)

        def forward(self, x):
            return self.pool(x), 1

    x = torch.rand(1, 1, 8, 8)
    assert layer_errors(Pair(), x, "R4")["Pair"][1] < 1e-6
    assert LayerReport.of(Pair(), x, "R4").broken == []
    assert gsa.symmetry.gradient_errors(Pair(), x, "R4")["the input"][1] < 1e-6


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("wrap", [lambda network: network.compile(backend="eager") or network,
                                  lambda network: torch.compile(network, backend="eager")])  # fmt: skip
def test_layers_of_a_compiled_network_are_those_that_were_written(wrap, backward):
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    x = torch.rand(2, 1, 8, 8)
    written = LayerReport.of(network, x, "R4", backward=backward)
    compiled = wrap(network)
    compiled(x)
    report = LayerReport.of(compiled, x, "R4", backward=backward)
    assert report.errors.keys() == written.errors.keys() and report.first_broken[0] == written.first_broken[0]
    assert str(report) == str(written)


@pytest.mark.parametrize("element", range(4))
def test_a_layer_that_breaks_any_element_is_broken(element):
    report = LayerReport(GroupAction("R4"), {"layer": {g: float(g == element) for g in range(4)}})
    assert report.worst("layer") == 1 and report.first_broken == ("layer", 0, 1) and report.broken == [element]
