"""Whether the backends of a device compute the op: output and gradients against the reference in float64 on the CPU."""

from collections.abc import Iterator
from itertools import zip_longest

import torch
from torch import Tensor

import gsa

__all__ = ["checks"]

# Forms with (query poses, key poses, output poses).
FORMS = {
    "lifting": ("summed", 1, 1, 4),
    "regular": ("regular", 4, 4, 4),
    "summed": ("summed", 4, 4, 4),
    "regular, other keys": ("regular", 3, 2, 3),
    "R16": ("summed", 16, 16, 16),
}
# Maps (H, W) with rectangles of offsets (U, V).
MAPS = {"28×28, 5×5": (28, 28, 5, 5), "13×11, 5×3": (13, 11, 5, 3), "global": (5, 6, 9, 11)}
# Largest error allowed, relative to the largest number of the tensor.
BUDGETS = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}
NAMES = ("output", "query", "key", "value", "spatial", "pose")


def checks(device: str, quick: bool) -> Iterator[dict]:
    """One row a case: what it is, its largest error, of which tensor, its budget, and whether it is kept."""
    for form, map_, dropout, dtype in _cases(quick):
        five, window, cotangent = _tensors(form, map_, dtype)
        expected = _all_of(form, five, window, cotangent, dropout, "reference", torch.float64, "cpu")
        for backend in gsa.ops.backends(device):
            if backend == "reference":
                continue
            row = {"form": form, "map": map_, "dropout": dropout, "dtype": str(dtype)[6:], "backend": backend}
            row |= {"budget": BUDGETS[dtype]}
            try:
                actual = _all_of(form, five, window, cotangent, dropout, backend, dtype, device)
            except Exception as error:  # one that cannot be run costs no other
                text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                yield row | {"error": None, "of": text, "right": False}
            else:
                error, name = _largest(actual, expected)
                yield row | {"error": error, "of": name, "right": error < row["budget"]}


def _cases(quick: bool) -> Iterator[tuple[str, str, float, torch.dtype]]:
    """Every form in turn, so that a stop leaves out none."""
    of_form = [list(_cases_of(form, quick)) for form in FORMS if not (quick and form == "R16")]
    for together in zip_longest(*of_form):
        yield from filter(None, together)


def _cases_of(form: str, quick: bool) -> Iterator[tuple[str, str, float, torch.dtype]]:
    small = quick or form == "R16"  # the reference stores all scores
    for map_ in list(MAPS)[1:] if small else MAPS:
        for dropout in (0.3,) if quick else (0.3, 0.0):
            for dtype in (torch.float32, torch.bfloat16) if quick else BUDGETS:
                yield form, map_, dropout, dtype


def _largest(actual: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> tuple[float, str]:
    """The largest error, max |a − b| / max |b|, and where it is; not a number is infinitely wrong.

    Gradients that are zero by symmetry are measured by the largest of the gradients.
    """
    largest = max(b.abs().max().item() for b in expected[1:])
    errors = []
    for a, b in zip(actual, expected, strict=True):
        size = b.abs().max().item()
        error = (a.double().cpu() - b).abs().max().item() / (size if size > 1e-9 * largest else largest)
        errors.append(error if error == error else float("inf"))
    return max(zip(errors, NAMES, strict=True))


def _tensors(form: str, map_: str, dtype: torch.dtype) -> tuple[list[Tensor], Tensor, Tensor]:
    """Query, key, value, spatial and pose, rounded to the dtype; a window with holes; the output's gradient."""
    _, queries, keys, outputs = FORMS[form]
    height, width, rows, columns = MAPS[map_]
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    pixels = (height, width, 10)
    five = [draw(2, 2, count, *pixels) for count in (queries, keys, keys)]
    five += [draw(outputs, rows, columns, 10), draw(queries, keys, 10)]
    window = torch.ones(columns, rows, dtype=torch.bool).T  # not in the order of memory
    window[0, 0] = window[0, columns // 2] = window[-1, -1] = False
    return five, window, draw(2, 2, outputs, *pixels)


def _all_of(form, five, window, cotangent, dropout, backend, dtype, device) -> tuple[Tensor, ...]:
    """Output and five gradients."""
    there = [x.to(device, dtype).requires_grad_() for x in five]
    seed = torch.tensor(7, device=device)
    options = {"form": FORMS[form][0], "dropout": dropout, "seed": seed, "backend": backend}
    output = gsa.ops.attend(*there, window.to(device), **options)
    gradients = torch.autograd.grad(output, there, cotangent.to(output))
    return output.detach(), *gradients
