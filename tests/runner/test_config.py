"""Every shipped configuration is sound; every bad one is refused by name, before anything begins."""

import os
from pathlib import Path

import pytest
import torch
from hydra import initialize_config_module
from hydra.core.global_hydra import GlobalHydra

import gsa
from gsa import runner
from gsa.runner import ConfigError, check
from tests.forks import python

ROOT = Path(gsa.__file__).parent.parent
CONFIGS = ROOT / "configs"
SLOW = pytest.mark.slow


def choices(group):
    return sorted(str(p.relative_to(CONFIGS / group).with_suffix("")) for p in (CONFIGS / group).rglob("*.yaml"))


GROUPS = ("data", "optimizer", "scheduler", "callbacks", "logger", "paths", "recipe", "debug")
ALONE = [(group, choice) for group in GROUPS for choice in choices(group)] + [
    ("trainer", "default"),
    ("trainer", "cpu"),
]


@pytest.fixture
def somewhere(tmp_path):
    """A folder of pictures, for the data module that has to look at its classes."""
    for part in ("train", "test"):
        for name in "ab":
            (tmp_path / "pictures" / part / name).mkdir(parents=True)
    return f"data.root={tmp_path / 'pictures'}"


@pytest.mark.parametrize("group, choice", ALONE)
def test_every_choice_of_every_group_can_be_built(configure, somewhere, group, choice):
    fitting = {"cifar10": "model=cifar10_z2_sa", "imagefolder": "model=cifar10_z2_sa", "pcam": "model=pcam_z2_sa",
               "rotmnist": "model=rotmnist_z2_sa"}  # fmt: skip
    extra = [fitting[choice]] if group == "data" and choice in fitting else []
    extra += [somewhere] if choice == "imagefolder" else []
    extra += ["data._target_=tests.data.test_own_data.Stripes"] if (group, choice) == ("data", "own") else []
    extra += (
        ["model=imagefolder_gsa"] if (group, choice) == ("recipe", "imagefolder") else []
    )  # its keys are its data's
    check(configure(f"{group}={choice}", *extra))


def test_no_group_is_forgotten():
    groups = {p.name for p in CONFIGS.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert groups == {group for group, _ in ALONE} | {"experiment", "hydra", "search"}
    assert choices("trainer") == ["cpu", "ddp", "ddp_nodes", "default", "gpu"]


@pytest.mark.parametrize("trainer", ["gpu", "ddp", "ddp_nodes"])
def test_a_gpu_is_asked_for(configure, trainer):
    config = configure(f"trainer={trainer}")
    assert config.trainer.accelerator == "gpu"
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="gpu"):
            check(config)


