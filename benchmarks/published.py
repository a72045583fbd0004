"""Test accuracies that the papers give, in percent: experiment → figure, None where there is none.

Romero & Cordonnier 2021, whose tables quote the convolutional rows from Romero et al. 2020. Their public code picks the
best epoch on the test set (RotMNIST, CIFAR-10) or on the validation part (PatchCamelyon); `accuracy.py` picks on
validation.
"""

__all__ = ["LONG", "PUBLISHED", "QUICK"]

PUBLISHED: dict[str, dict[str, float | None]] = {
    "rotmnist": {
        "rotmnist/z2_sa": 96.37,
        "rotmnist/r4_sa": 97.46,
        "rotmnist/r8_sa": 97.90,
        "rotmnist/r12_sa": 97.97,
        "rotmnist/r16_sa": 97.66,
        "rotmnist/z2_cnn": 94.97,
        "rotmnist/r4_cnn": 98.21,
        "rotmnist/alpha_r4_cnn": 98.31,
        "rotmnist/vit": None,
        "rotmnist/gsa": None,
        "rotmnist/positional": None,
    },
    "cifar10": {
        "cifar10/z2_sa": 82.3,
        "cifar10/z2m_sa": 83.72,
        "cifar10/z2_cnn": 90.56,
        "cifar10/vit": None,
        "cifar10/gsa": None,
    },
    "pcam": {
        "pcam/z2_sa": 83.04,
        "pcam/r4_sa": 83.44,
        "pcam/r8_sa": 83.58,
        "pcam/r4m_sa": 84.76,
        "pcam/z2_cnn": 84.07,
        "pcam/r4_cnn": 87.55,
        "pcam/r4m_cnn": 88.36,
        "pcam/alpha_f_r4_cnn": 88.66,
        "pcam/alpha_f_r4m_cnn": 89.12,
        "pcam/vit": None,
        "pcam/gsa": None,
    },
    "learning": {},  # ours against the convolutional rivals: LONG, or QUICK
    "ablation": {},  # with --quick: what rotmnist/gsa owes to what
    "neighbourhood": {
        "rotmnist/r4_sa_3x3": 96.56,
        "rotmnist/r4_sa_5x5": 97.49,
        "rotmnist/r4_sa_7x7": 97.33,
        "rotmnist/r4_sa_9x9": 97.42,
        "rotmnist/r4_sa_11x11": 97.17,
        "rotmnist/r4_sa_15x15": 96.89,
        "rotmnist/r4_sa_19x19": 96.86,
        "rotmnist/r4_sa_23x23": 97.05,
        "rotmnist/r4_sa_global": 96.81,
    },
}

# The attention networks as the public code builds them, beside ours: the same published figures.
PUBLISHED |= {
    table: {
        row: figure
        for name, value in rows.items()
        for row, figure in (
            ((name, value), (f"{name} model.published=true", value)) if name.endswith("_sa") else ((name, value),)
        )
    }
    for table, rows in PUBLISHED.items()
}

# Ours, and the convolutional rival in every way that serves it: without dropout, smaller, with our optimizer.
_RIVALS = (
    "rotmnist/r4_cnn",
    "rotmnist/r4_cnn model.dropout=0",
    "rotmnist/r4_cnn model.dropout=0 optimizer=muon",
    "rotmnist/r4_cnn model.dropout=0 model.channels=14 optimizer=muon",
)
_OURS = ("rotmnist/gsa optimizer=muon", "rotmnist/positional optimizer=muon")

# Rows at length, all with  -- recipe=rotmnist_gsa.
LONG: dict[str, tuple[str, ...]] = {
    "learning": (
        "rotmnist/gsa",
        "rotmnist/positional",
        "rotmnist/r4_cnn",
        "rotmnist/r4_cnn model.dropout=0.1",
        "rotmnist/r4_cnn model.dropout=0",
        "rotmnist/alpha_r4_cnn",
    ),
}

# Rows of --quick; a row is an experiment, and what differs from it.
QUICK: dict[str, tuple[str, ...]] = {
    "rotmnist": (
        "rotmnist/z2_sa",
        "rotmnist/r4_sa",
        "rotmnist/r4_sa model.form=summed",
        "rotmnist/r4_sa model.published=true",
        "rotmnist/z2_cnn",
        *_RIVALS,
        "rotmnist/alpha_r4_cnn",
        *_OURS,
    ),
    "learning": (*_RIVALS, *_OURS),
    "ablation": (
        "rotmnist/gsa optimizer=muon",
        "rotmnist/gsa optimizer=adamw",
        "rotmnist/gsa optimizer=muon model.head_starts=centre",
        "rotmnist/positional optimizer=muon",
        "rotmnist/gsa optimizer=muon model.content_heads=[0,4,4]",
        "rotmnist/gsa optimizer=muon model.norm=sample",
        "rotmnist/gsa optimizer=adamw model.norm=sample",
        "rotmnist/gsa optimizer=muon model.block=residual",
        "rotmnist/gsa optimizer=muon model.group=R4 model.channels=24",
        "rotmnist/gsa optimizer=muon model.group=R12 model.channels=12",
    ),
}
