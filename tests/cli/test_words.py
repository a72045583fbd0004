"""What a command says that cannot do what it is asked."""

import pytest

from gsa import cli


def test_too_little_memory_is_told_in_a_line(monkeypatch, capsys):
    """Planted: another error, which is one of the program."""
    words = "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"
    monkeypatch.setattr("gsa.cli._list.run", lambda _: (_ for _ in ()).throw(RuntimeError(words)))
    assert cli.main(["list"]) == 2
    assert capsys.readouterr().err.startswith("gsa: there is too little memory for this network and its pictures: [enf")
    monkeypatch.setattr("gsa.cli._list.run", lambda _: (_ for _ in ()).throw(RuntimeError("shapes do not fit")))
    with pytest.raises(RuntimeError, match="shapes"):
        cli.main(["list"])


def test_a_refusal_moves_no_cursor(tmp_path, capsys):
    assert cli.main(["check", f"{tmp_path}/\x1b]0;owned\x07"]) == 2
    assert "\\x1b]0;owned\\x07" in (said := capsys.readouterr().err) and said.rstrip("\n").isprintable()


@pytest.mark.parametrize("words", [["predict", ""], ["export", "digits_gsa", "--to", ""]])
def test_a_path_that_is_empty_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        cli.main(words)
    assert "a path must not be empty" in capsys.readouterr().err
