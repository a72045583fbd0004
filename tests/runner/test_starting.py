"""Weights that training begins with."""

import pytest
import torch
import torchvision

import gsa
from gsa.runner import ConfigError, _starting, train
from tests.data.test_image_folder import write_pictures
from tests.runs import composed

BARE = ("trainer.accelerator=cpu", "trainer.enable_progress_bar=false", "logger=none", "report=false",
        *(f"trainer.limit_{part}_batches=4" for part in ("train", "val", "test")))  # fmt: skip
STILL = ("optimizer=sgd", "optimizer.lr=0", "ema=null", "trainer.max_epochs=1", "callbacks=quiet")  # weights stay


def weights_of(path):
    return {
        name: value
        for name, value in gsa.load(path).state_dict().items()
        if "running" not in name and "tracked" not in name
    }


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in found.items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=0, msg=name)


@pytest.mark.parametrize("place", ["", "checkpoints/last.ckpt"])
def test_of_another_run(small, tmp_path, place):
    """Planted: without start_from they are other weights."""
    train(small("seed=1", "trainer.max_epochs=1", folder="trained"))
    start = f"start_from='{tmp_path / 'trained' / place}'"
    train(small(start, *STILL, folder="begun"))
    train(small(*STILL, folder="random"))
    trained, begun, random = (weights_of(tmp_path / name) for name in ("trained", "begun", "random"))
    assert_same(begun, trained)
    assert any(not torch.equal(value, random[name]) for name, value in trained.items())
    text = (tmp_path / "begun" / "config.yaml").read_text()
    assert "start_from: " in text


def test_a_head_for_other_classes_stays_as_it_is(small, tmp_path, capsys):
    train(small("seed=1", "trainer.max_epochs=1", folder="trained"))
    write_pictures(tmp_path, parts=("all",), count=20)
    own = (
        "data=imagefolder",
        f"data.root={tmp_path / 'all'}",
        "data.channels=grey",
        "data.size=16",
        "data.batch_size=4",
    )
    start = f"start_from='{tmp_path / 'trained'}'"
    train(small(start, *own, *STILL, folder="begun"))
    train(small(*own, *STILL, folder="random"))
    assert f"weights      at first those of {tmp_path / 'trained'}" in capsys.readouterr().out
    trained, begun, random = (weights_of(tmp_path / name) for name in ("trained", "begun", "random"))
    expected = {name: (random if name.startswith("head") else trained)[name] for name in random}
    assert_same(begun, expected)


def test_what_has_begun_goes_on_from_its_own(small, tmp_path):
    """Though what it began with is gone."""
    train(small("seed=1", "trainer.max_epochs=1", folder="trained"))
    start = f"start_from='{tmp_path / 'trained' / 'checkpoints' / 'last.ckpt'}'"
    train(small(start, "scheduler=constant", "trainer.max_epochs=1", folder="run"))
    (tmp_path / "trained" / "checkpoints" / "last.ckpt").unlink()
    last = f"ckpt_path='{tmp_path / 'run' / 'checkpoints' / 'last.ckpt'}'"
    _, objects = train(small(start, last, "scheduler=constant", "trainer.max_epochs=2"))
    assert objects["report"]["epochs"] == 2
    with pytest.raises(ConfigError, match="trained with other values: start_from"):
        train(small(last, "scheduler=constant", "trainer.max_epochs=3"))
    train(small(last, "train=false", folder="tested"))


@pytest.mark.parametrize("start, told", [
    ("missing", "missing"),
    ("rotmnist_gsa", "start_from must be weights of this network, GSANet of .* differ in"),
])  # fmt: skip
def test_other_weights_are_refused_before_training(small, tmp_path, start, told):
    with pytest.raises(ConfigError, match=told):
        train(small(f"start_from={start}"))
    assert not (tmp_path / "run").exists()


