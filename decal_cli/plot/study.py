"""Pictures of a study: gain against estimate, what correlates, gain against processor time."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from decal_cli.flowchart import BEYOND as BEYOND_GAIN
from decal_cli.flowchart import GAINS
from decal_cli.metrics import named
from decal_cli.plot.style import COLOURS, GREY, MARKERS, RC
from decal_cli.study.columns import BASE, BEYOND
from decal_cli.study.points import OF_SCORES
from decal_cli.study.summary import Summary

RECALIBRATION, TOGETHER = GAINS["recalibrate"], GAINS["post-train"]


def draw_study(summary: Summary, picture: str) -> bytes | None:
    """A picture as PNG; None where matplotlib is not installed or the study lacks its methods."""
    if importlib.util.find_spec("matplotlib") is None:
        return None
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(10.0, 4.6), layout="constrained")
        if not _DRAWERS[picture](figure, summary):
            return None
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=130, metadata={"Software": None})
    return out.getvalue()


def _pairs(figure: Any, summary: Summary, pairs: Sequence[tuple[str, str]]) -> bool:
    there = [pair for pair in pairs if pair in summary.relations]
    for k, (estimate, target) in enumerate(there):
        _scatter(figure.add_subplot(1, len(there), k + 1), summary, estimate, target)
    return bool(there)


def _scatter(axes: Any, summary: Summary, estimate: str, target: str) -> None:
    """Gain against estimate, a mark for each file; the diagonal is where the estimate is right."""
    points, relation = summary.points, summary.relations[estimate, target]
    x, y = points.estimates[estimate], points.targets[target]
    low, high = float(np.nanmin([x.min(), np.nanmin(y)])), float(np.nanmax([x.max(), np.nanmax(y)]))
    axes.plot([low, high], [low, high], color=GREY, linewidth=1)
    for k in range(len(points.files)):
        here = points.file == k
        look = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}
        axes.plot(x[here], y[here], linestyle="", markersize=2.6, alpha=0.55, markeredgewidth=0, **look)
    axes.set_xlabel(f"{named(estimate).title}, estimated on one half")
    axes.set_ylabel(f"gain of {target.replace(BEYOND, f' beyond {BASE}')}, on the other half")
    axes.set_title(f"r² {relation.r2:.2f}, slope {relation.slope:.2f}")


def _recalibration(figure: Any, summary: Summary) -> bool:
    return _pairs(figure, summary, [("regret_calibration", BASE), (RECALIBRATION, BASE)])


def _post_training(figure: Any, summary: Summary) -> bool:
    return _pairs(figure, summary, [("regret", "refit"), (TOGETHER, "refit"), (TOGETHER, "stack-boosting")])


def _beyond(figure: Any, summary: Summary) -> bool:
    refit, boosting = "refit" + BEYOND, "stack-boosting" + BEYOND
    return _pairs(figure, summary, [("regret_grouping", refit), (BEYOND_GAIN, refit), (BEYOND_GAIN, boosting)])


def _correlations(figure: Any, summary: Summary) -> bool:
    targets = [t for t in (BASE, "refit", "refit" + BEYOND, "stack-boosting" + BEYOND) if t in summary.points.targets]
    ours = ("regret_calibration", RECALIBRATION, "regret_grouping", BEYOND_GAIN, "regret", TOGETHER)
    names = [n for n in (*ours, *(choice.key for choice in OF_SCORES)) if (n, targets[0]) in summary.relations]
    if not targets or not names:
        return False
    for k, target in enumerate(targets):
        axes = figure.add_subplot(1, len(targets), k + 1)
        found = [summary.relations[name, target] for name in names]
        values = [relation.r2 for relation in found]
        ends = np.array([(r.r2 - r.interval[0], r.interval[1] - r.r2) for r in found]).T
        colours = [COLOURS[0] if name in ours else COLOURS[7] for name in names]
        look = {"ecolor": "0.3", "elinewidth": 0.9, "capsize": 2}
        axes.barh(range(len(names)), values, color=colours, xerr=ends, error_kw=look)
        axes.set_yticks(range(len(names)), [named(name).title for name in names] if k == 0 else [""] * len(names))
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("r²")
        axes.set_title(target.replace(BEYOND, f"\nbeyond {BASE}"))
    return True


def _time(figure: Any, summary: Summary) -> bool:
    """Mean gain beyond isotonic against the processor time of a fit, over that of isotonic."""
    points = summary.points
    if BASE not in points.gains or BASE not in summary.seconds:
        return False
    axes = figure.add_subplot(1, 1, 1)
    base = max(summary.seconds[BASE], 1e-6)
    for k, (name, seconds) in enumerate(sorted(summary.seconds.items())):
        more = 1000 * (points.gains[name] - points.gains[BASE])
        low, high = np.nanpercentile(more, [25, 75])
        mean = float(np.nanmean(more))
        at = max(seconds, 1e-6) / base
        look = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}
        axes.plot([at, at], [low, high], color=look["color"], linewidth=1, alpha=0.5)
        axes.plot([at], [mean], linestyle="", markersize=6, **look)
        axes.annotate(name, (at, mean), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("processor time of a fit, over that of isotonic regression")
    axes.set_ylabel("gain beyond isotonic per 1,000 decisions")
    axes.set_title("What methods win and take: mean (mark) and middle half of the points (line)")
    return True


_DRAWERS: dict[str, Callable[[Any, Summary], bool]] = {
    "recalibration": _recalibration,
    "post-training": _post_training,
    "beyond": _beyond,
    "correlations": _correlations,
    "time": _time,
}
STUDY_PICTURES = {
    "recalibration": "Gain of isotonic recalibration against what was estimated beforehand ([R] fig. 4a)",
    "post-training": "Gain of post-training against what was estimated beforehand ([R] fig. 6a)",
    "beyond": "Gain beyond recalibration against the grouping regret ([R] fig. 5a) and against decal's estimate",
    "correlations": "Squared correlation of estimates with gains ([R] fig. 4b, 5b, 6b); intervals over files",
    "time": "Gain beyond isotonic recalibration against processor time ([R] fig. 7)",
}
"""Each picture and what it shows."""
