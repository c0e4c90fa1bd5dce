"""The tables of a study: how well estimates predict gains, what following the advice costs, what methods win."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from decal_cli.analysis.flowchart import BEYOND, GAINS
from decal_cli.analysis.study.columns import BASE, BEYOND_SUFFIX, MIN_CLUSTERS, MIN_POINTS
from decal_cli.analysis.study.points import OF_SCORES
from decal_cli.analysis.study.summary import Relation, Summary, by_threshold, grouped, short_title, without_a_file
from decal_cli.numbers import DASH, short, span
from decal_cli.render.blocks import Column, Row, Table
from decal_cli.render.cells import words

BREAKS = (25, 15, 6)
"""Characters after which a heading is broken; narrower where it must be."""
TOTALS = ("isotonic", "refit", "stack-boosting", "blend")
FURTHER = tuple(name + BEYOND_SUFFIX for name in TOTALS[1:])
OURS = ("regret_calibration", GAINS["recalibrate"], "regret_grouping", BEYOND, "regret", GAINS["post-train"])
OTHERS = tuple(choice.key for choice in OF_SCORES)
HEADLINES = (
    ("regret_calibration", "isotonic"),
    (GAINS["recalibrate"], "isotonic"),
    ("regret", "refit"),
    (GAINS["post-train"], "refit"),
    ("regret", "stack-boosting"),
    (GAINS["post-train"], "stack-boosting"),
    ("regret_grouping", "refit" + BEYOND_SUFFIX),
    (BEYOND, "refit" + BEYOND_SUFFIX),
    ("regret_grouping", "stack-boosting" + BEYOND_SUFFIX),
    (BEYOND, "stack-boosting" + BEYOND_SUFFIX),
)
"""Estimates and the gains they are for; of each, slope and mean error are shown."""
CLOSER = tuple(pair for pair in HEADLINES if pair[1].endswith(BEYOND_SUFFIX))
"""Those of which the correlation is shown at each t* and without each file."""
CHOICES = {
    "nothing": ("nothing", "done", "do-not-post-train", "find-better-features", "cannot-tell"),
    "recalibrate": ("recalibrate", "isotonic"),
    "post-train": ("post-train", "refit", "blend"),
    "constant": ("always-0", "always-1"),
}
"""Headings of the shares of what was chosen, and the actions and methods that each counts."""


def study_tables(summary: Summary) -> Iterator[Table]:
    """All tables of a study, the most wanted first; those that its methods do not allow are skipped."""
    yield from _correlations(summary)
    yield from _slopes(summary)
    yield from _advice(summary)
    yield _methods(summary)
    yield from _closer(summary)


def table_of_words(title: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose cells are texts, the first column the key."""
    first, *others = heads
    columns = (Column(first, words=True, breaks=BREAKS), *(Column(head, breaks=BREAKS) for head in others))
    return Table(columns, tuple(Row(tuple(map(words, row))) for row in rows), title=title, caption=caption, keys=1)


def _correlations(summary: Summary) -> Iterator[Table]:
    over = summary.points.bootstrap_unit
    intervals = "" if over is None else f", with bootstrap intervals over {over}"
    for title, targets, text in (
        (
            "What predicts the gain of post-training",
            TOTALS,
            "Squared correlation over all points, r2, of each estimate with the gain of each method on the other "
            f"half{intervals}.",
        ),
        (
            "What predicts the gain beyond recalibration",
            FURTHER,
            "The same for what a method gains on top of isotonic recalibration.",
        ),
    ):
        studied = [target for target in targets if target in summary.points.targets]
        rows = []
        for name in (*OURS, *OTHERS):
            relations = [summary.relations.get((name, target)) for target in studied]
            if any(relations):
                rows.append((short_title(name), *map(_r2, relations)))
        if studied and rows:
            yield table_of_words(
                title, text, ("estimate", *(target.removesuffix(BEYOND_SUFFIX) for target in studied)), rows
            )


def _r2(relation: Relation | None) -> str:
    if relation is None or math.isnan(relation.r2):
        return DASH
    return " ".join(filter(None, (short(relation.r2, 3), span(relation.interval, 2))))


def plain_r2(relation: Relation | None) -> str:
    """A squared correlation without its interval."""
    return DASH if relation is None else _plain(relation.r2)


def _slopes(summary: Summary) -> Iterator[Table]:
    rows = []
    for estimate, target in HEADLINES:
        relation = summary.relations.get((estimate, target))
        if relation is not None:
            error = f"{1000 * relation.mean_error:+.2f}"
            slope = DASH if math.isnan(relation.slope) else f"{relation.slope:.2f}"
            gain = target.replace(BEYOND_SUFFIX, f" beyond {BASE}")
            rows.append((short_title(estimate), gain, _plain(relation.r2), slope, error))
    if rows:
        text = "Slope of the gain on its estimate; mean error: gain minus estimate, per 1,000 decisions, u_delta 1."
        yield table_of_words(
            "Do the estimates have the right size?", text, ("estimate", "gain of", "r2", "slope", "mean error"), rows
        )


