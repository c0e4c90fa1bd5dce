"""Decision counts and amounts beside an advice: a table, sentences, data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypedDict

from decal_cli.analysis.counts import CountedStep, Decided, DecisionCounts
from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.flowchart import FITS, GAINS, Advice
from decal_cli.crossfit.changes import DecisionChange
from decal_cli.metrics import Result
from decal_cli.numbers import alike, counts, plain
from decal_cli.render.blocks import Cell, Column, Row, Table
from decal_cli.render.cells import number, words
from decal_cli.render.results.source import pair
from decal_cli.render.schema import Ends, Limit, Share, Size
from decal_cli.render.terms import Terms
from decal_cli.task import BinaryTask

OF_ROWS = 1000
"""Rows that printed counts are of."""
RULES = ("as it is", "recalibrated", "with features")


class DecisionChangeData(TypedDict):
    """Rows whose decision a step changes, by direction and label; their cells less those before. gain: in utility per
    decision, u_delta (true_positives (1 - t*) - false_positives t*) / rows.
    """

    started_positive: Size
    started_negative: Size
    stopped_positive: Size
    stopped_negative: Size
    true_positives: float
    false_positives: float
    gain: float


class DecidedData(TypedDict):
    """Rows, or their summed weight, by decision and label. change: from the step before; null for the score as it is.

    After post-training these are expected counts, on held-out rows: those before and the change, held within the rows
    of each label.
    """

    acted: Size
    true_positives: Size
    false_positives: Size
    false_negatives: Size
    true_negatives: Size
    ppv: Share | None
    sensitivity: Share | None
    change: DecisionChangeData | None


class AdjustedData(TypedDict):
    """The threshold in use, and the one on the same score that decides as the recalibrated score does: a number to be
    used as it is written, null where no recalibrated score reaches t*.
    """

    in_use: float
    adjusted: str | None
    interval: Ends | None


class CountsData(TypedDict):
    """Decisions of a model on its rows. names: of the actions 0 and 1; rows: or their summed weight. recalibrated and
    with_features are null where that gain is undefined.
    """

    names: Annotated[list[str], Limit(minItems=2, maxItems=2)] | None
    rows: Size
    as_is: DecidedData
    recalibrated: DecidedData | None
    with_features: DecidedData | None
    threshold: AdjustedData


class AmountData(TypedDict):
    """An amount with its interval; null where the metric is undefined."""

    value: float | None
    interval: Ends | None


class AmountsData(TypedDict):
    """Utilities times the number of decisions, in the user's unit; per: the time in which these decisions are made."""

    unit: str | None
    per: str | None
    decisions: Annotated[float, Limit(exclusiveMinimum=0)]
    expected_utility: AmountData
    gain_recalibration: AmountData
    gain_beyond: AmountData
    gain_post_training: AmountData


def counts_table(report: Report, terms: Terms) -> Table | None:
    """The decisions of each rule, of 1,000 rows; None where they were not counted."""
    counted = report.counts
    if counted is None:
        return None
    headings = ["acts on", "true positives", "false positives", "misses", "newly acted on", "no longer acted on"]
    if terms.names:
        off, on = terms.names
        headings = [on, f"{on} at label 1", f"{on} at label 0", f"{off} at label 1", f"{off} → {on}", f"{on} → {off}"]
    columns = [Column(heading, breaks=(10,)) for heading in (*headings, "PPV", "sensitivity")]
    rows = [
        Row((words(name), *_cells(decided, change, counted.total)))
        for name, (decided, change) in zip(RULES, _rules(counted), strict=False)
    ]
    title = f"Decisions, of {OF_ROWS:,} rows"
    return Table((Column("score", words=True), *columns), tuple(rows), title=title, keys=1)


def _rules(counted: DecisionCounts) -> Iterator[tuple[Decided, DecisionChange | None]]:
    yield counted.as_is, None
    for step in (counted.recalibrated, counted.with_features):
        if step is not None:
            yield step.decided, step.change


def _cells(decided: Decided, change: DecisionChange | None, total: float) -> Iterator[Cell]:
    for count in (decided.acted, decided.true_positives, decided.false_positives, decided.false_negatives):
        yield words(f"{OF_ROWS * count / total:,.1f}")
    for moved in (None, None) if change is None else (change.started, change.stopped):
        yield words("" if moved is None else f"{OF_ROWS * moved / total:,.1f}")
    yield number(decided.ppv, decimals=3)
    yield number(decided.sensitivity, decimals=3)


