"""What lets a run go on elsewhere than where it began."""

from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.trainer.states import TrainerFn

from gsa.files import write_whole

__all__ = ["MovedRuns"]


class MovedRuns(Callback):
    """Finds the checkpoints of a run beside the one it is resumed from, wherever its folder is by now.

    Lightning remembers them by absolute paths. Those that stand in another folder than the run goes on in are copied;
    of a checkpoint that is only tested, nothing is.
    """

    def on_load_checkpoint(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if trainer.state.fn != TrainerFn.FITTING:
            return
        source = Path(trainer.ckpt_path).absolute().parent  # type: ignore[arg-type]  # what is being loaded
        for callback in trainer.checkpoint_callbacks:
            state = checkpoint["callbacks"].get(callback.state_key)
            if isinstance(callback, ModelCheckpoint) and callback.dirpath is not None and state is not None:
                target = Path(callback.dirpath)
                if trainer.is_global_zero and target != source:
                    _copy(_names(state), source, target)
                trainer.strategy.barrier("moved checkpoints")
                checkpoint["callbacks"][callback.state_key] = _moved(state, target)


def _names(state: dict[str, Any]) -> set[str]:
    """Of the files that a `ModelCheckpoint` remembers."""
    paths = [state.get("best_model_path"), state.get("last_model_path"), *state.get("best_k_models", {})]
    return {Path(path).name for path in paths if path}


def _copy(names: set[str], source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (source / name).is_file():
            write_whole(target / name, (source / name).read_bytes())


def _moved(state: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The state with the files as they stand in a folder, without those that are not there."""

    def there(path: str) -> str:
        place = folder / Path(path).name
        return str(place) if path and place.is_file() else ""

    best_k = {there(path): score for path, score in state.get("best_k_models", {}).items() if there(path)}
    moved: dict[str, Any] = {
        name: there(state.get(name, "")) for name in ("best_model_path", "last_model_path", "kth_best_model_path")
    }
    if not moved["best_model_path"]:
        moved["best_model_score"] = None
    return state | moved | {"best_k_models": best_k, "dirpath": str(folder)}
