"""Where in a folder the weights of a run lie."""

from pathlib import Path

__all__ = ["checkpoint_of"]

_DEEPEST = 4  # folders down, in which runs are looked for: outputs/<data>/<network>/<time>/<job>


def checkpoint_of(path: Path) -> Path:
    """The best weights of a run, or else its last ones; a file as it is.

    Raises:
        FileNotFoundError: no such folder, or one without a run; naming the newest run below it.
    """
    if not path.exists() and path.suffix != ".ckpt":
        missing = next(place for place in (*reversed(path.parents), path) if not place.exists())
        raise FileNotFoundError(f"there is no file or folder {missing}: expected a run, a checkpoint or an export")
    if not path.is_dir():
        return path
    best, last = (path / "checkpoints" / f"{name}.ckpt" for name in ("best", "last"))
    if not best.is_file() and not last.is_file():
        raise FileNotFoundError(
            f"there is no run in the folder {path}: expected checkpoints/best.ckpt or last.ckpt in it{_hint(path)}"
        )
    return best if best.is_file() else last


def _hint(folder: Path) -> str:
    """The newest run below, or checkpoint within, as a question; nothing where there is none."""
    below = (folder.glob(f"{'*/' * depth}checkpoints/*.ckpt") for depth in range(1, _DEEPEST + 1))
    found = {file.parent.parent: file for files in below for file in files} | {f: f for f in folder.glob("*.ckpt")}
    newest = max(found, key=lambda place: found[place].stat().st_mtime, default=None)
    return "" if newest is None else f"; did you mean {newest}?"
