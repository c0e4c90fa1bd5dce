"""Bins of the score beside the frequency of label 1: the points of a reliability diagram, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.declarations.document import Share, Size
from decal_cli.metrics.confidence import Interval, wilson_ends
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import BINS


@dataclass(frozen=True)
class ReliabilityBin:
    """One equal-mass bin of the score.

    low, high: its lowest and highest score; rows: or their summed weight; score: the mean; rate: the frequency of label
    1. interval: Wilson's of the rate, on the effective rows of the bin; None where no intervals were asked for, or
    clusters are too few for them.
    """

    low: Share
    high: Share
    rows: Size
    score: Share
    rate: Share
    interval: Interval | None


def reliability_bins(rows: Rows, confidence: float | None) -> tuple[ReliabilityBin, ...]:
    """The bins from the lowest score up; none for rows of several classes. confidence: None for no intervals."""
    if rows.classes:
        return ()
    t, sure = rows.table, None if confidence is None else rows.sure(confidence)
    levels, starts = t.bins(BINS), t.bin_starts(BINS)
    rate, highest = levels.pos / levels.n, t.score[np.append(starts[1:], len(t)) - 1]
    ends = (
        [None] * len(levels) if sure is None else map(tuple, wilson_ends(rate, levels.rows_of_cells, sure).T.tolist())
    )
    columns = (each.tolist() for each in (t.score[starts], highest, np.asarray(levels.n, float), levels.score, rate))
    return tuple(ReliabilityBin(*each) for each in zip(*columns, ends, strict=True))
