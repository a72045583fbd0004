"""What the classifier gives its optimizer, and what it minimises."""

from functools import partial
from types import SimpleNamespace

import lightning
import pytest
import torch
import torch.nn.functional as F
from lightning.pytorch.plugins import MixedPrecision
from torch import nn

import gsa
from gsa.training import Classifier, TrainingLoss, constant, muon
from gsa.training._classifier import _TOGETHER
from gsa.training.adapter import fuses


def classifier(optimizer=torch.optim.AdamW, network=None, num_classes=3, **options):
    made = Classifier(network or nn.Linear(4, num_classes), num_classes, optimizer, constant, **options)
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


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_optimizers_are_fused_on_a_gpu_alone_and_unless_told_otherwise(monkeypatch, kind):
    def fused(make, **options):
        return [group.get("fused") for group in classifier(make, **options).new_optimizer().param_groups]

    assert fused(partial(kind, lr=0.1)) == fused(kind) == [None]
    monkeypatch.setattr("gsa.training._fused._ON", ("cuda", "cpu"))  # as if it were one
    assert fused(partial(kind, lr=0.1)) == fused(kind) == [True]
    assert fused(partial(kind, lr=0.1), network=gsa.create_model("digits_gsa")) == [True, True]
    assert fused(partial(kind, fused=False)) == [False]
    assert fused(partial(kind, foreach=True)) == fused(partial(kind, differentiable=True)) == [None]
    assert fused(lambda parameters: kind(parameters, lr=0.1)) == [None]  # which may be anything
    assert fused(torch.optim.NAdam) == [None] and fused(partial(muon, lr=0.1)) == [None] * 2
    assert fused(kind, network=nn.Linear(2, 2, dtype=torch.complex64)) == [None]


def test_no_optimizer_is_fused_where_mixed_precision_forbids_it():
    def told(**options):
        return fuses(lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, **options))

    assert told() and told(gradient_clip_val=1.0) and told(precision="bf16-mixed")
    assert not told(precision="bf16-mixed", gradient_clip_val=1.0)
    scaled = MixedPrecision("16-mixed", "cuda", torch.amp.GradScaler(enabled=False))
    assert not told(plugins=[scaled])


def test_metrics_hear_of_every_training_step_once():
    made, torch_random = classifier(), torch.Generator().manual_seed(0)
    losses, right, counts = [], 0, []
    for step in range(2 * _TOGETHER + 7):
        x, labels = torch.randn(2 + step % 3, 4, generator=torch_random), torch.arange(2 + step % 3) % 3
        losses.append(made._step("train", (x, labels)).item())
        counts.append(len(labels))
        right += (made(x).argmax(-1) == labels).sum().item()
        if step == _TOGETHER + 3:  # validation in the midst of an epoch keeps to itself
            made._step("val", (x, labels))
    assert made.accuracy["train_"].count == sum(counts[: 2 * _TOGETHER])
    made._count("train")
    made._count("train")  # what was told is not told again
    assert made.accuracy["train_"].compute().item() == pytest.approx(right / sum(counts), abs=1e-6)
    mean = sum(loss * count for loss, count in zip(losses, counts, strict=True)) / sum(counts)
    assert made.mean_loss["train_"].compute().item() == pytest.approx(mean, abs=1e-6)
    assert made.accuracy["val_"].count == counts[_TOGETHER + 3]


def test_a_loss_that_is_not_a_number_stays_one_and_float64_is_kept():
    made = classifier(network=nn.Identity(), num_classes=2)
    logits = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    loss = made._step("val", (logits, torch.tensor([0])))
    assert made.mean_loss["val_"].compute() == loss and loss.dtype == torch.float64
    made._step("val", (logits * float("nan"), torch.tensor([0])))
    assert made.mean_loss["val_"].compute().isnan()


def test_two_classes_are_judged_by_their_order():
    made = classifier(network=nn.Identity(), num_classes=2)
    logits = torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])  # all but the first are called 1
    made._step("test", (logits, torch.tensor([0, 0, 1, 1])))
    assert made.accuracy["test_"].compute() == 0.75 and made.auroc["test_"].compute() == 1
    made._step("test", (logits, torch.tensor([1, 1, 0, 0])))  # planted: the order is that of no class
    assert made.auroc["test_"].compute() == 0.5
    assert not classifier().auroc


