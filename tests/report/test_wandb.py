"""An offline wandb run, read back: everything a dashboard shows is in it."""

import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import wandb
from omegaconf import OmegaConf

import gsa
from gsa.explore._page import filled
from gsa.report import GALLERY, dashboard
from gsa.runner import ConfigError, train
from gsa.runner._wandb import _refused_by, complete_wandb
from tests.forks import python
from tests.runs import SMALL

ROOT = Path(gsa.__file__).parent.parent


def read_back(folder):
    """The records of the one offline run below a folder, by wandb's own reader."""
    (run,) = Path(folder).glob("wandb/offline-run-*")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(run)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "No such command" in done.stderr:
        pytest.skip("this wandb cannot read its own files")
    done.check_returncode()
    return run, [json.loads(line) for line in done.stdout.splitlines()]


def of_type(records, kind):
    return [record[kind] for record in records if record["type"] == kind]


@pytest.fixture
def offline(small, monkeypatch, tmp_path):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")

    def run(*overrides, folder="run"):
        train(small("logger=wandb", "report=true", "model=digits_r4_sa", *overrides, folder=folder))
        return read_back(tmp_path / folder)

    return run


@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_an_offline_run_holds_what_a_dashboard_shows(offline):
    run, records = offline("trainer.max_epochs=2", "trainer.log_every_n_steps=1", "logger.wandb.log_model=true")
    history = {key: value for row in of_type(records, "history") for key, value in row["item"].items()}
    for key in ("train/loss", "train/accuracy", "val/loss", "val/accuracy", "test/accuracy", "lr-AdamW",
                "system/seconds_per_epoch", "system/peak_memory_mb", "symmetry/after/90°",
                "symmetry/before/worst_exact"):  # fmt: skip
        assert key in history, key
    assert float(history["symmetry/after/worst_exact"]) < 1e-5
    drawn = set(GALLERY) - {"heads"}  # those of networks whose heads have places
    for picture in drawn:
        names = [value for key, value in history.items() if key.startswith(f"pictures/{picture}.path")]
        assert names and (run / "files" / names[0]).is_file(), picture
    config = json.dumps(of_type(records, "config"))
    assert "model.neighbourhood" in config and "digits_r4_sa" in config  # flat, as columns of its table
    summary = json.dumps(of_type(records, "summary"))
    assert "report/test_accuracy" in summary
    metrics = json.dumps(of_type(records, "metric"))
    assert "val/accuracy" in metrics and "max" in metrics
    (about,) = of_type(records, "run")[:1]
    assert about["display_name"] == "digits_r4_sa-seed0" and about["job_type"] == "train"
    assert about["run_group"].startswith("digits_r4_sa-") and set(about["tags"]) == {"digits", "R4"}
    assert of_type(records, "artifact")
    shown = json.loads(dashboard("me", "gsa")._to_model().model_dump_json())
    wanted = set(re.findall(r"(?:train|val|test|symmetry|system|pictures)/[a-z_/]+", json.dumps(shown))) - {
        "pictures/heads",
        "test/auroc",  # of two classes
    }
    assert len(wanted) > 15 and not [name for name in wanted if not any(key.startswith(name) for key in history)]


@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_the_page_is_logged_as_the_docs_say_and_as_it_is(tmp_path, monkeypatch):
    for name, value in (("WANDB_MODE", "offline"), ("WANDB_SILENT", "true")):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    wandb.teardown()  # it keeps the settings that others have asked for in this process
    page = filled({"names": ["digits_gsa"]})
    Path("page.html").write_text(page, encoding="utf-8")
    blocks = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "training.md").read_text(), re.S)
    (said,) = (block for block in blocks if "import wandb" in block)
    exec(compile(said, "training.md", "exec"), names := {})
    (kept,) = Path(names["run"].dir).glob("media/html/explore_*.html")
    assert kept.read_text(encoding="utf-8") == page and "wandb" not in page


