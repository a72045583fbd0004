"""gsa export"""

from argparse import Namespace

from gsa.saved import export, read

__all__ = ["run"]


def run(options: Namespace) -> int:
    """Weights as safetensors and the configuration beside them."""
    for file in export(read(options.checkpoint), options.to, options.program, options.plain, options.onnx):
        print(file)
    return 0