def test_two_classes_are_told_apart_where_probabilities_round_to_one():
    made = classifier(network=nn.Identity(), num_classes=2)
    logits = torch.stack([torch.zeros(40), torch.linspace(20, 60, 40)], dim=1)
    assert (logits.softmax(-1)[:, 1] == 1).all()  # planted: all of these are ties
    made._step("val", (logits, torch.arange(40) // 20))
    assert made.auroc["val_"].compute() == 1


def test_one_class_alone_has_no_order():
    made = classifier(network=nn.Identity(), num_classes=2)
    made._step("val", (torch.randn(4, 2), torch.ones(4, dtype=torch.long)))
    assert made.auroc["val_"].compute().isnan()


def test_a_mixed_picture_is_one_of_its_larger_share(monkeypatch):
    """Planted: the first picture is mostly the second, and called so."""
    made = classifier(network=nn.Identity(), loss=TrainingLoss(3, mixup=1.0))
    shares = torch.tensor([[0.2, 0.8, 0.0], [0.0, 0.9, 0.1]])
    monkeypatch.setattr(TrainingLoss, "mix", lambda self, images, labels: (images, shares))
    made._step("train", (shares, torch.tensor([0, 1])))
    made._count("train")
    assert made.accuracy["train_"].compute() == 1


def test_an_optimizer_in_place_of_what_makes_one_is_refused_at_once():
    network = nn.Linear(2, 3)
    with pytest.raises(ValueError, match=r"optimizer must be a function that makes one, .* but got AdamW"):
        Classifier(network, 3, torch.optim.AdamW(network.parameters()))
    with pytest.raises(ValueError, match="scheduler must be a function that makes one, .* but got NoneType"):
        Classifier(network, 3, torch.optim.AdamW, None)
    with pytest.raises(ValueError, match="loss must be a TrainingLoss, or of a subclass, but got CrossEntropyLoss"):
        Classifier(network, 3, torch.optim.AdamW, loss=nn.CrossEntropyLoss())


def test_the_rate_stays_as_it_is_where_no_schedule_is_given():
    assert Classifier(nn.Linear(2, 3), 3, torch.optim.AdamW).make_scheduler is constant


@pytest.mark.parametrize("part", ["val", "test"])
def test_losses_of_an_evaluation_have_no_weights(part):
    made, x, labels = classifier(loss=TrainingLoss(3, weights=[1, 2, 5])), torch.randn(8, 4), torch.arange(8) % 3
    torch.testing.assert_close(made._step(part, (x, labels)), F.cross_entropy(made(x), labels))


def test_metrics_of_half_an_epoch_go_on_where_they_were_or_together_in_the_first_process():
    """Of as many processes bit for bit: sums in another order would be rounded in another way."""

    def loaded(value, rank, world):
        made = classifier()
        made._trainer = SimpleNamespace(global_rank=rank, world_size=world, callbacks=[])
        made.on_load_checkpoint({"train_metrics": {"loss": {"count": value, "gone": value}}})
        return made.mean_loss["train_"].count

    two, earlier = torch.tensor([5.0, 7.0]), torch.tensor(12.0)
    assert [loaded(two, rank, 2) for rank in (0, 1)] == [5, 7]
    assert [loaded(two, rank, 3) for rank in (0, 1, 2)] == [12, 0, 0]
    assert [loaded(earlier, rank, 2) for rank in (0, 1)] == [12, 0]
    assert loaded(two, 0, 1) == loaded(earlier, 0, 1) == 12
    made = classifier()
    for gathered in (torch.tensor([3.0, 4.0]), torch.tensor(3.0)):  # of two processes, of one
        made._trainer = SimpleNamespace(strategy=SimpleNamespace(all_gather=lambda value, all=gathered: all))
        assert torch.equal(made._of_all(torch.tensor(3.0)), gathered.view(-1))


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_what_is_no_class_of_a_picture_is_refused(part):
    """Cosines and sines would be taken for the shares of two mixed classes."""
    made, pictures, angles = classifier(network=nn.Identity(), num_classes=2), torch.randn(3, 2), torch.rand(3)
    for wrong in (
        torch.stack((angles.cos(), -angles.sin()), 1), angles, torch.zeros(3, 4, 4), torch.zeros(3, 4, 4).long(),
        torch.zeros(3, 3), torch.zeros(3).int(),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"learns labels int64 \[B\], but got {part} ones that are .* Lightning"):
            made._step(part, (pictures, wrong))
    with pytest.raises(ValueError, match="num_classes must be 2 or more, but got 1: for what is no class"):
        classifier(network=nn.Identity(), num_classes=1)


def test_pictures_may_have_been_mixed_by_their_loader():
    made, shares = classifier(network=nn.Identity(), num_classes=2), torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    logits = torch.randn(2, 2)
    expected = -(shares * logits.log_softmax(-1)).sum() / 2
    torch.testing.assert_close(made._step("train", (logits, shares)), expected)
    with pytest.raises(ValueError, match=r"val ones that are torch.float32 \[2, 2\]"):
        made._step("val", (logits, shares))
