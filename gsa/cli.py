"""Commands.

gsa-train [key=value …]     the same as  python train.py [key=value …]
"""

import logging
import os
import shutil
import sys
from importlib import resources
from pathlib import Path

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException, MissingConfigException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from gsa.models import list_models, preset
from gsa.training import run
from gsa.training._config import ConfigError, nearest
from gsa.training._folder import refuse_unwritable
from gsa.training._wandb import wandb_is_out_of_reach

__all__ = ["RefuseBadConfig", "register", "train"]


def register() -> None:
    """Make the networks known to Hydra, with all their keywords and their data, as the choices of model=…"""
    for name in list_models():
        model = {"_target_": "gsa.create_model", "name": name, **preset(name).keywords}
        del model["in_channels"], model["num_classes"]  # those of the data
        defaults = [{"override /data": name.split("_")[0]}, "_self_"]  # unless other data are chosen
        node = {"defaults": defaults, "model": model}
        ConfigStore.instance().store(group="model", name=name, node=node, package="_global_")
    OmegaConf.register_new_resolver("gsa.run_folder", _run_folder, replace=True)
    OmegaConf.register_new_resolver("gsa.wandb_is_out_of_reach", wandb_is_out_of_reach, replace=True, use_cache=True)


def train() -> None:
    """Train a network: `python train.py` and `gsa-train`. A configuration that cannot be run exits with code 2."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # errors come here instead of being printed by Hydra
    register()
    try:
        _main()
    except (HydraException, OmegaConfBaseException) as error:
        _refuse(_explain(error))
    except ConfigError as error:
        _refuse(str(error))


class RefuseBadConfig(Callback):
    """Checks a run before Hydra makes its folder, and takes the folder away when the run is refused for its data."""

    def on_run_start(self, config: DictConfig, **kwargs) -> None:
        HydraConfig.instance().set_config(config)  # which the name of the folder asks for
        self.folder = Path(config.hydra.run.dir).absolute()
        self.missing = [place for place in (self.folder, *self.folder.parents) if not place.exists()]
        config = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
        config.output_dir = str(self.folder)
        try:
            run.check(config)
            refuse_unwritable(self.folder)
        except ConfigError as error:
            _refuse(str(error))

    def on_multirun_start(self, config: DictConfig, **kwargs) -> None:
        try:
            refuse_unwritable(Path(config.hydra.sweep.dir))
        except ConfigError as error:
            _refuse(str(error))

    def on_run_end(self, config: DictConfig, job_return: JobReturn, **kwargs) -> None:
        if job_return.status is JobStatus.FAILED and isinstance(job_return._return_value, ConfigError):
            if self.missing:
                shutil.rmtree(self.folder)
            for place in self.missing[1:]:
                if place.is_dir() and not any(place.iterdir()):
                    place.rmdir()


@hydra.main(version_base="1.3", config_path="pkg://gsa.configs", config_name="train")
def _main(config: DictConfig) -> float | None:
    try:
        metrics, _ = run.train(config)
    except ConfigError as error:
        if HydraConfig.get().mode is RunMode.MULTIRUN:  # into the folder of the job; a sweep goes on
            logging.getLogger(__name__).error("configuration refused: %s", error)
        raise
    except Exception:
        logging.getLogger(__name__).exception("this job has failed")
        raise
    return metrics.get(config.objective)


def _run_folder(train: bool, ckpt_path: str | None, new: str) -> str:
    """A resumed run goes on in its own folder: that of checkpoints/last.ckpt."""
    if train and ckpt_path and ckpt_path != "auto":
        folder = Path(ckpt_path).absolute().parent
        return str(folder.parent if folder.name == "checkpoints" else folder)
    return new


def _explain(error: Exception) -> str:
    """Hydra's message, with the nearest key or choice."""
    cause = error.__cause__
    key = getattr(cause, "full_key", None)
    if key and isinstance(cause, ConfigKeyError | ConfigAttributeError):
        legal = _legal_keys(key)
        swept = "; in a sweep over what brings this key, choose its group as well, such as data=rotmnist"
        more = swept if {"-m", "--multirun"} & set(sys.argv) else ""
        return f"unknown key {key!r}{nearest(key, legal)}; all keys: python train.py --cfg job{more}"
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        folder = Path(str(resources.files("gsa.configs")))
        files = [str(file.relative_to(folder).with_suffix("")) for file in folder.rglob("*.yaml")]
        return f"{str(error).splitlines()[0]}{nearest(error.missing_cfg_file, error.options or files)}"
    return f"{error}: {cause}" if isinstance(cause, OmegaConfBaseException) else str(error)


def _legal_keys(wrong: str) -> list[str]:
    """Every key, dotted, of the configuration without the wrong one."""
    rest = [word for word in sys.argv[1:] if "=" in word and not word.lstrip("+~").startswith((wrong, "hydra."))]
    GlobalHydra.instance().clear()
    with hydra.initialize_config_module("gsa.configs", version_base="1.3"):
        try:
            config = hydra.compose("train", rest)
        except HydraException:  # a second mistake, or a sweep
            config = hydra.compose("train")
    return _dotted(OmegaConf.to_container(config))


def _dotted(node: dict, prefix: str = "") -> list[str]:
    keys = []
    for key, value in node.items():
        keys.append(prefix + key)
        if isinstance(value, dict):
            keys += _dotted(value, f"{prefix}{key}.")
    return keys


def _refuse(message: str) -> None:
    print(f"configuration refused: {message}", file=sys.stderr)
    raise SystemExit(2)
