"""Pictures of a study: gain against estimate, what correlates, gain against processor time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from decal_cli.analysis.evidence import BEYOND, GAINS
from decal_cli.analysis.study import PREDICTORS
from decal_cli.analysis.study_summary import BASE, BEYOND_SUFFIX, Relation, StudyPoints, Summary, short_title
from decal_cli.learn.methods import parse
from decal_cli.plot.page import new_figure, on_axes, saved
from decal_cli.plot.style import COLOURS, GREY, drawable, looks, style_of
from decal_cli.render.results.study import OTHERS, OURS
from decal_cli.tables.table import Floats

_PAPER = "Perez-Lebel et al. 2025"
RECALIBRATION, POST_TRAINING = GAINS["recalibrate"], GAINS["post-train"]
_WIDE, _HIGH = 10.0, 4.9
_LONG = {BASE: "isotonic regression"}
Relations = Mapping[tuple[str, str], Relation]
_MOST_FILES = 24
"""Files that the legend names; more would leave no room for the picture."""


def draw_study(summary: Summary, picture: str) -> bytes | None:
    """A picture as PNG, with matplotlib; None where the study lacks its methods, or points for them."""
    with looks():
        figure = study_figure(summary, picture)
        return None if figure is None else saved(figure, "png")


def study_figure(summary: Summary, picture: str) -> Any:
    """The figure; None where the study lacks its methods, or points for them."""
    drawers = {"correlations": _correlations, "time": _time}
    figure = new_figure(_WIDE, _HIGH, "constrained")
    drawn = drawers[picture](figure, summary) if picture in drawers else _gains(figure, summary, picture)
    return figure if drawn else None


def draw_relation(summary: Summary, estimate: str, target: str, axes: Any) -> Any:
    """Gain against estimate in axes: those that are given, else those of a new figure. Returns the axes."""
    return on_axes(axes, lambda place: _scatter(place, summary, estimate, target))


def _gains(figure: Any, summary: Summary, picture: str) -> bool:
    """Gain against estimate: the regret first, then the estimate of the gain, against which methods that are tried."""
    base, beyond = summary.points.base, summary.points.beyond
    tried = ["refit", "stack-boosting", *([] if base == BASE else ["blend"])]
    regret, estimate, targets = {
        "recalibration": ("regret_calibration", RECALIBRATION, [base]),
        "post-training": ("regret", POST_TRAINING, tried),
        "beyond": ("regret_grouping", BEYOND, [name + beyond for name in tried]),
    }[picture]
    pairs = [(regret, targets[0]), *((estimate, target) for target in targets)]
    known = [pair for pair in pairs if pair in summary.relations]
    for k, pair in enumerate(known):
        _scatter(figure.add_subplot(1, len(known), k + 1), summary, *pair)
    if known:
        _name_files(figure, summary.points.files)
    return bool(known)


def _scatter(axes: Any, summary: Summary, estimate: str, target: str) -> None:
    """Gain against estimate, a mark for each file; on the line, the estimate is right."""
    points, relation = summary.points, summary.relations[estimate, target]
    x, y = points.estimates[estimate], points.targets[target]
    _diagonal(axes, x, y)
    for k in range(len(points.files)):
        here = points.file == k
        axes.plot(x[here], y[here], **_mark(k), markersize=3, alpha=0.6)
    fit = "" if np.isnan(relation.r2) else f"\nr² {relation.r2:.3f}, slope {relation.slope:.2f}"
    axes.set(title=f"{_gain_of(target, points.base)}{fit}", xlabel=f"{short_title(estimate)} (one half)",
             ylabel="gain (other half)")  # fmt: skip


def _diagonal(axes: Any, x: Floats, y: Floats) -> None:
    """Where the gain is as estimated."""
    ends = [np.nanmin([x, y]), np.nanmax([x, y])]
    axes.plot(ends, ends, color=GREY, linewidth=1)


def _mark(number: int) -> dict[str, Any]:
    colour, marker = style_of(number)
    return {"linestyle": "", "color": colour, "marker": marker, "markeredgewidth": 0}


def _gain_of(target: str, base: str) -> str:
    """What is won by a method, or by it beyond recalibration, in short lines."""
    return "Gain of " + target.replace(f" - {base}", f"\nbeyond {base}")


def _name_files(figure: Any, files: Sequence[str]) -> None:
    """The legend beneath all panels: the mark of each file, and what the line is."""
    from matplotlib.lines import Line2D

    looks = [(drawable(file), {"markersize": 6, **_mark(k)}) for k, file in enumerate(files[:_MOST_FILES])]
    if len(files) > _MOST_FILES:
        looks.append((f"and {len(files) - _MOST_FILES} more", {"linestyle": ""}))
    looks.append(("gain = estimate", {"color": GREY, "linewidth": 1}))
    names = [name for name, _ in looks]
    columns = max(1, min(6, 110 // (max(map(len, names)) + 5)))
    handles = [Line2D([], [], **look) for _, look in looks]
    figure.legend(handles, names, loc="outside lower center", ncols=columns)


def _correlations(figure: Any, summary: Summary) -> bool:
    base, beyond = summary.points.base, summary.points.beyond
    shown = (base, "refit", "blend", "blend" + beyond)
    if base == BASE:
        shown = (base, "refit", "refit" + beyond, "stack-boosting" + beyond)
    targets = [target for target in shown if target in summary.points.targets]
    names = [n for n in (*OURS, *OTHERS) if any((n, target) in summary.relations for target in targets)]
    none = np.nan, (np.nan, np.nan)
    known = {pair: (of.r2, of.interval or none[1]) for pair, of in summary.relations.items()}
    if np.isnan([known.get(pair, none)[0] for pair in itertools.product(names, targets)]).all():
        return False
    colours = [COLOURS[0] if name in OURS else COLOURS[7] for name in names]
    look = {"color": colours, "error_kw": {"ecolor": GREY, "elinewidth": 0.9, "capsize": 2}}
    for k, target in enumerate(targets):
        axes = figure.add_subplot(1, len(targets), k + 1)
        r2, ends = zip(*(known.get((name, target), none) for name in names), strict=True)
        axes.barh(range(len(names)), r2, xerr=np.abs(np.transpose(ends) - r2), **look)
        axes.set_yticks(range(len(names)), [short_title(name) * (k == 0) for name in names])
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set(xlim=(0, 1), xlabel="r²", title=_gain_of(target, base))
        axes.set_xticks((0, 0.5, 1), ("0", "0.5", "1"))
        axes.grid(axis="y", visible=False)
    return True


def _time(figure: Any, summary: Summary) -> bool:
    """Mean gain beyond isotonic against the processor time of a fit, over that of isotonic."""
    points, base = summary.points, summary.points.base
    if base not in points.gains or base not in summary.seconds:
        return False
    from matplotlib.ticker import LogLocator

    axes = figure.add_subplot(1, 1, 1)
    for k, (name, seconds) in enumerate(sorted(summary.seconds.items(), key=lambda item: item[1])):
        mean, error = points.mean(1000 * (points.gains[name] - points.gains[base]))
        at = max(seconds, 1e-6) / max(summary.seconds[base], 1e-6)
        axes.plot([at, at], [mean - 2 * error, mean + 2 * error], color=style_of(k).colour, linewidth=1)
        took = f"{1000 * seconds:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"
        axes.plot([at], [mean], **_mark(k), markersize=7, label=f"{name}, {took}")
    axes.axhline(0, color=GREY, linewidth=1, zorder=0.5)
    axes.set_xscale("log")
    # Times of a fit often lie within one power of ten, which has one label otherwise.
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set(title="What methods win and take: mean over all points, line: two standard errors over scores",
             xlabel=f"processor time of a fit, over that of {_LONG.get(base, base)}",
             ylabel=f"gain beyond {base}, per 1,000 decisions")  # fmt: skip
    figure.legend(loc="outside right upper", title="method, median fit", alignment="left")
    return True


STUDY_PICTURES = {
    "recalibration": f"Gain of isotonic recalibration against what was estimated beforehand ({_PAPER}, fig. 4a)",
    "post-training": f"Gain of post-training against what was estimated beforehand ({_PAPER}, fig. 6a)",
    "beyond": f"Gain beyond recalibration against the grouping regret ({_PAPER}, fig. 5a; the middle of its lower and "
    "its sharp upper bound) and against decal's estimate",
    "correlations": f"Squared correlation of estimates with gains ({_PAPER}, fig. 4b, 5b, 6b), with its intervals",
    "time": f"Gain beyond isotonic recalibration against processor time ({_PAPER}, fig. 7)",
}
"""Each picture and what it shows."""


AGAINST = {
    "regret_calibration": 9,
    "regret": 10,
    "auc": 11,
    "accuracy": 12,
    "brier": 13,
    "ece": 14,
    "cl": 15,
    "mce": 16,
    "rmsce": 17,
}
"""Estimates against which every method's gain is drawn, and the number of the paper's figure."""
UNITS = {"u_delta": "per unit of u_delta", "utility": "in the paper's units, where u_delta is 1/t*"}
"""Ends of the names of pictures, and what captions say of the unit."""
NEAREST = 0.2
"""Share of the points that a local line is fitted to, as in the paper."""
MOST_ACROSS = 5
_PLACES = 60
"""Local lines at most."""


def experiment_files() -> list[str]:
    """Names of all the pictures there can be."""
    return [f"{name}-{unit}.png" for unit in UNITS for name, _, _ in _EXPERIMENT]


def experiment_pictures(summary: Summary) -> Iterator[tuple[str, str, bytes]]:
    """Name, caption and PNG of each picture that the study has methods and points for."""
    for unit, words in UNITS.items():
        of_unit = (summary.points, summary.relations)
        if unit == "utility":
            of_unit = (summary.points.in_utility, summary.in_utility)
        for name, caption, drawer in _EXPERIMENT:
            with looks():
                figure = drawer(*of_unit)
                if figure is not None:
                    yield f"{name}-{unit}.png", f"{caption}; {words} ({_PAPER})", saved(figure, "png", dpi=100)


def _of_kind(points: StudyPoints, kind: str) -> list[str]:
    return [name for name in points.gains if parse(name).declared.kind == kind]


def _r2(points: StudyPoints, relations: Relations) -> Any:
    """The squared correlation of every estimate with every method's gain, and with its gain beyond recalibration."""
    r2 = {pair: relation.r2 for pair, relation in relations.items()}
    names = [name for name in PREDICTORS if any(name == each for each, _ in r2)]
    if not names:
        return None
    beyond = [name for name in points.targets if name.endswith(BEYOND_SUFFIX)]
    parts = [part for part in (list(points.gains), beyond) if part]
    figure = new_figure(3.2 + 0.62 * len(names), 1.4 + 0.3 * sum(map(len, parts)), "constrained")
    grid = figure.subplots(len(parts), 1, squeeze=False, height_ratios=[len(part) for part in parts])
    for axes, targets in zip(grid[:, 0], parts, strict=True):
        values = np.array([[r2.get((name, target), np.nan) for name in names] for target in targets])
        axes.imshow(values, cmap="Greys", vmin=0, vmax=1.4, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8,
                          color="white" if value > 0.8 else "black")  # fmt: skip
        axes.set_yticks(range(len(targets)), [drawable(target.removesuffix(BEYOND_SUFFIX)) for target in targets])
        axes.set_xticks(range(len(names)), [short_title(name).replace(" ", "\n") for name in names], fontsize=8)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.set_title("r² with the gain" + (f" beyond {BASE}" if targets is beyond else ""))
    return figure


