"""Shapes that an attention backend must get right, and tensors for them."""

import itertools

import torch

# Forms with (query poses, key poses, output poses).
POSES = {
    "lifting": ("summed", 1, 1, 4),
    "regular": ("regular", 4, 4, 4),
    "summed": ("summed", 4, 4, 4),
    "summed, all counts different": ("summed", 3, 2, 5),
    "regular, other keys": ("regular", 3, 2, 3),
    "one pose": ("regular", 1, 1, 1),
}
# Maps (H, W) with rectangles of offsets (U, V).
MAPS = {
    "square": (6, 6, 3, 3),
    "prime sides": (13, 11, 5, 5),
    "H≠W": (4, 9, 5, 3),
    "window larger than the map": (2, 3, 5, 5),
    "as wide as the window": (2, 2, 3, 3),
    "global": (4, 5, 7, 9),
    "global along one axis": (3, 7, 5, 5),
    "one pixel": (1, 1, 3, 3),
    "one row inside": (3, 4, 3, 3),
    "more pixels than a warp": (5, 7, 3, 3),
}
CASES = list(itertools.product(POSES, MAPS))


def tensors(poses: str, map_: str, dtype=torch.float64, batch=2, heads=2, head_dim=4):
    """Query, key, value, spatial, pose (all requiring gradients), a window with holes, and the form."""
    form, queries, keys, outputs = POSES[poses]
    height, width, rows, columns = MAPS[map_]

    def draw(*shape):
        return torch.randn(*shape, dtype=dtype, requires_grad=True)

    pixels = (height, width, head_dim)
    five = (
        draw(batch, heads, queries, *pixels),
        draw(batch, heads, keys, *pixels),
        draw(batch, heads, keys, *pixels),
        draw(outputs, rows, columns, head_dim),
        draw(queries, keys, head_dim),
    )
    window = torch.ones(columns, rows, dtype=torch.bool).T  # not in the order of memory
    window[0, 0] = window[0, columns // 2] = window[-1, -1] = False
    return five, window, form
