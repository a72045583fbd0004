"""A folder of pictures becomes lines and a table; a picture that cannot be read costs no other."""

import csv
import errno
import os
import signal
import stat
import subprocess
import sys

import numpy
import pytest
import torch
from PIL import Image

import gsa
from gsa import cli
from gsa.cli import _predict
from gsa.data import DigitsDataModule
from gsa.files import write_whole
from gsa.models import PictureFormat
from tests.cli.conftest import CLASSES
from tests.devices import DEVICES


def test_a_folder_becomes_a_table_whatever_the_batch(network, folder, tmp_path, capsys):
    said, tables = [], []
    for batch in ("1", "3", "100"):
        words = ["predict", str(folder), "--csv", str(tmp_path / "out.csv"), "--batch", batch, "--top", "2"]
        assert cli.main(words) == 1
        said.append(capsys.readouterr())
        with open(tmp_path / "out.csv", newline="", encoding="utf-8-sig") as file:
            tables.append(list(csv.reader(file)))
    lines = said[0].out.splitlines()
    names = ["a.tif", "b/1.jpg", "b/2.PNG", "m.gif", "z, or not.png"]
    assert [line.rsplit(": ", 1)[0] for line in lines] == [str(folder / name) for name in names]
    assert all(line.count("%") == 2 for line in lines)
    assert "left out 2 of 7" in said[0].err and "b/0.png cannot be read" in said[0].err and "n.jpeg" in said[0].err
    header, *rows = tables[0]
    assert header == ["path", "prediction", *CLASSES] and [row[0] for row in rows] == [str(folder / n) for n in names]
    values = numpy.array([row[2:] for row in rows], dtype=float)
    assert numpy.allclose(values.sum(1), 1, atol=1e-5) and len({tuple(row) for row in values.tolist()}) == 5
    assert [CLASSES[best] for best in values.argmax(1)] == [row[1] for row in rows]
    for other in tables[1:]:
        assert numpy.allclose(numpy.array([row[2:] for row in other[1:]], dtype=float), values, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_probabilities_are_those_of_the_network_on_the_test_pictures(device, tmp_path, capsys):
    data = DigitsDataModule()
    data.setup()
    raw, _ = data.parts["test"].first(4)
    for index, picture in enumerate(raw):
        Image.fromarray((255 * picture[0]).round().byte().numpy()).save(tmp_path / f"{index}.png")
    words = [
        "predict",
        str(tmp_path),
        "--csv",
        str(tmp_path / "o.csv"),
        "--checkpoint",
        "digits_gsa",
        "--device",
        device,
    ]
    assert cli.main(words) == 0 and not capsys.readouterr().err
    expected = gsa.load("digits_gsa")(data.parts["test"].normalise((255 * raw).round() / 255)).softmax(-1)
    with open(tmp_path / "o.csv", newline="", encoding="utf-8-sig") as file:
        found = [[float(value) for value in row[2:]] for row in list(csv.reader(file))[1:]]
    torch.testing.assert_close(
        torch.tensor(found), expected.detach(), atol=1e-5 if device == "cpu" else 1e-3, rtol=1e-4
    )


def test_poses_stand_under_their_picture(network, folder, capsys):
    assert cli.main(["predict", str(folder / "a.tif"), str(folder / "m.gif"), "--poses"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.startswith("    ") for line in lines] == ([False] + [True] * 7) * 2


def test_the_table_is_of_pictures_as_they_are_whatever_else_is_asked(network, folder, tmp_path):
    tables = []
    for poses in ([], ["--poses"]):
        cli.main(["predict", str(folder / "a.tif"), str(folder / "m.gif"), "--csv", str(tmp_path / "out.csv"), *poses])
        tables.append((tmp_path / "out.csv").read_text())
    assert tables[0] == tables[1]


def test_white_is_what_it_was_in_training(tmp_path):
    Image.fromarray(numpy.full((12, 12), 4095, dtype=numpy.uint16)).save(tmp_path / "a.png")
    for white, found in ((4095, 1.0), (None, 4095 / 65535)):
        known = PictureFormat("imagefolder", 1, 12, 3, (0.5,), (0.5,), CLASSES, white)
        assert _predict._read(tmp_path / "a.png", known, invert=False).mean().item() == pytest.approx(found, abs=3e-3)


def test_one_network_that_says_nothing_finite_leaves_the_rest(network, folder, capsys):
    """Planted: every second picture."""
    network.forward_head = lambda features: torch.tensor([[0.0, 1, 2], [float("nan")] * 3])[: len(features)]
    assert cli.main(["predict", str(folder / "a.tif"), str(folder / "m.gif")]) == 1
    said = capsys.readouterr()
    assert "a.tif: hen" in said.out and "m.gif is not finite" in said.err


@pytest.mark.parametrize(("words", "message"), [
    (["{folder}/n.jpeg", "{folder}/none.png", "--csv", "{folder}/o.csv"], "none.png cannot be read as a picture"),
    (["{folder}/empty"], "there are no pictures in the folder"),
    (["{folder}", "--csv", "{folder}/nowhere/o.csv"], "--csv must be a file in a folder that can be written"),
    (["{folder}", "--csv", "{folder}"], "--csv must be a file in a folder that can be written"),
    (["{folder}", "--batch", "0"], "--batch must be at least 1 picture, but got 0"),
    (["{folder}", "--device", "meta"], "--device must be a device that torch finds here, but got meta"),
    (["{folder}", "--device", "gpu"], "--device must be a device that torch finds here, but got gpu"),
])  # fmt: skip
def test_nothing_at_all_is_a_refusal(network, folder, capsys, words, message):
    (folder / "empty").mkdir()
    assert cli.main(["predict", *(word.format(folder=folder) for word in words)]) == 2
    said = capsys.readouterr()
    assert message in said.err and not said.out and not (folder / "o.csv").exists()


def test_the_bar_is_on_the_terminal_only(network, folder, capfd, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert cli.main(["predict", str(folder / "a.tif")]) == 0
    said = capfd.readouterr()
    assert said.out.count("\n") == 1 and "\x1b" not in said.out and "1/1" in said.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_table_is_written_though_nobody_reads_the_lines(tmp_path, folder):
    command = [sys.executable, "-m", "gsa", "predict", str(folder), "--csv", str(tmp_path / "out.csv")]
    quiet = os.environ | {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=quiet)
    process.stdout.close()
    assert process.wait() in (0, 1)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 6


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_table_is_written_though_no_line_can_be(tmp_path, folder, capfd, monkeypatch, number):
    """Planted: without a table."""
    monkeypatch.setattr("builtins.print", lambda *_, **__: (_ for _ in ()).throw(OSError(number, "no room")))
    monkeypatch.setattr(_predict, "stop_telling", lambda: None)
    assert cli.main(["predict", str(folder), "--csv", str(tmp_path / "out.csv")]) == 1
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 6
    assert cli.main(["predict", str(folder)]) == 2


@pytest.mark.parametrize("words, place, code", [
    (["--help"], "pipe", 0), pytest.param(["list"], "pipe", 0, marks=pytest.mark.slow), (["list"], "/dev/full", 2),
])  # fmt: skip
def test_what_cannot_be_printed_ends_the_command_quietly(words, place, code):
    if place != "pipe" and not os.path.exists(place):
        pytest.skip("no full device")
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    told = {"stderr": subprocess.PIPE, "text": True, "env": buffered}
    command = [sys.executable, "-m", "gsa", *words]
    if place == "pipe":
        with subprocess.Popen(command, stdout=subprocess.PIPE, **told) as process:
            process.stdout.close()
            said = process.stderr.read()
    else:
        with open(place, "w") as full, subprocess.Popen(command, stdout=full, **told) as process:
            said = process.stderr.read()
    assert process.returncode == code and "Exception ignored" not in said and "Traceback" not in said
    assert (code == 0) != ("No space left on device" in said)


def test_names_that_a_terminal_cannot_show_cost_nothing(tmp_path, folder):
    (folder / "b" / "1.jpg").rename(folder / "b" / "日.jpg")
    command = [sys.executable, "-m", "gsa", "predict", str(folder / "b" / "日.jpg")]
    narrow = os.environ | {"PYTHONIOENCODING": "ascii", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=narrow)
    assert done.returncode == 0 and "\\u65e5.jpg: " in done.stdout


def test_a_table_does_not_take_the_place_of_a_device(tmp_path, folder, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert cli.main(["predict", str(folder), "--csv", str(tmp_path / "pipe")]) == 2
    assert "--csv must be a file in a folder that can be written" in capsys.readouterr().err
    with pytest.raises(FileExistsError, match="no file that could be replaced"):
        write_whole(tmp_path / "pipe", b"")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("table", ["a.tif", "b/new.png"])
def test_a_table_is_never_written_over_a_picture(network, folder, table, capsys):
    before = (folder / "a.tif").read_bytes()
    assert cli.main(["predict", str(folder), "--csv", str(folder / table)]) == 2
    assert "--csv must be a table, such as out.csv, but got" in capsys.readouterr().err
    assert (folder / "a.tif").read_bytes() == before and not (folder / "b/new.png").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_predicted_is_kept(network, folder, tmp_path, monkeypatch, capsys, number):
    """Planted: stopped at the third picture."""
    asked = _predict._chances

    def stop(*_):
        if number == signal.SIGINT:  # which is ignored where tests run in the background
            raise KeyboardInterrupt
        signal.raise_signal(number)

    answers = iter([asked, asked, stop])
    monkeypatch.setattr(_predict, "_chances", lambda *given: next(answers)(*given))
    words = ["predict", str(folder / "b" / "1.jpg"), str(folder / "a.tif"), str(folder / "m.gif")]
    assert (
        cli.main([*words, "--batch", "1", "--csv", str(tmp_path / "out.csv"), "--checkpoint", "mine"]) == 128 + number
    )
    assert (
        capsys.readouterr().err
        == f"gsa: {tmp_path / 'out.csv'} has 2 of the 2 pictures that were looked at, of 3\nstopped\n"
    )
    with open(tmp_path / "out.csv", newline="", encoding="utf-8-sig") as file:
        assert [row[0] for row in csv.reader(file)][1:] == words[1:3]
    assert not list(tmp_path.glob(".*.part"))


def test_a_pattern_in_quotes_is_told_of(network, folder, capsys):
    assert cli.main(["predict", str(folder / "*.png")]) == 2
    assert "the shell puts names in the place of * and ?" in capsys.readouterr().err
    (folder / "really*.png").write_bytes((folder / "a.tif").read_bytes())
    assert cli.main(["predict", str(folder / "really*.png")]) == 0


@pytest.mark.parametrize("words", [["--chekpoint", "outputs/mine"], ["--chekpoint=outputs/mine"]])
def test_an_option_that_is_none_has_a_nearest_one(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["predict", "a.png", *words])
    assert ended.value.code == 2
    assert "there is no option --chekpoint (the nearest is '--checkpoint')" in capsys.readouterr().err
