"""What heads with content add is told by leaving it out."""

import content
import torch

import gsa


def test_heads_without_content_attend_by_position_alone():
    network = gsa.create_model("digits_gsa").eval()
    x = torch.rand(3, 1, 12, 12)
    for layer in network.modules():
        if isinstance(layer, gsa.nn.SelfAttention):
            torch.nn.init.normal_(layer.out.weight)
    before = network(x)
    assert content.without_content(network) == 4
    after = network(x)
    assert (after - before).abs().max() > 1e-4
    maps = [layer for layer in network.modules() if isinstance(layer, gsa.nn.SelfAttention) and layer.content_heads]
    for layer in maps:
        one, other = (layer.attention(torch.randn(2, layer.in_channels, 4, 3, 3)) for _ in range(2))
        torch.testing.assert_close(one, other)
