"""The report in words."""

from collections.abc import Sequence

import numpy

from gsa.files import printable

__all__ = ["summary"]

_FEW = 1000  # test pictures, whose accuracy is told with how far it may be off by chance
_SHOWN = 3  # classes
_BROKEN = 1e-4  # of logits in float32, more than rounding
_UNEQUAL = 2  # so many times as frequent as another, a class makes accuracy say little


def summary(report: dict) -> str:
    """The report in a few lines."""
    split, used = report["split"], report["used"]
    lines = [
        f"{report['model']}: group {report['group']}, {report['parameters']:,} parameters, seed {report['seed']}",
        f"data         {report['data']['name']} ({report['data']['source']}), "
        f"{split['train']} / {split['val']} / {split['test']} for training / validation / test"
        f"{_left_out(report['data'])}",
    ]
    if report["epochs"]:
        best = report.get("best_epoch")  # which older reports lack
        is_balanced = report.get("chosen_by") == "val_balanced_accuracy"
        balanced = f", by balanced accuracy ({100 * report['val_balanced_accuracy']:.2f} %)" if is_balanced else ""
        chosen = "" if best is None else f", weights of epoch {best + 1} of {report['epochs']}{balanced}"
        lines.append(
            f"training     {report['epochs']} epoch{'s' if report['epochs'] != 1 else ''}, "
            f"{report['train_seconds']:.0f} s ({report['seconds_per_epoch']:.1f} s an epoch), "
            f"{report['peak_memory_mb']:.0f} MB at most{chosen}"
        )
    for part, name in (("val", "validation"), ("test", "test")):
        if report[f"{part}_accuracy"] is not None:
            share = f" (of {used[part]} pictures only)" if used[part] < split[part] else ""
            chance = _chance(report["test_interval"], used["test"], report["test_groups"]) if part == "test" else ""
            lines.append(f"{name:12s} {100 * report[f'{part}_accuracy']:.2f} %{chance}{share}")
    lines += _of_test(report)
    errors = report["equivariance_error"]
    exact = ", ".join(f"{name} {e['error']:.1e}" for name, e in errors.items() if e["exact"])
    which = "exact elements" if report["group"] not in (None, "Z2") else "without being in the group"
    lines.append(f"symmetry     relative change of the logits, {which}: {exact}")
    if which == "exact elements" and not all(e["error"] <= _BROKEN for e in errors.values() if e["exact"]):
        lines.append(f"             broken: the network is said to keep {report['group']}; gsa check finds the layer")
    if sampled := [e["error"] for e in errors.values() if not e["exact"]]:
        worst = numpy.max(sampled)  # NaN where one is
        lines.append(f"             sampled between the pixels: {worst:.1e} at worst of {len(sampled)} elements")
    return "\n".join(lines)


def _left_out(data: dict) -> str:
    return f", {data['left_out']} files that cannot be read left out" if data.get("left_out") else ""


def _chance(interval: Sequence[float] | None, pictures: int, groups: int | None) -> str:
    """How far the share may be off by chance, where there are few pictures, or few groups of them."""
    if interval is None or (groups or pictures) >= _FEW:
        return ""
    return f", {_told(interval)}{f', of {groups} groups' if groups else ''}"


def _told(interval: Sequence[float]) -> str:
    low, high = interval
    return f"95 % interval {100 * low:.1f} to {100 * high:.1f} %"


def _of_test(report: dict) -> list[str]:
    """What accuracy hides: the area, of two classes; where they are unequal, their mean; those that are missed most."""
    if not report["confusion"]:
        return []
    lines = []
    if area := report["test_auroc_interval"]:
        low, high = area
        lines.append(f"area under the ROC curve {report['test_auroc']:.4f}, 95 % interval {low:.3f} to {high:.3f}")
    classes, counts = report["confusion"]["classes"], report["confusion"]["counts"]
    found = [(row[label] / sum(row), classes[label], sum(row)) for label, row in enumerate(counts) if sum(row)]
    sizes = [size for _, _, size in found]
    if found and max(sizes) >= _UNEQUAL * min(sizes):
        _, name, most = max(found, key=lambda one: one[2])
        balanced = f"balanced {100 * report['test_balanced_accuracy']:.1f} %, {_told(report['test_balanced_interval'])}"
        always = f"{100 * most / sum(sizes):.1f} % right, {100 / len(found):.1f} % balanced"
        lines.append(f"{balanced}, the mean of the classes (always {printable(name)}: {always})")
    worst = [one for one in sorted(found, key=lambda one: (one[0], -one[2])) if one[0] < 1][:_SHOWN]
    if worst and len(found) > 1:
        told = [f"{printable(name)} {100 * share:.1f} % (of {count})" for share, name, count in worst]
        lines.append(f"worst of {len(found)} classes: {', '.join(told)}")
    return [f"{'':12s} {line}" for line in lines]
