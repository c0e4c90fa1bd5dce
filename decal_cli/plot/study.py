"""Pictures of a study: gain against estimate, what correlates, gain against processor time."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from decal_cli.analysis.flowchart import BEYOND, GAINS
from decal_cli.analysis.study.columns import BASE
from decal_cli.analysis.study.points import OF_SCORES
from decal_cli.analysis.study.summary import Summary, short_title
from decal_cli.analysis.study.tasks import OF_CLASSES
from decal_cli.plot.names import drawable
from decal_cli.plot.page import on_axes
from decal_cli.plot.style import COLOURS, GREY, RC, style_of

RECALIBRATION, POST_TRAINING = GAINS["recalibrate"], GAINS["post-train"]
_WIDE, _HIGH = 10.0, 4.9
_LONG = {BASE: "isotonic regression"}
_MOST_FILES = 24
"""Files that the legend names; more would leave no room for the picture."""


def draw_study(summary: Summary, picture: str) -> bytes | None:
    """A picture as PNG, with matplotlib; None where the study lacks its methods, or points for them."""
    import matplotlib

    with matplotlib.rc_context(RC):
        figure = study_figure(summary, picture)
        if figure is None:
            return None
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=130, metadata={"Software": None})
    return out.getvalue()


def study_figure(summary: Summary, picture: str) -> Any:
    """The figure; None where the study lacks its methods, or points for them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDE, _HIGH), layout="constrained")
    return figure if _DRAWERS[picture](figure, summary) else None


def draw_relation(summary: Summary, estimate: str, target: str, axes: Any = None) -> Any:
    """Gain against estimate in axes: those that are given, else those of a new figure. Returns the axes."""
    return on_axes(axes, lambda place: _scatter(place, summary, estimate, target))


def _pairs(figure: Any, summary: Summary, pairs: Sequence[tuple[str, str]]) -> bool:
    known = [pair for pair in pairs if pair in summary.relations]
    for k, (estimate, target) in enumerate(known):
        _scatter(figure.add_subplot(1, len(known), k + 1), summary, estimate, target)
    if known:
        _name_files(figure, summary.points.files)
    return bool(known)


def _scatter(axes: Any, summary: Summary, estimate: str, target: str) -> None:
    """Gain against estimate, a mark for each file; on the line, the estimate is right."""
    points, relation = summary.points, summary.relations[estimate, target]
    x, y = points.estimates[estimate], points.targets[target]
    ends = [np.nanmin([x, y]), np.nanmax([x, y])]
    axes.plot(ends, ends, color=GREY, linewidth=1)
    for k in range(len(points.files)):
        here = points.file == k
        axes.plot(x[here], y[here], **_mark(k), markersize=3, alpha=0.6)
    axes.set_xlabel(f"{short_title(estimate)} (one half)")
    axes.set_ylabel("gain (other half)")
    fit = "" if np.isnan(relation.r2) else f"\nr² {relation.r2:.3f}, slope {relation.slope:.2f}"
    axes.set_title(f"{_gain_of(target, points.base)}{fit}")


def _mark(number: int) -> dict[str, Any]:
    colour, marker = style_of(number)
    return {"linestyle": "", "color": colour, "marker": marker, "markeredgewidth": 0}


def _gain_of(target: str, base: str) -> str:
    """What is won by a method, or by it beyond recalibration, in short lines."""
    return "Gain of " + target.replace(f" - {base}", f"\nbeyond {base}")


