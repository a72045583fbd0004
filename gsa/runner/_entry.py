"""The command `python train.py`, which is also installed as gsa-train."""

import logging
import os
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from gsa._handled import end_as_commands_do
from gsa._origin import comes_from, comes_through
from gsa._streams import note, open_streams, outlive_readers
from gsa.files import one_line, printable_lines
from gsa.runner._argparse import let_hydra_parse
from gsa.runner._begun import begun
from gsa.runner._dotenv import read_variables, take_dotenv
from gsa.runner._ending import Failed, is_of_the_surroundings, queue_again_if_told, way_on, written_down
from gsa.runner._explained import explained
from gsa.runner._folder import Busy, held, refuse_unwritable_folder
from gsa.runner._instances import refuse_bad_network
from gsa.runner._keys import refuse_bad_keys
from gsa.runner._libraries import settle
from gsa.runner._nodes import store_presets, with_network
from gsa.runner._of_hydra import refuse_bad_run, refuse_bad_sweep
from gsa.runner._quiet import quiet
from gsa.runner._quoted import override
from gsa.runner._schema import ConfigError
from gsa.runner._search import alone_in, has_jobs
from gsa.runner._sweep_signals import let_jobs_save
from gsa.runner._wandb import wandb_is_out_of_reach

__all__ = ["RefuseBadConfig", "main", "register"]

_built: dict[str, Any] = {}  # folder → the run that was made before Hydra made the folder
_SHOWING = ("--help", "-h", "--hydra-help", "--cfg", "-c", "--info", "-i", "--shell-completion", "-sc")
_WITH_PATH = ("--config-dir", "-cd", "--config-path", "-cp", "--experimental-rerun")  # in which = may stand
_SURROUNDINGS = {
    "TMPDIR must name a folder that can be written": lambda: tempfile.gettempdir(),
    "the current folder must be there": lambda: os.getcwd(),
    ".env must be a file that can be read": lambda: take_dotenv(Path(".env")),
}
_last_pictures: list[Any] = []  # of a job, which the next one of a sweep shares, if it reads them alike
_sweeps: list[Path] = []  # the folder of the sweep that this process leads
_importing: list[bool] = []
_alone = ExitStack()  # of a search, which holds that


def register() -> None:
    """Make the networks and the resolvers of configs/ known to Hydra; before `hydra.compose`."""
    store_presets()
    OmegaConf.register_new_resolver("gsa.run_folder", _run_folder, replace=True)
    OmegaConf.register_new_resolver("gsa.begun", begun, replace=True, use_cache=True)
    OmegaConf.register_new_resolver("gsa.output_dir", _output_dir, replace=True)
    OmegaConf.register_new_resolver("gsa.wandb_is_out_of_reach", wandb_is_out_of_reach, replace=True, use_cache=True)