def _against(points: StudyPoints, relations: Relations, estimate: str) -> Any:
    """The gain of every method against an estimate, a panel for each."""
    kind = {"regret_calibration": "recalibration", "regret": "post-training"}.get(estimate)
    of_kind = points.gains if kind is None else _of_kind(points, kind)
    methods = [name for name in of_kind if (estimate, name) in relations]
    if not methods:
        return None
    across = min(MOST_ACROSS, len(methods))
    down = math.ceil(len(methods) / across)
    figure = new_figure(2.4 * across, 0.4 + 2.2 * down, "constrained")
    for k, method in enumerate(methods):
        axes = figure.add_subplot(down, across, k + 1)
        x, y = points.estimates[estimate], points.gains[method]
        if kind is not None:
            _diagonal(axes, x, y)
        axes.plot(x, y, linestyle="", marker=".", markersize=2.5, alpha=0.5, color=style_of(0).colour)
        r2 = relations[estimate, method].r2
        axes.set_title(drawable(method) + ("" if np.isnan(r2) else f"\nr² {r2:.2f}"), fontsize=8)
    figure.supxlabel(f"{short_title(estimate)} (one half)", fontsize=9)
    figure.supylabel("gain (other half)", fontsize=9)
    return figure


def _along(
    points: StudyPoints,
    relations: Relations,
    kinds: Sequence[str],
    place: Callable[[StudyPoints], Floats],
    label: str,
    smooth: bool,
) -> Any:
    """Mean gain of methods beyond isotonic regression along where points stand, a panel for each kind of methods."""
    panels = {kind.capitalize(): [name for name in _of_kind(points, kind) if name != BASE] for kind in kinds}
    some, x = [(title, methods) for title, methods in panels.items() if methods], place(points)
    if BASE not in points.gains or not some:
        return None
    figure = new_figure(5.2 * len(some), 4.6, "constrained")
    for k, (title, methods) in enumerate(some):
        axes = figure.add_subplot(1, len(some), k + 1)
        for number, method in enumerate(methods):
            more = points.gains[method] - points.gains[BASE]
            usable = np.isfinite(more)
            at, values = (_local_lines if smooth else _means)(x[usable], more[usable])
            look = {"linewidth": 1.4} if smooth else {"marker": style_of(number).marker, "markersize": 4}
            axes.plot(at, values, color=style_of(number).colour, label=drawable(method), **look)
        axes.axhline(0, color=GREY, linewidth=1, zorder=0.5)
        if not smooth:
            axes.set_xscale("logit")
            axes.set_xticks(np.unique(x), [f"{t:g}" for t in np.unique(x)], fontsize=7)
            axes.set_xticks([], minor=True)
        axes.set(title=title, xlabel=label, ylabel=f"mean gain beyond {BASE}")
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return figure


