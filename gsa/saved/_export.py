"""A trained network written for others: weights and configuration, and perhaps a program."""

import os
import warnings
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import torch

from gsa._extras import not_installed
from gsa.models import write_export
from gsa.ops import without_our_op
from gsa.saved._network import Saved

__all__ = ["export"]


def export(
    saved: Saved, folder: str | os.PathLike[str], program: bool = False, plain: bool = False, onnx: bool = False
) -> list[Path]:
    """Write a network as model.safetensors and config.json, which `load` reads and nothing in them can run.

    Args:
        saved: from `read`.
        folder: made if it is not there; programs that stand in it, perhaps of another network, are removed.
        program: also model.pt2, the whole network as a `torch.export` program for any batch: normalised pictures
            [B, C, image_size, image_size] → logits. It runs where gsa is installed, on the backends of `gsa.ops`.
        plain: also plain.pt2, the same in PyTorch's own operators: it runs without gsa, slower, with scores in memory.
        onnx: also model.onnx, the same for ONNX runtimes; needs `pip install "gsa-nets[onnx]"`.

    Returns:
        The files.

    Raises:
        ModuleNotFoundError: onnx without its packages; nothing is written.
    """
    if onnx and not all(map(find_spec, ("onnx", "onnxscript"))):
        raise not_installed("onnx or onnxscript", "onnx")
    folder = Path(folder)
    pictures = saved.pictures
    files = write_export(folder, {"model": saved.model, "pictures": pictures.plain()}, saved.network.state_dict())
    for name in ("model.pt2", "plain.pt2", "model.onnx"):  # of another network
        (folder / name).unlink(missing_ok=True)
    example = (torch.rand(2, pictures.in_channels, pictures.image_size, pictures.image_size),)
    any_batch = ({0: torch.export.Dim("batch")},)
    if not (program or plain or onnx):
        return files
    exported = _without_files(torch.export.export(saved.network, example, dynamic_shapes=any_batch))
    if program:
        files.append(folder / "model.pt2")
        torch.export.save(exported, files[-1])
    if plain:
        files.append(folder / "plain.pt2")
        torch.export.save(_without_files(without_our_op(exported)), files[-1])
    if onnx:
        files.append(folder / "model.onnx")
        _write_onnx(_without_files(without_our_op(exported)), files[-1])
    return files


def _without_files(exported: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The same without the files and lines that its nodes come from, which tell of the folders of whoever writes it."""
    for module in exported.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                node.meta.pop("stack_trace", None)
    return exported


def _write_onnx(exported: torch.export.ExportedProgram, file: Path) -> None:
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")  # of the exporter, about itself
        names = {"input_names": ["images"], "output_names": ["logits"]}
        found = torch.onnx.export(exported, dynamo=True, verbose=False, **names)
    assert found is not None  # because it was given no file
    found.save(file)
