"""The command `gsa`: networks by name, and what can be done with a trained one.

gsa list
gsa predict PICTURES … [--checkpoint RUN] [--csv FILE]
gsa check NETWORK [--group GROUP | --shift DOWN,RIGHT] [--backward] [--input C,H,W]
gsa check MODULE:NAME --permute {tokens,tokens-first,features} --input L,D [--backward]
gsa statements [WORD …] [--seed N] [--list] [--json]
gsa explore [--checkpoint RUN] [--port PORT] [--open] [--model NETWORK] [--input C,H,W] [--group GROUP]
gsa explore --save PAGE [--model NETWORK] [--input C,H,W] [--group GROUP]
gsa export --checkpoint RUN --to FOLDER
gsa dashboard ENTITY/PROJECT
"""

import argparse
import errno
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import gsa
from gsa._extras import not_installed
from gsa._handled import end_as_commands_do, handled
from gsa._memory import is_out_of_memory
from gsa._nearest import nearest
from gsa._streams import note, open_streams, stop_telling
from gsa.files import one_line, printable_lines

__all__ = ["main", "train"]

_STOPPED = 128 + signal.SIGINT  # exit code


def __getattr__(name: str) -> Any:
    """Names that configurations of version 0.1.0 look for here."""
    if name in ("RefuseBadConfig", "register"):
        from gsa import runner

        return getattr(runner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(arguments: list[str] | None = None) -> int:
    """The command. 0 when all is well; 1 when a symmetry is broken or a picture cannot be read; 2 when it is asked
    what it cannot do; 130 when it is stopped by Ctrl-C, 143 by SIGTERM."""
    open_streams()
    end_as_commands_do()
    try:
        try:
            options = _parser().parse_args(arguments)
            _refuse_deleted_folder()
            with handled((signal.SIGINT,), _end_at_once):
                command = import_module(f"gsa.cli._{options.command}")  # PyTorch: not for --help
            with handled((signal.SIGTERM,), _stop):
                return int(command.run(options))
        finally:
            sys.stdout.flush()  # here, where it can be told that it fails
    except BrokenPipeError:  # nobody reads on: gsa list | head
        stop_telling()
        return 0
    except KeyboardInterrupt as stopped:
        note("stopped")
        return next(iter(stopped.args), _STOPPED)
    except ImportError as error:  # a package that is not there, or a library that cannot be loaded
        note(f"gsa: {not_installed(error.name) if str(error).startswith('No module') else error}")
        return 2
    except (ValueError, OSError) as error:
        note(f"gsa: {printable_lines(error)}")
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            stop_telling()  # what is left of it would be tried again at the end
        return 2
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        note(f"gsa: there is too little memory for this network and its pictures: {one_line(error)}")
        return 2


def train() -> None:
    """The command gsa-train, `gsa.runner.main`, which needs more packages than this one, and seconds to be loaded."""
    end_as_commands_do()
    try:
        from gsa import runner
    except ModuleNotFoundError as error:
        print(f"gsa-train: {error}", file=sys.stderr)
        sys.exit(2)
    runner.main()


def _refuse_deleted_folder() -> None:
    """Before libraries are loaded, which would blame themselves."""
    try:
        os.getcwd()
    except OSError as error:
        raise ValueError(f"the current folder must be there, but: {error.strerror}") from None


def _end_at_once(*_: object) -> None:
    """While modules are imported, Ctrl-C raises nothing: some pass over it, and are left half imported."""
    os.write(sys.stderr.fileno(), b"stopped\n")
    os._exit(_STOPPED)


def _stop(number: int, _: object) -> None:
    """At its work, a command ends by SIGTERM as by Ctrl-C: what it has is written."""
    raise KeyboardInterrupt(128 + number)


def _path(text: str) -> Path:
    """Of an option such as --to=~/folder, too, of which the shell leaves ~ as it is."""
    if not text:
        raise argparse.ArgumentTypeError("a path must not be empty, as that of a variable that is not set")
    return Path(os.path.expanduser(text))


class _Parser(argparse.ArgumentParser):
    """Names the nearest option of the command where there is none of a name."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = super().parse_known_args(args, namespace)
        for option in (word.partition("=")[0] for word in unknown if word.startswith("-")):
            self.error(f"there is no option {option}{nearest(option, self._option_string_actions)}")
        return found, unknown


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("gsa", description="Group-equivariant self-attention; to train: gsa-train --help")
    parser.add_argument("--version", action="version", version=f"gsa {gsa.__version__}")
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")

    def command(name: str, purpose: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=purpose, description=purpose)

    command("list", "Every network, its group and its number of parameters.")
    predict = command("predict", "The likeliest classes of pictures, one line each; scaled and framed as in training.")
    check = command(
        "check",
        "The equivariance error of a network and its layers, or their gradients, under turns, shifts or permutations.",
    )
    statements = command(
        "statements", "What the literature says about symmetry, each statement measured on a small network."
    )
    explore = command("explore", "An interactive page about symmetry; opens in any browser.")
    export = command("export", "Write the weights as safetensors, with the configuration beside them.")
    dashboard = command("dashboard", "Make a workspace for gsa runs on wandb; needs an account there.")

    trained = "folder of a run, checkpoint, export, or name of a network that comes with trained weights"
    _add_predict(predict, trained)
    _add_check(check)
    _add_statements(statements)
    _add_explore(explore)
    export.add_argument("--to", type=_path, required=True, metavar="FOLDER")
    export.add_argument("--program", action="store_true", help="model.pt2 too: a torch.export program")
    export.add_argument("--plain", action="store_true", help="plain.pt2 too: one that runs without gsa")
    export.add_argument("--onnx", action="store_true", help="model.onnx too")
    dashboard.add_argument("project", metavar="ENTITY/PROJECT")

    export.add_argument("network", nargs="?", type=_path, metavar="RUN", help=trained)
    export.add_argument("--checkpoint", type=_path, help="another way to say RUN")
    return parser


def _add_check(check: argparse.ArgumentParser) -> None:
    check.add_argument(
        "network", nargs="?", metavar="NETWORK",
        help="a name of gsa list, a run, checkpoint, export, or anything importable: torchvision.models:resnet18",
    )  # fmt: skip
    check.add_argument(
        "--group",
        help="the group it must respect, such as R8M (default: that of a network of ours; others are only measured)",
    )
    for end, what in (("--takes", "of pictures"), ("--returns", "of what is returned")):
        check.add_argument(
            end, metavar="FIELD",
            help=f"what the channels {what} are, such as vector, axis, or scalar,vector (default: scalar)",
        )  # fmt: skip
    check.add_argument(
        "--shift", action="append", metavar="DOWN,RIGHT",
        help="a cyclic shift in pixels that it must respect instead, such as 16,0; may be repeated (padding breaks it "
        "at the border: see --margin)",
    )  # fmt: skip
    check.add_argument(
        "--permute", choices=("tokens", "tokens-first", "features"),
        help="permutations that it must respect instead: of tokens [N, L, D], of tokens [L, N, D], or of features",
    )  # fmt: skip
    check.add_argument("--margin", type=int, default=0, help="pixels at the border that --shift ignores")
    check.add_argument("--backward", action="store_true", help="check gradients, of weights too, not outputs")
    check.add_argument(
        "--input",
        metavar="C,H,W",
        help="size of random pictures (default: its own), C,POSES,H,W of features, or L,D of tokens",
    )
    check.add_argument(
        "--depth", type=int, default=1, help="depth of the layers shown: 1 for the network's own (default), 0 for none"
    )
    check.add_argument("--picture", type=_path, metavar="FILE", help="draw layers as bars, too: a .png, .svg or .pdf")
    check.add_argument("--json", action="store_true", help="print all errors as JSON, for programs")
    check.add_argument("--tolerance", type=float, default=1e-5, help="largest error of exact elements (default 1e-5)")
    check.add_argument("--checkpoint", type=_path, help="a run; of your own network, beside NETWORK, what builds it")


def _add_predict(predict: argparse.ArgumentParser, trained: str) -> None:
    predict.add_argument("pictures", nargs="+", type=_path, metavar="PICTURES", help="files, or folders of them")
    predict.add_argument("--top", type=int, default=3, help="classes shown (default 3)")
    predict.add_argument("--csv", type=_path, metavar="FILE", help="write the probabilities of all classes as a table")
    predict.add_argument("--poses", action="store_true", help="also predict each picture turned and mirrored")
    predict.add_argument("--invert", action="store_true", help="predict the negatives, for dark digits on light paper")
    predict.add_argument("--batch", type=int, default=32, help="pictures at a time (default 32)")
    predict.add_argument("--device", default="cpu", help="where the network runs: cpu (default), cuda, cuda:1, mps")
    predict.add_argument("--checkpoint", type=_path, help=f"{trained} (default rotmnist_gsa, which knows digits)")
    predict.add_argument("--network", metavar="MODULE:ATTRIBUTE", help="what builds it, for a run of your own network")


def _add_statements(statements: argparse.ArgumentParser) -> None:
    statements.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="names of statements, or words from their names, sentences or sources (default: all)",
    )
    statements.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the random weights and data (default 0)"
    )
    statements.add_argument(
        "--list", action="store_true", help="print only names, sentences and sources; nothing is measured"
    )
    statements.add_argument("--json", action="store_true", help="print everything as JSON, for programs")


def _add_explore(explore: argparse.ArgumentParser) -> None:
    explore.add_argument(
        "--checkpoint", type=_path, action="append", default=[],
        help="a network offered first on the served page: what gsa predict takes; may be repeated",
    )  # fmt: skip
    explore.add_argument(
        "--save", type=_path, metavar="PAGE", help="write the page as one HTML file that needs no server, and end"
    )
    explore.add_argument("--port", type=int, default=0, help="where the page is served (default: a free port)")
    explore.add_argument("--host", default="127.0.0.1", help="address of this machine to serve it at")
    explore.add_argument(
        "--open",
        action="store_true",
        help="also open it in the browser; other users can then see its address on the browser's command line",
    )
    explore.add_argument("--no-browser", action="store_true", help=argparse.SUPPRESS)  # as it is without --open
    explore.add_argument(
        "--model", action="append", default=[], metavar="NETWORK",
        help="show this network layer by layer, too: what gsa check takes; may be repeated",
    )  # fmt: skip
    explore.add_argument("--input", metavar="C,H,W", help="size of the random pictures for --model, as in gsa check")
    explore.add_argument("--group", help="group under which --model is measured (default: its own, or R4)")
