"""What `decal plan` returns: rows to collect, and how often so many show what they are to show."""

from __future__ import annotations

from collections.abc import Callable

from decal_cli.analysis.described import clustering
from decal_cli.analysis.plan import POWERS, RowPlan, RowsNeeded
from decal_cli.declarations.document import Known, Some
from decal_cli.metrics.confidence import Clustering
from decal_cli.numbers import DASH, chance_words, many, percent
from decal_cli.render.blocks import Bar, Bars, Blocks, Cell, Column, Notes, Paragraph
from decal_cli.render.cells import by_words, left, reasons, table
from decal_cli.render.results.opening import told
from decal_cli.render.results.source import Provenance, WrittenResult, source_lines
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.tables.design import MIN_CLUSTERS


class PlannedRest(View):
    """What a plan says of its own."""

    pilot: str
    tolerance: Known
    powers: Some[float] = of(lambda *_: list(POWERS))
    plans: list[RowsNeeded] = of("planned")


class PlannedRows(WrittenResult):
    """A plan, for formats to write."""

    def __init__(self, plan: RowPlan) -> None:
        super().__init__(plan.evaluation)
        self.plan = plan

    def sections(self) -> Blocks:
        """The rows in a sentence, a table of all that was asked, and a curve of each."""
        plan, (pilot,) = self.plan, self.evaluation.reports
        clusters = clustering(pilot)
        if plan.planned:
            most = plan.largest
            told_all = plan.asked > 1 and not plan.unknown and most.rows[0] is not None
            rest = " Nothing else that was asked needs more." if told_all else ""
            yield Paragraph(_sentence(most, pilot.rows, clusters) + rest)
            if most.likely and most.rows[0] is not None:
                holds = ", which holds the bound," if most.likely[1] is None else ""
                yield Paragraph(f"By the pilot's interval{holds} it may take {_likely(most)} rows.")

            def rows(k: int) -> Callable[[RowsNeeded], str]:
                return lambda each: DASH if each.rows[k] is None else f"{each.rows[k]:,}"

            def value(each: RowsNeeded) -> Cell:
                return by_words(told(each.value, None if plan.made_up else each.interval))

            yield table(
                plan.planned,
                [
                    (left("to", wraps=True, most=48), "what"),
                    (Column("expected" if plan.made_up else "in the pilot", breaks=(12, 8)), value),
                    *((f"rows, {percent(power)}", rows(k)) for k, power in enumerate(POWERS)),
                    any(each.likely for each in plan.planned) and ("likely", _likely),
                ],
            )
        yield from reasons(plan.unknown)
        for each in plan.planned:
            if each.curve:
                bars = (Bar(f"{rows:,}", chance_words(power), power) for rows, power in each.curve)
                yield Bars(f"How often so many rows {each.what}", "rows", "power", bars)
        if clusters.number is not None and any(not power for each in plan.planned for _, power in each.curve):
            yield Notes(
                (f"Rows of fewer than {MIN_CLUSTERS} clusters of equal size have no interval: they show nothing.",)
            )
        alike = "" if clusters.number is None else ", and to come in more clusters of about as many rows"
        like = f"Pilot: {plan.pilot}. A plan is as good as its pilot: rows are taken to be like those{alike}."
        yield Notes((like,), quiet=True)
        yield Notes(source_lines(plan.evaluation))

    def data(self) -> Document:
        """The pilot and the plans."""
        return data_of(Provenance(self.evaluation)) | data_of(PlannedRest(self.plan))

    def rows(self) -> Records:
        """One row for each plan and power."""
        yield ["what", "metric", "value", "low", "high", "power", "rows"]
        for each in self.plan.planned:
            for power, rows in zip(POWERS, each.rows, strict=True):
                yield [each.what, each.metric, each.value, *each.interval, power, rows]


def _likely(needed: RowsNeeded) -> str:
    """The rows that the pilot's interval allows for the first power; where it holds the bound, there is no most."""
    least, most = needed.likely or (None, None)
    if least is None:
        return DASH if needed.likely else ""
    return f"{least:,} or more" if most is None else f"{least:,} to {most:,}" if most > least else f"{least:,}"


def _sentence(needed: RowsNeeded, rows: int, clusters: Clustering) -> str:
    least, *_, most = needed.rows
    if least is None or most is None:
        return f"No number of rows is enough to {needed.what}: the pilot's value lies at the bound."
    sure = ""
    if needed.curve:
        sure = f" in {percent(POWERS[0])} of samples, {most:,} for {percent(POWERS[-1])}"
    return f"Collect {many(least, 'row')}{clusters.words(least, rows)} to {needed.what}{sure}."
