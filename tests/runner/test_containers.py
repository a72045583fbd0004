"""Where a run is the first process of a container, or of another user, or has less than the machine."""

import logging
import os
import signal
import subprocess
import sys

import pytest
from torch._utils import ExceptionWrapper

from gsa import _handled
from gsa.data import BadBatch
from gsa.runner import _entry, _libraries
from gsa.runner._ending import is_of_the_surroundings, written_down
from gsa.runner._folder import held
from gsa.runner._processes import RankFailed
from gsa.runner._schema import ConfigError
from gsa.training import NotFinite
from tests.runner.test_ranks import ROOT, SMALLEST


def test_the_first_process_ends_by_sigterm_before_a_run_listens(monkeypatch):
    """The kernel keeps it from the default; planted: another process, and one that handles it already."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        for number, there, found in ((2, signal.SIG_DFL, signal.SIG_DFL), (1, signal.SIG_IGN, signal.SIG_IGN),
                                     (1, signal.SIG_DFL, _handled.end)):  # fmt: skip
            monkeypatch.setattr(os, "getpid", lambda number=number: number)
            signal.signal(signal.SIGTERM, there)
            _handled.end_as_commands_do()
            assert signal.getsignal(signal.SIGTERM) == found
    finally:
        signal.signal(signal.SIGTERM, before)
    ended = "import signal; from gsa._handled import end; signal.signal(15, end); signal.raise_signal(15)"
    assert subprocess.run([sys.executable, "-c", ended], env=os.environ | {"PYTHONPATH": str(ROOT)}).returncode == 143


@pytest.mark.parametrize("content, cores", [
    ("max 100000\n", None), ("170000 100000\n", "2"), ("30000 100000\n", "1"), ("9900000 100000\n", None), ("", None),
])  # fmt: skip
def test_a_container_has_as_many_threads_as_its_share(tmp_path, monkeypatch, content, cores):
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.setattr(_libraries, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert _libraries.granted_cores() is None
    (tmp_path / "cpu.max").write_text(content)
    assert _libraries.granted_cores() == cores
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "8")
    assert _libraries.granted_cores() == "8"


def test_a_run_of_another_user_is_refused(tmp_path, monkeypatch):
    """Planted: one's own file."""
    (tmp_path / ".lock").touch()
    monkeypatch.setattr(os, "open", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    with pytest.raises(ConfigError, match=r"can be written, but .*\.lock is not"), held(tmp_path):
        pass
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ConfigError, match=r"is of another user \(\d+\), and this one \(12345\) cannot"), held(tmp_path):
        pass


@pytest.mark.parametrize("place, said", [
    ("tempfile.gettempdir", "TMPDIR must name a folder that can be written, but: not here"),
    ("os.getcwd", "the current folder must be there, but: not here"),
    ("gsa.runner._entry.take_dotenv", ".env must be a file that can be read, but: not here"),
])  # fmt: skip
def test_what_surrounds_a_run_is_asked_of_first(monkeypatch, capsys, place, said):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")  # put back at the end
    monkeypatch.setattr(place, lambda *_: (_ for _ in ()).throw(OSError(1, "not here")))
    with pytest.raises(SystemExit) as ended:
        _entry.main()
    assert ended.value.code == 2 and capsys.readouterr().err == f"configuration refused: {said}\n"


def test_what_lacks_outside_of_the_program_is_told_in_a_line():
    """Planted: an error of the program that is of the same kind."""
    lost = RuntimeError("DataLoader worker (pid(s) 7) exited unexpectedly")
    without = RuntimeError("InvalidCxxCompiler: No working C++ compiler found in …cpp.cxx: (None, 'g++')\n\nSet TORCH…")
    assert is_of_the_surroundings(lost) and is_of_the_surroundings(without)
    said, *_ = written_down(without).splitlines()
    assert said == "compile=true needs a C++ compiler, but none works (g++, or CXX): install one, or say compile=false"
    assert not is_of_the_surroundings(RuntimeError("shapes do not fit"))
    kinds = OSError, MemoryError, ModuleNotFoundError, BadBatch, NotFinite, RankFailed
    assert all(is_of_the_surroundings(kind("planted")) for kind in kinds)


def test_a_log_that_is_gone_is_not_named(tmp_path):
    """Planted: one that is there."""
    handlers = [logging.FileHandler(tmp_path / name / "train.log", delay=True) for name in ("gone", "there")]
    (tmp_path / "there").mkdir()
    for handler in handlers:
        logging.getLogger().addHandler(handler)
    told = written_down(OSError(2, "No such file"))
    for handler in handlers:
        logging.getLogger().removeHandler(handler)
    said, *logs = told.splitlines()
    assert said == "[Errno 2] No such file" and f"the log has the rest: {tmp_path / 'there' / 'train.log'}" in logs
    assert str(tmp_path / "gone") not in told


@pytest.mark.parametrize("raised, told", [
    (MemoryError(), "MemoryError"), (ValueError("a\nb: c"), "a\nb: c"), (ValueError("a\n  b\n"), "a\n  b"),
])  # fmt: skip
def test_of_an_error_in_a_worker_its_own_words_are_told(raised, told):
    try:
        raise raised
    except Exception:
        wrapped = ExceptionWrapper(where="in DataLoader worker process 0")
    with pytest.raises(type(raised)) as error:
        wrapped.reraise()
    assert written_down(error.value).partition("\nthe log has the rest")[0] == told


@pytest.mark.slow
def test_a_run_needs_no_encoding_of_the_locale(tmp_path):
    environment = os.environ | {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    command = [sys.executable, str(ROOT / "train.py"), *SMALLEST, "trainer.max_epochs=1", f"hydra.run.dir={tmp_path}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "→" in (tmp_path / "network.txt").read_text(encoding="utf-8")
