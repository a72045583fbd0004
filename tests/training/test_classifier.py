"""What the classifier gives its optimizer, and what it minimises."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

import gsa
from gsa.training import Classifier, TrainingLoss, constant, muon


def classifier(optimizer=torch.optim.AdamW, network=None, **options):
    made = Classifier(network or nn.Linear(4, 3), 3, optimizer, constant, **options)
    made.log = lambda *arguments, **keywords: None  # without a trainer
    return made


def test_labels_are_smoothed_in_training_only():
    made = classifier(loss=TrainingLoss(3, label_smoothing=0.2))
    x, labels = torch.randn(8, 4), torch.randint(3, (8,))
    logits = made(x)
    torch.testing.assert_close(made._step("train", (x, labels)), F.cross_entropy(logits, labels, label_smoothing=0.2))
    for part in ("val", "test"):
        torch.testing.assert_close(made._step(part, (x, labels)), F.cross_entropy(logits, labels))


def test_an_optimizer_of_a_network_is_given_the_network():
    network = gsa.create_model("digits_gsa")
    optimizer = classifier(partial(muon, lr=0.1), network).new_optimizer()
    assert [group["lr"] for group in optimizer.param_groups] == [0.2, 0.1, 0.1]


def test_an_optimizer_of_parameters_is_given_positions_apart():
    made = classifier(partial(torch.optim.AdamW, weight_decay=0.3), gsa.create_model("digits_gsa")).new_optimizer()
    assert [group["weight_decay"] for group in made.param_groups] == [0.3, 0.0]
    plain = classifier(lambda parameters: torch.optim.SGD(parameters, lr=0.1)).new_optimizer()
    assert len(plain.param_groups) == 1