def counted_sentences(report: Report, advice: Advice, task: BinaryTask, terms: Terms) -> Iterator[str]:
    """How many rows are acted on, what the method of the advice changes, and the threshold to use."""
    counted = report.counts
    if counted is None:
        return
    share = OF_ROWS / counted.total
    changes = _changes(counted, advice)
    misses = [-share * sum(change.true_positives for change in changes)] if changes else []
    alarms = [share * sum(change.false_positives for change in changes)] if changes else []
    acted, *others = counts([share * counted.as_is.acted, *map(abs, (*alarms, *misses))])
    act = "Acts on" if terms.names is None else f"Decides '{terms.names[1]}' for"
    text = f"{act} {acted} of {OF_ROWS:,}."
    if changes:
        off, on = terms.names or ("", "")
        fewer = _more(others[0], alarms[0], f"'{on}' at label 0" if terms.names else "false positives")
        missed = _more(others[1], misses[0], f"'{off}' at label 1" if terms.names else "misses")
        text += f" With {advice.method}: {fewer}, {missed}"
        if terms.with_amounts and advice.gain is not None:
            text += f"; saves {terms.amount(advice.gain, advice.interval)}"
        text += "."
    yield text
    yield _threshold_sentence(report.results["threshold_adjusted"], task)


def _changes(counted: DecisionCounts, advice: Advice) -> list[DecisionChange]:
    """The steps from the score as it is to the method that the advice names."""
    if advice.method is None:
        return []
    steps: tuple[CountedStep | None, ...] = (counted.recalibrated,)
    if advice.method != FITS["recalibrate"]:
        steps = (counted.recalibrated, counted.with_features)
    return [] if None in steps else [step.change for step in steps if step is not None]


def _more(text: str, change: float, what: str) -> str:
    """'90 fewer false positives'."""
    if not text.strip("0.,"):
        return f"as many {what}"
    return f"{text} {'more' if change > 0 else 'fewer'} {what}"


def _threshold_sentence(adjusted: Result, task: BinaryTask) -> str:
    start = f"Threshold on the score: {plain(task.decision_threshold)} in use"
    if adjusted.value is None:
        return f"{start}; {adjusted.reason}."
    ends = "" if adjusted.interval is None else f" [{', '.join(alike(adjusted.interval))}]"
    return (
        f"{start}; from {adjusted.text or plain(adjusted.value)}{ends} on, it decides as the recalibrated score does."
    )


def counts_data(report: Report, task: BinaryTask | None, terms: Terms) -> CountsData | None:
    """The counts as JSON has them; null where nothing was counted."""
    counted = report.counts
    if counted is None or task is None:
        return None
    adjusted = report.results["threshold_adjusted"]
    text = None if adjusted.value is None else adjusted.text or repr(adjusted.value)
    recalibrated, features = counted.recalibrated, counted.with_features
    return {
        "names": None if terms.names is None else list(terms.names),
        "rows": counted.total,
        "as_is": _decided_data(counted.as_is, None),
        "recalibrated": None if recalibrated is None else _step_data(recalibrated, task, counted.total),
        "with_features": None if features is None else _step_data(features, task, counted.total),
        "threshold": {
            "in_use": task.decision_threshold,
            "adjusted": text,
            "interval": pair(adjusted.interval),
        },
    }


def _step_data(step: CountedStep, task: BinaryTask, total: float) -> DecidedData:
    change = step.change
    changed: DecisionChangeData = {
        "started_positive": change.started_positive,
        "started_negative": change.started_negative,
        "stopped_positive": change.stopped_positive,
        "stopped_negative": change.stopped_negative,
        "true_positives": change.true_positives,
        "false_positives": change.false_positives,
        "gain": task.u_delta * change.worth(task.threshold) / total,
    }
    return _decided_data(step.decided, changed)


def _decided_data(decided: Decided, change: DecisionChangeData | None) -> DecidedData:
    return {
        "acted": decided.acted,
        "true_positives": decided.true_positives,
        "false_positives": decided.false_positives,
        "false_negatives": decided.false_negatives,
        "true_negatives": decided.true_negatives,
        "ppv": decided.ppv,
        "sensitivity": decided.sensitivity,
        "change": change,
    }


def amounts_data(results: Mapping[str, Result], terms: Terms) -> AmountsData | None:
    """Utility and gains as amounts; null where the user did not say what they mean."""
    if not terms.with_amounts:
        return None
    return {
        "unit": terms.unit,
        "per": terms.per,
        "decisions": terms.number,
        "expected_utility": _amount(results, "expected_utility", terms),
        "gain_recalibration": _amount(results, GAINS["recalibrate"], terms),
        "gain_beyond": _amount(results, "gain_beyond", terms),
        "gain_post_training": _amount(results, GAINS["post-train"], terms),
    }


def _amount(results: Mapping[str, Result], key: str, terms: Terms) -> AmountData:
    result = results[key]
    ends = None if result.interval is None else [terms.number * end for end in result.interval]
    return {"value": None if result.value is None else terms.number * result.value, "interval": ends}
