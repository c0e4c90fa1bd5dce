"""What a score is worth at a limited capacity, as it is and with methods: a sentence, a table, data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NotRequired, TypedDict

from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.ranked import PERFECT, RECALIBRATION, Kind, Ranked
from decal_cli.analysis.recommend import Recommendation
from decal_cli.numbers import DASH, plain
from decal_cli.render.blocks import Block, Column, Notes, Paragraph, Row, Table
from decal_cli.render.cells import number, words
from decal_cli.render.results.source import pair
from decal_cli.render.schema import Ends, Share
from decal_cli.render.terms import Terms
from decal_cli.task import BinaryTask


class RankedData(TypedDict):
    """One score at the capacity; method: null of the score as it is. Of new scores, on held-out rows.

    value_capture: null where all rows share a task. gain: utility per decision over the score as it is, with its paired
    interval.
    """

    method: str | None
    kind: Kind | None
    utility: float | None
    capture: Share | None
    value_capture: Share | None
    precision: Share | None
    gain: float | None
    interval: Ends | None
    reason: str | None


class WithRanked(TypedDict):
    """What a recommendation says of it, where the capacity is limited."""

    at_capacity: NotRequired[list[RankedData]]


def ranked_data(ranked: Sequence[Ranked]) -> WithRanked:
    """As JSON has it; empty where there is no limit."""
    if not ranked:
        return {}
    data: list[RankedData] = [
        {
            "method": each.method,
            "kind": each.kind,
            "utility": each.utility,
            "capture": each.capture,
            "value_capture": each.value_capture,
            "precision": each.precision,
            "gain": each.gain,
            "interval": pair(each.interval),
            "reason": each.reason,
        }
        for each in ranked
    ]
    return {"at_capacity": data}


def ranked_blocks(recommendation: Recommendation, report: Report, terms: Terms) -> Iterator[Block]:
    """What a limited capacity changes for the model of a report, and what each score is worth under it."""
    ranked, evaluation = recommendation.ranked_of(report), recommendation.evaluation
    if not ranked or evaluation.capacity is None:
        return
    sentences = (*_of_the_limit(ranked, report, terms), *_of_methods(ranked, evaluation.plan.binary, terms))
    yield Paragraph(" ".join(sentences), strong=f"At capacity {evaluation.capacity.text}.")
    names = ["capture", *([] if ranked[0].value_capture is None else ["capture of value"]), "precision"]
    columns = [Column("score", words=True), Column(f"utility {terms.heading}"), Column("gain over the score as it is")]
    rows = tuple(_table_row(each, ranked[0].value_capture is not None, terms) for each in ranked)
    yield Table((*columns, *map(Column, names)), rows, stacked=False)
    reasons = tuple(f"{DASH} {each.method}: {each.reason}" for each in ranked if each.reason is not None)
    if reasons:
        yield Notes(reasons, quiet=True, close=True)


def _table_row(each: Ranked, valued: bool, terms: Terms) -> Row:
    utility, gain = (None if value is None else terms.number * value for value in (each.utility, each.gain))
    ends = None
    if each.interval is not None:
        ends = terms.number * each.interval[0], terms.number * each.interval[1]
    name = "as it is" if each.method is None else f"{each.method}, held-out rows"
    name = PERFECT if each.method == PERFECT else name
    shares = [each.capture, *([each.value_capture] if valued else []), each.precision]
    cells = (number(share, decimals=3) for share in shares)
    return Row((words(name), number(utility), number(gain, ends) if each.method else words(""), *cells))


def _of_the_limit(ranked: Sequence[Ranked], report: Report, terms: Terms) -> Iterator[str]:
    """What the limit costs, and what is left to win under it."""
    now, unlimited = ranked[0].utility or 0.0, report.results["expected_utility"].value or 0.0
    perfect = next((each for each in ranked if each.method == PERFECT), None)
    if report.places is not None and not report.places.full:
        yield "Every row that would be acted on has a place, so that the limit changes nothing."
    else:
        verb = "costs" if unlimited >= now else "wins"
        (apart, with_places, without), unit = terms.amounts(abs(unlimited - now), now, unlimited)
        yield (
            f"The limit {verb} {apart} {unit or terms.noun} {terms.span}: acting on the score is worth {with_places} "
            f"with these places, and {without} without a limit."
        )
    if perfect is not None and perfect.gain is not None:
        (gain, *ends), unit = terms.amounts(perfect.gain, *(perfect.interval or ()))
        span = f" [{', '.join(ends)}]" if ends else ""
        won = f"{gain}{span} {unit or terms.noun} {terms.span}"
        yield f"A perfect ranking, by the labels, would win {won} more with these places; no method can win more."


def _of_methods(ranked: Sequence[Ranked], task: BinaryTask | None, terms: Terms) -> Iterator[str]:
    """What methods win with these places; task: None where every row has utilities of its own."""
    recalibrated = next((each for each in ranked if each.method == RECALIBRATION), None)
    if recalibrated is not None and recalibrated.gain is not None:
        if task is None:
            best = _best(ranked, "recalibration")
            won = _won(best, terms)
            yield f"Recalibration by {best.method} changes what acting is expected to win, and so the order: {won}."
        else:
            nothing = recalibrated.gain == 0
            won = "on the rows with a place, that changes nothing" if nothing else _won(recalibrated, terms)
            reached = plain(task.threshold)
            yield f"Recalibration keeps the order of the scores, and changes only which of them reach {reached}: {won}."
    if any(each.kind == "post-training" and each.gain is not None for each in ranked):
        best = _best(ranked, "post-training")
        yield f"Of the post-trained scores, {best.method} is worth most: {_won(best, terms)}."
    elif task is None:
        yield "What features would win with these places is unknown."
    else:
        yield "Only another order, such as one that features give, finds other rows."
    yield "Questions, counts and gains below are for decisions without this limit."


def _best(ranked: Sequence[Ranked], kind: Kind) -> Ranked:
    """The one of this kind that wins most."""
    of_kind = (each for each in ranked if each.kind == kind and each.gain is not None)
    return max(of_kind, key=lambda each: each.gain or 0.0)


def _won(each: Ranked, terms: Terms) -> str:
    """How much is won, and whether chance could explain it."""
    gain, ends = each.gain or 0.0, each.interval or ()
    doubtful = len(ends) == 2 and ends[0] <= 0 <= ends[1]
    sign = 1 if gain >= 0 or doubtful else -1
    (value, *shown), unit = terms.amounts(sign * gain, *sorted(sign * end for end in ends))
    amount = f"{value}{f' [{shown[0]}, {shown[1]}]' if shown else ''} {unit or terms.noun} {terms.span}"
    if doubtful:
        return f"its gain is {amount}, which chance could explain"
    return f"it {'wins' if sign > 0 else 'loses'} {amount}"
