"""The bins of a score: what each adds to the regrets, and which of them is larger there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypedDict

from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.regimes import Regime
from decal_cli.numbers import plain, short
from decal_cli.render.blocks import Block, Column, Notes, Row, Table
from decal_cli.render.cells import number, words
from decal_cli.render.results.measurements import name_of
from decal_cli.render.schema import Share, Size

EXPLAINED = (
    "a regret is what the bin adds to the metric of that name, the grouping regret between its lower and its sharp "
    "upper bound; a grouping loss up to Vmin may change no decision, one above it does; larger: the larger of the two "
    "regrets"
)


class RegimeData(TypedDict):
    """An equal-mass bin of the score, from its lowest to its highest score; share of all rows; score: the mean; rate:
    the frequency of label 1. Each regret is what the bin adds to the metric of that name. larger: of calibration and
    grouping regret. grouping_loss and the grouping regrets are null without features, or in a bin of too few rows.
    """

    low: Share
    high: Share
    rows: Size
    share: Share
    score: Share
    rate: Share
    grouping_loss: float | None
    least_variance: Size
    regret_calibration: Size
    regret_grouping_lower: Size | None
    regret_grouping_upper: Size | None
    regret_grouping_upper_sharp: Size | None
    regret_grouping: Size | None
    larger: Literal["miscalibration", "grouping", "neither", "unknown"]


def regime_data(regime: Regime) -> RegimeData:
    """A bin as JSON has it."""
    return {
        "low": regime.low,
        "high": regime.high,
        "rows": regime.rows,
        "share": regime.share,
        "score": regime.score,
        "rate": regime.rate,
        "grouping_loss": regime.grouping_loss,
        "least_variance": regime.least_variance,
        "regret_calibration": regime.regret_calibration,
        "regret_grouping_lower": regime.regret_grouping_lower,
        "regret_grouping_upper": regime.regret_grouping_upper,
        "regret_grouping_upper_sharp": regime.regret_grouping_upper_sharp,
        "regret_grouping": regime.regret_grouping,
        "larger": regime.ruling,
    }


def regime_tables(reports: Sequence[Report]) -> Iterator[Block]:
    """A table of bins for each model and group that has them, and what its columns mean."""
    shown = [report for report in reports if report.regimes]
    for report in shown:
        yield regime_table(report, name_of(report) if len(reports) > 1 else "")
    if shown:
        yield Notes((EXPLAINED,), quiet=True)


def regime_table(report: Report, name: str = "") -> Table:
    """The bins of a model, from the lowest score up, and their sum."""
    columns = (
        Column(f"{name + ': ' if name else ''}score from, to", words=True),
        Column("rows"),
        Column("mean score", drops=2),
        Column("c"),
        Column("grouping loss"),
        Column("Vmin", drops=1),
        Column("calibration regret"),
        Column("grouping regret"),
        Column("larger", words=True),
    )
    rows = tuple(_row(regime) for regime in report.regimes)
    return Table(columns, (*rows, replace(_sum(report.regimes), apart=True)))


def _row(regime: Regime) -> Row:
    cells = (
        words(f"{short(regime.low, 4)} to {short(regime.high, 4)}"),
        words(plain(regime.rows)),
        number(regime.score),
        number(regime.rate),
        number(regime.grouping_loss),
        number(regime.least_variance),
        number(regime.regret_calibration),
        number(regime.regret_grouping, _bounds(regime)),
        words(regime.ruling),
    )
    return Row(cells)


def _bounds(regime: Regime) -> tuple[float, float] | None:
    if regime.regret_grouping_lower is None or regime.regret_grouping_upper_sharp is None:
        return None
    return regime.regret_grouping_lower, regime.regret_grouping_upper_sharp


def _sum(regimes: Sequence[Regime]) -> Row:
    """The metrics, as the sums of the columns."""
    known = [regime for regime in regimes if regime.regret_grouping is not None]
    grouped = sum(regime.regret_grouping or 0.0 for regime in known) if known else None
    cells = (
        words("all"),
        words(plain(sum(regime.rows for regime in regimes))),
        words(""),
        words(""),
        words(""),
        words(""),
        number(sum(regime.regret_calibration for regime in regimes)),
        number(grouped),
        words(""),
    )
    return Row(cells)
