"""Where a network loses a symmetry: the error of every layer's output, in the order in which they are reached."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from gsa._compiled import as_written, original
from gsa.groups import Group
from gsa.symmetry._action import Action, action, cannot_move
from gsa.symmetry._evaluating import evaluating, refuse_no_tensor, saying_dtype
from gsa.symmetry._listening import heard, tensor_of, tensors_of
from gsa.symmetry._norm import size
from gsa.symmetry._silence import another, refuse_silence, refuse_stillness

__all__ = ["asked_of_layers", "errors_given_to", "layer_errors", "outputs_of", "unjudged", "within"]


def layer_errors(module: nn.Module, x: Tensor, group: Action | Group | str) -> dict[str, dict[int, float]]:
    """How far the output of every submodule, as a function of the network's input, is from commuting with a symmetry.

        error(g) = ‖F(L_g x) − L_g F(x)‖ / ‖F(x)‖,   F: input → output of the submodule

    The network is run in eval mode, without gradients. What L_g does is decided by the shape of an output, as
    `GroupAction`, `Shifts`, `TokenPermutations` and `FeaturePermutations` say, each for itself. Outputs of other
    shapes, and those that are no tensors, are left out; of a tuple, the first tensor counts, and so it does of a list
    or a dictionary that a submodule returns. Of one that the whole returns, as backbones do, the worst tensor counts.

    Args:
        module: any network of one tensor.
        x: what the symmetry acts on: pictures [B, C, H, W], features [B, C, |H|, H, W], tokens [B, N, C].
        group: any group, or its name, or another `Action`.

    Returns:
        {name of a submodule: {element index: relative error}} in the order in which submodules finish; one that is
        called again is called "name (2)". The whole module stands last, under the name of its class ("name (whole)"
        where a submodule has that name). Elements of
        which an output's shape says nothing are left out, such as shifts by less than the stride of a map.

    Raises:
        ValueError: an output of the module itself of another shape, of one that says nothing of some element, or one
            that does not depend on the input; an input that no exact element moves, or of another dtype.
    """
    refuse_no_tensor(x)
    module, symmetry = original(module), action(group)
    whole = name_of_whole(module)
    with torch.no_grad(), evaluating(module):
        outputs, results = outputs_of(module, x, symmetry)
        asked = asked_of_layers(module, symmetry)
        found: dict[str, dict[int, float]] = {name: {} for name in outputs}
        no_maps: set[str] = set()
        for element in range(len(symmetry.elements)):

            def compare(name: str, output: Tensor, element: int = element) -> None:
                if name in outputs:
                    if not _fits(asked(name), output, outputs[name], element, x.shape):
                        no_maps.add(name)
                    elif (error := asked(name).error(output, outputs[name], element, x.shape)) is not None:
                        found[name][element] = error

            with heard(module, compare):
                moved = tensors_of(module(symmetry.act(x.clone(), element)))
            if len(moved) != len(results):
                raise ValueError(
                    f"{whole} must return as many tensors for every input, but returned {len(results)}, and "
                    f"{len(moved)} for the moved one"
                )
            errors = [symmetry.error(*pair, element, x.shape) for pair in zip(moved, results, strict=True)]
            found[whole][element] = max((error for error in errors if error is not None), key=size)
        refuse_silence(lambda other: tensor_of(module(other)), x, outputs[whole], found[whole].values(), whole)
    return {name: errors for name, errors in found.items() if (errors and name not in no_maps) or name == whole}


def errors_given_to(
    module: nn.Module, x: Tensor, symmetry: Action, names: Iterable[str]
) -> dict[str, dict[int, float]]:
    """As `layer_errors`, of what submodules are given; nothing of one that is given what the symmetry does not move.

    Args:
        module, x: as there.
        symmetry: its group.
        names: keys of `layer_errors`; the whole module is given nothing but x.
    """
    names, inside = list(names), symmetry.inside
    found: dict[str, dict[int, float]] = {name: {} for name in names}
    with torch.no_grad(), evaluating(module):
        start, no_maps = _given(module, x, names), set[str]()
        for element in range(len(symmetry.elements)):
            for name, moved in _given(module, symmetry.act(x, element), names).items():
                if name not in start or not _fits(inside, moved, start[name], element, x.shape):
                    no_maps.add(name)
                elif (error := inside.error(moved, start[name], element, x.shape)) is not None:
                    found[name][element] = error
    return {name: {} if name in no_maps else errors for name, errors in found.items()}


def unjudged(module: nn.Module, x: Tensor, judged: Iterable[str]) -> dict[str, list[int]]:
    """Submodules whose outputs depend on the input, that were not judged, nor what they are part of: name → shape."""
    outputs: dict[str, Tensor] = {}
    names = set(judged)

    def keep(name: str, output: Tensor) -> None:
        if name not in names:
            outputs[name] = output.clone()

    with torch.no_grad(), evaluating(module):
        with heard(module, keep):
            module(x.clone())
        _leave_out_tables(module, another(x), outputs)
    known = names | outputs.keys()
    return {name: list(output.shape) for name, output in outputs.items() if not known & set(within(name)[:-1])}


def within(name: str) -> list[str]:
    """The submodules that one is part of, from the outermost one to itself: "a.b.c" → "a", "a.b", "a.b.c"."""
    path, *_ = name.split(" ")
    parts = path.split(".")
    return [".".join(parts[: depth + 1]) for depth in range(len(parts) - 1)] + [name]


def _fits(symmetry: Action, after: Tensor, before: Tensor, element: int, shape: torch.Size) -> bool:
    """Whether what a layer answers for the moved input has the shape of what it should answer, if it is a map."""
    expected = symmetry.moved(before, element, shape)
    return expected is None or expected.shape == after.shape


def asked_of_layers(module: nn.Module, symmetry: Action) -> Callable[[str], Action]:
    """What a symmetry asks of a submodule, by the name of a call."""
    layers, inside = dict(module.named_modules()), symmetry.inside
    told = {path: symmetry.of_layer(layer) for path, layer in layers.items()}
    return lambda name: told.get(name.split(" ")[0]) or inside


def _given(module: nn.Module, x: Tensor, names: Iterable[str]) -> dict[str, Tensor]:
    """The first tensor that each of some submodules is given, at the call that its name says."""
    calls: dict[str, int] = {}
    found: dict[str, Tensor] = {}

    def listener(path: str) -> Callable[..., None]:
        def keep(layer: nn.Module, inputs: Any, named: Any) -> None:
            calls[path] = calls.get(path, 0) + 1
            given = tensor_of((*inputs, *named.values()))
            if given is not None:
                found[path if calls[path] == 1 else f"{path} ({calls[path]})"] = given.clone()

        return keep

    paths = {name.split(" ")[0] for name in names} & dict(module.named_modules()).keys()
    with ExitStack() as stack:
        for path in paths:
            layer = module.get_submodule(path)
            stack.callback(layer.register_forward_pre_hook(listener(path), with_kwargs=True).remove)
        stack.enter_context(as_written(module))
        module(x.clone())
    return {name: found[name] for name in names if name in found}


def outputs_of(module: nn.Module, x: Tensor, symmetry: Action) -> tuple[dict[str, Tensor], list[Tensor]]:
    """Outputs that depend on the input and that a symmetry moves, by name, the whole module's last; all of that's."""
    outputs: dict[str, Tensor] = {}
    elements, asked = range(len(symmetry.elements)), asked_of_layers(module, symmetry)

    def keep(name: str, output: Tensor) -> None:
        if any(asked(name).moved(output, element, x.shape) is not None for element in elements):
            outputs[name] = output.clone()  # the next layer may work in place

    whole = name_of_whole(module)
    symmetry.act(x, 0)  # says what it cannot act on
    with heard(module, keep), saying_dtype(module, x):
        results = [result.clone() for result in tensors_of(module(x.clone()))]
    if not results:
        said = "no tensor of floating numbers (a module around it can return the one to be judged)"
        raise cannot_move(symmetry, whole, said, x)
    for result in results:
        if not all(symmetry.judges(result, element, x.shape) for element in elements):
            raise cannot_move(symmetry, whole, f"the shape {list(result.shape)}", x)
    refuse_stillness(x, (symmetry.act(x, g) for g in symmetry.moving), symmetry.name)
    refuse_silence(lambda other: tensor_of(module(other)), x, results[0], [], whole)
    _leave_out_tables(module, another(x), outputs)
    return outputs | {whole: results[0]}, results


def name_of_whole(module: nn.Module) -> str:
    """Its class; where a submodule is called like that, with a word behind it, as no submodule is called."""
    name = type(module).__name__
    return f"{name} (whole)" if name in dict(module.named_modules()) else name


def _leave_out_tables(module: nn.Module, other: Tensor, outputs: dict[str, Tensor]) -> None:
    """Take away what does not depend on the input: tables that some layer makes for itself, such as encodings."""
    constant: set[str] = set()

    def compare(name: str, output: Tensor) -> None:
        if name in outputs and torch.equal(output, outputs[name]):
            constant.add(name)

    with heard(module, compare):
        module(other)
    for name in constant:
        del outputs[name]