def experiments():
    """All of them, as Hydra lists them for --help."""
    runner.register()
    with initialize_config_module("gsa.configs", version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        rows = {
            data: loader.get_group_options(f"experiment/{data}") for data in ("digits", "rotmnist", "cifar10", "pcam")
        }
    return sorted(f"{data}/{row}" for data, found in rows.items() for row in found)


@pytest.mark.parametrize("experiment", experiments())
def test_every_experiment_can_be_built(configure, experiment):
    config = configure(f"experiment={experiment}")
    check(config)
    data, network = experiment.split("/")
    assert f"{data}_{network}".startswith(config.model.name)
    assert config.data._target_.lower().endswith(f"{data}datamodule")


@pytest.mark.parametrize("experiment", ["digits/r4_sa", "rotmnist/r4_cnn", "cifar10/gsa", "pcam/r4m_sa"])
def test_an_experiment_may_have_another_recipe(configure, experiment):
    fast = configure(f"experiment={experiment}", "recipe=fast")
    assert fast.optimizer._target_ == "torch.optim.AdamW" and fast.trainer.max_epochs < 100


def test_the_choices_of_model_can_be_listed(configure):
    done = python(ROOT / "train.py", "--help")
    line = next(line for line in done.stdout.splitlines() if line.startswith("model:"))
    assert set(line.removeprefix("model: ").split(", ")) == {*gsa.list_models(), "own"}
    assert "sweep" not in done.stdout.partition("== Config ==")[0]


@pytest.mark.parametrize("name", ["rotmnist_r4_sa", "rotmnist_z2_cnn", "cifar10_vit", "pcam_alpha_f_r4_cnn"])
def test_a_network_alone_is_trained_as_its_experiment(configure, name):
    data, _, row = name.partition("_")
    assert configure(f"model={name}") == configure(f"experiment={data}/{row}")


def test_a_network_brings_its_recipe_unless_another_is_chosen(configure):
    own = configure("model=rotmnist_r4_sa")
    assert (own.trainer.max_epochs, own.optimizer._target_, own.model.pixels) == (300, "torch.optim.Adam", "sum")
    fast = configure("model=rotmnist_r4_sa", "recipe=fast")
    assert (fast.trainer.max_epochs, fast.optimizer._target_, fast.model.pixels) == (10, "torch.optim.AdamW", "mean")
    assert configure("model=rotmnist_r4_sa", "model.pixels=max").model.pixels == "max"
    assert configure("experiment=rotmnist/r4_sa", "model=pcam_z2_sa").trainer.max_epochs == 300


def test_a_network_brings_its_data_unless_others_are_chosen(configure):
    assert configure("model=rotmnist_r4_sa").data._target_ == "gsa.data.RotMNISTDataModule"
    assert configure("model=rotmnist_r4_sa", "data=imagefolder").data._target_ == "gsa.data.ImageFolderDataModule"
    assert configure("experiment=rotmnist/r4_sa", "model=pcam_z2_sa").data._target_ == "gsa.data.RotMNISTDataModule"


@pytest.mark.parametrize("row", ["r4_sa", "z2_cnn", "r4_cnn", "alpha_r4_cnn", "vit"])
def test_every_row_can_be_trained_alike(configure, row):
    check(configure(f"experiment=rotmnist/{row}", "recipe=rotmnist"))


def test_there_is_an_experiment_for_every_network():
    names = {name.replace("/", "_") for name in experiments()}
    of_everybody = {name for name in gsa.list_models() if gsa.models.preset(name).data != "imagefolder"}
    assert {name for name in names if not name.startswith("rotmnist_r4_sa_")} == of_everybody


def test_there_is_an_experiment_for_every_neighbourhood_of_the_paper(configure):
    names = [name for name in experiments() if name.startswith("rotmnist/r4_sa_")]
    sizes = {configure(f"experiment={name}").model.neighbourhood for name in names}
    assert sizes == {3, 5, 7, 9, 11, 15, 19, 23, None} and len(names) == 9


def test_the_recipes_are_the_papers(configure):
    rotmnist = configure("experiment=rotmnist/r4_sa")
    assert rotmnist.optimizer == {"_target_": "torch.optim.Adam", "_partial_": True, "lr": 1e-3, "weight_decay": 1e-4}
    assert (rotmnist.trainer.max_epochs, rotmnist.data.batch_size) == (300, 8)
    assert rotmnist.model.pixels == "sum"
    cifar10, pcam = configure("experiment=cifar10/z2_sa"), configure("experiment=pcam/r4_sa")
    assert (cifar10.optimizer.lr, cifar10.optimizer.momentum, cifar10.data.batch_size) == (0.01, 0.9, 24)
    assert round(cifar10.scheduler.warmup * cifar10.trainer.max_epochs) == 10
    assert round(pcam.scheduler.warmup * pcam.trainer.max_epochs) == 10


# (override, what the message must say); composed by Hydra or refused by `check`.


def test_a_configuration_is_shown_with_the_folder_that_would_be_its_own(tmp_path):
    words = "--cfg", "job", "--resolve", "hydra.run.dir=here"
    machine = os.environ | {"GSA_OUTPUTS": "", "GSA_DATA": "~/data"}
    done = python(ROOT / "train.py", *words, cwd=tmp_path, env=machine)
    assert done.returncode == 0 and "output_dir: here\n" in done.stdout and not list(tmp_path.iterdir()), done.stderr
    assert f"data: {Path.home()}/data\n" in done.stdout and "outputs: outputs\n" in done.stdout
