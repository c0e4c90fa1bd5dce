"""What `decal recommend` returns where costs are not known: which advice holds from which to which number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from decal_cli.analysis.over_costs import RangeAdvice, Stretch
from decal_cli.declarations.document import Count, Positive
from decal_cli.numbers import decimals_for, times
from decal_cli.render import blocks as b
from decal_cli.render.cells import amount, left, table, words
from decal_cli.render.results.source import Provenance, WrittenResult, ends_of, one_or_several, source_lines
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.render.terms import PLAIN, StatedTerms

CALLED = {"threshold": "threshold", "cost_fp": "cost of a false alarm", "cost_fn": "cost of a miss"}
"""What the number that is not known is called."""


class RangeData(View):
    """The number that is not known, its range, and the stretches of it at which the same is to be done.

    number: its key, such as cost_fn. best: where the advice of a stretch wins most; null where it wins nothing.
    """

    number: str = of("unknown.name")
    low: float = of("unknown.low")
    high: float = of("unknown.high")
    stretches: list[Stretch] = of(lambda _, stretches: stretches)


class RangedData(View):
    """One model and group."""

    model: str
    group: str | None
    rows: Positive
    dropped: Count
    range: RangeData = of(lambda _, advice, stretches: RangeData(advice, stretches))


class Ranged(WrittenResult):
    """Advice over a range, for formats to write."""

    def __init__(self, advice: RangeAdvice, terms: StatedTerms = PLAIN) -> None:
        super().__init__(advice.evaluation, terms)
        self.advice, self.unknown, self.called = advice, advice.unknown, CALLED[advice.unknown.name]
        self.each = list(zip(advice.evaluation.reports, advice.stretches, strict=True))

    def sections(self) -> b.Blocks:
        """For each model and group a sentence on what to do, and a row for each stretch; then the data."""
        of_threshold = self.unknown.name == "threshold"
        for report, stretches in self.each:
            yield b.Heading(report.name)
            yield b.Conclusion(self._answer(stretches), (), close=True)
            yield table(
                stretches,
                [
                    (
                        left(self.called, breaks=(30, 12)),
                        lambda each: _from_to("from ", f"{each.low:g}", f"{each.high:g}"),
                    ),
                    not of_threshold
                    and ("threshold", lambda each: _from_to("", *(f"{t:.3g}" for t in each.thresholds))),
                    (left("what to do", wraps=True), _to_do),
                    ("wins", partial(self._gain, stretches=stretches)),
                    ("at", lambda each: "" if each.best is None else f"{each.best.at:g}"),
                ],
            )
        costs = "Acting pays from the threshold on: the cost of a false alarm over the sum of both costs."
        if of_threshold:
            costs = (
                "At a threshold of t a false alarm (acting at label 0) costs t, a miss (not acting at label 1) 1 - t."
            )
        over = f"wins: over acting on the score as it is, {self.terms.heading}, at the number where it wins most."
        yield b.Notes((costs, over))
        yield b.Notes((*source_lines(self.evaluation), f"{self.called} {self._range}"))

    @property
    def _range(self) -> str:
        return f"from {self.unknown.low:g} to {self.unknown.high:g}"

    def _answer(self, stretches: Sequence[Stretch]) -> str:
        """Which advice holds where; how much the best of them wins."""
        most = max(stretches, key=lambda stretch: -math.inf if stretch.best is None else stretch.best.gain)
        what, wins = _to_do(most), ""
        if most.best is not None:
            won = " ".join(filter(None, (self._gain(most, stretches).text, self.terms.unit, self.terms.span)))
            wins = f"; it wins {won} at {most.best.at:g}"
        if len(stretches) == 1:
            return f"{what} at every {self.called} from {most.low:g} to {most.high:g}{wins}."
        return (
            f"What to do depends on the costs. Most is won by this: {what[0].lower()}{what[1:]}, for a {self.called} "
            f"{_span(most)}{wins}."
        )

    def _gain(self, stretch: Stretch, stretches: Sequence[Stretch]) -> b.Cell:
        """What it wins; the gains of all stretches have the same decimals."""
        if stretch.best is None:
            return words("")
        count, known = self.terms.number, [each.best for each in stretches if each.best is not None]
        decimals = decimals_for([times(each.interval, count) for each in known], [count * each.gain for each in known])
        return amount(count * stretch.best.gain, times(stretch.best.interval, count), decimals)

    def data(self) -> Document:
        """One report, or several."""
        entries = [data_of(RangedData(report, self.advice, stretches)) for report, stretches in self.each]
        return one_or_several(data_of(Provenance(self.evaluation)), entries)

    def rows(self) -> Records:
        """One row for each model, group and stretch."""
        yield ["model", "group", "number", "low", "high", "action", "method", "constant", "at", "gain", "from", "to"]
        for report, stretches in self.each:
            for each in stretches:
                best = (None,) * 4 if each.best is None else (each.best.at, each.best.gain, *ends_of(each.best))
                yield [
                    *report.place,
                    self.unknown.name,
                    each.low,
                    each.high,
                    each.action,
                    each.method,
                    each.constant,
                    *best,
                ]


def _to_do(stretch: Stretch) -> str:
    """What to do, in words."""
    if stretch.action == "recalibrate":
        return f"Recalibrate with {stretch.method}"
    if stretch.action == "post-train":
        return f"Post-train on the features with {stretch.method}"
    return "Use the model as it is" if stretch.constant is None else stretch.constant.capitalize()


def _from_to(before: str, low: str, high: str) -> b.Cell:
    """A range, or one number, where both ends are written alike."""
    return words(low) if low == high else b.Cell((f"{before}{low}", f"to {high}"))


def _span(stretch: Stretch) -> str:
    return f"of {stretch.low:g}" if stretch.low == stretch.high else f"from {stretch.low:g} to {stretch.high:g}"
