"""Which keys of a configuration make it another run."""

from typing import Any

from gsa.runner._dotted import flat

__all__ = ["OF_CALLBACKS", "OF_THE_MACHINE", "OF_THE_PLACE", "OF_THE_TRAINING", "differing_keys"]

# Keys, with those below them, that change neither weights nor metrics: where a run stands, and what it tells.
OF_THE_MACHINE = (
    "data.root",
    "data.labels",
    "data.columns",
    "data.download",
    "data.num_workers",
    "data.kept_gb",
    "data.eval_batch_size",
    "data.copies",
)
OF_THE_PLACE = (
    *OF_THE_MACHINE,
    "output_dir",
    "ckpt_path",
    "logger",
    "callbacks.last",
    "callbacks.learning_rate",
    "callbacks.progress",
    *(f"callbacks.best.{key}" for key in ("dirpath", "enable_version_counter", "filename", "save_on_train_epoch_end")),
    "report",
    "objective",
    "tags",
    "paths",
    "trainer.default_root_dir",
    "trainer.enable_progress_bar",
    "trainer.enable_model_summary",
    "trainer.log_every_n_steps",
    "trainer.max_time",
    "trainer.profiler",
    "trainer.strategy.timeout",
)
OF_CALLBACKS = ("callbacks.best.monitor",)  # of what may be left out
# Keys that change the weights, beside those of the network.
OF_THE_TRAINING = (
    "data",
    "optimizer",
    "scheduler",
    "seed",
    "start_from",
    "ema",
    "label_smoothing",
    "mixup",
    "class_weights",
    *OF_CALLBACKS,
    "trainer.accumulate_grad_batches",
    "trainer.gradient_clip_algorithm",
    "trainer.gradient_clip_val",
    "trainer.limit_train_batches",
    "trainer.limit_val_batches",
    "trainer.overfit_batches",
)


def differing_keys(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """Dotted keys whose values are not the same, or that only one has."""
    there, here = flat(there), flat(here)
    return sorted(key for key in there | here if there.get(key, ...) != here.get(key, ...))
