"""The words of a command that a run was started with, beside its configuration."""

from collections.abc import Iterable
from pathlib import Path

import yaml
from hydra.core.hydra_config import HydraConfig

from gsa.files import write_whole

__all__ = ["keep_words", "of_a_run", "words_of"]

_KEPT, _NOTED = "overrides.yaml", ".hydra/overrides.yaml"


def keep_words(folder: Path) -> None:
    """Keep the words of a run that begins; Hydra notes those of another one, too, that is refused in its folder."""
    if not (folder / _NOTED).exists():
        return
    text = (folder / _NOTED).read_bytes()
    if HydraConfig.initialized():  # in a process that Hydra itself has started; others have what it has noted
        of_hydra = HydraConfig.get()
        if Path(of_hydra.runtime.output_dir).absolute() == folder.absolute():
            text = yaml.safe_dump(list(of_hydra.overrides.task), allow_unicode=True).encode()
    write_whole(folder / _KEPT, text)


def words_of(folder: Path) -> tuple[tuple[str, ...], bool]:
    """The words of the job in a folder, and whether they are surely those of its run.

    Raises:
        OSError, ValueError, yaml.YAMLError: there are none, or they are damaged.
    """
    is_kept = (folder / _KEPT).exists()
    words = yaml.safe_load((folder / (_KEPT if is_kept else _NOTED)).read_text(encoding="utf-8"))
    return tuple(map(str, words)) if isinstance(words, list) else (), is_kept


def of_a_run(words: Iterable[str]) -> list[str]:
    """Words of a job that are those of a run of its own, without a search and a checkpoint."""
    return [word for word in words if not word.startswith(("search=", "test=", "ckpt_path=", "hydra"))]
