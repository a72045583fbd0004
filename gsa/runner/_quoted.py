"""Texts as words of the command line, which the shell reads, and then Hydra."""

import re
import shlex
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Quote, QuotedString

__all__ = ["folder_keys", "override", "quoted", "word"]


def folder_keys() -> str:
    """The keys that name the folder of a run."""
    return "hydra.run.dir, or hydra.sweep.dir for a sweep" if HydraConfig.initialized() else "output_dir"


def override(key: str, path: Path) -> str:
    """A path for a key, as a word of the command line: folders may be named by overrides, so Hydra wants quotes."""
    return word(quoted(key, str(path)))


def quoted(key: str, value: str) -> str:
    """A value for a key, as Hydra reads it."""
    if re.search(r"[^\w/.\-]", value, re.ASCII):
        value = QuotedString(value, Quote.single).with_quotes()
    return f"{key}={value}"


def word(text: str) -> str:
    """An override for the shell; in double quotes, where there are single ones within."""
    return f'"{text}"' if "'" in text and not re.search(r'["$`\\!]', text) else shlex.quote(text)
