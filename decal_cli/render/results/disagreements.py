"""What two models decide differently: a table of their decisions, a sentence, data."""

from __future__ import annotations

from typing import Annotated, TypedDict

from decal_cli.analysis.disagreements import ClassDisagreements, Disagreements
from decal_cli.numbers import plain
from decal_cli.render.blocks import Column, Row, Table
from decal_cli.render.cells import words
from decal_cli.render.schema import Limit, Share, Size
from decal_cli.render.terms import Terms

Cells = Annotated[list[Size], Limit(minItems=2, maxItems=2)]
"""Rows with label 0 and with label 1."""


class DisagreementsData(TypedDict):
    """Rows by the decisions of the first and the second model, both_0 to both_1. p_value: of McNemar's exact test that
    both are right as often where they disagree; null for weighted rows.
    """

    both_0: Cells
    only_b_1: Cells
    only_a_1: Cells
    both_1: Cells
    only_a_right: Size
    only_b_right: Size
    p_value: Share | None


class ActionPairData(TypedDict):
    """Rows for which the first model takes one action and the second another; gain: what the second wins there."""

    a: str
    b: str
    rows: Size
    gain: float


class ClassDisagreementsData(TypedDict):
    """Rows of several classes with different actions: on how many that of the first or of the second model is worth
    more. p_value: of the exact sign test that neither is better more often; null for weighted rows.
    """

    a_better: Size
    b_better: Size
    same: Size
    p_value: Share | None
    pairs: list[ActionPairData]


MAX_PAIRS = 10
"""Pairs of actions that a table shows."""


def disagreements_table(counted: Disagreements | ClassDisagreements, terms: Terms) -> Table:
    """A row for each pair of decisions, columns by label; of several classes, the pairs of most rows."""
    if isinstance(counted, ClassDisagreements):
        return _pairs_table(counted)
    off, on = terms.names or ("0", "1")
    total = sum(sum(cell) for row in counted.rows for cell in row)
    rows = []
    for a, b in ((1, 1), (1, 0), (0, 1), (0, 0)):
        at_0, at_1 = counted.rows[a][b]
        texts = ((off, on)[a], (off, on)[b], _rows(at_0 + at_1), _rows(at_1), _rows(at_0), _right(a, b))
        rows.append(Row(tuple(map(words, texts))))
    heads = ("A decides", "B decides", "rows", "with label 1", "with label 0")
    columns = [Column(head, words=number < 2) for number, head in enumerate(heads)]
    columns.append(Column("who is right", words=True))
    return Table(tuple(columns), tuple(rows), title=f"Decisions of both models, {_rows(total)} rows")


def _pairs_table(counted: ClassDisagreements) -> Table:
    columns = (
        Column("A takes", words=True),
        Column("B takes", words=True),
        Column("rows"),
        Column("B wins there, summed"),
    )
    shown = counted.pairs[:MAX_PAIRS]
    rows = tuple(
        Row(tuple(map(words, (pair.a, pair.b, _rows(pair.rows), plain(round(pair.gain, 10)))))) for pair in shown
    )
    total = _rows(counted.a_better + counted.b_better + counted.same)
    cut = (
        f", the {len(shown)} of {len(counted.pairs):,} pairs with most rows" if len(shown) < len(counted.pairs) else ""
    )
    return Table(columns, rows, title=f"Different actions, {total} rows{cut}", keys=2)


def _right(a: int, b: int) -> str:
    if a == b:
        return "both, or neither"
    return "A at label 1, else B" if a else "B at label 1, else A"


def _rows(count: float) -> str:
    return f"{count:,.0f}" if count == round(count) else f"{count:,.1f}"


def disagreements_sentence(counted: Disagreements | ClassDisagreements, models: tuple[str, str]) -> str:
    """On how many rows they disagree, who is right more often there, and whether chance could explain it."""
    if isinstance(counted, ClassDisagreements):
        return _class_sentence(counted, models)
    apart = counted.a_right + counted.b_right
    if not apart:
        return "the two models decide every row alike."
    first, second = models
    text = (
        f"on {_rows(apart)} rows the two decide differently: {first} is right on {_rows(counted.a_right)}, {second} on "
        f"{_rows(counted.b_right)}"
    )
    if counted.p_value is None:
        return f"{text}."
    test = "McNemar's p, over clusters," if counted.clustered else "McNemar's exact p"
    return f"{text} ({test} = {plain(counted.p_value)}; it counts both errors alike)."


def _class_sentence(counted: ClassDisagreements, models: tuple[str, str]) -> str:
    apart = counted.a_better + counted.b_better + counted.same
    if not apart:
        return "the two models take the same action for every row."
    first, second = models
    text = (
        f"for {_rows(apart)} rows the two take different actions: that of {first} is worth more for "
        f"{_rows(counted.a_better)}, that of {second} for {_rows(counted.b_better)}"
    )
    test = "sign test over clusters" if counted.clustered else "exact sign test"
    return f"{text}." if counted.p_value is None else f"{text} ({test}, p = {plain(counted.p_value)})."


def disagreements_data(
    counted: Disagreements | ClassDisagreements,
) -> DisagreementsData | ClassDisagreementsData:
    """The same as JSON has it."""
    if isinstance(counted, ClassDisagreements):
        return {
            "a_better": counted.a_better,
            "b_better": counted.b_better,
            "same": counted.same,
            "p_value": counted.p_value,
            "pairs": [{"a": each.a, "b": each.b, "rows": each.rows, "gain": each.gain} for each in counted.pairs],
        }
    (both_0, only_b), (only_a, both_1) = counted.rows
    return {
        "both_0": list(both_0),
        "only_b_1": list(only_b),
        "only_a_1": list(only_a),
        "both_1": list(both_1),
        "only_a_right": counted.a_right,
        "only_b_right": counted.b_right,
        "p_value": counted.p_value,
    }
