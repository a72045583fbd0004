"""Runs: Hydra composes a configuration, the runner builds it, refuses it or trains it, and keeps its folder.

From Python:

    gsa.runner.register()
    with hydra.initialize_config_module("gsa.configs", version_base="1.3"):
        config = hydra.compose("train", ["output_dir=outputs/mine"])
    metrics, objects = gsa.runner.train(config)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gsa._extras import brought_by

with brought_by("train"):
    from gsa.runner._entry import RefuseBadConfig, main, register
    from gsa.runner._schema import ConfigError, RunConfig

if TYPE_CHECKING:
    from gsa.runner._build import Run, build, check
    from gsa.runner._run import train

__all__ = ["ConfigError", "RefuseBadConfig", "Run", "RunConfig", "build", "check", "main", "register", "train"]

_WITH_LIGHTNING = {"Run": "_build", "build": "_build", "check": "_build", "train": "_run"}  # imported when asked for


def __getattr__(name: str) -> Any:
    if name in _WITH_LIGHTNING:
        return getattr(import_module(f"gsa.runner.{_WITH_LIGHTNING[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