def main() -> None:
    """Train a network. A configuration that cannot be run exits with code 2."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come here instead of being printed by Hydra
    open_streams()
    end_as_commands_do()
    for what, asked in _SURROUNDINGS.items():
        try:
            asked()
        except (OSError, UnicodeError) as error:
            _refuse(f"{what}, but: {getattr(error, 'strerror', None) or error}")
    read_variables()
    settle()
    let_hydra_parse()
    Plugins.instance()  # which are looked for everywhere: those of the current folder are nobody's
    sys.path.append(os.getcwd())  # where data and networks of one's own are looked for
    register()
    sys.argv[1:] = with_network(options_last(sys.argv[1:]))
    if any(word.partition("=")[0] in _SHOWING for word in sys.argv[1:]):  # nobody reads on: --help | head
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    else:
        outlive_readers()
    try:
        _main()
    except (HydraException, OmegaConfBaseException) as error:
        _refuse(explained(error))
    except ConfigError as error:
        _refuse(str(error))
    except Failed as failed:
        note(f"the run has failed: {failed}")
        raise SystemExit(1) from None
    except Exception as error:
        _end_of_hydra(error)
        raise
    except SystemExit as ended:
        if comes_from("argparse", ended):  # after its usage
            print("values are given as key=value, without dashes, such as trainer.max_epochs=3", file=sys.stderr)
        raise
    except KeyboardInterrupt:  # before the run listens
        raise SystemExit(128 + signal.SIGINT) from None
    finally:  # of a sweep that was cut short, too
        _tell_of_sweep()


def _end_of_hydra(error: Exception) -> None:
    """End with what Hydra, or what searches and launches for it, says of itself; let be what is of others."""
    if isinstance(error, ValueError) and comes_from("hydra", error):
        no_group = str(error).startswith("Config group override must be")
        _refuse(one_line(error) + " (a group is left out by ~group, not by group=null)" * no_group)
    if isinstance(error, RuntimeError) and comes_from("joblib", error):
        way = f"{override('hydra.sweep.dir', _sweeps[-1])} ckpt_path=auto" if _sweeps else "ckpt_path=auto"
        note(f"a process of this sweep was killed; the same command with  {way} does the jobs that are left")
        raise SystemExit(1) from None
    if comes_through("hydra_plugins.hydra_optuna_sweeper", error):
        told = one_line(error) or type(error).__name__
        if not (_sweeps and has_jobs(_sweeps[-1])):
            _refuse(f"the search cannot begin: {told}")
        note(f"the search has failed, see the logs of its trials: {told}")
        raise SystemExit(1) from None


def options_last(words: list[str]) -> list[str]:
    """Words of a command, of which Hydra takes key=value and ~key in one place only, with those in front."""

    def is_option(place: int) -> bool:
        word, before = words[place], words[place - 1] if place else ""
        return word[:1] == "-" or not ("=" in word or word[:1] == "~") or before in _WITH_PATH

    return [words[place] for place in sorted(range(len(words)), key=is_option)]


class RefuseBadConfig(Callback):
    """Builds a run before Hydra makes its folder, and takes the folder away when the run is refused for its data."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        HydraConfig.instance().set_config(config)  # which the name of the folder asks for
        self.folder = Path(os.path.abspath(config.hydra.run.dir))  # as Hydra will call it
        self.missing = [place for place in (self.folder, *self.folder.parents) if not place.exists()]
        of_hydra = config.hydra
        config = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
        config.output_dir = str(self.folder)
        try:
            refuse_bad_run(of_hydra)
            refuse_bad_keys(config)
            refuse_bad_network(config)
            from gsa.runner._build import build  # Lightning: not for --help, nor for what is refused without it
            from gsa.runner._ranks import is_first_rank, know_rank
            from gsa.runner._resume import finished_report

            know_rank(config)
            is_there = is_first_rank() and (self.folder / "config.yaml").exists()
            with quiet(), held(self.folder) if is_there else nullcontext():
                if finished_report(config) is None:
                    _built[str(self.folder)] = build(config)
            refuse_unwritable_folder(self.folder)
        except (ConfigError, OSError) as error:
            _refuse(str(error))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        try:
            folder = Path(config.hydra.sweep.dir)
            for place in (folder, *(noted.parent for noted in folder.glob("*/.hydra"))):
                refuse_unwritable_folder(place)
            refuse_bad_sweep(config)
            _alone.enter_context(alone_in(config))
            let_jobs_save(folder, partial(queue_again_if_told, ckpt_path=config.ckpt_path))
            _sweeps.append(folder)
        except ConfigError as error:
            _refuse(str(error))

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        """Of the failures in a sweep, Hydra tells the first alone, after all jobs; refusals have been logged."""
        error, is_sweep = job_return._return_value, config.hydra.mode is RunMode.MULTIRUN
        if is_sweep and job_return.status is JobStatus.FAILED and type(error) is not ConfigError:
            kind = "" if isinstance(error, Failed | Busy) else f"{type(error).__name__}: "
            print(f"this job has failed: {kind}{one_line(error)}", file=sys.stderr)

    def on_run_end(  # type: ignore[override]  # Hydra gives it by name
        self, config: DictConfig, job_return: JobReturn, **kwargs: Any
    ) -> None:
        error = job_return._return_value
        if job_return.status is JobStatus.FAILED and isinstance(error, ConfigError):
            with suppress(Busy):  # another process has begun in the same folder at the same time, and is at work there
                if self.missing and not isinstance(error, Busy):
                    self._take_away()
            _refuse(str(error))  # before Hydra puts a line of its own in front

    def _take_away(self) -> None:
        """The folders that were not there before."""
        with held(self.folder):
            shutil.rmtree(self.folder)
        for place in self.missing[1:]:
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()


