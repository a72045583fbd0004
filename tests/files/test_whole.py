"""Files are written whole or not at all."""

import errno
import os

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


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        write_whole(tmp_path / "not there" / "x.html", b"")
    assert error.value.filename == str(tmp_path / "not there" / "x.html")
