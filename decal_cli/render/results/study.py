"""What `decal study` returns: how well estimates predict gains, what following the advice costs, what methods win."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from decal_cli.analysis.evidence import BEYOND, GAINS
from decal_cli.analysis.study import CHOSEN, OF_CLASSES, OF_SCORES, PREDICTORS
from decal_cli.analysis.study_summary import (
    BASE,
    BEYOND_SUFFIX,
    MIN_CLUSTERS,
    MIN_POINTS,
    Policies,
    Relation,
    Summary,
    columns_of,
    correlation,
    listed_reasons,
    of_each_task,
    short_title,
    without_each_file,
)
from decal_cli.data.words import enumerated
from decal_cli.declarations.document import Absent, Positive, Some
from decal_cli.numbers import DASH, Interval, bracketed, many, rounded, times
from decal_cli.render.blocks import Blocks, Column, Heading, Notes, Picture, TextTable
from decal_cli.render.cells import texts
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.version import SCHEMA, __version__

BREAKS = (25, 15, 6)
"""Characters after which a heading is broken; narrower where it must be."""
TOTALS = ("isotonic", "refit", "stack-boosting", "blend")
CLASS_TOTALS = (CHOSEN, "temperature", "refit", "stack", "blend")
GROUPING = "Grouping regret: the middle of its lower and its sharp upper bound."
OURS = ("regret_calibration", GAINS["recalibrate"], "regret_grouping", BEYOND, "regret", GAINS["post-train"])
OTHERS = tuple(dict.fromkeys(choice.key for choice in (*OF_SCORES, *OF_CLASSES)))
CHOICES = {
    "nothing": ("nothing", "done", "do-not-post-train", "find-better-features", "cannot-tell"),
    "recalibrate": ("recalibrate", "isotonic"),
    "post-train": ("post-train", "refit", "blend"),
    "constant": ("always-0", "always-1"),
}
"""Headings of the shares of what was chosen, and the actions and methods that each counts."""


class StudyData(View):
    """How estimates predict the gains of methods on rows that took no part, what following the advice loses, processor
    time of fits, mean gains of methods. Utilities are over u_delta; in relations_in_utility, u_delta is 1/t*. tasks: by
    name, where a study is over these and not over thresholds.
    """

    files: Some[str] = of("points.files")
    scores: Some[tuple[str, str]] = of("points.pairs")
    thresholds: list[float] = of(lambda summary: _distinct(summary.points.threshold))
    seeds: Some[int] = of(lambda summary: _distinct(summary.points.seed))
    points: Positive = of(lambda summary: len(summary.points.threshold))
    relations: list[Relation] = of(lambda summary: list(summary.relations.values()))
    relations_in_utility: list[Relation] = of(lambda summary: list(summary.in_utility.values()))
    policies: list[Policies]
    seconds: dict[str, float]
    mean_gains: dict[str, float]
    reasons: dict[str, str]
    notes: list[str]
    tasks: Absent[list[str]] = of(lambda summary: tuple(dict.fromkeys(summary.points.tasks.tolist())))


class StudiedData(View):
    """What `decal study` prints and keeps as summary.json."""

    schema: Literal[1] = of(lambda _: SCHEMA)
    decal: str = of(lambda _: __version__)
    study: StudyData = of(lambda summary: StudyData(summary))


def _distinct(values: np.ndarray) -> np.ndarray:
    return np.unique(values[np.isfinite(values)])


class Experiment:
    """The squared correlations of every estimate with every method's gain in both units, and the pictures.

    captions: of the pictures that lie beside the page, by file name.
    """

    title = "The experiment of Perez-Lebel et al. 2025"

    def __init__(self, summary: Summary, captions: Mapping[str, str] | None = None) -> None:
        self.summary = summary
        self.captions = captions

    def blocks(self) -> Blocks:
        """What was studied, the tables, the pictures."""
        summary = self.summary
        yield Notes((study_lines(summary)[0], GROUPING))
        for relations, unit in (
            (summary.relations, "utilities per unit of u_delta"),
            (summary.in_utility, "utilities in the paper's units, where u_delta is 1/t*"),
        ):
            for what, suffix in (("of each method", ""), (f"beyond {BASE}", BEYOND_SUFFIX)):
                rows = []
                for method in summary.points.gains:
                    r2 = [relations.get((name, method + suffix)) for name in PREDICTORS]
                    if any(r2):
                        rows.append((method, *(DASH if each is None else _plain(each.r2) for each in r2)))
                heads = ("method", *map(short_title, PREDICTORS))
                yield _table(f"r2 with the gain {what}; {unit}", "", heads, rows)
        yield from self._pictures()

    def _pictures(self) -> Blocks:
        for file, caption in (self.captions or {}).items():
            yield Picture(caption, file=file)


class Studied(Experiment):
    """A study, for formats to write; the saved page also has pictures, and lists what was skipped."""

    title = "Do the estimates predict the gains?"

    def blocks(self) -> Blocks:
        """What was studied and the tables."""
        yield Notes(study_lines(self.summary))
        yield from study_tables(self.summary)
        yield from self._pictures()
        if self.captions is not None and self.summary.notes:
            yield Heading("What was dropped", level=1)
            yield Notes(self.summary.notes)

    def data(self) -> Document:
        """StudiedData."""
        return data_of(StudiedData(self.summary))

    def rows(self) -> Records:
        """All points, a row each."""
        columns = columns_of(self.summary.points)
        yield list(columns)
        yield from map(list, zip(*(values.tolist() for values in columns.values()), strict=True))


def headlines(summary: Summary) -> tuple[tuple[str, str], ...]:
    """Estimates and the gains they are for; of each, slope and mean error are shown."""
    base, beyond = summary.points.base, summary.points.beyond
    methods = ("refit", "stack-boosting") if base == BASE else ("refit", "blend")
    return (
        ("regret_calibration", base),
        (GAINS["recalibrate"], base),
        *((estimate, name) for name in methods for estimate in ("regret", GAINS["post-train"])),
        *((estimate, name + beyond) for name in methods for estimate in ("regret_grouping", BEYOND)),
    )


def study_tables(summary: Summary) -> Iterator[TextTable]:
    """All tables of a study, the most wanted first; those that its methods do not allow are skipped."""
    yield from _correlations(summary)
    yield from _slopes(summary)
    yield from _advice(summary)
    yield _methods(summary)
    yield from _closer(summary)


def _table(title: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> TextTable:
    """A table whose cells are texts, the first column the key."""
    return texts([Column(head, breaks=BREAKS) for head in heads], rows, title=title, caption=caption, keys=1)


def _correlations(summary: Summary) -> Iterator[TextTable]:
    points, over = summary.points, summary.points.bootstrap_unit
    isotonic = points.base == BASE
    totals = TOTALS if isotonic else CLASS_TOTALS
    intervals = "" if over is None else f", with bootstrap intervals over {over}"
    recalibration = "isotonic recalibration" if isotonic else "the scaling that cross-fitting chooses"
    half = (
        "Squared correlation, r2, of each estimate with the gain of each method on the other half, averaged over "
        f"halvings{intervals}."
    )
    same = f"The same for what a method gains on top of {recalibration}."
    beyond = tuple(name + points.beyond for name in totals if name != points.base)
    for what, targets, text in (("of each method", totals, half), ("beyond recalibration", beyond, same)):
        studied = [target for target in targets if target in points.targets]
        rows = []
        for name in (*OURS, *OTHERS):
            relations = [summary.relations.get((name, target)) for target in studied]
            if any(relations):
                cells = (DASH if each is None else _plain(each.r2, each.interval) for each in relations)
                rows.append((short_title(name), *cells))
        # Of few points, only the sizes of the estimates can be judged.
        if any(cell != DASH for _, *cells in rows for cell in cells):
            heads = "estimate", *(each.removesuffix(points.beyond) for each in studied)
            yield _table(f"What predicts the gain {what}", text, heads, rows)


def _slopes(summary: Summary) -> Iterator[TextTable]:
    rows, points = [], summary.points
    for estimate, target in headlines(summary):
        relation = summary.relations.get((estimate, target))
        if relation is not None:
            slope = DASH if math.isnan(relation.slope) else f"{relation.slope:.2f}"
            gain = target.replace(points.beyond, f" beyond {points.base}")
            error = f"{1000 * relation.mean_error:+.2f}"
            rows.append((short_title(estimate), gain, _plain(relation.r2), slope, error))
    if rows:
        text = "Slope of the gain on its estimate; mean error: gain minus estimate, per 1,000 decisions, u_delta 1."
        heads = "estimate", "gain of", "r2", "slope", "mean error"
        yield _table("Do the estimates have the right size?", text, heads, rows)


def _advice(summary: Summary) -> Iterator[TextTable]:
    if not summary.policies:
        return
    names = [policy.name for policy in summary.policies[0].policies]
    rows = []
    for each in summary.policies:
        losses = (f"{1000 * policy.loss:.2f}" for policy in each.policies)
        rows.append((f"{each.multiple:g}", *losses, _percent(each.share), _percent(each.right)))
    text = (
        "Utility per 1,000 decisions (u_delta 1) lost to the best choice known afterwards, when recalibration costs "
        "0.002 and retraining 0.01 per decision, times the first column. share: of what the better of always isotonic "
        "and always refit loses. right: points where the advice lost at most 0.002."
    )
    yield _table("What following the advice loses", text, ("costs x", *names, "share", "right"), rows)
    yield _choices(summary)


def _choices(summary: Summary) -> TextTable:
    """Each way of choosing at the costs themselves: what it loses, and what it chooses."""
    one = next(each for each in summary.policies if each.multiple == 1)
    rows = []
    for policy in one.policies:
        ends = times(policy.interval, 1000)
        loss = bracketed(f"{each:.2f}" for each in (1000 * policy.loss, *(ends or ())))
        shares = [sum(policy.chosen.get(action, 0.0) for action in actions) for actions in CHOICES.values()]
        rows.append((policy.name, loss, _percent(policy.right), *map(_percent, shares)))
    over = summary.points.bootstrap_unit
    text = (
        f"At costs x 1, {'' if over is None else f'with intervals over {over}, '}and how often each action is chosen. "
        "Flowchart as printed: that of Perez-Lebel et al. 2025, on the plug-in regrets; a grouping regret of up to "
        "0.02 t* u_delta counts as 0 (their r)."
    )
    return _table("What each way of choosing does", text, ("", "lost", "right", *CHOICES), rows)


def _methods(summary: Summary) -> TextTable:
    points = summary.points
    rows = []
    for name, seconds in sorted(summary.seconds.items(), key=lambda item: item[1]):
        cells = [name, f"{seconds:.4f} s", f"{1000 * summary.mean_gains[name]:.2f}"]
        if points.base in points.gains and name != points.base:
            more = points.gains[name] - points.gains[points.base]
            cells += [f"{1000 * np.nanmean(more):+.2f}", _percent(float(np.mean(more[np.isfinite(more)] > 0)))]
        rows.append((*cells, *("",) * (5 - len(cells))))
    text = f"Median processor time of a fit; mean gain per 1,000 decisions on the other half; and beyond {points.base}."
    fitted = {name: int(np.isfinite(values).sum()) for name, values in points.gains.items() if name in summary.seconds}
    most = max(fitted.values(), default=0)
    if some := [f"{name} at {many(n, 'point')}" for name, n in fitted.items() if n < most]:
        text += f" Each is of the points where the method could be fitted, {most:,} but for {enumerated(some)}."
    head = ("method", "fit", "gain", f"beyond {points.base}", "better at")
    return _table("Time and gain of each method", text, head, rows)


def _closer(summary: Summary) -> Iterator[TextTable]:
    """Correlations for each task or threshold and without each file; beyond recalibration, where they are of t*."""
    points, beyond, over_tasks = summary.points, summary.points.beyond, summary.points.over_tasks
    pairs = [
        pair
        for pair in headlines(summary)
        if pair in summary.relations
        and (pair[0] in (*GAINS.values(), BEYOND) if over_tasks else pair[1].endswith(beyond))
    ]
    if not pairs:
        return
    suffix = f" beyond {points.base}" if over_tasks else ""
    titles = [f"{short_title(estimate)} → {target.replace(beyond, suffix)}" for estimate, target in pairs]

    def of_parts(parts: Mapping[Any, Any]) -> list[tuple[str, ...]]:
        names = {name: name if isinstance(name, str) else f"{name:g}" for name in parts}
        return [(names[n], *(_plain(correlation(points, *pair, part)) for pair in pairs)) for n, part in parts.items()]

    what, by, text, head = "What predicts the gains", "task by task", "r2 of one task.", "task"
    if not over_tasks:
        what, by = "What predicts the gain beyond recalibration", "at each t*"
        text, head = "r2 at one threshold.", "t*"
    rows = of_parts(of_each_task(points))
    # With few files and scores, no task or threshold alone has enough points.
    if any(cell != DASH for _, *cells in rows for cell in cells):
        yield _table(f"{what}, {by}", text, (head, *titles), rows)
    if len(points.files) > 2:
        text, without = "r2 of all points but those of the file.", of_parts(without_each_file(points))
        yield _table(f"{what}, without each file", text, ("without", *titles), without)


def _plain(value: float, interval: Interval | None = None) -> str:
    """A correlation, with its interval; a dash where there is none."""
    return DASH if math.isnan(value) else rounded(value, interval, 3)


def _percent(share: float) -> str:
    return DASH if math.isnan(share) else f"{100 * share:.0f} %"


def study_lines(summary: Summary) -> list[str]:
    """What was studied."""
    points = summary.points
    what, varied = points.varied
    counts = {
        "file": len(points.files),
        "score": len(points.pairs),
        what: len(np.unique(varied)),
        "halving": len(np.unique(points.seed)),
        "point": len(points.threshold),
    }
    few = []
    if points.bootstrap_unit is None:
        few = [f"Too few scores for intervals: they need at least {MIN_CLUSTERS} files or {MIN_CLUSTERS} scores."]
    if not points.enough(np.ones(len(points.threshold), dtype=bool)):
        few.append(f"{DASH}: fewer than {MIN_POINTS} points in a halving, too few for a correlation.")
    *parts, points_in_all = [many(count, name) for name, count in counts.items()]
    halves = "Estimates come from the half that methods are fitted to, gains from the other; utilities per u_delta."
    bounds = f" {GROUPING}" if any(estimate == "regret_grouping" for estimate, _ in summary.relations) else ""
    return [f"{', '.join(parts)}: {points_in_all}", halves + bounds, *few, *listed_reasons(summary.reasons)]
