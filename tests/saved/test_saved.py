"""Trained networks are read back from runs, checkpoints and exports, and used from the command line."""

import shutil

import pytest
import torch
import wandb
from torchvision.utils import save_image

import gsa
from gsa import cli
from gsa.models import preset, write_export
from gsa.ops._registry import Choice
from gsa.runner import train
from gsa.saved import export, read, read_checkpoint, write_checkpoint
from tests.runs import SMALL, composed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a few steps: its folder and its objects."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    options = (*SMALL, "model=digits_r4_sa", "trainer.max_epochs=1", "trainer.limit_train_batches=3")
    return folder, train(composed(*options, folder=folder))[1]


def test_a_run_is_loaded_with_its_best_weights(run):
    folder, objects = run
    trained, images = objects["network"].eval(), torch.rand(2, 1, 12, 12)
    for path in (folder, folder / "checkpoints" / "best.ckpt", str(folder)):
        network = gsa.load(path)
        assert not network.training and torch.equal(network(images), trained(images))


def test_pictures_are_normalised_as_in_training(run):
    folder, objects = run
    known, test = read(folder).pictures, objects["data"].parts["test"]
    raw, _ = test.first(3)
    assert torch.equal(known.normalise(raw), test.normalise(raw))
    assert (known.data, known.image_size, known.classes[3]) == ("digits", 12, "3")


