"""A layer of ours inside a plain torchvision network behaves like any other module."""

import copy
import io
import pickle
import warnings

import pytest
import torch
import torch.nn.utils.prune
import torchvision
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import gsa


class Stem(nn.Module):
    """Lifting, group self-attention, maximum over poses: an image in, an image out."""

    def __init__(self, channels=16, **options):
        super().__init__()
        shared = {"num_heads": 2, "head_dim": 8, "neighbourhood": 3}
        self.lifting = gsa.nn.LiftingSelfAttention("R4", 3, channels, **shared)
        self.attention = gsa.nn.GroupSelfAttention("R4", channels, channels, **shared, **options)

    def forward(self, images):
        return self.attention(self.lifting(images)).max(dim=2).values


@pytest.mark.parametrize("name", ["query_key_value", "out"])
def test_biases_that_hooks_make_are_refused(name):
    layer = gsa.nn.GroupSelfAttention("R4", 2, 2, 2, 8, 3, encoding="quadratic", positional_heads=1)
    x, part = torch.rand(1, 2, 4, 5, 5), layer.get_submodule(name)
    nn.utils.prune.identity(part, "bias")
    with pytest.raises(ValueError, match="weights and biases of attention must not be made by hooks"):
        layer(x)
    nn.utils.prune.remove(part, "bias")
    layer(x)


@pytest.mark.parametrize("name", ["query_key_value", "out", "positional_value"])
def test_weights_that_hooks_make_are_refused_and_those_of_parametrizations_used(name):
    options = {"encoding": "quadratic", "positional_heads": 1} if name != "query_key_value" else {}
    layer = gsa.nn.GroupSelfAttention("R4", 2, 2, num_heads=2, head_dim=8, neighbourhood=3, **options)
    x, part = torch.rand(1, 2, 4, 5, 5), layer.get_submodule(name)
    before = layer(x)
    nn.utils.prune.identity(part, "weight")
    with pytest.raises(ValueError, match="weights and biases of attention must not be made by hooks"):
        layer(x)
    nn.utils.prune.remove(part, "weight")
    torch.testing.assert_close(layer(x), before)
    nn.utils.parametrizations.weight_norm(part)
    torch.testing.assert_close(layer(x), before)
    layer(x).sum().backward()
    assert all(p.grad is not None for p in part.parametrizations.weight.parameters())


def test_weights_that_are_views_as_fsdp_sets_them_are_used():
    layer, x = (
        gsa.nn.GroupSelfAttention("R4", 2, 2, num_heads=2, head_dim=8, neighbourhood=3),
        torch.rand(1, 2, 4, 5, 5),
    )
    before, part = layer(x), layer.query_key_value
    weight = part._parameters.pop("weight")
    part.__dict__["weight"] = weight.view_as(weight)
    assert torch.equal(layer(x), before)


def test_features_on_another_device_are_refused():
    layer = gsa.nn.LiftingSelfAttention("R4", 2, 4)
    with pytest.raises(ValueError, match="device of the weights, cpu, but are on meta"):
        layer(torch.rand(1, 2, 6, 6, device="meta"))


@pytest.fixture(params=["summed", "regular"])
def network(request):
    """SqueezeNet with its first convolution replaced."""
    net = torchvision.models.squeezenet1_1(num_classes=5)
    net.features[0] = Stem(64, form=request.param, attention_dropout=0.1, value_dropout=0.1)
    return net


@pytest.fixture
def images():
    return torch.rand(2, 3, 16, 16)


