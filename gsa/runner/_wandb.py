"""A run on wandb: whether that can be reached from here, what the run is called there, and its end."""

import base64
import hashlib
import json
import netrc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener
from uuid import uuid4

from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from gsa._origin import comes_through
from gsa._streams import note
from gsa.files import one_line
from gsa.runner._config_file import read_config
from gsa.runner._dotted import flat, is_below, values_of
from gsa.runner._same_run import OF_THE_PLACE

__all__ = [
    "closing_wandb",
    "complete_wandb",
    "is_of_wandb",
    "keep_wandb_ids",
    "offline_after",
    "stay_offline",
    "wandb_is_out_of_reach",
    "why_offline",
]

_ONLINE, _OFFLINE, _OFF = ("online", "run", "shared"), ("offline", "dryrun"), ("disabled",)  # values of WANDB_MODE
_PATIENCE = "120"  # seconds, for what is still to be uploaded at the end of a run
_SECONDS = 10  # for an answer
_why: list[str] = []  # of a run that is logged offline
_given_up: list[bool] = []  # whether the server has answered, and no run could begin
_NOT_OF_THE_EXPERIMENT = (*OF_THE_PLACE, "seed", "data.seed", "callbacks", "train", "test")


def wandb_is_out_of_reach() -> bool:
    """Whether nobody is logged in, or the server does not answer as one of wandb's does; `why_offline` says which.

    Raises:
        ValueError: a WANDB_MODE that there is not, or another setting that wandb refuses.
    """
    if _given_up:  # in an earlier job of this sweep
        return True
    _why.clear()
    mode = os.environ.get("WANDB_MODE") or "online"
    if mode not in (*_ONLINE, *_OFFLINE, *_OFF):
        raise ValueError(f"WANDB_MODE must be one of {', '.join((*_ONLINE, *_OFFLINE, *_OFF))}, but is {mode}")
    if mode not in _ONLINE:
        return mode in _OFFLINE
    os.environ.setdefault("WANDB_FINISH_TIMEOUT", _PATIENCE)  # which wandb reads once
    import wandb

    try:
        settings = wandb.setup().settings
    except ValueError as error:  # of pydantic, which names no variable
        told = " ".join(str(error).split())
        raise ValueError(f"wandb refuses a setting, such as a variable WANDB_…: {told}") from error
    key = os.environ.get("WANDB_API_KEY") or settings.api_key or _password(urlsplit(settings.base_url).hostname)
    if not key:
        _why.append("nobody is logged in (wandb login)")
    elif said := _refused_by(settings.base_url, key):
        _why.append(said)
    return bool(_why)


def why_offline() -> str | None:
    """Why a run is logged offline that nobody has asked for; None where somebody has."""
    return _why[0] if _why else None


class _Stay(HTTPRedirectHandler):
    """A server that sends one elsewhere, as networks do where one has to log in, is none of wandb's."""

    def redirect_request(self, *_: Any) -> None:
        """Nowhere."""


def _refused_by(server: str, key: str) -> str | None:
    """What is wrong with a server, asked who this is, as wandb asks it; None where it answers."""
    ask = Request(f"{server.rstrip('/')}/graphql", json.dumps({"query": "query { viewer { id } }"}).encode())
    ask.add_header("Content-Type", "application/json")
    ask.add_unredirected_header("Authorization", f"Basic {base64.b64encode(f'api:{key}'.encode()).decode()}")
    try:
        with build_opener(_Stay).open(ask, timeout=_SECONDS) as answer:
            json.loads(answer.read(1 << 20))["data"]
    except HTTPError as error:
        if error.code in (401, 403):
            return f"{server} refuses the key (wandb login)"
        if error.code < 400:
            return f"{server} sends one elsewhere ({error.code}), as networks do where one has to log in"
        return f"{server} answers with an error ({error.code})"
    except (OSError, HTTPException) as error:
        return f"{server} does not answer ({getattr(error, 'reason', None) or error})"
    except (ValueError, KeyError, TypeError):
        return f"{server} does not answer as wandb does"
    return None


def is_of_wandb(node: DictConfig) -> bool:
    """Whether a logger of the configuration is one of wandb's."""
    return str(node.get("_target_", "")).endswith("WandbLogger")


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
    if not is_of_wandb(node):
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
        if is_of_wandb(node) and not node.get("id"):
            with open_dict(node):
                known = (before.get(name) or {}).get("id")
                node.id = known if known and "${" not in str(known) else uuid4().hex[:8]  # of nobody's environment


def offline_after(error: Exception, node: DictConfig) -> DictConfig | None:
    """A logger of wandb's that logs offline in place of one that could not begin; None where online was asked for.

    Args:
        error: what it said.
        node: of the configuration.
    """
    plain: Any = OmegaConf.to_container(node, resolve=False)
    is_left_open = "wandb_is_out_of_reach" in str(plain.get("offline"))
    is_its_own = comes_through("wandb", error) or type(error).__module__.startswith("wandb.")
    if not is_left_open or node.offline or not is_its_own:
        return None
    _why[:] = [f"it cannot begin: {one_line(error)}"]
    with suppress(Exception):
        sys.modules["wandb"].teardown()
    node = node.copy()
    node.offline = True
    return node


def stay_offline() -> None:
    """Have the next jobs of a sweep log offline at once, as one could not begin online, and could offline."""
    _given_up.append(True)


@contextmanager
def closing_wandb() -> Iterator[None]:
    """One run a job: without this, the next job of a sweep would go on writing into it."""
    os.environ.setdefault("WANDB_FINISH_TIMEOUT", _PATIENCE)
    try:
        yield
    finally:
        wandb: Any = sys.modules.get("wandb")
        if wandb is not None and wandb.run is not None:
            _finish(wandb)


def _finish(wandb: Any) -> None:
    """End its run; one whose server or whose own process is gone is left on the disk."""
    folder, start = Path(wandb.run.dir).parent, time.monotonic()
    try:
        wandb.finish()
    except Exception as error:
        note(f"wandb cannot end its run: {one_line(error) or type(error).__name__}")
        with suppress(Exception):
            wandb.teardown()
        wandb.run = None  # or the next job of a sweep would write into it
    else:
        limit = float(os.environ["WANDB_FINISH_TIMEOUT"])
        if not limit or time.monotonic() - start < limit:  # 0, without one
            return
    how = "" if folder.name.startswith("offline") else "--no-skip-online "
    note(f"not all of it may have arrived; upload what it has written with  wandb sync {how}{folder}")


def _password(host: str | None) -> str | None:
    """What ~/.netrc, where `wandb login` writes, has for a host."""
    try:
        found = netrc.netrc(os.environ.get("NETRC")).authenticators(host or "")
    except (OSError, netrc.NetrcParseError):
        return None
    return found[2] if found else None


def _loggers_of_before(file: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, OmegaConfBaseException):  # none, or a damaged one, of which others tell
        return values_of(read_config(file), resolve=False).get("logger") or {}
    return {}
