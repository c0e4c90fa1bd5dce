"""Who is on one model's list and not on the other's: a table, a sentence, data."""

from __future__ import annotations

from typing import TypedDict

from decal_cli.analysis.swap import Part, Swap
from decal_cli.numbers import counts
from decal_cli.render.blocks import Column, Row, Table
from decal_cli.render.cells import words
from decal_cli.render.schema import Size


class PartData(TypedDict):
    """Rows, and those with label 1; ids: of 1,000 of them at most, empty for the rows of a group."""

    rows: Size
    positives: Size
    ids: list[str | int]


class SwapData(TypedDict):
    """Rows that both models act on where the capacity is limited, that only the first does, and only the second."""

    both: PartData
    only_a: PartData
    only_b: PartData


def swap_data(swap: Swap) -> SwapData:
    """As JSON has it."""
    return {"both": _part(swap.both), "only_a": _part(swap.only_a), "only_b": _part(swap.only_b)}


def _part(part: Part) -> PartData:
    return {"rows": part.rows, "positives": part.positives, "ids": list(part.ids)}


def swap_table(swap: Swap, capacity: str) -> Table:
    """A row for each part, columns by label."""
    parts = {"A and B": swap.both, "A, not B": swap.only_a, "B, not A": swap.only_b}
    rows = [Row(tuple(map(words, (name, *_counts(part))))) for name, part in parts.items()]
    columns = [Column("acted on by", words=True), *map(Column, ("rows", "with label 1", "with label 0"))]
    return Table(tuple(columns), tuple(rows), title=f"Rows acted on, capacity {capacity}")


def _counts(part: Part) -> list[str]:
    return counts((part.rows, part.positives, part.rows - part.positives))


def swap_sentence(swap: Swap, models: tuple[str, str]) -> str:
    """Who takes the places of whom."""
    a, b = models
    both, more, fewer, right, wrong = counts(
        (swap.both.rows, swap.only_b.rows, swap.only_a.rows, swap.only_b.positives, swap.only_a.positives)
    )
    if swap.only_a.rows == 0 and swap.only_b.rows == 0:
        return f"both act on the same {both} rows."
    return (
        f"both act on {both} rows; {b} acts on {more} others, {right} of them with label 1, and {a} on {fewer} others, "
        f"{wrong} of them with label 1."
    )
