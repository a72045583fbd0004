"""A run on wandb: whether that can be reached from here, what the run is called there, and its end."""

import hashlib
import json
import netrc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen
from uuid import uuid4

from omegaconf import DictConfig, open_dict
from omegaconf.errors import OmegaConfBaseException

from gsa.runner._config_file import read_config
from gsa.runner._dotted import flat, is_below, values_of
from gsa.runner._same_run import OF_THE_PLACE

__all__ = ["closing_wandb", "complete_wandb", "keep_wandb_ids", "wandb_is_out_of_reach"]

_NOT_OF_THE_EXPERIMENT = (*OF_THE_PLACE, "seed", "data.seed", "callbacks", "train", "test")


def wandb_is_out_of_reach() -> bool:
    """Whether nobody is logged in, or the server does not answer."""
    if (mode := os.environ.get("WANDB_MODE", "online")) != "online":
        return mode != "disabled"  # in which wandb reaches for nothing, and writes nothing
    import wandb

    settings = wandb.setup().settings
    server = urlsplit(settings.base_url).hostname
    if not (os.environ.get("WANDB_API_KEY") or settings.api_key or _has_password(server)):
        return True
    try:
        urlopen(settings.base_url, timeout=5).close()
    except HTTPError:  # an answer, too
        return False
    except (OSError, HTTPException):
        return True
    return False


def complete_wandb(node: DictConfig, config: DictConfig, data: str) -> DictConfig:
    """Fill in what the configuration leaves open.

    The name has the network and the seed; the group is one for all seeds of an experiment, in whatever folder; the job
    type says whether it trains; tags are the data, the group H, and those of the configuration and of WANDB_TAGS; a run
    that is resumed goes on under its id.

    Args:
        node: of a logger; others than wandb's are returned as they are.
        config: of the run.
        data: name of its data set.
    """
    if not str(node.get("_target_", "")).endswith("WandbLogger"):
        return node
    node = node.copy()
    model = config.model.get("name") or config.model._target_.rsplit(".", 1)[-1]
    experiment = {
        key: value for key, value in flat(values_of(config)).items() if not is_below(key, _NOT_OF_THE_EXPERIMENT)
    }
    digest = hashlib.sha256(json.dumps(experiment, sort_keys=True).encode()).hexdigest()[:6]
    tags = [*config.get("tags", []), *filter(None, os.environ.get("WANDB_TAGS", "").split(","))]
    found = {
        "name": f"{model}-seed{config.seed}",
        "group": f"{model}-{digest}",
        "job_type": "train" if config.train else "test",
        "tags": [data, str(config.model.get("group", "none")), *tags],
    }
    for key, value in found.items():
        if not node.get(key):
            node[key] = value
    with open_dict(node):
        if node.get("offline"):
            node.mode = "offline"  # Lightning sets the environment, which wandb has already read
        elif node.get("id"):
            node.resume = "allow"
    if "log_model" in node:
        node["log_model"] = False  # `show_on_wandb` does it, offline too
    return node


def keep_wandb_ids(config: DictConfig) -> None:
    """Fill in the ids of wandb's loggers: those of before, in a folder that holds a run, or new ones."""
    before = _loggers_of_before(Path(config.output_dir) / "config.yaml")
    for name, node in (config.logger or {}).items():
        if str(node.get("_target_", "")).endswith("WandbLogger") and not node.get("id"):
            with open_dict(node):
                known = (before.get(name) or {}).get("id")
                node.id = known if known and "${" not in str(known) else uuid4().hex[:8]  # of nobody's environment


@contextmanager
def closing_wandb() -> Iterator[None]:
    """One run a job: without this, the next job of a sweep would go on writing into it."""
    try:
        yield
    finally:
        if "wandb" in sys.modules and sys.modules["wandb"].run is not None:
            sys.modules["wandb"].finish()


def _has_password(host: str) -> bool:
    """Whether ~/.netrc, where `wandb login` writes, knows the host."""
    try:
        return netrc.netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def _loggers_of_before(file: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, OmegaConfBaseException):  # none, or a damaged one, of which others tell
        return values_of(read_config(file), resolve=False).get("logger") or {}
    return {}
