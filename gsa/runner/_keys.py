"""Every key and value of a configuration is looked at before anything begins."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from gsa._limits import LIMITS
from gsa._nearest import nearest
from gsa.runner._folder import refuse_among_classes
from gsa.runner._schema import ConfigError, RunConfig
from gsa.runner._signatures import signature

__all__ = ["GRAPH", "GRAPH_MODES", "refuse_bad_keys"]

_HYDRA_KEYS = {"_target_", "_partial_", "_recursive_", "_convert_"}
GRAPH = "graph"  # the whole step as one, and nothing is compiled
_CHOOSING = ("val/accuracy", "val/balanced_accuracy")
_MONITORED = (*_CHOOSING, "val/loss", "val/auroc", "train/accuracy", "train/loss")
_FINDERS = {"BatchSizeFinder": "data.batch_size", "LearningRateFinder": "optimizer.lr"}
GRAPH_MODES = ("reduce-overhead", "max-autotune", GRAPH)  # CUDA graphs are recorded in them
_COMPILE_MODES = (False, True, *GRAPH_MODES)
_LEAST_MIXUP = 1e-6  # smaller ones are zero to torch


def refuse_bad_keys(config: DictConfig) -> None:
    """Look at every key and value of a composed configuration; no target of configs/ is imported for it.

    Raises:
        ConfigError: a key that nothing reads (with the nearest that something does), a value that is missing, not
            finite, of another type than its target declares or outside its limits, a `_target_` that does not exist,
            a file that is not there.
    """
    if config.get("seed", 0) is None:  # one is drawn when the run is built
        config = config.copy()
        config.seed = 0
    legal = list(RunConfig.__dataclass_fields__)
    for key in config:
        if key not in legal:
            raise ConfigError(f"unknown key {key!r}{nearest(str(key), legal)}; the keys are {', '.join(legal)}")
    try:
        plain: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key} must be given") from error
    except OmegaConfBaseException as error:
        raise ConfigError(str(error).splitlines()[0]) from error
    for where, value in _nested(plain):
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{where} must be a finite number, but got {value}")
    _check_top(plain)
    _check_trainer(plain)
    _check_compilation(plain)
    for name, node in (plain["callbacks"] or {}).items():
        _check_callback(f"callbacks.{name}", node)
        _check_monitor(f"callbacks.{name}", node)
        _check_place(name, node, f"{plain['output_dir']}/checkpoints")
    made = {"data", "model", "optimizer", "scheduler", "trainer"}
    made |= {f"{key}.{name}" for key in ("callbacks", "logger") for name in plain.get(key) or {}}
    for where, value in _nested(plain):
        if isinstance(value, dict) and "_target_" in value:
            _check_arguments(where, value)
        elif where in made:
            raise ConfigError(f"{where} must have a _target_ and its arguments, but got {value!r}")
    refuse_among_classes(plain["data"], plain["output_dir"])


def _check_top(plain: dict[str, Any]) -> None:
    """Values at the top, of the right type, that no run could mean."""
    seed, ema = plain["seed"], plain["ema"]
    if seed is not None and not 0 <= seed < 2**32:
        raise ConfigError(f"seed must be in [0, 2³²), or null, but got {seed}")
    if ema is not None and not 0 < ema < 1:
        raise ConfigError(f"ema must be a decay between 0 and 1, or null, but got {ema}")
    smoothing, mixup = plain.get("label_smoothing", 0.0), plain.get("mixup", 0.0)  # which older configurations lack
    if not 0 <= smoothing < 1:
        raise ConfigError(f"label_smoothing must be a share in [0, 1), but got {smoothing}")
    if mixup and mixup < _LEAST_MIXUP:
        raise ConfigError(f"mixup must be the α of a Beta distribution, at least {_LEAST_MIXUP}, or 0, but got {mixup}")
    weights, tags = plain.get("class_weights"), plain.get("tags", [])
    if not (weights in (None, "balanced") or isinstance(weights, list)):
        raise ConfigError(f"class_weights must be balanced, a list of numbers, or null, but got {weights!r}")
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ConfigError(f"tags must be a list of words, such as [mine,second], but got {tags!r}")
    of_test = ("test/accuracy", "test/balanced_accuracy") if plain["test"] else ()
    if plain["objective"] not in (legal := [*_CHOOSING, *of_test]):
        raise ConfigError(f"objective must be one of {legal}, what this run returns, but got {plain['objective']!r}")
    for key in ("in_channels", "num_classes"):
        if key in plain["model"]:
            raise ConfigError(f"model.{key} is that of the data and cannot be set")
    if plain["ckpt_path"] not in (None, "auto"):
        _check_checkpoint(Path(plain["ckpt_path"]), "last" if plain["train"] else "best")
    if not plain["train"] and plain["ckpt_path"] in (None, "auto"):
        raise ConfigError(
            f"train=false tests a checkpoint: set ckpt_path=…/checkpoints/best.ckpt, but got {plain['ckpt_path']!r}"
        )


def _check_checkpoint(path: Path, name: str) -> None:
    """The file itself, not its folder, nor an export."""
    if (inside := path / "checkpoints" / f"{name}.ckpt").is_file():
        raise ConfigError(f"ckpt_path must be a file, but {path} is the folder of a run: set ckpt_path={inside}")
    export = path.parent if path.suffix == ".safetensors" else path
    if (export / "model.safetensors").is_file():
        raise ConfigError(
            f"ckpt_path must be a checkpoint, but {path} is an export, of weights only; in Python, a run begins with "
            f"them: run = gsa.runner.build(config); weights = gsa.load({str(export)!r}).state_dict(); "
            "run.network.load_state_dict(weights); gsa.runner.train(config, run)"
        )
    if not path.is_file():
        raise ConfigError(f"there is no checkpoint at {path}")


def _check_trainer(plain: dict[str, Any]) -> None:
    """Values of the trainer that no run could mean; those of another type are left to its signature."""
    trainer = plain["trainer"] if isinstance(plain["trainer"], dict) else {}
    for key, place in (("callbacks", "callbacks.mine"), ("logger", "logger.mine"), ("plugins", None)):
        if key in trainer:
            remedy = f": say +{place}._target_=…" if place else ""
            raise ConfigError(f"trainer.{key} is made by the run itself and cannot be set{remedy}")
    numbers = {key: value for key, value in trainer.items() if isinstance(value, int | float)}
    epochs = trainer.get("max_epochs")
    if epochs is None or (isinstance(epochs, int) and epochs < 1):
        raise ConfigError(
            f"trainer.max_epochs must be at least 1, the schedule needs the length of the run, but got {epochs!r}"
        )
    if (halves := numbers.get("accumulate_grad_batches", 1)) < 1:
        raise ConfigError(f"trainer.accumulate_grad_batches must be at least 1, but got {halves}")
    if (clip := numbers.get("gradient_clip_val", 1)) <= 0:
        raise ConfigError(f"trainer.gradient_clip_val must be positive, or null, but got {clip}")
    if trainer.get("val_check_interval") not in (None, 1.0):
        raise ConfigError(
            "trainer.val_check_interval must be left out, because weights are chosen at the ends of epochs, but got "
            f"{trainer['val_check_interval']}"
        )
    for part in ("train", "val", "test"):
        limit = numbers.get(f"limit_{part}_batches", 1)
        if limit <= 0 and (part == "val" or plain[part]):  # tested weights are validated, too
            raise ConfigError(f"trainer.limit_{part}_batches must be positive, or null, but got {limit}")
    if (longest := trainer.get("max_time")) is not None and not re.search("[1-9]", str(longest)):
        raise ConfigError(f"trainer.max_time must be some time, such as 00:12:00:00, or null, but got {longest!r}")
    if numbers.get("max_steps") == 0:
        raise ConfigError("trainer.max_steps must be positive, or -1 for no limit, but got 0")
    if trainer.get("check_val_every_n_epoch", 1) != 1:
        raise ConfigError(
            "trainer.check_val_every_n_epoch must be 1, because weights are chosen among all epochs, but got "
            f"{trainer['check_val_every_n_epoch']}"
        )


def _check_place(name: str, node: Any, folder: str) -> None:
    """The best and the last weights are looked for by their place, by those that load a run or go on with it."""
    if name not in ("best", "last") or not isinstance(node, dict):
        return
    for key, expected in {"filename": name, "dirpath": folder}.items():
        if node.get(key, expected) != expected:
            raise ConfigError(
                f"callbacks.{name}.{key} must be {expected}, where it is looked for, but got {node[key]!r}: for "
                "other files add +callbacks.mine._target_=lightning.pytorch.callbacks.ModelCheckpoint "
                "+callbacks.mine.every_n_epochs=10"
            )
    if name == "best" and node.get("save_top_k", 1) != 1:
        raise ConfigError(f"callbacks.best.save_top_k must be 1, which is tested, but got {node['save_top_k']}")
    if name == "last" and node.get("save_weights_only"):
        raise ConfigError("callbacks.last.save_weights_only must be false, or the run could not go on from there")


def _check_callback(where: str, node: Any) -> None:
    """What a run changed of itself, its checkpoints and its schedule would not know."""
    name = str(node.get("_target_")).rpartition(".")[2] if isinstance(node, dict) else ""
    if name in _FINDERS:
        key = _FINDERS[name]
        raise ConfigError(f"{where} must leave {key} as it is, but {name} looks for one: sweep it, -m {key}=…,…")
    if name == "StochasticWeightAveraging":
        raise ConfigError(
            f"{where} must leave weights that an epoch has validated, but {name} exchanges them after the last one: "
            "average over steps instead, ema=0.99"
        )


def _check_monitor(where: str, node: Any) -> None:
    """What a callback looks at, where it says so."""
    monitor = node.get("monitor") if isinstance(node, dict) else None
    if monitor is None:
        return
    target = str(node.get("_target_"))
    chooses = target.endswith(("ModelCheckpoint", "BestCheckpoint", "LastCheckpoint"))  # weights, by accuracy
    legal = list(_CHOOSING if chooses else _MONITORED)
    if monitor not in legal:
        raise ConfigError(f"{where}.monitor must be one of {legal}{nearest(str(monitor), legal)}, but got {monitor!r}")
    best, mode = "min" if monitor.endswith("/loss") else "max", node.get("mode", "min")
    if (chooses or target.endswith("EarlyStopping")) and mode != best:
        raise ConfigError(f"{where}.mode must be {best} for {monitor}, but got {mode}: set {where}.mode={best}")


def _check_compilation(plain: dict[str, Any]) -> None:
    """A mode that there is not, or one that cannot do what else is asked for."""
    mode, together = plain["compile"], plain["trainer"].get("accumulate_grad_batches")
    if not any(mode is legal or (isinstance(mode, str) and mode == legal) for legal in _COMPILE_MODES):
        raise ConfigError(f"compile must be one of {_COMPILE_MODES}, but got {mode!r}")
    if mode in GRAPH_MODES and together not in (1, None):
        raise ConfigError(
            f"compile={mode} needs trainer.accumulate_grad_batches=1, but got {together}: CUDA graphs write the "
            "gradients of each batch over those of the last. compile=true accumulates"
        )


def _nested(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """A value, and all that is in it, each with its place."""
    yield where, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _nested(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _nested(inner, f"{where}[{index}]")


def _check_arguments(where: str, node: dict) -> None:
    """Keys and values of a node against the signature and the limits of its target."""
    try:
        of = signature(node["_target_"])
    except Exception as error:
        raise ConfigError(f"{where}._target_: {node['_target_']} cannot be imported ({error})") from error
    limits = LIMITS.get(node["_target_"], {})
    for key, value in node.items():
        if key in _HYDRA_KEYS:
            continue
        if key not in of.parameters and not of.open:
            own = ""
            if (where, key) == ("model", "name"):
                own = f"; to choose it as your own network: model=own model._target_={node['_target_']}"
            if where == "data" and not node["_target_"].startswith("gsa."):
                own = "; if a recipe brings it, recipe=own is one that sets nothing of the data"
            raise ConfigError(
                f"unknown key '{where}.{key}'{nearest(key, of.parameters)}; {node['_target_']} takes "
                f"{', '.join(of.parameters) or 'no arguments'}{own}"
            )
        if key in of.parameters and not of.parameters[key].takes(value):
            raise ConfigError(f"{where}.{key} must be {of.parameters[key].words}, but got {value!r}")
        if key in limits and not isinstance(value, dict | None) and not limits[key].holds(value):
            raise ConfigError(f"{where}.{key} {limits[key].rule}, but got {value!r}")
