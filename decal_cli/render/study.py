"""A study as text: how well estimates predict gains, what following the advice costs, what methods take and win."""

from __future__ import annotations

import csv
import io
import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from decal_cli.analysis.flowchart import BEYOND, GAINS
from decal_cli.analysis.study.columns import BASE, BEYOND_SUFFIX, MIN_CLUSTERS, MIN_POINTS, columns_of
from decal_cli.analysis.study.points import OF_SCORES
from decal_cli.analysis.study.summary import Relation, Summary, by_threshold, grouped, short_title, without_a_file
from decal_cli.render.document import SCHEMA
from decal_cli.render.markdown import markdown_table
from decal_cli.render.numbers import DASH, short, span
from decal_cli.render.page import Page
from decal_cli.render.tables import console, width_of, written
from decal_cli.version import __version__

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_HEADINGS = (25, 15, 6)
"""Characters after which a heading is broken, where its column is not wider than that; narrower where it must be."""
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


@dataclass(frozen=True)
class Section:
    """A table with its heading and what it says."""

    title: str
    text: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sections(summary: Summary) -> Iterator[Section]:
    """All tables of a study, the most wanted first; those that its methods do not allow are left out."""
    yield from _correlations(summary)
    yield from _slopes(summary)
    yield from _advice(summary)
    yield _methods(summary)
    yield from _closer(summary)


def _correlations(summary: Summary) -> Iterator[Section]:
    over = summary.points.bootstrap_unit
    drawn = "" if over is None else f", with bootstrap intervals over {over}"
    for title, targets, text in (
        (
            "What predicts the gain of post-training",
            TOTALS,
            "Squared correlation over all points, r2, of each estimate with the gain of each method on the other "
            f"half{drawn}.",
        ),
        (
            "What predicts the gain beyond recalibration",
            FURTHER,
            "The same for what a method gains on top of isotonic recalibration.",
        ),
    ):
        there = [target for target in targets if target in summary.points.targets]
        rows = []
        for name in (*OURS, *OTHERS):
            found = [summary.relations.get((name, target)) for target in there]
            if any(found):
                rows.append((short_title(name), *(_r2(relation) for relation in found)))
        if there and rows:
            yield Section(
                title, text, ("estimate", *(target.removesuffix(BEYOND_SUFFIX) for target in there)), tuple(rows)
            )


def _r2(relation: Relation | None) -> str:
    if relation is None or math.isnan(relation.r2):
        return DASH
    return " ".join(filter(None, (short(relation.r2, 3), span(relation.interval, 2))))


def _slopes(summary: Summary) -> Iterator[Section]:
    rows = []
    for estimate, target in HEADLINES:
        found = summary.relations.get((estimate, target))
        if found is not None:
            error = f"{1000 * found.mean_error:+.2f}"
            slope = DASH if math.isnan(found.slope) else f"{found.slope:.2f}"
            words = target.replace(BEYOND_SUFFIX, f" beyond {BASE}")
            rows.append((short_title(estimate), words, _plain(found.r2), slope, error))
    if rows:
        text = "Slope of the gain on its estimate; mean error: gain less estimate, per 1,000 decisions, u_delta 1."
        yield Section(
            "Are they of the right size?", text, ("estimate", "gain of", "r2", "slope", "mean error"), (*rows,)
        )


def _advice(summary: Summary) -> Iterator[Section]:
    if not summary.policies:
        return
    names = [policy.name for policy in summary.policies[0].policies]
    rows = []
    for found in summary.policies:
        losses = (f"{1000 * policy.loss:.2f}" for policy in found.policies)
        rows.append((f"{found.multiple:g}", *losses, _percent(found.share), _percent(found.right)))
    text = (
        "Utility per 1,000 decisions (u_delta 1) lost to the best choice known afterwards, when recalibration costs "
        ".002 and retraining .01 per decision, times the first column. share: of what the better of always isotonic "
        "and always refit loses. right: points where the advice lost at most .002."
    )
    yield Section("What following the advice loses", text, ("costs x", *names, "share", "right"), tuple(rows))


def _methods(summary: Summary) -> Section:
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
    return Section("What methods take and win", text, head, tuple(rows))


def _closer(summary: Summary) -> Iterator[Section]:
    pairs = [pair for pair in CLOSER if pair in summary.relations]
    if not pairs:
        return
    titles = [f"{short_title(estimate)} → {target.removesuffix(BEYOND_SUFFIX)}" for estimate, target in pairs]
    at = [by_threshold(summary.points, *pair) for pair in pairs]
    rows = [(f"{t:g}", *(_plain(found[t]) for found in at)) for t in at[0]]
    yield Section(
        "What predicts the gain beyond recalibration, at each t*", "r2 at one threshold.", ("t*", *titles), tuple(rows)
    )
    if len(summary.points.files) > 2:
        without = [without_a_file(summary.points, *pair) for pair in pairs]
        rows = [(name, *(_plain(found[name]) for found in without)) for name in without[0]]
        text = "r2 of all points but those of the file."
        yield Section(
            "What predicts the gain beyond recalibration, without each file", text, ("without", *titles), tuple(rows)
        )


