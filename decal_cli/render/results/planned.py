"""What `decal plan` returns: rows to collect, and how often so many show what they are to show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from decal_cli.analysis.plan import POWERS, RowPlan, RowsNeeded
from decal_cli.declarations.document import Some
from decal_cli.numbers import DASH, percent
from decal_cli.render.blocks import Bar, Bars, Block, Column, Notes, Paragraph
from decal_cli.render.cells import left, reasons, table
from decal_cli.render.results.evaluation import told
from decal_cli.render.results.source import Provenance, WrittenResult, source_lines
from decal_cli.render.schema import View, data_of, of


class PlannedRest(View):
    """What a plan says of its own."""

    pilot: str
    powers: Some[float] = of(lambda *_: list(POWERS))
    plans: list[RowsNeeded] = of("planned")


class PlannedData(PlannedRest, Provenance):
    """What `decal plan` prints. powers: how often the rows show it; rows of a plan are in their order."""


class PlannedRows(WrittenResult):
    """A plan, for formats to write."""

    def __init__(self, plan: RowPlan) -> None:
        super().__init__(plan.evaluation)
        self.plan = plan

    def sections(self) -> Iterator[Block]:
        """The rows in a sentence, a table of all that was asked, and a curve of each."""
        plan = self.plan
        if plan.planned:
            yield Paragraph(self._sentence(plan.planned[0]))
            yield table(
                plan.planned,
                [
                    (left("to", wraps=True, most=48), "what"),
                    (Column("in the pilot"), lambda each: told(each.value, each.interval)),
                    *(
                        (
                            Column(f"rows, {percent(power)}"),
                            lambda each, k=k: DASH if each.rows[k] is None else f"{each.rows[k]:,}",
                        )
                        for k, power in enumerate(POWERS)
                    ),
                ],
            )
        yield from reasons(plan.unknown)
        for each in plan.planned:
            if each.curve:
                bars = (Bar(f"{rows:,}", percent(round(power, 2)), power) for rows, power in each.curve)
                yield Bars(f"How often so many rows {each.what}", "rows", "power", bars)
        yield Notes(
            (f"Pilot: {plan.pilot}. A plan is as good as its pilot: rows are taken to be like those.",), quiet=True
        )
        yield Notes(source_lines(plan.evaluation))

    def _sentence(self, first: RowsNeeded) -> str:
        least, most = first.rows[0], first.rows[-1]
        if least is None or most is None:
            return f"No number of rows is enough to {first.what}: the pilot's value lies at the bound."
        if not first.curve:
            return f"Collect {least:,} rows to {first.what}."
        return (
            f"Collect {least:,} rows to {first.what} in {percent(POWERS[0])} of samples, {most:,} for "
            f"{percent(POWERS[-1])}."
        )

    def data(self) -> dict[str, Any]:
        """The pilot and the plans."""
        return data_of(Provenance(self.evaluation)) | data_of(PlannedRest(self.plan))

    def rows(self) -> Iterator[list[Any]]:
        """One row for each plan and power."""
        yield ["what", "metric", "value", "low", "high", "power", "rows"]
        for each in self.plan.planned:
            for power, rows in zip(POWERS, each.rows, strict=True):
                yield [each.what, each.metric, each.value, *each.interval, power, rows]


def _rows(rows: int | None) -> str:
    return DASH if rows is None else f"{rows:,}"
