"""A run: from a configuration to a trained, tested and described network."""

import os
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import LambdaCallback
from omegaconf import DictConfig, OmegaConf

from gsa.files import printable_lines, write_whole
from gsa.models import PictureFormat
from gsa.report import (
    announcement,
    describe,
    draw_gallery,
    forget_peak_memory,
    read_report,
    show_on_wandb,
    summary,
    symmetry_of,
    write_answers,
    write_parts,
    write_report,
)
from gsa.runner._build import Run, build, make_loggers
from gsa.runner._compiling import compiled
from gsa.runner._config_file import write_config
from gsa.runner._dotted import flat, values_of
from gsa.runner._ending import queue_again_if_told
from gsa.runner._estimate import estimated
from gsa.runner._fitting import look_for_best, refuse_unfit
from gsa.runner._folder import held, in_place, refuse_unwritable_folder
from gsa.runner._lengths import refuse_bad_lengths
from gsa.runner._meeting import leave_group, meet
from gsa.runner._memory import explaining_memory
from gsa.runner._metrics import of_epoch, of_report, of_test, of_validation
from gsa.runner._processes import launch
from gsa.runner._quiet import quiet
from gsa.runner._ranks import is_first_rank, know_rank, needs_processes
from gsa.runner._resume import finished_report
from gsa.runner._schema import ConfigError
from gsa.runner._starting import start_from
from gsa.runner._wandb import closing_wandb, keep_wandb_ids
from gsa.runner._words import keep_words
from gsa.saved import read_checkpoint
from gsa.training import Findings, Stopped, warn_of_batch_norm
from gsa.training.adapter import leave_out_idle_hooks

__all__ = ["take_part", "train"]

Results = tuple[dict[str, float], dict[str, Any]]


def train(config: DictConfig, run: Run | None = None) -> Results:
    """Train, select on the validation part, test once, and write a report into the run's folder.

    Args:
        config: composed from configs/train.yaml, by Hydra on the command line or by `hydra.compose`.
        run: what `build` has made of it before.

    Returns:
        Metrics ("val/accuracy" and "val/balanced_accuracy" of the best epoch, "test/accuracy" and
        "test/balanced_accuracy", of two classes "test/auroc") and the objects of the run: "data", "network" (with its
        best weights), "classifier", "trainer", "history", "report" and "folder"; the last two alone of a run that was
        finished already, or whose processes were started here and have ended.

    Raises:
        ConfigError: a configuration that cannot be run, or data or a checkpoint that cannot be read; `Busy`, when
            another process is at work in the folder.
        RankFailed: one of several processes has failed.
        Stopped: by a signal; what had been trained is saved.
    """
    folder = Path(config.output_dir)
    know_rank(config)
    with held(folder) if is_first_rank() else nullcontext():
        if (report := finished_report(config)) is not None:
            print(f"finished already: {folder}")
            return of_report(report), {"report": report, "folder": folder}
        _refuse_other_defaults()
        with quiet(), closing_wandb():
            try:
                return _train(run or build(config))
            except Stopped as stopped:  # at once: an upload may take longer than the time that is left
                if is_first_rank():
                    queue_again_if_told(stopped.code - 128, config.ckpt_path)
                raise


def _train(run: Run) -> Results:
    """`train`, of a run that can be run."""
    with run.listener.listening():
        _read_inputs(run)
        refuse_unwritable_folder(run.folder)
        is_new = not run.folder.exists()
        run.folder.mkdir(parents=True, exist_ok=True)
        with held(run.folder) if is_first_rank() else nullcontext():
            keep_wandb_ids(run.config)
            if trains_here := not needs_processes(run.trainer):
                try:
                    make_loggers(run)
                except ConfigError:
                    if is_new:
                        shutil.rmtree(run.folder)
                    raise
            if not _goes_on(run):
                _write_config(run)
            if trains_here:
                return _train_here(run)
            launch(run.config, run.trainer.world_size)
    report = read_report(run.folder)
    return of_report(report), {"report": report, "folder": run.folder}


def take_part(config: DictConfig) -> None:
    """`train` as one of the processes that it has started, on the configuration that it has written."""
    with quiet(), closing_wandb():
        run = build(config)
        with run.listener.listening():
            _read_inputs(run)
            make_loggers(run)
            _train_here(run)


def _train_here(run: Run) -> Results:
    """What `train` returns, in a process that trains."""
    warn_of_batch_norm(run.trainer, run.network)
    meet(run.trainer, os.path.relpath(run.folder))  # which machines may have in other places
    forget_peak_memory(run.trainer.strategy.root_device)
    if is_first_rank():
        _announce(run)
    trainer: Any = run.trainer  # which does not declare its callbacks
    with in_place(run.folder) if is_first_rank() else nullcontext(lambda: None) as look:
        trainer.callbacks.append(LambdaCallback(on_save_checkpoint=lambda *_: look()))
        leave_out_idle_hooks(trainer)
        metrics, before, findings = _train_and_test(run)
        leave_group()
        look()
    objects = {
        "data": run.data,
        "network": run.network,
        "classifier": run.classifier,
        "trainer": run.trainer,
        "history": run.history.rows,
        "folder": run.folder,
    }
    if is_first_rank():
        objects["report"] = _report(run, metrics, before, findings)
    return metrics, objects


