"""The report in words."""

import math

import numpy

__all__ = ["summary"]

_FEW = 1000  # test pictures, whose accuracy is told with how far it may be off by chance


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
        chosen = "" if best is None else f", weights of epoch {best + 1} of {report['epochs']}"
        lines.append(
            f"training     {report['epochs']} epoch{'s' if report['epochs'] != 1 else ''}, "
            f"{report['train_seconds']:.0f} s ({report['seconds_per_epoch']:.1f} s an epoch), "
            f"{report['peak_memory_mb']:.0f} MB at most{chosen}"
        )
    for part, name in (("val", "validation"), ("test", "test")):
        if report[f"{part}_accuracy"] is not None:
            share = f" (of {used[part]} pictures only)" if used[part] < split[part] else ""
            auroc = report.get(f"{part}_auroc")  # which reports of more classes, and older ones, lack
            area = "" if auroc is None else f", area under the ROC curve {auroc:.4f}"
            chance = _chance(report["test_accuracy"], used["test"]) if part == "test" else ""
            if chance and report["data"].get("groups"):
                chance += " were pictures of a group no more alike than others"
            lines.append(f"{name:12s} {100 * report[f'{part}_accuracy']:.2f} %{chance}{area}{share}")
    errors = report["equivariance_error"]
    exact = ", ".join(f"{name} {e['error']:.1e}" for name, e in errors.items() if e["exact"])
    which = "exact elements" if report["group"] not in (None, "Z2") else "without being in the group"
    lines.append(f"symmetry     relative change of the logits, {which}: {exact}")
    if sampled := [e["error"] for e in errors.values() if not e["exact"]]:
        worst = numpy.max(sampled)  # NaN where one is
        lines.append(f"             sampled between the pixels: {worst:.1e} at worst of {len(sampled)} elements")
    return "\n".join(lines)


def _left_out(data: dict) -> str:
    return f", {data['left_out']} files that cannot be read left out" if data.get("left_out") else ""


def _chance(share: float, count: int) -> str:
    """Where 95 % confidence places a share that was found in few trials (Wilson 1927); nothing where there were many.

    (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n),   z = 1.96
    """
    if count >= _FEW:
        return ""
    z, scale = 1.96, 100 / (1 + 1.96**2 / count)
    middle, half = share + z**2 / (2 * count), z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return f", 95 % interval {scale * (middle - half):.1f} to {scale * (middle + half):.1f} %"
