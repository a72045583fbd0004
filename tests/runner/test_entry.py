"""The command builds a run once, and says on one screen what it is about to do."""

import argparse
import fcntl
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException, MissingConfigException

import gsa
from gsa.runner import _entry
from gsa.runner._argparse import let_hydra_parse
from gsa.runner._ending import written_down
from gsa.runner._entry import RefuseBadConfig, options_last
from gsa.runner._explained import explained
from gsa.runner._folder import Busy
from gsa.runner._quoted import override
from gsa.runner._schema import ConfigError
from tests.forks import python

ROOT = Path(gsa.__file__).parent.parent
COUNTED = """
import sys, gsa, gsa.models
made, ours = [], gsa.create_model
def counted(*arguments, **keywords):
    network = ours(*arguments, **keywords)
    if not next(network.parameters()).is_meta:  # planned, to see whether it can be
        made.append(network)
    return network
gsa.create_model = gsa.models.create_model = counted
from gsa import runner
try:
    runner.main()
finally:
    print("made", len(made))
"""
SHORT = ("model=digits_z2_sa", "model.channels=4", "model.num_heads=1", "trainer.accelerator=cpu", "report=false",
         "trainer.limit_train_batches=2", "trainer.max_epochs=1")  # fmt: skip


def command(tmp_path, *overrides):
    return python("-c", COUNTED, *overrides, *SHORT, cwd=tmp_path)


def test_a_run_is_built_once_and_announced(tmp_path):
    """With a seed that is drawn, and a precision of which Lightning warns while it is built."""
    done = command(tmp_path, "seed=null", "trainer.precision=16-mixed")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("warning: You passed `Trainer(accelerator='cpu', precision='16-mixed')`")
    assert done.stdout.rstrip().endswith("made 1")
    before, _, _ = done.stdout.partition("Epoch 1")
    announced = before.strip().splitlines()
    starts = [line.split()[0] for line in announced if not line.startswith("[")]
    assert starts[:6] == ["network", "data", "recipe", "device", "folder", "estimate"] and len(announced) < 24
    assert "FLOPs" not in done.stdout and "_target_" not in done.stdout
    (folder,) = tmp_path.glob("outputs/digits/digits_z2_sa/*")
    assert "LiftingSelfAttention" in (folder / "network.txt").read_text()


def test_quiet_says_nothing_between_the_announcement_and_the_report(tmp_path):
    done = command(tmp_path, "callbacks=quiet")
    assert done.returncode == 0 and not done.stderr, done.stderr
    announced, empty, _ = done.stdout.partition("\n\n")
    assert empty and [line.split()[0] for line in announced.splitlines()] == [
        "network", "data", "recipe", "device", "folder", "estimate"
    ]  # fmt: skip


def test_what_is_refused_for_its_data_is_refused_in_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "model=rotmnist_z2_sa"], cwd=tmp_path,
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 2 and not list(tmp_path.iterdir())
    assert done.stderr.startswith("configuration refused: the official archive was not found") and not done.stdout
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("train, ckpt_path, folder", [
    (True, "/a/checkpoints/last.ckpt", "/a"), (True, "/a/kept.ckpt", "/a"), (True, None, "new"), (True, "auto", "new"),
    (False, "/a/checkpoints/best.ckpt", "new"),
])  # fmt: skip
def test_a_run_goes_on_in_its_own_folder_and_is_tested_in_another(train, ckpt_path, folder):
    assert _entry._run_folder(train, ckpt_path, "new") == folder


def test_dashes_before_a_key_are_told_of(tmp_path):
    done = command(tmp_path, "--epochs", "3")
    assert done.returncode == 2 and "unrecognized arguments: --epochs" in done.stderr
    assert done.stderr.endswith("values are given as key=value, without dashes, such as trainer.max_epochs=3\n")


def test_of_groups_is_told_where_one_was_left_out(tmp_path):
    done = command(tmp_path, "-m", "seed=0,1", "--cfg=job")
    assert done.returncode == 2 and done.stderr.endswith("--info and --shell_completion can be specified\n")


def test_options_may_stand_among_other_words():
    assert options_last(["b=2", "a=1", "-m", "seed=0,1"]) == ["b=2", "a=1", "seed=0,1", "-m"]
    assert options_last(["b=2", "--cfg", "job"]) == ["b=2", "--cfg", "job"]
    assert options_last(["--config-dir", "a=1", "~b", "--cfg=job", "c=2"]) == [
        "~b", "c=2", "--config-dir", "a=1", "--cfg=job"
    ]  # fmt: skip


@pytest.mark.parametrize("shown", ["--help", "--info", "--cfg=job"])
def test_what_is_shown_need_not_be_read_to_its_end(tmp_path, shown):
    command = [sys.executable, str(ROOT / "train.py"), shown]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert not process.stderr.read()


@pytest.mark.parametrize("value", ["/x/meine übersicht (neu)", "/x/übersicht", "/x/it's", "/x/a=b", "/x/a;b", "~/x"])
def test_what_hydra_cannot_read_is_printed_as_it_would(value):
    parser = OverridesParser.create()
    with pytest.raises(HydraException) as refused:
        parser.parse_overrides([f"data.root={value}"])
    (word,) = shlex.split(explained(refused.value).partition("must be quoted: ")[2])
    assert parser.parse_override(word).value() == os.path.expanduser(value)


@pytest.mark.parametrize(
    "value", ["/x/a b", "/x/übersicht", "it's", "~/x", "a\\'b", "a b\\", "a b\\\\", "a\\\n", "a\"`$!'"]
)
def test_a_path_is_a_word_that_the_shell_and_hydra_read(value):
    (word,) = shlex.split(override("data.root", Path(value)))
    assert OverridesParser.create().parse_override(word).value() == value


