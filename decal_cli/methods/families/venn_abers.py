"""Inductive Venn-Abers prediction: two isotonic fits for each new row, from tables that are computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.numerics.checks import are_probabilities, is_increasing, need
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats

Point = tuple[float, float]
"""Cumulative rows and positives: isotonic regression is the slope of the greatest convex minorant of such points."""


@model
@dataclass(frozen=True, eq=False)
class VennAbers:
    """p0 and p1 as step functions of the score.

    at0, p0: shape (k,), (k + 1,): p0[i] holds from at0[i - 1] up to below at0[i]. at1, p1: p1[i] holds from above
    at1[i - 1] up to at1[i].
    """

    at0: Floats
    p0: Floats
    at1: Floats
    p1: Floats

    def __post_init__(self) -> None:
        """Refuse what are no increasing steps of probabilities. Errors: ValueError."""
        for at, value in ((self.at0, self.p0), (self.at1, self.p1)):
            need(value.shape == (len(at) + 1,), "steps need one value more than they have edges")
            need(is_increasing(at) and is_increasing(value), "edges and values of steps must not decrease")
            need(are_probabilities(value), "values of steps lie in [0, 1]")

    def __call__(self, rows: Unlabelled) -> Applied:
        low = self.p0[np.searchsorted(self.at0, rows.score, side="right")]
        high = self.p1[np.searchsorted(self.at1, rows.score, side="left")]
        return Applied(high / (1 - low + high), lower=low, upper=high)


@method(
    title="Venn-Abers",
    kind="recalibration",
    source=f"{cite('Vovk and Petej 2014')}; computed as in {cite('Vovk et al. 2015')}",
)
def venn_abers(rows: Training) -> VennAbers:
    """Isotonic regression with the new row added, once with label 0 and once with label 1: an interval and a middle.

    p0 and p1 are the isotonic fits at the row's score with the row added under label 0 and under label 1; one of the
    two is calibrated for any distribution. The score is p1 / (1 - p0 + p1), the interval is [p0, p1]. A new row counts
    as one row of weight 1, so the weights should be of that order. It never returns exactly 0 or 1.
    """
    t = rows.table
    n, pos = t.n.astype(np.float64), t.pos.astype(np.float64)
    at1, p1 = _runs(t.score, fits_with_one_more(n, pos), last=True)
    # With the order of scores and the labels reversed, label 0 is label 1.
    mirrored = 1 - fits_with_one_more(n[::-1], (n - pos)[::-1])[::-1]
    at0, p0 = _runs(t.score, mirrored, last=False)
    return VennAbers(at0, np.concatenate(([0.0], p0)), at1, np.concatenate((p1, [1.0])))


def _runs(score: Floats, value: Floats, last: bool) -> tuple[Floats, Floats]:
    """Runs of levels of one value: the score of their last, or first, level and the value."""
    changes = value[1:] != value[:-1]
    ends = np.append(changes, True) if last else np.append(True, changes)
    return score[ends], value[ends]


def fits_with_one_more(n: Floats, pos: Floats) -> Floats:
    """Isotonic fit at each level with one more row of label 1 at that level, shape (m,), increasing.

    A new row of label 1 between two levels gets the value of the upper one, because nothing stops it from rising so
    far. The corner points below follow Vovk et al. 2015, algorithms 1 and 2: the new row first comes before all levels,
    then moves up level by level, and the convex minorant right of it loses a corner or gains one; all in linear time.
    """
    rows = np.concatenate(([-1.0, 0.0], np.cumsum(n))).tolist()
    positives = np.concatenate(([-1.0, 0.0], np.cumsum(pos))).tolist()
    points: list[Point] = list(zip(rows, positives, strict=True))
    corners = _minorant(points)
    corners.reverse()  # The leftmost corner is now on top of the stack.
    fits = np.empty(len(n))
    for level in range(len(n)):
        fits[level] = _slope(corners[-1], corners[-2])
        # The level's own rows now come first, and the new row after them.
        before, here, after = points[level], points[level + 1], points[level + 2]
        moved = (before[0] + after[0] - here[0], before[1] + after[1] - here[1])
        points[level + 1] = moved
        if _cross(corners[-1], corners[-2], moved) >= 0:
            continue  # Not below the minorant.
        corners.pop()
        while len(corners) > 1 and _cross(moved, corners[-1], corners[-2]) <= 0:
            corners.pop()
        corners.append(moved)
    return np.minimum(np.maximum.accumulate(fits), 1.0)


def _minorant(points: list[Point]) -> list[Point]:
    """Corners of the greatest convex minorant, left to right."""
    corners: list[Point] = []
    for point in points:
        while len(corners) > 1 and _cross(corners[-2], corners[-1], point) <= 0:
            corners.pop()
        corners.append(point)
    return corners


def _cross(a: Point, b: Point, c: Point) -> float:
    """Above 0 where the path from a over b to c turns left, that is, upwards."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _slope(a: Point, b: Point) -> float:
    return (b[1] - a[1]) / (b[0] - a[0])
