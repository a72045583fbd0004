"""Where a network loses a symmetry: the error of every layer's output, in the order in which they are reached."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from gsa._compiled import as_written, original
from gsa.groups import Group
from gsa.symmetry._action import Action
from gsa.symmetry._evaluating import evaluating, refuse_no_tensor, saying_dtype
from gsa.symmetry._group_action import action
from gsa.symmetry._listening import answers, beside, heard, tensor_of
from gsa.symmetry._silence import another, refuse_stillness
from gsa.symmetry._whole import cannot_move, errors_of_whole, largest, refuse_silent_answers

__all__ = [
    "OfLayer",
    "asked_of_layers",
    "errors_given_to",
    "errors_of_layers",
    "layer_errors",
    "outputs_of",
    "unjudged",
    "within",
]

OfLayer = Callable[[nn.Module], Action]  # what is asked of what a layer returns


def layer_errors(module: nn.Module, x: Tensor, group: Action | Group | str) -> dict[str, dict[int, float]]:
    """How far the output of every submodule, as a function of the network's input, is from commuting with a symmetry.

        error(g) = ‖F(L_g x) − L_g F(x)‖ / ‖F(x)‖,   F: input → output of the submodule

    The network is run in eval mode, without gradients. What L_g does is decided by the shape of an output, as
    `GroupAction`, `Shifts`, `TokenPermutations` and `FeaturePermutations` say, each for itself. Outputs of other
    shapes, and those that are no tensors, are left out; of a tuple, the first tensor counts, and so it does of a list
    or a dictionary that a submodule returns. Of one that the whole returns, as backbones do, the worst tensor counts:
    the module is judged as by `equivariance_error`.

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
        ValueError: no module, or one of torch.jit, which has none inside; an output of the module itself of another
            shape, of one that says nothing of some element, or one that does not depend on the input; an input that no
            exact element moves, or of another dtype.
    """
    symmetry = action(group)
    return errors_of_layers(module, x, symmetry, symmetry.of_layer)


def errors_of_layers(module: nn.Module, x: Tensor, symmetry: Action, of_layer: OfLayer) -> dict[str, dict[int, float]]:
    """`layer_errors`, where another thing may be asked of layers than the symmetry does."""
    refuse_no_tensor(x)
    module = layered(module)
    whole = name_of_whole(module)
    with torch.no_grad(), evaluating(module):
        asked = asked_of_layers(module, of_layer)
        outputs, results = outputs_of(module, x, symmetry, asked)
        found: dict[str, dict[int, float]] = {name: {} for name in outputs}
        of_results: list[list[float]] = []
        no_maps: set[str] = set()
        for element in range(len(symmetry.elements)):

            def compare(name: str, output: Tensor, element: int = element) -> None:
                if name in outputs:
                    if not _fits(asked(name), output, outputs[name], element, x.shape):
                        no_maps.add(name)
                    elif (error := asked(name).error(output, outputs[name], element, x.shape)) is not None:
                        found[name][element] = error

            with heard(module, compare):
                moved = answers(module(symmetry.act(x.clone(), element)))
            of_results.append(errors_of_whole(whole, symmetry, moved, results, element, x.shape))
            found[whole][element] = largest(of_results[-1])
        refuse_silent_answers(lambda other: answers(module(other)), x, results, of_results, whole)
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
    names, inside = list(names), symmetry.of_layer(nn.Identity())
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


def unjudged(module: nn.Module, x: Tensor, judged: Iterable[str]) -> tuple[dict[str, list[int]], list[list[int]]]:
    """What was not judged: submodules, and the shapes of tensors that the whole returns behind the first of a tuple.

    Of submodules those whose outputs depend on the input, by name, and the shapes of these; but for what they are part
    of, or a part of.
    """
    outputs: dict[str, Tensor] = {}
    names = set(judged)

    def keep(name: str, output: Tensor) -> None:
        if name not in names:
            outputs[name] = output.clone()

    with torch.no_grad(), evaluating(module):
        with heard(module, keep):
            others = [list(other.shape) for other in beside(module(x.clone()))]
        _leave_out_tables(module, another(x), outputs)
    known = names | outputs.keys()
    left = {name: list(output.shape) for name, output in outputs.items() if not known & set(within(name)[:-1])}
    return left, others


def within(name: str) -> list[str]:
    """The submodules that one is part of, from the outermost one to itself: "a.b.c" → "a", "a.b", "a.b.c"."""
    path, *_ = name.split(" ")
    parts = path.split(".")
    return [".".join(parts[: depth + 1]) for depth in range(len(parts) - 1)] + [name]


def _fits(symmetry: Action, after: Tensor, before: Tensor, element: int, shape: torch.Size) -> bool:
    """Whether what a layer answers for the moved input has the shape of what it should answer, if it is a map."""
    expected = symmetry.moved(before, element, shape)
    return expected is None or expected.shape == after.shape


def asked_of_layers(module: nn.Module, of_layer: OfLayer) -> Callable[[str], Action]:
    """What is asked of a submodule, by the name of a call; of any other name, what is asked of what says nothing."""
    asked = {path: of_layer(layer) for path, layer in module.named_modules()}
    inside = of_layer(nn.Identity())
    return lambda name: asked.get(name.split(" ")[0], inside)


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


def outputs_of(
    module: nn.Module, x: Tensor, symmetry: Action, asked: Callable[[str], Action]
) -> tuple[dict[str, Tensor], list[Tensor]]:
    """Outputs that depend on the input and that a symmetry moves, by name, the whole module's last; all of that's."""
    outputs: dict[str, Tensor] = {}
    elements = range(len(symmetry.elements))

    def keep(name: str, output: Tensor) -> None:
        if any(asked(name).moved(output, element, x.shape) is not None for element in elements):
            outputs[name] = output.clone()  # the next layer may work in place

    whole = name_of_whole(module)
    symmetry.act(x, 0)  # says what it cannot act on
    with heard(module, keep), saying_dtype(module, x):
        returned = module(x.clone())
        results, first = answers(returned), tensor_of(returned)
    if not results:
        said = "no tensor (a module around it can return the one to be judged)"
        raise cannot_move(symmetry, whole, said, x)
    for result in results:
        if not all(symmetry.judges(result, element, x.shape) for element in elements):
            raise cannot_move(symmetry, whole, f"the shape {list(result.shape)}", x)
    refuse_stillness(x, (symmetry.act(x, g) for g in symmetry.moving), symmetry.name)
    refuse_silent_answers(lambda other: answers(module(other)), x, results, [], whole)
    _leave_out_tables(module, another(x), outputs)
    return outputs | {whole: results[0] if first is None else first.clone()}, results


def layered(module: nn.Module) -> nn.Module:
    """The module as it was written, whose submodules can be heard.

    Raises:
        ValueError: no module, or one of torch.jit.
    """
    if not isinstance(module, nn.Module) or isinstance(module, torch.jit.ScriptModule):
        raise ValueError(
            f"layers are those of an nn.Module, as it was written, but got {type(module).__name__}: equivariance_error "
            "judges what any function returns"
        )
    return original(module)


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