@pytest.mark.parametrize("given", ["seed", "tags=[a,b", "+data.rüt=3"])
def test_what_is_no_text_is_not_quoted(given):
    with pytest.raises(HydraException) as refused:
        OverridesParser.create().parse_overrides([given])
    assert explained(refused.value) == f"Hydra cannot read {given!r}: expected key=value, and lists as key=[a,b]"


@pytest.mark.parametrize(("plugin", "extra"), [
    ("launcher/submitit_slurm", "slurm"), ("launcher/joblib", "sweep"), ("sweeper/optuna", "sweep"),
])  # fmt: skip
def test_a_plugin_that_is_missing_names_our_extra(plugin, extra):
    said = explained(MissingConfigException("not found", f"hydra/{plugin}", ["hydra/launcher/basic"]))
    assert f"hydra/{plugin} is" in said and f'not installed: pip install "gsa-nets[{extra}]"' in said
    assert "basic" in explained(MissingConfigException("not found", "hydra/launcher/basik", ["hydra/launcher/basic"]))


@pytest.mark.slow
def test_a_sweep_builds_one_network_a_job(tmp_path):
    done = command(tmp_path, "-m", "seed=0,1", "callbacks=quiet", "logger=none", "trainer.enable_progress_bar=false")
    assert done.returncode == 0 and done.stdout.rstrip().endswith("made 2"), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="asks GNU's OpenMP, which torch has on Linux")
@pytest.mark.parametrize("policy, is_ours", [(None, True), ("ACTIVE", False)])
def test_threads_that_wait_soon_sleep_unless_told_otherwise(policy, is_ours):
    """OpenMP reads it when torch is loaded, and can be asked what it has understood."""
    environment = {name: value for name, value in os.environ.items() if "WAIT" not in name and "SPIN" not in name}
    environment |= {"OMP_DISPLAY_ENV": "VERBOSE"} | ({"OMP_WAIT_POLICY": policy} if policy else {})
    command = [sys.executable, str(ROOT / "train.py"), "model.neighbourhood=4"]  # what only a network can refuse
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and ("GOMP_SPINCOUNT = '2000'" in done.stderr) == is_ours


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc, which Linux has")
@pytest.mark.parametrize("environment, is_kept", [({}, True), ({"MALLOC_TRIM_THRESHOLD_": "131072"}, False)])
def test_freed_memory_is_kept_for_the_next_step_unless_told_otherwise(environment, is_kept):
    """Blocks of 40 MB, one after the other: pages that were given back are asked for anew, one by one."""
    program = """if True:
        from gsa.runner._libraries import settle
        settle()
        import os, resource, torch
        def faults(times):
            for _ in range(times):
                torch.ones(10 * 2**20)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        before = faults(40)
        print((faults(10) - before) / 10, os.environ.get("MALLOC_MMAP_THRESHOLD_"))
    """
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run([sys.executable, "-c", program], env=plain | environment, capture_output=True, text=True)
    count, of_children = done.stdout.split()
    assert (float(count) < 10) == is_kept and (of_children == str(64 * 2**20)) == is_kept, done.stdout


def test_a_process_that_is_refused_takes_no_folder_of_another_away(tmp_path):
    """Both have begun where there was none. Planted: one that was refused for its data, with nobody at work there."""
    callback, folder = RefuseBadConfig(), tmp_path / "run"

    def is_left(error):
        folder.mkdir(exist_ok=True)
        callback.folder, callback.missing = folder, [folder]
        done = JobReturn(status=JobStatus.FAILED)
        done.return_value = error
        with pytest.raises(SystemExit):
            callback.on_run_end(config=None, job_return=done)
        return folder.exists()

    assert is_left(Busy("another process is at work")) and not is_left(ConfigError("no such data"))
    folder.mkdir()
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert is_left(ConfigError("no such data"))


def test_python_that_looks_at_helps_lets_hydra_begin(monkeypatch):
    """As 3.14 does; planted: without it, an option whose help is made later is refused."""

    class Later:
        def __repr__(self):
            return "made when it is asked for"

    def check_help(self, action):
        if action.help and "%" in action.help:
            raise ValueError("badly formed help string")

    def add_argument(self, *names, **options):
        action = ours(self, *names, **options)
        self._check_help(action)
        return action

    ours = argparse._ActionsContainer.add_argument
    monkeypatch.setattr(argparse._ActionsContainer, "_check_help", check_help, raising=False)
    monkeypatch.setattr(argparse._ActionsContainer, "add_argument", add_argument)
    with pytest.raises(TypeError):
        argparse.ArgumentParser().add_argument("--later", help=Later())
    for _ in range(2):  # commands in one process
        let_hydra_parse()
    argparse.ArgumentParser().add_argument("--later", help=Later())
    with pytest.raises(ValueError, match="badly formed"):
        argparse.ArgumentParser().add_argument("--wrong", help="100 %")


def test_of_what_wandb_has_failed_in_it_is_named():
    """Its process may be killed, as by a machine that is out of memory."""
    told = {}
    for name in ("wandb.sdk.lib", "wandbox"):
        place = {"__name__": name}
        exec("def fail():\n    raise ConnectionError('Connection lost')", place)
        try:
            place["fail"]()
        except ConnectionError as error:
            told[name] = written_down(error)
    assert told["wandb.sdk.lib"].startswith("wandb, which this run is logged with, has failed: Connection lost")
    assert told["wandbox"].startswith("Connection lost")
