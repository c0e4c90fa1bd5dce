"""The metrics of an evaluation: one table of all models and groups, and what is to be said about its cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, NotRequired, TypedDict

from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.packs import Pack
from decal_cli.limits import MAX_ACTIONS
from decal_cli.metrics import Result, Witness, parse
from decal_cli.metrics.result import Within
from decal_cli.numbers import DASH, MAX_DECIMALS, plain, short, span
from decal_cli.render.blocks import Block, Column, Notes, Row, Table
from decal_cli.render.cells import metric_cells, number
from decal_cli.render.results.capacity import places_lines
from decal_cli.render.results.source import pair
from decal_cli.render.schema import Ends, Inside, Limit, Share, Words
from decal_cli.task import utility_text

MAX_PLACES = 4
"""Models and groups that a reason lists; of more, only the metrics are named."""
BRIER_PARTS = {
    "brier": "Brier score",
    "irreducible_loss": "irreducible loss",
    "grouping_loss": "grouping loss",
    "corp_mcb": "miscalibration",
}
"""By metric: the first is the sum of the others (Tasche 2021, prop. 2.6)."""
MetricKey = Annotated[str, Limit(pattern=r"^[a-z_0-9]+(\([a-z_]+=[^(),]+(,[a-z_]+=[^(),]+)*\))?$")]
Payoffs = Annotated[list[Share], Limit(minItems=2, maxItems=2)]
ClassPayoffs = Annotated[list[Share], Limit(minItems=2)]
MAX_PASTED = 40
"""Payoffs of a worst agent that a line of text holds; of more, JSON has them."""


class TwoActionsData(TypedDict):
    """The worst task of two actions; loss: what is lost in it, as the metric shown_by shows."""

    utility: Annotated[list[Payoffs], Limit(minItems=2, maxItems=2)]
    loss: Share
    shown_by: str


class WorstAgentData(TypedDict):
    """The decision at which a worst case is attained, payoffs in [0, 1], as --utility takes it.

    A row for each action, a number for each class: of two classes two or three rows with one or two thresholds between
    them, of several classes any number of rows and no thresholds. loss: what is lost in it, as the metric shown_by
    shows. two_actions: of two classes.
    """

    utility: Annotated[list[ClassPayoffs], Limit(minItems=2, maxItems=MAX_ACTIONS)]
    thresholds: Annotated[list[Inside], Limit(minItems=0, maxItems=2)]
    loss: Share
    shown_by: str
    two_actions: NotRequired[TwoActionsData]


class WithinData(TypedDict):
    """Of a value from cells of the score. bound: how far it may be from that of the rows, 0 where it is exact. drawn:
    it rests on folds or draws of cells, and bound is of what they estimate.
    """

    bound: Annotated[float, Limit(minimum=0)]
    drawn: bool


class DefinedData(TypedDict):
    """A value with its interval, null where it has none; parameters: those of the metric, defaults included.

    reason: why an interval that the metric has on other rows is missing. within: where the value is computed from cells
    of the score.
    """

    value: float
    interval: Ends | None
    reason: Words | None
    parameters: dict[str, int | float | str]
    worst_agent: NotRequired[WorstAgentData]
    within: NotRequired[WithinData]


class UndefinedData(TypedDict):
    """A value that does not exist, and why."""

    value: None
    interval: None
    reason: Words
    parameters: dict[str, int | float | str]


ResultData = DefinedData | UndefinedData


def result_data(key: str, result: Result) -> ResultData:
    """The result of a metric as JSON has it."""
    parameters = parse(key).parameters
    if result.value is None:
        return {"value": None, "interval": None, "reason": result.reason or "", "parameters": parameters}
    defined: DefinedData = {
        "value": result.value,
        "interval": pair(result.interval),
        "reason": result.missing,
        "parameters": parameters,
    }
    if result.witness is not None:
        defined["worst_agent"] = _worst_agent(result.witness)
    if result.within is not None:
        defined["within"] = {"bound": result.within.bound, "drawn": result.within.drawn}
    return defined


def _worst_agent(witness: Witness) -> WorstAgentData:
    document: WorstAgentData = {
        "utility": [list(row) for row in witness.utility],
        "thresholds": list(witness.thresholds),
        "loss": witness.loss,
        "shown_by": witness.shown_by,
    }
    if witness.thresholds:
        two = witness.of_two or witness
        document["two_actions"] = {
            "utility": [list(row) for row in two.utility], "loss": two.loss, "shown_by": two.shown_by,
        }  # fmt: skip
    return document


def name_of(report: Report) -> str:
    """The model, and the group if it is one."""
    return ", ".join(filter(None, (report.model, report.group)))


def metric_table(reports: Sequence[Report], pack: Pack | None = None) -> Table:
    """Metrics down, models and groups across; those of a pack as it calls them."""
    columns = [Column("metric", words=True), Column("", words=True)]
    columns += [Column(report.model, report.group or "") for report in reports]
    rows = tuple(_rows(reports))
    if pack is not None:
        rows = tuple(_as_called(row, pack) for row in rows)
    return Table(tuple(columns), rows, keys=2, dense=True)


def _as_called(row: Row, pack: Pack) -> Row:
    name, *others = row.cells
    return replace(row, cells=(replace(name, parts=(pack.measures[name.code],)), *others), section="", empty=False)


def _rows(reports: Sequence[Report]) -> Iterator[Row]:
    for key in reports[0].results:
        metric = parse(key).declared
        results = [report.results[key] for report in reports]
        cells = (number(each.value, each.interval, fewer=3, reason=each.reason, text=each.text) for each in results)
        # What is undefined everywhere keeps its row, with dashes, where people look for it.
        empty = all(each.value is None for each in results) and not metric.shown
        yield Row((*metric_cells(key), *cells), metric.family, empty=empty)


def metric_notes(evaluation: Evaluation) -> list[Block]:
    """What stands below the table: tasks to paste, why cells are empty, what intervals and features do not say."""
    reports = evaluation.reports
    worst = worst_lines(reports)
    per = evaluation.columns.get("per")
    places = places_lines(reports, per if isinstance(per, str) else None)
    quiet = [
        *within_lines(reports),
        *places,
        *part_lines(reports),
        *undefined_reasons(reports),
        *unknown_lines(evaluation),
    ]
    blocks: list[Block] = [Notes(tuple(worst), copy=True)] if worst else []
    blocks += [Notes(tuple(quiet), quiet=True)] if quiet else []
    return [replace(block, close=bool(number)) for number, block in enumerate(blocks)]


def within_lines(reports: Sequence[Report]) -> list[str]:
    """Of values from cells of the score: which are exact, and how far the others may be from those of the rows."""
    bounds: dict[str, Within] = {}
    for report in reports:
        for key, result in report.results.items():
            if result.within is not None and result.value is not None:
                bounds[key] = max(result.within, bounds.get(key, result.within))
    if not bounds:
        return []
    exact = [key for key, each in bounds.items() if not each.bound and not each.drawn]
    near = [f"{key} {plain(each.bound)}" for key, each in bounds.items() if each.bound and not each.drawn]
    drawn = [f"{key} {plain(each.bound)}" for key, each in bounds.items() if each.drawn]
    lines = [f"from cells of the score; exact: {', '.join(exact) or 'none'}"]
    if len(exact) == len(bounds):
        lines = ["from cells of the score; all numbers are exact"]
    lines += [f"at most so far from the value of the rows: {', '.join(near)}"] if near else []
    lines += [
        f"from folds or draws of cells, and what these estimate is at most so far off: {', '.join(drawn)}"
    ] * bool(drawn)
    return lines


def unknown_lines(evaluation: Evaluation) -> list[str]:
    """Without features: what cannot be known, with the worst case, as such."""
    lines = []
    for report in evaluation.reports:
        worst = report.results.get("regret_grouping_worst")
        grouping = report.results.get("regret_grouping")
        if report.group or worst is None or worst.value is None or grouping is None or grouping.value is not None:
            continue
        name = "" if len(evaluation.reports) == 1 else f"{report.model}: "
        lines.append(
            f"{name}without --features, the gain beyond recalibration is unknown: between 0 and {plain(worst.value)} "
            "per decision (an upper limit, not an estimate)"
        )
    return lines


def part_lines(reports: Sequence[Report]) -> list[str]:
    """The Brier score of each model as the sum of three parts, with so many decimals that what is printed adds up."""
    lines = []
    for report in reports:
        whole, *parts = (report.results.get(key) for key in BRIER_PARTS)
        results = [result for result in (whole, *parts) if result is not None and result.value is not None]
        if report.group or len(results) < len(BRIER_PARTS):
            continue
        decimals = _adding(*(result.value or 0.0 for result in results))
        sizes = [f"{short(result.value or 0.0, decimals)} {span(result.interval, decimals)}" for result in results]
        of_whole, *texts = (f"{name} {size}".strip() for name, size in zip(BRIER_PARTS.values(), sizes, strict=True))
        lines.append(f"{'' if len(reports) == 1 else f'{report.model}: '}{of_whole} = {' + '.join(texts)}")
    return lines


def _adding(whole: float, *parts: float) -> int:
    """The fewest decimals, from 4 on, with which rounded parts add up to the rounded whole."""
    for decimals in range(4, MAX_DECIMALS):
        if abs(sum(round(part, decimals) for part in parts) - round(whole, decimals)) < 0.5 / 10**decimals:
            break
    return decimals


def worst_lines(reports: Sequence[Report]) -> list[str]:
    """The tasks of the worst agents, to be pasted: one line for all metrics of a report that share one."""
    lines = []
    for report in reports:
        keys: dict[str, list[str]] = {}
        for key, result in report.results.items():
            if result.witness is not None:
                keys.setdefault(_worst(result.witness), []).append(key)
        where = "" if len(reports) == 1 else f" on {name_of(report)}"
        lines += [f"worst agent of {', '.join(shared)}{where}: {text}" for text, shared in keys.items()]
    return lines


def _worst(witness: Witness) -> str:
    actions, loses = f"{len(witness.utility)} actions", f"(loses {plain(witness.loss)}, see {witness.shown_by})"
    if len(witness.utility) * len(witness.utility[0]) > MAX_PASTED:
        return f"{actions}, --utility in JSON, as worst_agent {loses}"
    paste = f"--utility '{utility_text(witness.utility)}' {loses}"
    if not witness.thresholds:
        return f"{actions}, {paste}"
    kinks = " and ".join(plain(threshold) for threshold in witness.thresholds)
    if len(witness.utility) == 2:
        return f"the V-shaped rule with its kink at {kinks}, {paste}"
    return f"{actions}, the rule with kinks at {kinks}, {paste}"


def undefined_reasons(reports: Sequence[Report]) -> list[str]:
    """Why cells show a dash, or a value without its interval: one line for each reason."""
    places: dict[str, list[tuple[str, str]]] = {}
    for report in reports:
        where = "" if len(reports) == 1 else f" of {' in '.join(filter(None, (report.model, report.group)))}"
        for key, result in report.results.items():
            if result.missing is not None:
                places.setdefault(result.missing, []).append((key, where))
    lines = []
    for reason, all_places in places.items():
        many = len(all_places) > MAX_PLACES
        named = dict.fromkeys(key if many else key + where for key, where in all_places)
        lines.append(f"{DASH} {', '.join(named)}: {reason}")
    return lines