def _advice(summary: Summary) -> Iterator[Table]:
    if not summary.policies:
        return
    names = [policy.name for policy in summary.policies[0].policies]
    rows = []
    for each in summary.policies:
        losses = (f"{1000 * policy.loss:.2f}" for policy in each.policies)
        rows.append((f"{each.multiple:g}", *losses, _percent(each.share), _percent(each.right)))
    text = (
        "Utility per 1,000 decisions (u_delta 1) lost to the best choice known afterwards, when recalibration costs "
        ".002 and retraining .01 per decision, times the first column. share: of what the better of always isotonic "
        "and always refit loses. right: points where the advice lost at most .002."
    )
    yield table_of_words("What following the advice loses", text, ("costs x", *names, "share", "right"), rows)
    yield _choices(summary)


def _choices(summary: Summary) -> Table:
    """Each way of choosing at the costs themselves: what it loses, and what it chooses."""
    one = next(each for each in summary.policies if each.multiple == 1)
    rows = []
    for policy in one.policies:
        ends = None if policy.interval is None else (1000 * policy.interval[0], 1000 * policy.interval[1])
        loss = " ".join(filter(None, (f"{1000 * policy.loss:.2f}", span(ends, 2))))
        shares = [sum(policy.chosen.get(action, 0.0) for action in actions) for actions in CHOICES.values()]
        rows.append((policy.name, loss, _percent(policy.right), *map(_percent, shares)))
    over = summary.points.bootstrap_unit
    text = (
        f"At costs x 1, {'' if over is None else f'with intervals over {over}, '}and how often each action is chosen. "
        "Flowchart as printed: that of Perez-Lebel et al. 2025, on the plug-in regrets; a grouping regret of up to .02 "
        "t* u_delta counts as 0 (their r)."
    )
    return table_of_words("What each way of choosing does", text, ("", "lost", "right", *CHOICES), rows)


def _methods(summary: Summary) -> Table:
    points = summary.points
    rows = []
    for name, seconds in sorted(summary.seconds.items(), key=lambda item: item[1]):
        gains = points.gains[name]
        cells = [name, f"{seconds:.4f} s", f"{1000 * np.nanmean(gains):.2f}"]
        if BASE in points.gains and name != BASE:
            more = gains - points.gains[BASE]
            cells += [f"{1000 * np.nanmean(more):+.2f}", _percent(float(np.mean(more[np.isfinite(more)] > 0)))]
        rows.append((*cells, *("",) * (5 - len(cells))))
    text = "Median processor time of a fit; mean gain per 1,000 decisions on the other half; and beyond isotonic."
    head = ("method", "fit", "gain", "beyond isotonic", "better at")
    return table_of_words("Time and gain of each method", text, head, rows)


def _closer(summary: Summary) -> Iterator[Table]:
    pairs = [pair for pair in CLOSER if pair in summary.relations]
    if not pairs:
        return
    titles = [f"{short_title(estimate)} → {target.removesuffix(BEYOND_SUFFIX)}" for estimate, target in pairs]
    at = [by_threshold(summary.points, *pair) for pair in pairs]
    rows = [(f"{t:g}", *(_plain(r2[t]) for r2 in at)) for t in at[0]]
    title = "What predicts the gain beyond recalibration, at each t*"
    yield table_of_words(title, "r2 at one threshold.", ("t*", *titles), rows)
    if len(summary.points.files) > 2:
        without = [without_a_file(summary.points, *pair) for pair in pairs]
        rows = [(name, *(_plain(r2[name]) for r2 in without)) for name in without[0]]
        title = "What predicts the gain beyond recalibration, without each file"
        yield table_of_words(title, "r2 of all points but those of the file.", ("without", *titles), rows)


def _plain(value: float) -> str:
    return DASH if math.isnan(value) else short(value, 3)


def _percent(share: float) -> str:
    return DASH if math.isnan(share) else f"{100 * share:.0f} %"


def study_lines(summary: Summary) -> list[str]:
    """What was studied."""
    points = summary.points
    seeds = len(np.unique(points.seed))
    thresholds = len(np.unique(points.threshold))
    counts = [
        (len(points.files), "file"),
        (len(points.pairs), "score"),
        (thresholds, "threshold"),
        (seeds, "halving"),
        (len(points.threshold), "point"),
    ]
    few = []
    if points.bootstrap_unit is None:
        few = [f"Too few scores for intervals: they need at least {MIN_CLUSTERS} files or {MIN_CLUSTERS} scores."]
    if not points.enough(np.ones(len(points.threshold), dtype=bool)):
        few.append(f"{DASH}: fewer than {MIN_POINTS} points in a halving, too few for a correlation.")
    *parts, points_in_all = [f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counts]
    return [
        f"{', '.join(parts)}: {points_in_all}",
        "Estimates come from the half that methods are fitted to, gains from the other; utilities per u_delta.",
        *few,
        *(f"{', '.join(names)}: {reason}" for reason, names in grouped(summary.reasons).items()),
    ]
