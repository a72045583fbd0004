"""config.yaml: what a run is made from, as it stands in its folder."""

import hashlib
import io
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from gsa.files import one_line, write_whole
from gsa.runner._schema import ConfigError

__all__ = ["loaded", "read_config", "write_config"]

_MARK = b"# sha256: "  # of all below; at the top, so that a file that was cut still says that it had one
_DEEPEST = 40
_KEYS = ("data", "model", "optimizer", "scheduler", "trainer", "seed")  # of every version


def write_config(resolved: str, folder: Path) -> None:
    """config.yaml with its digest; the report of what the run was before goes."""
    (folder / "report.json").unlink(missing_ok=True)
    content = resolved.encode()
    write_whole(folder / "config.yaml", _MARK + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def read_config(file: Path) -> DictConfig:
    """The configuration of a run, as `write_config` has written it; one of an earlier version has no digest.

    Raises:
        FileNotFoundError: no such file.
        ConfigError: one that is damaged or was changed.
    """
    content = file.read_bytes()
    head, _, below = content.partition(b"\n")
    if head.startswith(_MARK):
        stated, actual = head.removeprefix(_MARK).decode(errors="replace").strip(), hashlib.sha256(below).hexdigest()
        if stated != actual:
            raise ConfigError(
                f"{file} has changed since the run began, by hand or by damage: expected the digest "
                f"{stated[:64]!a}, but got {actual}; other values belong on the command line, with a folder of their "
                "own (hydra.run.dir)"
            )
    try:
        read = loaded(content)
        plain: Any = OmegaConf.to_container(read)
        missing = [key for key in _KEYS if key not in plain]
        groups = [key for key in _KEYS[:-1] if key not in missing and not isinstance(plain[key], dict)]
    except Exception as error:  # of its letters, its layout, its tags, its numbers
        raise ConfigError(f"{file} is not the configuration of a run: {one_line(error)}") from error
    if missing or groups or not isinstance(plain["seed"], int | None):
        wrong = (missing or groups or ["seed"])[0]
        raise ConfigError(
            f"{file} is not the configuration of a run: {'no' if missing else 'a wrong'} value of {wrong}"
        )
    return read


def loaded(content: bytes) -> Any:
    """A configuration in YAML that nobody vouches for.

    Raises:
        ValueError: values that repeat others, or nesting that no configuration has: both grow without bound when read.
        yaml.YAMLError, UnicodeDecodeError, OmegaConfBaseException: none.
    """
    text, depth = content.decode(), 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST or isinstance(event, yaml.AliasEvent):
            raise ValueError("values that repeat others, or that are nested too deeply")
    return OmegaConf.load(io.StringIO(text))
