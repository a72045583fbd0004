"""What must be true of the parts of every data set before anything is trained on them."""

from collections.abc import Collection, Hashable, Mapping
from itertools import combinations
from typing import Any

from torch.utils.data import Subset, TensorDataset

__all__ = ["check_parts", "rows_of"]


def check_parts(
    name: str, parts: Mapping[str, Any], sizes: Mapping[str, int] | None = None, for_test_only: bool = False
) -> None:
    """Three parts, none empty, of the sizes they should have, and no picture in two of them.

    That is seen of parts that are rows of one data set (`Subset`) or of one tensor (`TensorDataset`), not of copies.

    Args:
        name: of the data set.
        parts: data sets by name.
        sizes: how many pictures each should hold, where that is known.
        for_test_only: whether those for training and validation may be empty.

    Raises:
        ValueError: parts that are something else.
    """
    if set(parts) != {"train", "val", "test"}:
        raise ValueError(f"{name} must have the parts train, val and test, but has {sorted(parts)}")
    found = {part: len(parts[part]) for part in ("train", "val", "test")}
    if not all(found.values()) and not (for_test_only and found["test"]):
        raise ValueError(f"{name} must have pictures in every part, but has {found}")
    if sizes is not None and found != dict(sizes):
        raise ValueError(f"{name} must have {dict(sizes)} pictures, but has {found}")
    for one, other in combinations(found, 2):
        (place, rows), (other_place, other_rows) = _rows(parts[one]), _rows(parts[other])
        if place == other_place and (shared := set(rows).intersection(other_rows)):
            raise ValueError(f"{name} has {len(shared)} pictures that are in {one} and in {other}")


def rows_of(dataset: Any) -> tuple[Any, list[int]]:
    """The data set that a `Subset`, perhaps of another one, is of, and which rows of it are meant."""
    rows: Collection[int] = range(len(dataset))
    while isinstance(dataset, Subset):
        rows, dataset = [dataset.indices[row] for row in rows], dataset.dataset
    return dataset, [range(len(dataset))[row] for row in rows]  # from the end, where they are negative


def _rows(dataset: Any) -> tuple[Hashable, list[int]]:
    """What holds the pictures, and which rows of it are meant."""
    dataset, rows = rows_of(dataset)
    if not isinstance(dataset, TensorDataset):
        return id(dataset), rows
    pictures = dataset.tensors[0]
    first = int(pictures.storage_offset()) // max(int(pictures.stride(0)), 1)
    return pictures.untyped_storage().data_ptr(), [first + row for row in rows]
