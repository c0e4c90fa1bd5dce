"""Rows held against a reference, as blocks and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypedDict

from decal_cli.analysis.reference import MAX_PVALUE, Reference, Shift
from decal_cli.metrics.numerics.label_shift import N_BINS
from decal_cli.numbers import DASH, percent, plain
from decal_cli.render.blocks import Block, Cell, Column, Heading, Notes, Row, Table
from decal_cli.render.cells import number, words
from decal_cli.render.results.source import InputData, input_data, pair
from decal_cli.render.schema import Ends, Limit, Share


class ShiftData(TypedDict):
    """One model against the reference; by_scores: the share of labels 1 that the scores alone tell, null with a reason.

    pvalue: of the scores of each label being those of the reference. alike: whether no more than the share differs.
    """

    model: str
    psi: float
    share: Share
    reference_share: Share
    by_scores: Share | None
    interval: Ends | None
    pvalue: Share | None
    alike: bool | None
    reason: str | None


class ReferenceData(TypedDict):
    """The reference, and every model against it."""

    inputs: Annotated[list[InputData], Limit(minItems=1)]
    models: Annotated[list[ShiftData], Limit(minItems=1)]


def reference_data(reference: Reference) -> ReferenceData:
    """A reference as JSON has it."""
    return {
        "inputs": [input_data(item) for item in reference.inputs],
        "models": [
            {
                "model": shift.model,
                "psi": shift.psi,
                "share": shift.share,
                "reference_share": shift.reference_share,
                "by_scores": shift.by_scores,
                "interval": pair(shift.interval),
                "pvalue": shift.pvalue,
                "alike": shift.alike,
                "reason": shift.reason or None,
            }
            for shift in reference.shifts
        ],
    }


def reference_blocks(reference: Reference) -> Iterator[Block]:
    """A row for each model, what follows, and what the columns mean."""
    names = ", ".join(item.path for item in reference.inputs)
    rows = sum(item.rows for item in reference.inputs)
    yield Heading(f"Against the reference: {names}, {rows:,} rows")
    columns = (
        Column("model", words=True),
        Column("PSI"),
        Column("labels 1 in the reference"),
        Column("in these rows"),
        Column("by the scores alone"),
        Column("p-value"),
    )
    yield Table(columns, tuple(_row(shift) for shift in reference.shifts))
    yield Notes(tuple(f"{shift.model}: {_meaning(shift)}" for shift in reference.shifts))
    yield Notes(
        (
            f"PSI: population stability index on {N_BINS} equal-mass bins of the reference; p-value: how often scores "
            "differ so much where the scores of each label are those of the reference",
        ),
        quiet=True,
    )


def _row(shift: Shift) -> Row:
    pvalue = DASH if shift.pvalue is None else "< .0001" if shift.pvalue < 1e-4 else plain(round(shift.pvalue, 4))
    shares = Cell((percent(shift.reference_share),)), Cell((percent(shift.share),))
    return Row(
        (
            words(shift.model),
            number(shift.psi),
            *shares,
            number(shift.by_scores, shift.interval, reason=shift.reason),
            Cell((pvalue,)),
        )
    )


def _meaning(shift: Shift) -> str:
    if shift.alike is None:
        return f"the scores alone cannot tell the share of labels 1: {shift.reason}"
    if not shift.alike:
        return (
            f"the scores of one label are not those of the reference (p-value up to {plain(MAX_PVALUE)}): "
            "what was learned on the reference, such as a calibration, need not hold here"
        )
    inside = shift.interval is None or shift.interval[0] <= shift.share <= shift.interval[1]
    if not inside:
        return (
            "the scores look like those of the reference with another share of labels 1, but not with the share that "
            "these labels have: the labels mean something else, or the scores tell less here"
        )
    same = shift.interval is not None and shift.interval[0] <= shift.reference_share <= shift.interval[1]
    if same:
        return "nothing differs from the reference beyond noise"
    return (
        "no more than the share of labels 1 differs from the reference; decal recommend on the reference with "
        f"--prevalence {plain(round(shift.by_scores or 0.0, 4))} says what moving its scores to that share wins"
    )