def _read_inputs(run: Run) -> None:
    """Data and checkpoint, before the first step."""
    try:
        if run.config.train and run.data.for_test_only:
            raise ValueError(
                "training needs pictures in root/<class>/ or root/train/<class>/, but all are for the test "
                "(data.test_share=1, or a folder test alone), which needs train=false and ckpt_path"
            )
        _set_up(run.data)
        refuse_bad_lengths(run)
        if run.config.ckpt_path is not None:
            checkpoint = read_checkpoint(run.config.ckpt_path)
            refuse_unfit(checkpoint, run)
            if run.config.train:
                look_for_best(checkpoint, run)
        elif (path := run.config.get("start_from")) is not None:  # which older configurations lack
            start_from(run, path)
    except (ValueError, FileNotFoundError) as error:
        raise ConfigError(str(error)) from error


def _set_up(data: Any) -> None:
    try:
        data.prepare_data()
        data.setup()
        PictureFormat.of(data.picture_format())  # as whatever loads the network will read it
    except OSError as error:
        if (own := getattr(data, "inner", None)) is None:
            raise
        raise ValueError(f"{type(own).__name__} cannot set up its data: {type(error).__name__}: {error}") from error


def _refuse_other_defaults() -> None:
    """Of torch, in a notebook say, with which networks and data would not meet."""
    computes_gradients = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    device, dtype = torch.get_default_device(), torch.get_default_dtype()
    for is_so, expected, given in (
        (computes_gradients, "gradients", "none"),
        (device.type == "cpu", "the default device cpu", device),
        (dtype == torch.float32, "the default dtype torch.float32", dtype),
    ):
        if not is_so:
            raise ConfigError(f"a run needs torch as it comes, with {expected}, but got {given}")


def _goes_on(run: Run) -> bool:
    return run.config.train and run.config.ckpt_path is not None


def _write_config(run: Run) -> None:
    """The first thing written; of a run that goes on, once it does, for until then the report of before is true."""
    if is_first_rank():
        write_config(OmegaConf.to_yaml(run.config, resolve=True), run.folder)
        keep_words(run.folder)


def _announce(run: Run) -> None:
    """What is about to be trained, and on what, in the loggers, in network.txt, parts.csv, and on the screen."""
    (run.folder / "network.txt").write_text(f"{run.network}\n", encoding="utf-8")
    write_parts(run, run.folder)
    for logger in run.trainer.loggers:
        logger.log_hyperparams(flat(values_of(run.config)))
    print(announcement(run), flush=True)
    with explaining_memory(run, "training"):
        run.estimate = estimated(run)
    if run.estimate is not None:
        print(f"estimate     {run.estimate}", flush=True)


def _train_and_test(run: Run) -> tuple[dict[str, float], dict, Findings | None]:
    """What all processes of a run do together."""
    with explaining_memory(run, "measuring its symmetry"):
        before = symmetry_of(run) if is_first_rank() else {}
    with compiled(run):
        with explaining_memory(run, "training"):
            metrics = _fit(run)
        with explaining_memory(run, "testing"):
            return metrics, before, _test(run, metrics)


def _fit(run: Run) -> dict[str, float]:
    """Train (or resume), and leave the weights of the best epoch in the network."""
    trainer: Any = run.trainer  # which does not declare its callbacks
    chosen = run.config.ckpt_path
    metrics: dict[str, float] = {}
    if run.config.train:
        if _goes_on(run):
            trainer.callbacks.append(LambdaCallback(on_train_start=lambda *_: _write_config(run)))
        trainer.fit(run.classifier, run.data, ckpt_path=run.config.ckpt_path, weights_only=True)
        if _goes_on(run):  # of all its epochs, too, which are not begun again
            _write_config(run)
        run.listener.stop_if_told()
        chosen = None
        if run.best is not None and run.best.best_model_path:
            chosen = run.best.best_model_path
        else:
            metrics = of_validation(trainer.callback_metrics)
    if chosen is not None:
        checkpoint = read_checkpoint(chosen)
        run.classifier.load_state_dict(checkpoint["state_dict"])
        if run.config.train:
            run.best_epoch = checkpoint["epoch"]
            metrics = of_epoch(run.history.rows, checkpoint["epoch"], run.best)
    if not (run.config.train or run.data.for_test_only):
        (scores,) = trainer.validate(run.classifier, run.data, verbose=False)
        metrics = of_validation(scores)
    return metrics


def _test(run: Run, metrics: dict[str, float]) -> Findings | None:
    """Test once; what was seen besides the accuracy."""
    if not run.config.test:
        return None
    (scores,) = run.trainer.test(run.classifier, run.data, verbose=False)
    findings = run.classifier.findings
    assert findings is not None, "a test leaves findings"
    metrics |= of_test(scores)
    return findings


def _report(run: Run, metrics: dict, before: dict, findings: Findings | None) -> dict[str, Any]:
    """report.json, report.txt, test.csv and the pictures."""
    with explaining_memory(run, "measuring its symmetry"):
        report = describe(run, metrics, before, symmetry_of(run), findings)
    if findings is not None:
        write_answers(run, findings, run.folder)
    if run.config.report:
        print("drawing the report's pictures")
        draw_gallery(run.folder, report, run, findings)
    wants_artifacts = any(node.get("log_model") for node in (run.config.logger or {}).values())
    show_on_wandb(run.trainer, report, run.folder, wants_artifacts)
    write_whole(run.folder / "report.txt", f"{printable_lines(summary(report))}\n".encode())
    write_report(report, run.folder)  # the last, because it says that the run is finished
    print(f"\n{summary(report)}\nreport       {run.folder}")
    return report
