"""Commands go on where nobody hears them, and end as they should."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gsa import cli

ENDLESS = """
import sys
from gsa._streams import open_streams, outlive_readers
open_streams(); outlive_readers()
for number in range(50_000): print(number, "ä")  # more than a pipe holds
print("came to its end", file=sys.stderr)
"""


def said(code, shell, options=""):
    """The exit code, and lines on the standard error, of Python in a shell."""
    command = f"{sys.executable} {options} -c '{code}' {shell}"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize("options", ["", "-u"])
@pytest.mark.parametrize("shell, why", [(">/dev/full", "No space left on device"), ("| head -1", "Broken pipe")])
def test_what_runs_outlives_its_reader(shell, why, options):
    lines = [f"the standard output takes nothing more ({why}): what follows is printed nowhere", "came to its end"]
    assert said(ENDLESS, shell, options) == (0, lines)
    code, planted = said(ENDLESS.replace("outlive_readers()\n", "\n"), shell, options)
    assert code != 0 and lines[-1] not in planted


def test_a_command_whose_streams_are_closed_ends_as_it_would():
    for closed in (">&-", "2>&-", ">&- 2>&- <&-"):
        assert said('import sys; from gsa.cli import main; sys.exit(main(["--version"]))', closed) == (0, [])


def test_what_nobody_hears_changes_no_exit_code():
    refused = 'import sys; from gsa.cli import main; sys.exit(main(["explore", "--save", "/nowhere/page"]))'
    for shell in ("", "2>/dev/full"):
        assert said(refused, shell)[0] == 2
    assert said('from gsa._streams import note; note("planted"); print(1)', "2>&1 >/dev/null | true")[0] == 0


def test_a_file_gets_no_number_of_a_closed_stream(tmp_path):
    """Where libraries would print into it; planted: without."""
    code = f"""
import os
from gsa._streams import open_streams
open_streams()
with open("{tmp_path}/a", "w"): os.write(2, b"of a library")
"""
    assert said(code, "<&- >&- 2>&-")[0] == 0 and (tmp_path / "a").read_text() == ""
    said(code.replace("\nopen_streams()", "").replace("os.write(2", "os.write(0"), "<&- >&- 2>&-")
    assert (tmp_path / "a").read_text() == "of a library"


def test_a_deleted_folder_is_named_before_libraries_blame_themselves(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "getcwd", lambda: (_ for _ in ()).throw(FileNotFoundError(2, "No such file or directory")))
    assert cli.main(["list"]) == 2
    assert capsys.readouterr().err == "gsa: the current folder must be there, but: No such file or directory\n"


def test_a_library_that_cannot_be_loaded_is_told_in_a_line(monkeypatch, capsys):
    monkeypatch.setattr(cli, "import_module", lambda _: (_ for _ in ()).throw(ImportError("libtorch_cpu.so: no room")))
    assert cli.main(["list"]) == 2 and capsys.readouterr().err == "gsa: libtorch_cpu.so: no room\n"


def test_home_is_found_where_the_shell_has_left_its_sign():
    options = cli._parser().parse_args(["export", "digits_gsa", "--to=~/new"])
    assert options.to == Path.home() / "new"