def _name_files(figure: Any, files: Sequence[str]) -> None:
    """The legend beneath all panels: the mark of each file, and what the line is."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], markersize=6, **_mark(k)) for k in range(min(len(files), _MOST_FILES))]
    names = [drawable(file, "png") for file in files[:_MOST_FILES]]
    if len(files) > _MOST_FILES:
        handles.append(Line2D([], [], linestyle=""))
        names.append(f"and {len(files) - _MOST_FILES} more")
    handles.append(Line2D([], [], color=GREY, linewidth=1))
    names.append("gain = estimate")
    longest = max(map(len, names))
    figure.legend(handles, names, loc="outside lower center", ncols=max(1, min(6, 110 // (longest + 5))))


def _recalibration(figure: Any, summary: Summary) -> bool:
    base = summary.points.base
    return _pairs(figure, summary, [("regret_calibration", base), (RECALIBRATION, base)])


def _post_training(figure: Any, summary: Summary) -> bool:
    pairs = [("regret", "refit"), (POST_TRAINING, "refit"), (POST_TRAINING, "stack-boosting")]
    return _pairs(figure, summary, pairs if summary.points.base == BASE else [*pairs, (POST_TRAINING, "blend")])


def _beyond(figure: Any, summary: Summary) -> bool:
    refit, boosting, blend = (name + summary.points.beyond for name in ("refit", "stack-boosting", "blend"))
    pairs = [("regret_grouping", refit), (BEYOND, refit), (BEYOND, boosting)]
    return _pairs(figure, summary, pairs if summary.points.base == BASE else [*pairs, (BEYOND, blend)])


def _correlations(figure: Any, summary: Summary) -> bool:
    targets = [t for t in _shown_targets(summary) if t in summary.points.targets]
    ours = ("regret_calibration", RECALIBRATION, "regret_grouping", BEYOND, "regret", POST_TRAINING)
    others = tuple(dict.fromkeys(choice.key for choice in (*OF_SCORES, *OF_CLASSES)))
    names = [n for n in (*ours, *others) if any((n, target) in summary.relations for target in targets)]
    r2 = {pair: relation.r2 for pair, relation in summary.relations.items()}
    if np.isnan([r2.get(pair, np.nan) for pair in itertools.product(names, targets)]).all():
        return False
    for k, target in enumerate(targets):
        axes = figure.add_subplot(1, len(targets), k + 1)
        ends = np.full((len(names), 2), np.nan)
        for row, name in enumerate(names):
            relation = summary.relations.get((name, target))
            if relation is not None and relation.interval is not None:
                ends[row] = np.abs(np.subtract(relation.interval, relation.r2))
        colours = [COLOURS[0] if name in ours else COLOURS[7] for name in names]
        look = {"ecolor": GREY, "elinewidth": 0.9, "capsize": 2}
        axes.barh(
            range(len(names)),
            [r2.get((name, target), np.nan) for name in names],
            color=colours,
            xerr=ends.T,
            error_kw=look,
        )
        axes.set_yticks(range(len(names)), [short_title(name) for name in names] if k == 0 else [""] * len(names))
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_xticks((0, 0.5, 1), ("0", "0.5", "1"))
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("r²")
        axes.set_title(_gain_of(target, summary.points.base))
    return True


def _shown_targets(summary: Summary) -> tuple[str, ...]:
    base, beyond = summary.points.base, summary.points.beyond
    if base == BASE:
        return base, "refit", "refit" + beyond, "stack-boosting" + beyond
    return base, "refit", "blend", "blend" + beyond


def _time(figure: Any, summary: Summary) -> bool:
    """Mean gain beyond isotonic against the processor time of a fit, over that of isotonic."""
    points = summary.points
    name_of_base = points.base
    if name_of_base not in points.gains or name_of_base not in summary.seconds:
        return False
    axes = figure.add_subplot(1, 1, 1)
    base = max(summary.seconds[name_of_base], 1e-6)
    for k, (name, seconds) in enumerate(sorted(summary.seconds.items(), key=lambda item: item[1])):
        mean, error = points.mean(1000 * (points.gains[name] - points.gains[name_of_base]))
        at = max(seconds, 1e-6) / base
        axes.plot([at, at], [mean - 2 * error, mean + 2 * error], color=style_of(k).colour, linewidth=1)
        axes.plot([at], [mean], **_mark(k), markersize=7, label=f"{name}, {_seconds(seconds)}")
    axes.axhline(0, color=GREY, linewidth=1, zorder=0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel(f"processor time of a fit, over that of {_LONG.get(name_of_base, name_of_base)}")
    axes.set_ylabel(f"gain beyond {name_of_base}, per 1,000 decisions")
    axes.set_title("What methods win and take: mean over all points, line: two standard errors over scores")
    figure.legend(loc="outside right upper", title="method, median fit", alignment="left")
    return True


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


_DRAWERS: dict[str, Callable[[Any, Summary], bool]] = {
    "recalibration": _recalibration,
    "post-training": _post_training,
    "beyond": _beyond,
    "correlations": _correlations,
    "time": _time,
}
_PAPER = "Perez-Lebel et al. 2025"
STUDY_PICTURES = {
    "recalibration": f"Gain of isotonic recalibration against what was estimated beforehand ({_PAPER}, fig. 4a)",
    "post-training": f"Gain of post-training against what was estimated beforehand ({_PAPER}, fig. 6a)",
    "beyond": f"Gain beyond recalibration against the grouping regret ({_PAPER}, fig. 5a; the middle of its lower and "
    "its sharp upper bound) and against decal's estimate",
    "correlations": f"Squared correlation of estimates with gains ({_PAPER}, fig. 4b, 5b, 6b); intervals over files",
    "time": f"Gain beyond isotonic recalibration against processor time ({_PAPER}, fig. 7)",
}
"""Each picture and what it shows."""
