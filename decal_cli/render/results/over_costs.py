"""What `decal recommend` returns where costs are not known: which advice holds from which to which number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.recommend import RangeAdvice, Stretch, Unknown
from decal_cli.declarations.document import Count, Positive
from decal_cli.numbers import times, within
from decal_cli.render import blocks as b
from decal_cli.render.cells import Columns, left, table
from decal_cli.render.results.evaluation import name_of
from decal_cli.render.results.source import Provenance, one_or_several, source_lines, title_of
from decal_cli.render.schema import View, data_of, of
from decal_cli.render.terms import StatedTerms

CALLED = {"threshold": "threshold", "cost_fp": "cost of a false alarm", "cost_fn": "cost of a miss"}
"""What the number that is not known is called."""


class RangeData(View):
    """The number that is not known, its range, and the stretches of it at which the same is to be done.

    number: its key, such as cost_fn. best: where the advice of a stretch wins most; null where it wins nothing.
    """

    number: str = of(lambda seen, *_: seen.unknown.name)
    low: float = of(lambda seen, *_: seen.unknown.low)
    high: float = of(lambda seen, *_: seen.unknown.high)
    stretches: list[Stretch] = of(lambda seen, *_: list(seen.stretches))


class RangedData(View):
    """One model and group."""

    model: str = of(lambda seen, *_: seen.report.model)
    group: str | None = of(lambda seen, *_: seen.report.group)
    rows: Positive = of(lambda seen, *_: seen.report.rows)
    dropped: Count = of(lambda seen, *_: seen.report.dropped)
    range: RangeData = of(lambda seen, *_: RangeData(seen))


class _RangedReport:
    """A report, with the stretches of the number that is not known."""

    def __init__(self, report: Report, stretches: tuple[Stretch, ...], unknown: Unknown) -> None:
        self.report, self.stretches, self.unknown = report, stretches, unknown


class Ranged:
    """Advice over a range, for formats to write."""

    def __init__(self, advice: RangeAdvice, terms: StatedTerms | None = None) -> None:
        self.advice, self.evaluation = advice, advice.evaluation
        self.terms = terms or StatedTerms()
        self.title = title_of(self.evaluation)

    def _each(self) -> Iterator[_RangedReport]:
        for report, stretches in zip(self.evaluation.reports, self.advice.stretches, strict=True):
            yield _RangedReport(report, stretches, self.advice.unknown)

    def blocks(self) -> Iterator[b.Block]:
        """Of each model and group what to do in a sentence, and a row for each stretch; then the data."""
        unknown = self.advice.unknown
        for seen in self._each():
            yield b.Heading(name_of(seen.report))
            yield b.Conclusion(self._answer(seen), (), close=True)
            yield self._table(seen)
        yield b.Notes(tuple(self._words()))
        held = (f"{CALLED[unknown.name]} from {unknown.low:g} to {unknown.high:g}",)
        yield b.SourceLines((*source_lines(self.evaluation), *held))
        yield b.Signature(self.evaluation.signature, close=True)

    def _words(self) -> Iterator[str]:
        if self.advice.unknown.name == "threshold":
            yield "At a threshold of t a false alarm (acting at label 0) costs t, a miss (not acting at label 1) 1 - t."
        else:
            yield "Acting pays from the threshold on: the cost of a false alarm over the sum of both costs."
        yield f"wins: over acting on the score as it is, {self.terms.heading}, at the number where it wins most."

    def _answer(self, seen: _RangedReport) -> str:
        """Which advice holds where, the longest stretches first named; how much the best of them wins."""
        called = CALLED[self.advice.unknown.name]
        if len(seen.stretches) == 1:
            (only,) = seen.stretches
            return f"{_to_do(only)} at every {called} from {only.low:g} to {only.high:g}{self._most(only)}."
        won = [stretch for stretch in seen.stretches if stretch.best is not None]
        if not won:
            return f"Use the model as it is at every {called} from {self.advice.unknown.low:g} to " + (
                f"{self.advice.unknown.high:g}."
            )
        most = max(won, key=lambda stretch: 0.0 if stretch.best is None else stretch.best.gain)
        what = _to_do(most)
        return (
            f"What to do depends on the costs. Most is won by this: {what[0].lower()}{what[1:]}, for a {called} "
            f"{_span(most)}{self._most(most)}."
        )

    def _most(self, stretch: Stretch) -> str:
        return (
            "" if stretch.best is None else f"; it wins {self._gain(stretch)} {self.terms.span} at {stretch.best.at:g}"
        )

    def _gain(self, stretch: Stretch) -> str:
        if stretch.best is None:
            return ""
        factor = self.terms.number
        return within(factor * stretch.best.gain, times(stretch.best.interval, factor))

    def _table(self, seen: _RangedReport) -> b.TextTable:
        unknown = self.advice.unknown
        thresholds: Columns[Stretch] = (
            []
            if unknown.name == "threshold"
            else [("threshold", lambda each: " to ".join(dict.fromkeys(f"{end:.3g}" for end in each.thresholds)))]
        )
        return table(
            seen.stretches,
            [
                (left(CALLED[unknown.name]), lambda each: _span(each).removeprefix("of ")),
                *thresholds,
                (left("what to do", wraps=True), _to_do),
                (b.Column("wins", breaks=(16,)), self._gain),
                ("at", lambda each: "" if each.best is None else f"{each.best.at:g}"),
            ],
        )

    def data(self) -> dict[str, Any]:
        """One report, or several."""
        entries = [data_of(RangedData(seen)) for seen in self._each()]
        return one_or_several(data_of(Provenance(self.evaluation)), entries)

    def rows(self) -> Iterator[list[Any]]:
        """One row for each model, group and stretch."""
        yield ["model", "group", "number", "low", "high", "action", "method", "constant", "at", "gain", "from", "to"]
        for seen in self._each():
            for each in seen.stretches:
                ends = (None, None) if each.best is None or each.best.interval is None else each.best.interval
                best = (None, None) if each.best is None else (each.best.at, each.best.gain)
                who = seen.report.model, seen.report.group, seen.unknown.name
                yield [*who, each.low, each.high, each.action, each.method, each.constant, *best, *ends]


def _to_do(stretch: Stretch) -> str:
    """What to do, in words."""
    if stretch.action == "recalibrate":
        return f"Recalibrate with {stretch.method}"
    if stretch.action == "post-train":
        return f"Post-train on the features with {stretch.method}"
    return "Use the model as it is" if stretch.constant is None else stretch.constant.capitalize()


def _span(stretch: Stretch) -> str:
    return f"of {stretch.low:g}" if stretch.low == stretch.high else f"from {stretch.low:g} to {stretch.high:g}"