def test_an_export_is_loaded_and_holds_no_code(run, tmp_path):
    folder, _ = run
    files = export(read(folder), tmp_path / "out", program=True)
    assert [file.name for file in files] == ["model.safetensors", "config.json", "model.pt2"]
    images = torch.rand(5, 1, 12, 12)
    expected = gsa.load(folder)(images)
    assert torch.equal(gsa.load(tmp_path / "out")(images), expected)
    assert read(tmp_path / "out").pictures == read(folder).pictures
    torch.testing.assert_close(torch.export.load(files[2]).module()(images), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", ["digits_r4_sa", "digits_gsa", "rotmnist_r4_cnn", "rotmnist_vit"])
def test_keys_are_the_same_in_training_and_eval_and_weights_of_every_dtype_are_loaded(tmp_path, name, dtype):
    network = gsa.create_model(name)
    keys = list(network.train().state_dict())
    assert list(network.eval().state_dict()) == keys == list(network.to(dtype).state_dict())
    side = preset(name).image_size
    pictures = {"data": "d", "in_channels": 1, "image_size": side, "num_classes": 10, "mean": [0.5], "std": [0.5],
                "classes": list("0123456789")}  # fmt: skip
    write_export(tmp_path, {"model": {"name": name}, "pictures": pictures}, network.state_dict())
    twin, images = gsa.load(tmp_path), torch.rand(2, 1, side, side)
    assert all(torch.equal(value, network.state_dict()[key].to(value)) for key, value in twin.state_dict().items())
    assert all(value.dtype in (torch.float32, torch.int64) for value in twin.state_dict().values())
    torch.testing.assert_close(twin(images), network.float()(images))  # tables are made anew, not rounded
    assert torch.equal(twin.to(dtype)(images.to(dtype)), network.to(dtype)(images.to(dtype)))


@pytest.mark.parametrize("damage, message", [
    (lambda c: c["hyper_parameters"]["run"]["model"].update(_target_="os.system"), "built by 'os.system', and not"),
    (lambda c: c.pop("pictures"), "does not say what network it holds"),
    (lambda c: c.update(groups=["R4"]), "does not say what network it holds"),
    (lambda c: c["groups"].update({"lifting.encoding": "R8"}), "holds keywords that make no digits_r4_sa"),
    (lambda c: c["state_dict"].popitem(), "are not those of its digits_r4_sa"),
    (lambda c: c["hyper_parameters"]["run"]["model"].update(channels=3), "are not those of its digits_r4_sa"),
])  # fmt: skip
def test_a_checkpoint_that_does_not_fit_is_refused(run, tmp_path, damage, message):
    checkpoint = read_checkpoint(run[0] / "checkpoints" / "best.ckpt")
    network_weights = {k: v for k, v in checkpoint["state_dict"].items() if k.startswith("network.")}
    checkpoint["state_dict"] = network_weights
    damage(checkpoint)
    write_checkpoint(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match=message):
        gsa.load(tmp_path / "other.ckpt")


def test_an_exported_program_runs_where_there_is_no_compiler(run, tmp_path, monkeypatch):
    file = export(read(run[0]), tmp_path, program=True)[2]
    images = torch.rand(2, 1, 12, 12)
    expected = gsa.load(run[0])(images)
    with monkeypatch.context() as patch:
        patch.setattr("gsa.ops.impl.native._library._build", None)
        patch.setattr(
            "gsa.ops._registry.choose", lambda device, dtype, backend=None, call=None: Choice("tiled", "planted")
        )
        torch.testing.assert_close(torch.export.load(file).module()(images), expected)


@pytest.mark.parametrize("name, change", [
    ("config.json", lambda content: content.replace(b'"neighbourhood": 3', b'"neighbourhood": 5')),
    ("model.safetensors", lambda content: content[:-1] + bytes([content[-1] ^ 1])),
])  # fmt: skip
def test_an_export_that_has_changed_is_refused(run, tmp_path, name, change):
    export(read(run[0]), tmp_path)
    before = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(change(before))
    assert (tmp_path / name).read_bytes() != before
    with pytest.raises(ValueError, match="not a whole export: .* has changed; expected the digest"):
        gsa.load(tmp_path)


def test_a_damaged_export_is_refused(run, tmp_path):
    export(read(run[0]), tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="not a whole export"):
        gsa.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        gsa.load(tmp_path / "nowhere")


@pytest.mark.filterwarnings("ignore")  # of what wandb-workspaces stands on
def test_a_dashboard_needs_an_entity_and_an_account(capsys, monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    assert cli.main(["dashboard", "me"]) == 2
    assert "ENTITY/PROJECT, but got 'me'" in capsys.readouterr().err
    monkeypatch.setattr("wandb_workspaces.workspaces.Workspace.save", refuse)
    assert cli.main(["dashboard", "me/gsa"]) == 2
    assert "wandb did not take it: nobody is logged in" in capsys.readouterr().err


def refuse(workspace):
    raise wandb.errors.UsageError("nobody is logged in")


@pytest.mark.parametrize("name, message", [
    ("digit_gsa", "neither a file nor a network called 'digit_gsa' (the nearest is 'digits_gsa')"),
    ("rotmnist_r4_sa", "rotmnist_r4_sa does not come trained: expected a run, a checkpoint, an export, or digits"),
    ("nowhere/of/mine", "there is no file or folder nowhere: expected a run, a checkpoint or an export"),
    ("nowhere/last.ckpt", "there is no checkpoint at nowhere/last.ckpt"),
])  # fmt: skip
def test_a_name_that_is_none_has_a_nearest_one(name, message, capsys):
    for words in ["predict", "a.png", "--checkpoint", name], ["export", "--to", "x", "--checkpoint", name]:
        assert cli.main(words) == 2 and message in capsys.readouterr().err
    assert cli.main(["check", "digit_gsa"]) == 2 and "(the nearest is 'digits_gsa')" in capsys.readouterr().err


def test_the_command_lists_networks(capsys):
    assert cli.main(["list"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in gsa.list_models()) and "77,539 parameters" in text


def test_without_a_checkpoint_the_weights_of_the_package_predict(tmp_path, capsys):
    save_image(torch.rand(1, 40, 28), tmp_path / "digit.png")
    assert cli.main(["predict", str(tmp_path / "digit.png"), "--poses"]) == 0
    assert "(not in R8)" in capsys.readouterr().out
    with pytest.raises(FileNotFoundError, match="digits_r4_sa"):
        gsa.load("digits_r4_sa")


def test_the_command_predicts_the_same_for_turned_pictures(run, tmp_path, capsys):
    raw, _ = run[1]["data"].parts["test"].first(1)
    save_image(raw[0].repeat_interleave(3, 1).repeat_interleave(3, 2), tmp_path / "digit.png")
    assert cli.main(["predict", str(tmp_path / "digit.png"), "--poses", "--checkpoint", str(run[0])]) == 0
    first, *turned = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{tmp_path / 'digit.png'}: ") and first.count("%") == 3
    likeliest = first.split(": ")[1].split(",")[0]
    assert all(line.endswith(likeliest) for line in turned[:3]) and "(not in R4)" in turned[-1]
    (tmp_path / "text.png").write_text("no picture")
    assert cli.main(["predict", str(tmp_path / "text.png"), "--checkpoint", str(run[0])]) == 2
    assert "cannot be read as a picture" in capsys.readouterr().err


def test_the_command_checks_symmetry_and_notices_when_it_is_broken(run, tmp_path, capsys, monkeypatch):
    assert cli.main(["check", "--checkpoint", str(run[0])]) == 0
    assert "90°" in capsys.readouterr().out
    saved = read(run[0])
    saved.network.forward_head = lambda features: features[:, :10, 0].amax((-2, -1))  # planted: one pose only
    monkeypatch.setattr("gsa.cli._subject.read", lambda path, network: saved)
    assert cli.main(["check", "--checkpoint", str(run[0])]) == 1
    assert "BROKEN" in capsys.readouterr().out


@pytest.mark.parametrize("group", ["R4", "Z2"])
@pytest.mark.parametrize(("command", "reader"), [("check", "_subject"), ("predict", "_predict")])
def test_the_command_reports_no_numbers_that_are_none(run, tmp_path, capsys, monkeypatch, command, reader, group):
    """Planted: a network whose weights are finite, and whose logits are not."""
    saved = read(run[0])
    saved.network.group = gsa.group(group)
    saved.network.forward_head = lambda features: features[:, :10, 0].amax((-2, -1)) / 0
    monkeypatch.setattr(f"gsa.cli.{reader}.read", lambda *_: saved)
    save_image(torch.rand(1, 12, 12), tmp_path / "digit.png")
    pictures = [str(tmp_path / "digit.png")] if command == "predict" else []
    assert cli.main([command, *pictures, "--checkpoint", str(run[0])]) == {"check": 1, "predict": 2}[command]
    said = capsys.readouterr()
    assert "exact" not in said.out and "%" not in said.out
    assert "BROKEN" in said.out if command == "check" else "digit.png is not finite" in said.err


def test_the_command_shows_at_least_one_class(run, capsys):
    assert cli.main(["predict", "digit.png", "--top", "0", "--checkpoint", str(run[0])]) == 2
    assert "--top must be at least 1 class, but got 0" in capsys.readouterr().err


def test_an_export_keeps_no_program_of_another_network(run, tmp_path):
    export(read(run[0]), tmp_path, program=True)
    files = export(read(run[0]), tmp_path)
    assert not (tmp_path / "model.pt2").exists()
    assert len({file.stat().st_mode for file in files}) == 1  # whoever may read one may read the other


def test_a_run_that_was_exported_into_its_own_folder_is_still_a_run(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run[0], folder)
    export(read(folder), folder)
    best = folder / "checkpoints" / "best.ckpt"
    checkpoint = read_checkpoint(best)
    checkpoint["state_dict"] = {name: value + 1 for name, value in checkpoint["state_dict"].items()}
    write_checkpoint(checkpoint, best)  # it has gone on
    of_run, of_best = gsa.load(folder).state_dict(), gsa.load(best).state_dict()
    assert all(torch.equal(of_run[name], of_best[name]) for name in of_best)
    shutil.rmtree(folder / "checkpoints")
    assert not all(torch.equal(value, of_best[name]) for name, value in gsa.load(folder).state_dict().items())
