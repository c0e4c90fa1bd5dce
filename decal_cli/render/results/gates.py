"""What `decal gate` returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from typing import Any

from decal_cli.analysis.gate import GateOutcome, GateRow
from decal_cli.numbers import plain
from decal_cli.render.blocks import Block, Check, Checks, Signature, SourceLines
from decal_cli.render.results.evaluation import Evaluated
from decal_cli.render.results.shortened import Order, worst_of_each
from decal_cli.render.results.source import source_lines, title_of
from decal_cli.render.schema import data_of, keys_of


class Gated:
    """A gate's outcome, for formats to write."""

    def __init__(self, outcome: GateOutcome) -> None:
        self.outcome = outcome
        self.title = title_of(outcome.evaluation)

    def blocks(self) -> Iterator[Block]:
        """The rules, each with its outcome."""
        evaluation = self.outcome.evaluation
        rows, notes = worst_of_each(self.outcome.rows, _by_outcome, lambda row: f"{row.rule}, {row.model}")
        yield SourceLines(tuple(source_lines(replace(evaluation, notes=(*evaluation.notes, *notes)))))
        yield Checks(checks_of(rows), places=len(evaluation.reports) > 1)
        yield Signature(evaluation.signature, close=True)

    def data(self) -> dict[str, Any]:
        """Those of the evaluation, and the rules."""
        return {**Evaluated(self.outcome.evaluation).data(), "gates": data_of(self.outcome.rows)}

    def rows(self) -> Iterator[list[Any]]:
        """One row per rule, model and group."""
        yield [*keys_of(GateRow)]
        yield from (list(astuple(row)) for row in self.outcome.rows)

    def checks(self) -> tuple[Check, ...]:
        """The rules, for CI systems."""
        return checks_of(self.outcome.rows)


def checks_of(rows: Sequence[GateRow]) -> tuple[Check, ...]:
    """Rules with their outcomes, for people and for CI systems."""
    return tuple(
        Check(row.rule, ", ".join(filter(None, (row.model, row.group))), row.passed, _finding(row)) for row in rows
    )


def _by_outcome(rows: Sequence[GateRow]) -> Order[GateRow]:
    """What cannot be judged first, then what fails by most, last what passes by most."""
    n_of = Counter(row.passed for row in rows)
    counts = f"{n_of[None]:,} cannot be judged, {n_of[False]:,} failed, {n_of[True]:,} passed"

    def place(row: GateRow) -> tuple[int, float]:
        if row.passed is None or row.value is None or row.bound is None:
            return 0, 0.0
        distance = abs(row.value - row.bound)
        return (2, distance) if row.passed else (1, -distance)

    return place, f"outcome ({counts})"


def _finding(row: GateRow) -> str:
    """The value a rule met, or why it cannot be judged."""
    if row.passed is None or row.value is None:
        return f"cannot judge: {row.reason}"
    bound = "" if row.bound is None or "baseline" not in row.rule else f" (bound {plain(row.bound)})"
    return plain(row.value) + bound
