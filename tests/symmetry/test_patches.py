"""Shuffled patches: a vision transformer notices by its positional embedding alone."""

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

import gsa
from gsa.symmetry import statements as S

PATCH, TRAINED_ON, EPOCHS = 2, 1400, 10


def digits():
    pictures, labels = load_digits(return_X_y=True)
    return torch.tensor(pictures / 16, dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(labels)


def trained(with_positions):
    """A vision transformer of 4×4 patches, trained for a few seconds."""
    network = gsa.create_model("rotmnist_vit", image_size=8, patch_size=PATCH, layers=1)
    nn.init.normal_(network.transformer.heads.head.weight, std=0.1)
    if not with_positions:
        nn.init.zeros_(network.transformer.encoder.pos_embedding).requires_grad_(False)
    optimizer, (pictures, labels) = torch.optim.AdamW(network.parameters(), 3e-3), digits()
    for _ in range(EPOCHS):
        for batch in torch.randperm(TRAINED_ON).split(128):
            optimizer.zero_grad()
            F.cross_entropy(network(pictures[batch]), labels[batch]).backward()
            optimizer.step()
    return network.double()


@pytest.mark.parametrize("with_positions", [True, False])
def test_accuracy_of_a_trained_transformer_on_shuffled_patches(with_positions):
    pictures, labels = (part[TRAINED_ON:] for part in digits())
    network, order = trained(with_positions), torch.randperm(16)
    found = S.patch_shuffling(network, pictures.double(), PATCH, order, labels)
    if with_positions:
        assert found["logits"] > 0.5 and found["shuffled accuracy"] < 0.4 < 0.7 < found["accuracy"]
    else:
        assert found["logits"] < 1e-13 and found["shuffled accuracy"] == found["accuracy"] > 0.3
        others = S.patch_shuffling(network, pictures.double(), 4, torch.tensor([1, 0, 3, 2]))
        assert others["logits"] < 1e-13  # squares of whole patches
        cut = S.patch_shuffling(network, pictures.double(), 1, torch.randperm(64))
        assert cut["accuracy"] == 1 and cut["logits"] > 1e-2  # planted: patches that are not the network's


class Permuted(nn.Module):
    """A transformer's encoder on tokens, with their positions, in another order, and its answer put back, or not."""

    def __init__(self, encoder, order, back):
        super().__init__()
        self.encoder, self.order, self.back = encoder, order, back

    def forward(self, tokens):
        tokens = (tokens + self.encoder.pos_embedding)[:, self.order]
        return self.encoder.ln(self.encoder.layers(self.encoder.dropout(tokens)))[:, self.back]


def trained_on(order, back, epochs=2):
    """Weights and test accuracy after training on digits, in float64."""
    torch.manual_seed(0)
    network = gsa.create_model("rotmnist_vit", image_size=8, patch_size=PATCH, layers=1).double()
    nn.init.normal_(network.transformer.heads.head.weight, std=0.1)
    network.transformer.encoder = Permuted(network.transformer.encoder, order, back)
    optimizer, (pictures, labels) = torch.optim.AdamW(network.parameters(), 3e-3), digits()
    pictures = pictures.double()
    for _ in range(epochs):
        for batch in torch.randperm(TRAINED_ON).split(128):
            optimizer.zero_grad()
            F.cross_entropy(network(pictures[batch]), labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        right = network(pictures[TRAINED_ON:]).argmax(1) == labels[TRAINED_ON:]
    return nn.utils.parameters_to_vector(network.parameters()).detach(), right.double().mean().item()


def test_a_transformer_that_is_trained_on_permuted_tokens_is_the_same():
    """The class token among them; planted: not put back before the head."""
    order, still = torch.randperm(17), torch.arange(17)
    (plain, accuracy), (permuted, same) = trained_on(still, still), trained_on(order, order.argsort())
    assert gsa.symmetry.relative_error(permuted, plain) < 1e-9 and same == accuracy > 0.15
    planted, _ = trained_on(order, still)
    assert gsa.symmetry.relative_error(planted, plain) > 1e-2


def test_shuffled_patches():
    picture = torch.arange(24.0).view(1, 1, 4, 6)
    shuffled = S.shuffled_patches(picture, 2, torch.tensor([5, 0, 1, 2, 3, 4]))
    assert torch.equal(shuffled[0, 0, :2, :2], picture[0, 0, 2:, 4:])
    assert torch.equal(shuffled[0, 0, :2, 2:], picture[0, 0, :2, :4])
    assert torch.equal(shuffled[0, 0, 2:, :2], picture[0, 0, :2, 4:])
    with pytest.raises(ValueError, match="4×6 pixels"):
        S.shuffled_patches(picture, 4, torch.arange(1))
    with pytest.raises(ValueError, match="an order of 6 places"):
        S.shuffled_patches(picture, 2, torch.arange(5))