def test_shipped_weights_may_be_begun_with(tmp_path):
    train(composed("model=digits_gsa", "start_from=digits_gsa", *BARE, *STILL, folder=tmp_path / "run"))
    assert_same(weights_of(tmp_path / "run"), weights_of("digits_gsa"))


@pytest.mark.parametrize("channels", [3, 1])
def test_files_of_torchvision(tmp_path, channels):
    """All but the classifier; grey pictures are answered as the same in three channels are."""
    theirs = torchvision.models.mobilenet_v3_small(num_classes=7).eval()
    torch.save(theirs.state_dict(), tmp_path / "theirs.pth")
    write_pictures(tmp_path, parts=("all",), count=20)
    own = ("data=imagefolder", f"data.root={tmp_path / 'all'}", "data.size=32", "data.batch_size=4",
           f"data.channels={'colour' if channels == 3 else 'grey'}")  # fmt: skip
    network = ("model=imagefolder_torchvision", "model.architecture=mobilenet_v3_small", "model.group=R4")
    start = f"start_from='{tmp_path / 'theirs.pth'}'"
    _, objects = train(composed(*network, start, *own, *BARE, *STILL, folder=tmp_path / "run"))
    plain = objects["network"].orbit.network
    plain.load_state_dict(plain.state_dict() | {k: v for k, v in theirs.state_dict().items() if "running" in k})
    x = torch.rand(2, channels, 32, 32)
    theirs.classifier[-1] = torch.nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(plain.eval()(x), theirs(x.expand(-1, 3, -1, -1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("content, told", [
    (lambda: torchvision.models.resnet18().state_dict(), "not the weights of torchvision's mobilenet_v3_small: "),
    (lambda: {"a": 3}, "must hold names and tensors"),
    (lambda: pytest, "is damaged, or holds more than tensors"),
    (None, "there is no file"),
])  # fmt: skip
def test_other_files_of_torchvision_are_refused(tmp_path, content, told):
    if content is not None:
        try:
            torch.save(content(), tmp_path / "file.pth")
        except Exception:  # what cannot be pickled
            (tmp_path / "file.pth").write_bytes(b"none")
    write_pictures(tmp_path, parts=("all",), count=20)
    network = ("model=imagefolder_torchvision", "model.architecture=mobilenet_v3_small")
    own = ("data=imagefolder", f"data.root={tmp_path / 'all'}", "data.size=32", "data.batch_size=4")
    with pytest.raises(ConfigError, match=told):
        train(composed(*network, f"start_from='{tmp_path / 'file.pth'}'", *own, *BARE, folder=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_pictures_that_were_trained_on_are_not_tested(small, tmp_path, monkeypatch):
    """Planted: another fold of the same pictures, by their paths from elsewhere; the same fold may go on learning."""
    write_pictures(tmp_path, parts=("all",), count=20)
    monkeypatch.chdir(tmp_path)
    own = ("data=imagefolder", "data.size=16", "data.batch_size=4")
    train(small(*own, "data.root=all", "data.fold=1/2", *STILL, folder="first"))
    for place in ("first", "first/checkpoints/last.ckpt"):
        start = f"start_from='{tmp_path / place}'"
        with pytest.raises(ConfigError, match=r"trained on what is tested here, but \d+ of 20 .* part test are"):
            train(small(*own, f"data.root={tmp_path / 'all'}", "data.fold=2/2", start, *STILL))
    train(small(*own, f"data.root={tmp_path / 'all'}", "data.fold=1/2", start, *STILL))


@pytest.mark.parametrize("content", [b'path,part\n"a,train\n' + b"b,test\n" * 20_000, b"\xff"])
def test_a_damaged_list_of_what_was_trained_on_is_refused(tmp_path, content):
    """Planted: a quotation mark that is not closed, letters that are none."""
    (tmp_path / "parts.csv").write_bytes(content)
    with pytest.raises(ValueError, match="parts.csv, which says what was trained on, is damaged"):
        _starting._refuse_seen(None, tmp_path / "checkpoints" / "best.ckpt")
