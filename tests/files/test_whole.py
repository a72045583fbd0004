"""Files are written whole or not at all."""

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from gsa.files import write_whole


def test_what_stood_there_stays_until_the_new_is_whole(tmp_path, monkeypatch):
    file = tmp_path / "x.html"
    write_whole(file, b"first")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(
            os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device"))
        )
        write_whole(file, b"second")
    assert file.read_bytes() == b"first" and os.listdir(tmp_path) == ["x.html"]
    write_whole(file, b"second")
    assert file.read_bytes() == b"second"


def test_file_systems_that_cannot_sync_a_folder_are_written_to(tmp_path, monkeypatch):
    """Planted: a folder that is not synced because the disk fails."""
    sync = os.fsync
    for number in (errno.EINVAL, errno.EIO):
        with monkeypatch.context() as patch:

            def of_files_alone(handle, number=number):
                if stat.S_ISDIR(os.fstat(handle).st_mode):
                    raise OSError(number, "not here")
                sync(handle)

            patch.setattr(os, "fsync", of_files_alone)
            with pytest.raises(OSError) if number == errno.EIO else nullcontext():
                write_whole(tmp_path / "x.html", b"new")
        assert (tmp_path / "x.html").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127, "😀" * 63])
def test_a_name_may_be_as_long_as_any(tmp_path, name):
    write_whole(tmp_path / name, b"new")
    assert os.listdir(tmp_path) == [name]


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        write_whole(tmp_path / "not there" / "x.html", b"")
    assert error.value.filename == str(tmp_path / "not there" / "x.html")


def test_a_disk_that_forgets_does_not_replace_what_stood_there(tmp_path, monkeypatch):
    write_whole(tmp_path / "a", b"old")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="not what can be read back"):
        patch.setattr(Path, "read_bytes", lambda path: b"other")
        write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1
