"""The words of a command that a run was started with, beside its configuration."""

from pathlib import Path

import yaml

from gsa.files import write_whole

__all__ = ["keep_words", "words_of"]

_KEPT, _NOTED = "overrides.yaml", ".hydra/overrides.yaml"


def keep_words(folder: Path) -> None:
    """Keep what Hydra has noted of a run that begins; of another that is refused in its folder, it notes that, too."""
    if (folder / _NOTED).exists():
        write_whole(folder / _KEPT, (folder / _NOTED).read_bytes())


def words_of(folder: Path) -> tuple[tuple[str, ...], bool]:
    """The words of the job in a folder, and whether they are surely those of its run.

    Raises:
        OSError, ValueError, yaml.YAMLError: there are none, or they are damaged.
    """
    is_kept = (folder / _KEPT).exists()
    words = yaml.safe_load((folder / (_KEPT if is_kept else _NOTED)).read_text(encoding="utf-8"))
    return tuple(map(str, words)) if isinstance(words, list) else (), is_kept
