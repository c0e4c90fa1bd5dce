"""What a score is worth at a limited capacity, as it is and with methods: a sentence, a table, data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NotRequired, TypedDict

from decal_cli.analysis.ranked import RECALIBRATION, Kind, Ranked
from decal_cli.numbers import DASH, plain
from decal_cli.render.blocks import Block, Column, Notes, Paragraph, Row, Table
from decal_cli.render.cells import number, words
from decal_cli.render.results.source import pair
from decal_cli.render.schema import Ends, Share
from decal_cli.render.terms import Terms
from decal_cli.task import BinaryTask


class RankedData(TypedDict):
    """One score at the capacity; method: null of the score as it is. Of new scores, on held-out rows.

    gain: utility per decision over the score as it is, with its paired interval.
    """

    method: str | None
    kind: Kind | None
    utility: float | None
    capture: Share | None
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
            "precision": each.precision,
            "gain": each.gain,
            "interval": pair(each.interval),
            "reason": each.reason,
        }
        for each in ranked
    ]
    return {"at_capacity": data}


def ranked_blocks(ranked: Sequence[Ranked], capacity: str, task: BinaryTask, terms: Terms) -> Iterator[Block]:
    """What the limit changes, and what each score is worth under it."""
    if not ranked:
        return
    yield Paragraph(" ".join(_sentences(ranked, task, terms)), strong=f"At capacity {capacity}.")
    columns = [Column("score", words=True), Column(f"utility {terms.heading}"), Column("gain over the score as it is")]
    columns += [Column("capture"), Column("precision")]
    yield Table(tuple(columns), tuple(_table_row(each, terms) for each in ranked), stacked=False)
    reasons = tuple(f"{DASH} {each.method}: {each.reason}" for each in ranked if each.reason is not None)
    if reasons:
        yield Notes(reasons, quiet=True, close=True)


def _table_row(each: Ranked, terms: Terms) -> Row:
    utility, gain = (None if value is None else terms.number * value for value in (each.utility, each.gain))
    ends = None
    if each.interval is not None:
        ends = terms.number * each.interval[0], terms.number * each.interval[1]
    name = "as it is" if each.method is None else f"{each.method}, held-out rows"
    shares = (number(share, decimals=3) for share in (each.capture, each.precision))
    return Row((words(name), number(utility), number(gain, ends) if each.method else words(""), *shares))


def _sentences(ranked: Sequence[Ranked], task: BinaryTask, terms: Terms) -> Iterator[str]:
    """What holds of the list, then what is won on it."""
    yield "Questions, counts and gains above are for decisions without this limit."
    by_method = {each.method: each for each in ranked}
    recalibrated = by_method.get(RECALIBRATION)
    if recalibrated is not None and recalibrated.gain is not None:
        nothing = recalibrated.gain == 0
        won = "on the rows with a place, that changes nothing" if nothing else _won(recalibrated, terms)
        reached = plain(task.threshold)
        yield f"Recalibration keeps the order of the scores, and changes only which of them reach {reached}: {won}."
    others = [each for each in ranked if each.kind == "post-training" and each.gain is not None]
    if others:
        best = max(others, key=lambda each: each.gain or 0.0)
        yield f"Of the scores in another order, {best.method} is worth most: {_won(best, terms)}."
    else:
        yield "Only another order, such as one that features give, finds other rows."


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
