"""What Hydra refuses, with the nearest key or choice."""

import os
import sys
from argparse import ArgumentParser
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException, ValidationError

from gsa._extras import not_installed
from gsa._nearest import nearest
from gsa.runner._dotted import flat, nested, values_of
from gsa.runner._quoted import quoted, word
from gsa.runner._signatures import signature

__all__ = ["explained"]

_PLUGINS = {"launcher/joblib": "sweep", "launcher/submitit": "slurm", "sweeper/optuna": "sweep"}  # → our extra


def explained(error: Exception) -> str:
    """Hydra's message, with the nearest key or choice, or the word that was meant."""
    if isinstance(error, OverrideParseException):
        return f"Hydra cannot read {error.override!r}: {_unread(error.override)}"
    cause = error.__cause__
    key = getattr(cause, "full_key", None)
    if key and isinstance(cause, ConfigKeyError | ConfigAttributeError):
        config = _without(key)
        if _takes(config, key):
            return f"{key} is not in the configuration yet, but may be: write +{key}=…"
        legal = [known for known, _ in nested(config)]
        swept = "; in a sweep over what brings this key, choose its group as well, such as data=rotmnist"
        more = swept if {"-m", "--multirun"} & set(sys.argv) else ""
        return f"unknown key {key!r}{nearest(key, legal)}; all keys: python train.py --cfg job{more}"
    if key and isinstance(cause, ValidationError):
        return f"{key}: {str(cause).splitlines()[0]}"
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        missing = error.missing_cfg_file
        for plugin, extra in _PLUGINS.items():
            if missing.startswith(f"hydra/{plugin}"):
                return str(not_installed(f"{missing} is a plugin of Hydra that", extra))
        return f"{str(error).splitlines()[0]}{nearest(missing, error.options or _choices())}"
    return f"{error}: {cause}" if isinstance(cause, OmegaConfBaseException) else str(error)


def _unread(given: str) -> str:
    """What Hydra would read in place of a word, if a path or another text was meant."""
    key, _, value = given.partition("=")
    if value[:1] not in "[{'\"":  # what has begun as a list or a quoted text; or nothing
        meant = quoted(key, os.path.expanduser(value))
        with suppress(HydraException):
            OverridesParser.create().parse_override(meant)
            return f"texts with spaces, accents, brackets and the like must be quoted: {word(meant)}"
    return "expected key=value, and lists as key=[a,b]"


def _choices() -> list[str]:
    """Every group/choice, of configs/ and of the presets."""
    folder = Path(str(resources.files("gsa.configs")))
    files = [str(file.relative_to(folder).with_suffix("")) for file in folder.rglob("*.yaml")]
    stored = flat(ConfigStore.instance().repo)
    return files + [key.removesuffix(".yaml").replace(".", "/") for key in stored if not key.startswith("hydra")]


def _takes(config: dict[str, Any], key: str) -> bool:
    """Whether the target above a key has an argument of that name."""
    *above, name = key.split(".")
    node: Any = config
    for part in above:
        node = node.get(part) if isinstance(node, dict) else None
    target = node.get("_target_") if above and isinstance(node, dict) else None
    with suppress(Exception):  # of an import
        return target is not None and name in signature(target).parameters
    return False


def _without(wrong: str) -> dict[str, Any]:
    """The configuration without the wrong key."""
    options = ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--config-dir", "-cd")
    options.add_argument("--cfg", "-c")  # or -c would be taken for -cd
    given, words = options.parse_known_args(sys.argv[1:])
    rest = [word for word in words if "=" in word and not word.lstrip("+~").startswith((wrong, "hydra."))]
    if given.config_dir:
        folder = quoted("", f"file://{os.path.abspath(given.config_dir)}").removeprefix("=")
        rest.append(f"hydra.searchpath=[{folder}]")
    GlobalHydra.instance().clear()
    with hydra.initialize_config_module("gsa.configs", version_base="1.3"):
        try:
            config = hydra.compose("train", rest)
        except HydraException:  # a second mistake, or a sweep
            config = hydra.compose("train")
    return values_of(config, resolve=False)