def _means(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    at, place = np.unique(x, return_inverse=True)
    return at, np.bincount(place, y) / np.bincount(place)


def _local_lines(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """A line fitted to the points nearest to each of up to 60 of them, by tricube weights (LOWESS in one pass).

    Only where points are: between two groups of points the line of one, carried on, may lead anywhere.
    """
    nearest = max(int(NEAREST * len(x)), min(len(x), 3))
    even = np.linspace(x.min(), x.max(), _PLACES)
    places = np.unique([x[np.abs(x - place).argmin()] for place in even])
    values = np.empty(len(places))
    for k, place in enumerate(places):
        far = np.abs(x - place)
        width = max(float(np.sort(far)[nearest - 1]), 1e-9)
        weight = np.clip(1 - (far / width) ** 3, 0, 1) ** 3
        middle, mean = weight @ x / weight.sum(), weight @ y / weight.sum()
        spread = weight @ (x - middle) ** 2
        slope = weight @ ((x - middle) * (y - mean)) / spread if spread > 1e-12 else 0.0
        # A mean lies among what it is the mean of; a line at the end of its points need not.
        around = y[weight > 0]
        values[k] = np.clip(mean + slope * (place - middle), around.min(), around.max())
    return places, values


_BY_THRESHOLD = partial(
    _along, kinds=("post-training", "recalibration"), place=attrgetter("threshold"), label="t*", smooth=False
)
_BY_DISTANCE = partial(
    _along,
    kinds=("recalibration",),
    place=lambda points: np.abs(points.threshold - points.base_rate),
    label="distance of t* from the event rate",
    smooth=True,
)
_AGAINST = {name: f"Gain of every method against {short_title(name)}, fig. {k}" for name, k in AGAINST.items()}
_EXPERIMENT: tuple[tuple[str, str, Callable[[StudyPoints, Relations], Any]], ...] = (
    ("r2", "Squared correlation of every estimate with the gain of every method, figs. 4b, 5b and 6b", _r2),
    *((f"against-{n.replace('_', '-')}", words, partial(_against, estimate=n)) for n, words in _AGAINST.items()),
    ("by-threshold", "Mean gain beyond isotonic regression at each t*, figs. 18 and 19", _BY_THRESHOLD),
    (
        "by-distance",
        "Mean gain beyond isotonic regression by the distance of t* from the event rate, fig. 20",
        _BY_DISTANCE,
    ),
)
"""Name, caption and drawing of each picture of the paper."""
