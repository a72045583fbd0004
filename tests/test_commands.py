"""What pages tell to type is not refused."""

import re
import shlex
from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

import gsa
from gsa import runner
from gsa.runner import ConfigError
from gsa.runner._entry import options_last
from gsa.runner._instances import refuse_bad_network
from gsa.runner._keys import refuse_bad_keys
from gsa.runner._nodes import with_network

ROOT = Path(gsa.__file__).parent.parent
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"})
ELSEWHERE = ("…", "--", "mine.", "shapes", "r4_two")  # of files that are not here


def commands(text: str) -> list[str]:
    """Those that begin with python train.py, in blocks and in lines."""
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", text, flags=re.S)).replace("\\\n", " ")
    for name, value in re.findall(r'^(\w+)="(.*)"$', blocks, re.M):
        blocks = blocks.replace(f"${name}", value)
    return [
        words.partition(" #")[0].strip()
        for words in [
            *re.findall(r"^python train\.py(.*)$", blocks, re.M),
            *re.findall(r"`python train\.py ([^`]*)`", text),
        ]
    ]


def refusal(command: str) -> str | None:
    """Of a run, or of the first job of a sweep that is refused; of its jobs, as many as have each value once."""
    there = re.sub(r"path/to/[\w/]+", ".", re.sub(r"path/to/[\w/]+\.csv", "README.md", command))
    words = [word for word in options_last(shlex.split(there)) if word != "-m" and not word.startswith("hydra")]
    parsed = OverridesParser.create().parse_overrides(words)
    choices = [list(o.sweep_string_iterator()) if o.is_sweep_override() else [None] for o in parsed]
    for job_number in range(max(map(len, choices), default=1)):
        chosen = [values[job_number % len(values)] for values in choices]
        job = [
            word if value is None else f"{word.partition('=')[0]}={value}"
            for word, value in zip(words, chosen, strict=True)
        ]
        try:
            with initialize_config_module("gsa.configs", version_base="1.3"):
                config = compose("train", [*with_network(job), "output_dir=../somewhere"])
            refuse_bad_keys(config)
            refuse_bad_network(config)
        except (ConfigError, HydraException) as error:
            return str(error)
    return None


@pytest.mark.filterwarnings("ignore:with pose_index='published' this network is not equivariant")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_command_of_a_page_is_refused(page):
    runner.register()
    here = [command for command in commands(page.read_text()) if not any(part in command for part in ELSEWHERE)]
    refused = {command: why for command in here if (why := refusal(command))}
    assert not refused


def test_a_command_that_is_refused_is_caught():
    runner.register()
    (command,) = commands("```bash\npython train.py -m model=digits_r4_sa \\\n    model.neighbourhood=3,4  # even\n```")
    assert "odd" in refusal(command)
    assert refusal("model=digits_r4_sa seed=0,1") is None