def _plain(value: float) -> str:
    return DASH if math.isnan(value) else short(value, 3)


def _percent(share: float) -> str:
    return DASH if math.isnan(share) else f"{100 * share:.0f} %"


def heading(summary: Summary) -> list[str]:
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
        few = [f"So few scores say little of others: intervals need {MIN_CLUSTERS} files or {MIN_CLUSTERS} scores."]
    if not points.enough(np.ones(len(points.threshold), dtype=bool)):
        few.append(f"{DASH}: fewer than {MIN_POINTS} points in a halving, too few for a correlation.")
    *what, found = [f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counts]
    return [
        f"{', '.join(what)}: {found}",
        "Every estimate from the half that methods are fitted to, every gain on the other; utilities over u_delta.",
        *few,
        *(f"{', '.join(names)}: {reason}" for reason, names in grouped(summary.reasons).items()),
    ]


def render_study(summary: Summary, page: Page) -> str:
    """The tables for the terminal."""
    from rich.text import Text

    target = console(page.width, page.color)
    for line in heading(summary):
        target.print(line, markup=False)
    for section in sections(summary):
        target.print()
        target.print(Text(section.title, style="bold"))
        target.print(Text(section.text, style="dim"))
        for k, table in enumerate(_tables(section, page.width)):
            if k:
                target.print()
            target.print(table)
    return written(target)


def _tables(section: Section, width: int) -> list[RichTable]:
    """One table, its headings broken as far as it takes; where that is not enough, some columns below the others."""
    columns = range(1, len(section.head))
    for heading_width in _HEADINGS:
        table = _table(section, columns, heading_width)
        if width_of(table) <= width:
            return [table]
    for parts in range(2, len(columns) + 1):
        size = math.ceil(len(columns) / parts)
        tables = [_table(section, columns[at : at + size], _HEADINGS[1]) for at in range(0, len(columns), size)]
        if size == 1 or all(width_of(table) <= width for table in tables):
            return tables
    return [table]


def _table(section: Section, columns: Sequence[int], heading_width: int) -> RichTable:
    """The first column and some of the others."""
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for k in (0, *columns):
        widest = max((len(row[k]) for row in section.rows), default=0)
        name = Text("\n".join(_broken(section.head[k], max(widest, heading_width))))
        table.add_column(name, justify="right" if k else "left", no_wrap=True, vertical="bottom")
    for row in section.rows:
        table.add_row(*(Text(row[k]) for k in (0, *columns)))
    return table


def _broken(text: str, width: int) -> list[str]:
    """Lines of a heading; an arrow stays with what it points to."""
    tied = text.replace("→ ", "→\xa0")
    lines = textwrap.wrap(tied, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def render_study_markdown(summary: Summary, pictures: dict[str, str]) -> str:
    """The tables and pictures (file name to what it shows) as a page."""
    lines = [
        "# Do the estimates predict the gains?",
        "",
        *(f"{line}  " for line in heading(summary)),
    ]
    for section in sections(summary):
        lines += ["", f"## {section.title}", "", section.text, "", *markdown_table(section.head, section.rows)]
    for name, caption in pictures.items():
        lines += ["", f"![{caption}]({name})", "", caption]
    if summary.notes:
        lines += ["", "## What was left out", "", *(f"- {note}" for note in summary.notes)]
    return "\n".join([*lines, ""])


def render_study_json(summary: Summary) -> str:
    """The summary as data, at full precision."""

    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: finite(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [finite(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    points = summary.points
    document = {
        "schema": SCHEMA,
        "decal": __version__,
        "study": {
            "files": points.files,
            "scores": points.pairs,
            "thresholds": np.unique(points.threshold).tolist(),
            "seeds": np.unique(points.seed).tolist(),
            "points": len(points.threshold),
            "relations": [asdict(relation) for relation in summary.relations.values()],
            "policies": [asdict(found) for found in summary.policies],
            "seconds": dict(summary.seconds),
            "reasons": dict(summary.reasons),
            "notes": summary.notes,
        },
    }
    return json.dumps(finite(document), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def render_points_csv(summary: Summary) -> str:
    """All points, a line each."""
    columns = columns_of(summary.points)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        writer.writerow(["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in row])
    return out.getvalue()