def test_a_run_logs_offline_where_nobody_is_logged_in(tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_")}
    words = [*SMALL, "logger=wandb", "trainer.max_epochs=1", f"hydra.run.dir={tmp_path / 'run'}"]
    words += [f"trainer.limit_{part}_batches=1" for part in ("train", "val", "test")]
    done = python(ROOT / "train.py", *words, env=environment | {"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "run").glob("wandb/offline-run-*/*.wandb"))


class Answer(http.server.BaseHTTPRequestHandler):
    code, body = 200, b'{"data": {"viewer": {"id": "me"}}}'

    def do_POST(self):
        self.send_response(self.code)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """asked(address) → why a run would be logged offline with the server there, or None."""
    for name in ("WANDB_MODE", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    ask = "from gsa.runner import _wandb as w; print(w.wandb_is_out_of_reach() and w.why_offline())"

    def of(address, **variables):
        environment = os.environ | {"WANDB_BASE_URL": address, "WANDB_API_KEY": 40 * "a"} | variables
        done = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True)
        return done.stdout.strip() or done.stderr.splitlines()[-1]

    return of


@pytest.mark.slow
def test_it_is_within_reach_of_who_is_logged_in_where_a_server_answers(asked, monkeypatch):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert asked(address) == "False"
        assert asked(address, WANDB_API_KEY="") == "nobody is logged in (wandb login)"
        for code, body, why in (
            (401, b"{}", "refuses the key (wandb login)"), (500, b"", "answers with an error (500)"),
            (200, b"<html>log in here</html>", "does not answer as wandb does"),
            (200, b"[]", "does not answer as wandb does"),
        ):  # fmt: skip
            monkeypatch.setattr(Answer, "code", code)
            monkeypatch.setattr(Answer, "body", body)
            assert asked(address) == f"{address} {why}"
        server.shutdown()
    assert "does not answer ([Errno 111]" in asked(address)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # which takes what is said, and never answers
        assert "does not answer (timed out)" in asked(f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert asked(address, WANDB_MODE="Offline").startswith("ValueError: WANDB_MODE must be one of online, ")
    assert "refuses a setting, such as a variable WANDB_…: " in asked("nowhere")
    assert asked(address, WANDB_MODE="offline") == "None" and asked(address, WANDB_MODE="disabled") == "False"


@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_a_run_that_cannot_begin_online_is_logged_offline(small, monkeypatch, tmp_path, capfd):
    """A server may answer who somebody is, and nothing else; jobs that follow do not ask again."""
    begin, tried = wandb.init, []

    def gives_up(**settings):
        tried.append(settings.get("mode"))
        if settings.get("mode") != "offline":
            raise wandb.errors.CommError("context deadline exceeded")
        return begin(**settings)

    monkeypatch.setattr(wandb, "init", gives_up)
    monkeypatch.setattr("gsa.runner._wandb._refused_by", lambda server, key: None)
    monkeypatch.setattr("gsa.runner._wandb._given_up", [])
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_API_KEY", 40 * "a")
    for folder in ("first", "second"):
        train(small("logger=wandb", "trainer.max_epochs=1", folder=folder))
        assert list((tmp_path / folder).glob("wandb/offline-run-*/*.wandb"))
    assert tried == [None, "offline", "offline"]
    assert "wandb logs offline, as it cannot begin: context deadline exceeded" in capfd.readouterr().err


@pytest.mark.slow
def test_a_run_outlives_wandb(tmp_path):
    """Its own process is killed in the second epoch; the next job of the sweep begins anew with it."""
    options = [*SMALL, "-m", "logger=wandb", "trainer.max_epochs=3", "seed=0,1", f"hydra.sweep.dir={tmp_path}",
               "+callbacks.kill._target_=tests.runner.faults.KillWandb"]  # fmt: skip
    command, environment = [sys.executable, str(ROOT / "train.py"), *options], os.environ | {"WANDB_MODE": "offline"}
    environment.pop("WANDB_SERVICE", None)  # that of this process
    done = subprocess.run(command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("wandb has failed, and this run goes on without it") == 2
    assert done.stderr.count("upload what it has written with  wandb sync") == 2
    for job in range(2):
        assert json.loads((tmp_path / str(job) / "report.json").read_text())["epochs"] == 3
        assert list((tmp_path / str(job)).glob("wandb/offline-run-*/*.wandb"))


def test_a_logger_that_cannot_begin_is_refused_before_training(small, monkeypatch):
    import wandb

    def gives_up(**settings):
        raise wandb.errors.CommError("Post http://127.0.0.1:1/graphql: context deadline exceeded\n\nand so on")

    monkeypatch.setattr(wandb, "init", gives_up)
    with pytest.raises(ConfigError, match=r"logger\.wandb cannot begin: Post .* exceeded; logger\.wandb\.offline=true"):
        train(small("logger=wandb", "logger.wandb.offline=false"))


def settings(small, *overrides, folder="run"):
    config = small("logger=wandb", *overrides, folder=folder)
    return complete_wandb(config.logger.wandb, config, "digits")


def test_seeds_share_a_group_and_other_experiments_do_not(small, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    first, second = settings(small, "seed=0"), settings(small, "seed=1", "objective=test/accuracy", folder="b")
    assert first.group == second.group and first.name != second.name and first.offline
    assert settings(small, "optimizer.lr=0.1").group != first.group
    assert settings(small, "logger.wandb.group=mine").group == "mine"
    assert settings(small, "logger.wandb.offline=false").offline is False


def test_what_the_environment_says_of_a_run_holds(small, monkeypatch):
    """As for wandb itself; an agent that leads a sweep names each run so."""
    said = {"PROJECT": "mine", "NAME": "first", "RUN_GROUP": "seeds", "RUN_ID": "abc", "TAGS": "x,y"}
    for name, value in said.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    monkeypatch.setenv("WANDB_MODE", "disabled")
    node = settings(small, "tags=[z]")
    assert (node.project, node.name, node.group, node.id) == ("mine", "first", "seeds", "abc")
    assert list(node.tags[2:]) == ["z", "x", "y"]
    assert not node.offline and "mode" not in node  # wandb reads that it is disabled
    assert settings(small, "logger.wandb.project=other").project == "other"


def test_other_loggers_are_left_alone():
    node = OmegaConf.create({"_target_": "lightning.pytorch.loggers.CSVLogger", "save_dir": "."})
    assert complete_wandb(node, OmegaConf.create({}), "") == node


@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_what_cannot_begin_offline_either_is_refused_with_the_first_reason(small, monkeypatch):
    def gives_up(**settings):
        raise wandb.errors.UsageError(f"of {settings.get('mode')}")

    monkeypatch.setattr(wandb, "init", gives_up)
    monkeypatch.setattr("gsa.runner._wandb._refused_by", lambda server, key: None)
    given_up = []
    monkeypatch.setattr("gsa.runner._wandb._given_up", given_up)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_API_KEY", 40 * "a")
    with pytest.raises(ConfigError, match=r"logger\.wandb cannot begin: of None; "):
        train(small("logger=wandb", "trainer.max_epochs=1"))
    assert not given_up  # it is a mistake of this configuration, not of the server


def test_a_key_goes_to_nobody_else(monkeypatch):
    """As where a network sends one to its own page."""
    told = []

    class Elsewhere(Answer):
        def do_GET(self):
            told.append(self.headers.get("Authorization"))
            super().do_POST()

        do_POST = do_GET

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as elsewhere:

        class Sends(Answer):
            def do_POST(self):
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{elsewhere.server_port}/")
                self.end_headers()

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sends) as server:
            for one in (server, elsewhere):
                threading.Thread(target=one.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}"
            assert (
                _refused_by(address, "secret")
                == f"{address} sends one elsewhere (302), as networks do where one has to log in"
            )
            assert not told
            assert _refused_by(f"http://127.0.0.1:{elsewhere.server_port}", "secret") is None and told
            server.shutdown()
        elsewhere.shutdown()