@hydra.main(version_base="1.3", config_path="pkg://gsa.configs", config_name="train")
def _main(config: DictConfig) -> float | None:
    _importing.append(True)  # a signal in the midst of it leaves torch in pieces, which nobody may touch again
    from gsa.runner._ranks import is_first_rank
    from gsa.runner._run import train
    from gsa.runner._slurm import SlurmStep
    from gsa.training import Stopped

    _importing.clear()

    outlive_readers()  # in a process of its own, too, as joblib has it
    try:
        metrics, objects = train(config, _built.pop(str(config.output_dir), None))
        if metrics and config.objective not in metrics and config.objective.endswith("balanced_accuracy"):
            raise ConfigError(f"{config.output_dir} is of an earlier version, which did not measure {config.objective}")
        if "data" in objects:
            _last_pictures[:] = [objects["data"].parts]  # not the data themselves, which know their trainer
    except Busy as error:
        if HydraConfig.get().mode is not RunMode.MULTIRUN or config.ckpt_path != "auto":
            raise
        print(f"passed over: {error}")  # two sweeps share their jobs
        return None
    except ConfigError as error:
        if HydraConfig.get().mode is RunMode.MULTIRUN:  # into the folder of the job; a sweep goes on
            logging.getLogger(__name__).error("configuration refused: %s", error)
        raise
    except Stopped as stopped:
        goes_on = ""
        if stopped.checkpoint:
            goes_on = f"; {way_on(stopped.checkpoint, config, stopped.code - 128)}"
        if is_first_rank():
            note(f"{stopped}{goes_on}")
        if "SUBMITIT_EXECUTOR" in os.environ:  # which tells the leader of a sweep of exceptions alone
            raise Failed(f"{stopped}{goes_on}") from stopped
        if SlurmStep.detect() and not is_first_rank():  # at another code, srun may end the first before it is done
            raise SystemExit(0) from None
        raise
    except Exception as error:
        told = written_down(error)
        if is_of_the_surroundings(error):
            raise Failed(told) from error
        raise
    return metrics.get(config.objective)


def _tell_of_sweep() -> None:
    """The table of the jobs, on the screen of the first process; nothing where none has begun."""
    if _sweeps and not _importing and has_jobs(folder := _sweeps.pop()):
        from gsa.runner._ranks import is_first_rank
        from gsa.runner._sweep_table import sweep_table

        try:
            if is_first_rank():
                print(sweep_table(folder))
        except OSError as error:
            print(f"the table of this sweep cannot be written: {error}", file=sys.stderr)


def _run_folder(train: bool, ckpt_path: str | None, new: str) -> str:
    """A resumed run goes on in its own folder: that of checkpoints/last.ckpt."""
    if train and ckpt_path and ckpt_path != "auto":
        folder = Path(ckpt_path).absolute().parent
        return str(folder.parent if folder.name == "checkpoints" else folder)
    return new


def _output_dir() -> str:
    """The folder of a run or a job; of one that is only shown, as by --cfg job --resolve, what it would be."""
    if not HydraConfig.initialized():
        raise ConfigError("a run needs a folder: compose with output_dir=…")
    of = HydraConfig.get()
    return of.run.dir if OmegaConf.is_missing(of.runtime, "output_dir") else of.runtime.output_dir


def _refuse(message: str) -> None:
    note(f"configuration refused: {printable_lines(message)}")
    raise SystemExit(2)
