"""Values for parameters of which every process may hold a share."""

from torch import Tensor

__all__ = ["fill"]


def fill(parameter: Tensor, values: Tensor) -> None:
    """Copy values into a parameter; into this process's share of it, where FSDP has shared it out."""
    if (mesh := getattr(parameter, "device_mesh", None)) is not None:
        from torch.distributed.tensor import distribute_tensor

        values = distribute_tensor(values, mesh, parameter.placements)  # type: ignore[attr-defined]  # of a DTensor
    parameter.copy_(values)