def test_trains(network, images):
    labels = torch.tensor([1, 3])
    network.features[0].attention.attention_dropout = 0.0
    network.classifier[0].p = 0.0
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    losses = []
    for _ in range(15):
        loss = nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    unused = [name for name, p in network.named_parameters() if p.grad is None]
    assert not unused  # or DistributedDataParallel would stop


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while compiling
@pytest.mark.parametrize("training", [pytest.param(False, marks=pytest.mark.slow), True])
def test_compiles_in_one_graph(network, images, training):
    network.train(training)
    network.classifier[0].p = 0.0
    layer = network.features[0]
    for dropout in ("attention_dropout", "value_dropout"):
        setattr(layer.attention, dropout, 0.0)
    expected = network(images)
    compiled = torch.compile(copy.deepcopy(network), fullgraph=True, backend="aot_eager")
    actual = compiled(images)
    torch.testing.assert_close(actual, expected)
    actual.sum().backward()
    expected.sum().backward()
    reference = dict(network.named_parameters())
    for name, parameter in compiled._orig_mod.named_parameters():
        torch.testing.assert_close(parameter.grad, reference[name].grad, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # inductor's own
def test_compiles_with_inductor(network, images):
    network.eval()
    expected = network(images)
    actual = torch.compile(network, fullgraph=True)(images)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def test_exports_with_a_dynamic_batch(network, images):
    network.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        program = torch.export.export(
            network, (images,), dynamic_shapes={"x": {0: torch.export.Dim("batch", min=1, max=64)}}
        )
    for batch in (1, 5):
        other = torch.rand(batch, 3, 16, 16)
        torch.testing.assert_close(program.module()(other), network(other))


def test_copies_and_pickles(network, images):
    network.eval()
    expected = network(images)
    for copied in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert torch.equal(copied(images), expected)
        assert copied.features[0].attention.group is gsa.group("R4")


def test_runs_under_bfloat16_autocast(network, images):
    network.train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = network.features[0](images)
        loss = network(images).float().logsumexp(-1).sum()
    assert features.dtype == torch.bfloat16
    loss.backward()
    for name, parameter in network.features[0].named_parameters():
        assert parameter.grad.dtype == torch.float32 and parameter.grad.isfinite().all(), name
    network.eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = network.features[0](images)
    full = network.features[0](images)
    assert (low - full).norm() / full.norm() < 0.02


def test_state_dict_is_the_same_in_train_and_eval_and_holds_only_parameters(network, images):
    in_training = network.train().state_dict()
    network(images)
    in_eval = network.eval().state_dict()
    assert list(in_training) == list(in_eval)
    parameters = {name for name, _ in network.features[0].named_parameters()}
    assert set(network.features[0].state_dict()) == parameters  # tables are rebuilt, not stored
    other = Stem(64, form=network.features[0].attention.form)
    other.load_state_dict(network.features[0].state_dict())
    assert torch.equal(other.eval()(images), network.features[0](images))


def test_changes_dtype(network, images):
    network.eval()
    expected = network(images)
    doubled = network.double()(images.double())
    assert doubled.dtype == torch.float64
    torch.testing.assert_close(doubled.float(), expected, rtol=1e-4, atol=1e-4)


def test_serves_samples_of_a_batch_independently(network):
    network.eval()
    images = torch.rand(3, 3, 16, 16)
    together = network(images)
    images[1] = torch.nan
    apart = network(images)
    assert apart[1].isnan().all() and torch.equal(apart[[0, 2]], together[[0, 2]])


def test_empty_batches_pass():
    assert Stem()(torch.rand(0, 3, 8, 8)).shape == (0, 16, 8, 8)


def test_attentive_convolutions_refuse_weights_that_hooks_make():
    layer, x = gsa.nn.AttentiveConvolution("R4", 1, 4, 3, hidden=2, lifting=True), torch.rand(2, 1, 8, 8)
    for part in (layer.convolution, layer.spatial):
        nn.utils.prune.random_unstructured(part, "weight", 0.5)
        with pytest.raises(ValueError, match="must not be made by hooks"):
            layer(x)
        nn.utils.prune.remove(part, "weight")
    layer(x)


@pytest.mark.parametrize("name", ["query_key_value", "out", "positional_value"])
def test_maps_in_a_wrapper_are_refused(name):
    layer = gsa.nn.GroupSelfAttention("R4", 2, 2, 2, 8, 3, encoding="quadratic", positional_heads=1)
    setattr(layer, name, nn.Sequential(layer.get_submodule(name)))
    with pytest.raises(ValueError, match=f"{name} must be a PointwiseLinear, .* but got Sequential"):
        layer(torch.rand(1, 2, 4, 5, 5))


def test_places_that_hooks_make_are_refused():
    layer = gsa.nn.LiftingSelfAttention("R4", 1, 2, 2, 8, 3, encoding="quadratic", positional_heads=1)
    nn.utils.prune.identity(layer.encoding, "offset")
    with pytest.raises(ValueError, match="those of QuadraticEncoding are"):
        layer(torch.rand(1, 1, 5, 5))


def test_checkpoints_with_groups_and_options_are_read_without_running_code():
    held = {"group": gsa.group("R4M"), "options": gsa.nn.AttentionOptions(num_heads=3)}
    file = io.BytesIO()
    torch.save(held, file)
    file.seek(0)
    assert torch.load(file, weights_only=True) == held
    assert b"gsa.groups\ngroup" in pickle.dumps(held["group"], protocol=0)
    old = pickle.dumps(held["group"], protocol=0).replace(b"gsa.groups\n", b"gsa.groups._planar\n")
    assert pickle.loads(old) is held["group"]


def test_places_in_a_network_of_ones_own_are_named_for_its_optimizer():
    network = nn.Sequential(nn.Conv2d(1, 1, 3), gsa.nn.PosedAttention("R4", 1, 4, 3))
    assert gsa.nn.no_weight_decay(network) == {"1.encoding.offset", "1.encoding.raw_sharpness"}


def test_a_class_of_encodings_makes_one_for_every_layer():
    class Own(gsa.encodings.QuadraticEncoding):
        pass

    network = gsa.create_model("digits_r4_sa", encoding=Own)
    assert sum(type(module) is Own for module in network.modules()) == 3
    with pytest.raises(ValueError, match="or an Encoding module or class, but got <class 'int'>"):
        gsa.nn.LiftingSelfAttention("R4", 1, 4, encoding=int)


class WithoutDoubles(TorchDispatchMode):
    """Stands in for a device that has no float64."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        result = function(*arguments, **(options or {}))
        is_double = isinstance(result, torch.Tensor) and result.dtype == torch.float64
        assert not (is_double and result.device.type == "meta"), function
        return result


def test_devices_without_float64_are_served():
    layer, x = gsa.nn.LiftingSelfAttention("R8", 1, 4, window="disk").to("meta"), torch.rand(1, 1, 8, 8, device="meta")
    with WithoutDoubles():
        layer(x)
        gsa.group("R8").act(x, 1)
        with pytest.raises(AssertionError):
            x.double()
