"""Parameters of which every process holds a share start as those of one process do."""

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import gsa

KINDS = {"quadratic": "offset", "rotary": "frequencies"}


@pytest.fixture
def mesh(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore:DTensor random operators may not have complete support")
@pytest.mark.filterwarnings("ignore:FSDP2-wrapped module .* returned a view tensor")
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_from_meta_starts_where_others_do(mesh, kind):
    def made():
        return gsa.nn.GroupSelfAttention("R4", 4, 6, 3, 8, 3, encoding=kind)

    with torch.device("meta"):
        layer = made()
    fully_shard(layer, mesh=mesh)
    layer.to_empty(device="cpu")
    for module in layer.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    placed = getattr(layer.encoding, KINDS[kind])
    assert isinstance(placed, DTensor)
    torch.testing.assert_close(placed.full_tensor(), getattr(made().encoding, KINDS[kind]))
    assert layer(torch.rand(1, 4, 4, 5, 5)).isfinite().all()
