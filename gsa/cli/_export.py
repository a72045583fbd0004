"""gsa export"""

from argparse import Namespace

from gsa.saved import export, read

__all__ = ["run"]


def run(options: Namespace) -> int:
    """Weights as safetensors and the configuration beside them."""
    what = options.checkpoint or options.network
    if not what or (options.checkpoint and options.network):
        raise ValueError("say what to export once: the folder of a run, or a checkpoint; gsa export --help")
    for file in export(read(what), options.to, options.program, options.plain, options.onnx):
        print(file)
    return 0
