"""Where a network loses a symmetry on the way back: the error of every gradient, in the order in which they arrive."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from gsa.groups import Group
from gsa.symmetry._action import Action
from gsa.symmetry._evaluating import evaluating
from gsa.symmetry._group_action import action
from gsa.symmetry._layers import asked_of_layers, layered, outputs_of
from gsa.symmetry._listening import heard, tensor_of
from gsa.symmetry._norm import norm, relative_error, zero_beside

__all__ = ["THE_INPUT", "gradient_errors"]

THE_INPUT = "the input"  # its key; a name with a space, as no attribute has


def gradient_errors(
    module: nn.Module, x: Tensor, group: Action | Group | str, apart: bool = False
) -> dict[str, dict[int, float]]:
    """How far gradients are from moving with the input, and how far those of weights are from staying the same.

        l = ⟨v, F(x)⟩,   l_g = ⟨L_g v, F(L_g x)⟩,   v random
        error(g) = ‖∂l_g/∂A_g − L_g ∂l/∂A‖ / ‖∂l/∂A‖,   A: the input, or the output of a submodule
        error(g) = ‖∂l_g/∂W − ∂l/∂W‖ / ‖∂l/∂W‖,         W: a parameter

    A network that commutes with L_g has none of these errors, where L_g is orthogonal, as all exact elements are. Once
    a layer is broken, what comes after it computes with other numbers, and so all gradients are off. Taken apart, every
    submodule is given what the ones before it would have returned unbroken, L_g F(x), and only breaks in derivatives
    remain: the first of them is where the backward pass loses the symmetry. So are judged exact elements of which every
    output says something; a shift by less than the stride of some map is not, and outputs of shapes that say nothing
    stay as broken as they are; layers of a network that answers vectors are taken to answer scalars there. Gradients
    that are zero but for rounding, such as that of a bias of keys, are compared with ε^¼ times the largest of their
    kind. Where the two largest entries of a pool are equal but for rounding, the gradient may take either; in float64
    this is rare.

    Args:
        module, x, group: as in `layer_errors`; the network is in eval mode, F the first tensor that it returns.
        apart: judge every submodule apart.

    Returns:
        {name of a submodule or of a parameter: {element index: relative error}} in the order in which gradients
        arrive, from the output back; that of the input stands last, as "the input".

    Raises:
        ValueError: as of `layer_errors`; an output that has no gradient.
    """
    module, symmetry = layered(module), action(group)
    asked = asked_of_layers(module, symmetry.of_layer)
    with torch.inference_mode(False), evaluating(module):
        with torch.no_grad():
            outputs, _ = outputs_of(module, x, symmetry, asked)
        *_, result = outputs.values()
        generator = torch.Generator().manual_seed(0)
        v = torch.randn(result.shape, generator=generator, dtype=result.dtype, device="cpu").to(result.device)
        before = _gradients(module, x, v, dict.fromkeys(outputs))
        weights = {name for name, _ in module.named_parameters()} & before.keys()
        of_weights, of_others = (
            zero_beside(before[name] for name in names) for names in (weights, before.keys() - weights)
        )
        found: dict[str, dict[int, float]] = {name: {} for name in before}
        for element in symmetry.exact if apart else range(len(symmetry.elements)):
            right: dict[str, Tensor | None] = dict.fromkeys(outputs)
            if apart:
                right = {name: asked(name).moved(output, element, x.shape) for name, output in outputs.items()}
            direction = symmetry.moved(v, element, x.shape)
            if direction is None or (apart and any(output is None for output in right.values())):
                continue
            after = _gradients(module, symmetry.act(x, element), direction, right)
            for name, gradient in before.items():
                if name in weights:
                    scale = norm(gradient).clamp_min(of_weights)
                    found[name][element] = relative_error(after[name], gradient, scale)
                else:
                    error = asked(name).error(after[name], gradient, element, x.shape, of_others)
                    if error is not None:
                        found[name][element] = error
    return {name: errors for name, errors in found.items() if errors or name == THE_INPUT}


def _gradients(module: nn.Module, x: Tensor, v: Tensor, right: Mapping[str, Tensor | None]) -> dict[str, Tensor]:
    """Gradients of ⟨v, F(x)⟩ by name as they arrive: parameters, outputs that `right` names, the input last.

    Args:
        right: what stands in for the output of a submodule; where it is None, the output stays.
    """
    found: dict[str, Tensor] = {}

    def keep(name: str, tensor: Tensor) -> Callable[[], None]:
        def hear(gradient: Tensor) -> None:
            found[name] = gradient.detach().clone()

        return tensor.register_hook(hear).remove

    def watch(name: str, output: Tensor) -> Tensor | None:
        if name not in right or not output.requires_grad:
            return None
        if (value := right[name]) is not None:
            output = output + (value - output).detach()
        keep(name, output)
        return output

    x = x.detach().clone().requires_grad_()
    weights = {
        name: weight
        for name, weight in module.named_parameters()
        if weight.requires_grad and not isinstance(weight, UninitializedParameter)
    }
    with torch.enable_grad(), ExitStack() as stack:
        for name, weight in weights.items():
            stack.callback(keep(name, weight))
        with heard(module, watch):
            result = tensor_of(module(x * 1))  # the first layer may work in place
        if not result.requires_grad:
            raise ValueError(f"gradients of {type(module).__name__} are asked for, but its output has none")
        gradients = torch.autograd.grad((v * result).sum(), [x, *weights.values()], allow_unused=True)
    found[THE_INPUT] = torch.zeros_like(x) if gradients[0] is None else gradients[0]
    return found
