"""What a run is called on wandb, and whether it can be reached."""

import hashlib
import json
import netrc
import os
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from omegaconf import DictConfig, OmegaConf, open_dict

__all__ = ["complete_wandb", "wandb_is_out_of_reach"]

_NOT_OF_THE_EXPERIMENT = ("seed", "output_dir", "ckpt_path", "logger", "callbacks", "report", "train", "test")


def complete_wandb(node: DictConfig, config: DictConfig, data: str) -> DictConfig:
    """Fill in what the configuration leaves open.

    The name has the network and the seed; the group is one for all seeds of an experiment; the job type says whether
    it trains; tags are the data and the group H.

    Args:
        node: of a logger; others than wandb's are returned as they are.
        config: of the run.
        data: name of its data set.
    """
    if not str(node.get("_target_", "")).endswith("WandbLogger"):
        return node
    node = node.copy()
    model = config.model.get("name") or config.model._target_.rsplit(".", 1)[-1]
    plain: Any = OmegaConf.to_container(config, resolve=True)
    experiment = {key: value for key, value in plain.items() if key not in _NOT_OF_THE_EXPERIMENT}
    experiment["data"] = {key: value for key, value in experiment["data"].items() if key != "seed"}
    digest = hashlib.sha256(json.dumps(experiment, sort_keys=True).encode()).hexdigest()[:6]
    found = {
        "name": f"{model}-seed{config.seed}",
        "group": f"{model}-{digest}",
        "job_type": "train" if config.train else "test",
        "tags": [data, str(config.model.get("group", "none"))],
    }
    for key, value in found.items():
        if not node.get(key):
            node[key] = value
    if node.get("offline"):
        with open_dict(node):
            node.mode = "offline"  # Lightning sets the environment, which wandb has already read
    if "log_model" in node:
        node["log_model"] = False  # `show_on_wandb` does it, offline too
    return node


def wandb_is_out_of_reach() -> bool:
    """Whether nobody is logged in, or the server does not answer."""
    if os.environ.get("WANDB_MODE", "online") != "online":
        return True
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


def _has_password(host: str) -> bool:
    """Whether ~/.netrc, where `wandb login` writes, knows the host."""
    try:
        return netrc.netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False
