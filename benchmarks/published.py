"""Test accuracies that the papers give, in percent: experiment → figure, None where there is none.

Romero & Cordonnier 2021, whose tables quote the convolutional rows from Romero et al. 2020. Their public code picks the
best epoch on the test set (RotMNIST, CIFAR-10) or on the validation part (PatchCamelyon); `accuracy.py` picks on
validation.
"""

from collections.abc import Iterable

__all__ = ["AS_PUBLISHED", "LONG", "PUBLISHED", "PUBLISHED_TIMES", "QUICK"]

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
        "rotmnist/orbit_cnn": None,
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
    "early": {},  # figure 2, with --quick: how fast networks of more and more poses begin to learn
    "learning": {},  # ours against the convolutional rivals: LONG, or QUICK
    "search": {},  # of the flagship and its rival at length: with  test=false
    "ablation": {},  # with --quick: what rotmnist/gsa owes to what
    "choices": {},  # with --quick: encodings, forms, windows and borders of the paper's layers, on the digits
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

# Ours, and the convolutional rival in every way that serves it: without dropout, smaller, with our optimizer.
_RIVALS = (
    "rotmnist/r4_cnn",
    "rotmnist/r4_cnn model.dropout=0",
    "rotmnist/r4_cnn model.dropout=0 optimizer=muon",
    "rotmnist/r4_cnn model.dropout=0 model.channels=14 optimizer=muon",
)
_OURS = ("rotmnist/gsa optimizer=muon", "rotmnist/positional optimizer=muon")

# Table 1 of the paper: time of an epoch of R4_SA, and on how many GPUs of 2020.
PUBLISHED_TIMES: dict[str, tuple[str, int]] = {
    "rotmnist/r4_sa_3x3": ("4:53", 1),
    "rotmnist/r4_sa_5x5": ("5:34", 1),
    "rotmnist/r4_sa_7x7": ("9:03", 1),
    "rotmnist/r4_sa_9x9": ("9:16", 1),
    "rotmnist/r4_sa_11x11": ("12:09", 1),
    "rotmnist/r4_sa_15x15": ("10:27", 2),
    "rotmnist/r4_sa_19x19": ("14:27", 2),
    "rotmnist/r4_sa_23x23": ("6:13", 3),
    "rotmnist/r4_sa_global": ("12:12", 4),
}

AS_PUBLISHED = " model.published=true"

# rotmnist/gsa as it was before: windows of 3×3, the pool behind the first norm, content in two blocks.
_BEFORE = (
    "model.stem_pool=0 model.blocks=[0,3,2] model.pools=[2,0,0] model.content_heads=[0,0,4] "
    "model.neighbourhoods=null model.border=hidden"
)


def _with_public_code(rows: Iterable[str]) -> tuple[str, ...]:
    """Behind every attention network of the paper the same as the public code builds it."""
    doubled = ((row, row + AS_PUBLISHED) if "_sa" in row else (row,) for row in rows)
    return tuple(row for pair in doubled for row in pair)


# Rows at length; those of "learning" and "search" with  -- recipe=rotmnist_gsa.
LONG: dict[str, tuple[str, ...]] = {table: _with_public_code(rows) for table, rows in PUBLISHED.items() if rows} | {
    "learning": (
        "rotmnist/gsa",
        f"rotmnist/gsa {_BEFORE}",
        "rotmnist/positional",
        "rotmnist/r4_cnn",
        "rotmnist/r4_cnn model.dropout=0.1",
        "rotmnist/r4_cnn model.dropout=0",
        "rotmnist/alpha_r4_cnn",
        "rotmnist/alpha_r4_cnn model.dropout=0.1",
        "rotmnist/orbit_cnn",
    ),
    "search": (
        "rotmnist/gsa",
        f"rotmnist/gsa {_BEFORE}",
        "rotmnist/gsa model.neighbourhoods=[3,3,3,3,3]",
        "rotmnist/gsa model.neighbourhoods=[3,5,5,5,5]",
        "rotmnist/gsa model.channels=20",
        "rotmnist/gsa model.group=R12 model.channels=14",
        "rotmnist/r4_cnn",
        "rotmnist/r4_cnn model.dropout=0.1",
        "rotmnist/r4_cnn model.dropout=0",
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
    "cifar10": ("cifar10/z2_sa", "cifar10/z2m_sa", "cifar10/z2_cnn", "cifar10/gsa"),
    "neighbourhood": tuple(f"rotmnist/r4_sa_{size}" for size in ("3x3", "5x5", "7x7", "11x11", "global")),
    "early": tuple(f"rotmnist/{group}_sa" for group in ("z2", "r4", "r8", "r12", "r16")),
    "learning": (
        *_RIVALS,
        "rotmnist/alpha_r4_cnn model.dropout=0 optimizer=muon",
        "rotmnist/orbit_cnn model.dropout=0 optimizer=muon",
        *_OURS,
    ),
    "ablation": (
        "rotmnist/gsa optimizer=muon",
        "rotmnist/gsa optimizer=adamw",
        "rotmnist/gsa optimizer=muon model.head_starts=centre",
        "rotmnist/positional optimizer=muon",
        "rotmnist/gsa optimizer=muon model.content_heads=[4,4]",
        "rotmnist/gsa optimizer=muon model.neighbourhoods=[3,3,3,3,3]",
        "rotmnist/gsa optimizer=muon model.norm=sample",
        "rotmnist/gsa optimizer=adamw model.norm=sample",
        "rotmnist/gsa optimizer=muon model.block=residual",
        "rotmnist/gsa optimizer=muon model.group=R4 model.channels=24",
        "rotmnist/gsa optimizer=muon model.group=R12 model.channels=12",
    ),
    "choices": (
        "digits/r4_sa",
        "digits/r4_sa model.encoding=table",
        "digits/r4_sa model.encoding=fourier",
        "digits/r4_sa model.encoding=rotary",
        "digits/r4_sa model.encoding=quadratic",
        "digits/r4_sa model.encoding=quadratic model.positional_heads=4",
        "digits/r4_sa model.encoding=quadratic model.num_heads=9",
        "digits/r4_sa model.encoding=constant",
        "digits/r4_sa model.encoding=absolute",
        "digits/r4_sa model.form=summed",
        "digits/r4_sa model.window=disk",
        "digits/r4_sa model.border=zeros",
        "digits/r4_sa model.neighbourhood=3",
        "digits/r4_sa model.neighbourhood=7",
        "digits/r4_sa model.neighbourhood=null",
    ),
}
