"""Rows that two models decide differently, and whether chance alone would make one of them right more often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.tables.pairs import PairTable


@dataclass(frozen=True)
class Disagreements:
    """Rows, or their summed weight, by the decisions of A and B and by label.

    rows[a][b]: the rows with label 0 and with label 1, of decision a by A and decision b by B. p_value: of McNemar's
    exact test that both are right on as many of the rows on which they disagree; None for weighted rows.
    """

    rows: tuple[tuple[tuple[float, float], tuple[float, float]], tuple[tuple[float, float], tuple[float, float]]]
    p_value: float | None

    @property
    def a_right(self) -> float:
        """Rows on which only A is right."""
        return self.rows[0][1][0] + self.rows[1][0][1]

    @property
    def b_right(self) -> float:
        """Rows on which only B is right."""
        return self.rows[0][1][1] + self.rows[1][0][0]


def disagreements(pairs: PairTable, threshold: float) -> Disagreements:
    """Decisions at a threshold: 1 iff score >= threshold. Source of the test: McNemar 1947, exact as a sign test."""
    a, b = pairs.a >= threshold, pairs.b >= threshold
    n, pos = np.asarray(pairs.n, dtype=np.float64), np.asarray(pairs.pos, dtype=np.float64)

    def labels(by_a: bool, by_b: bool) -> tuple[float, float]:
        which = (a == by_a) & (b == by_b)
        return float((n - pos)[which].sum()), float(pos[which].sum())

    rows = (labels(False, False), labels(False, True)), (labels(True, False), labels(True, True))
    counted = Disagreements(rows, None)
    if pairs.weighted:
        return counted
    return Disagreements(rows, exact_sign_test(round(counted.a_right), round(counted.b_right)))


def exact_sign_test(one: int, other: int) -> float:
    """Two-sided probability of a split at least as uneven, were both sides as likely."""
    if one == other:
        return 1.0
    # Loaded late: whoever does not compare decisions needs no scipy.
    from scipy.special import betainc

    fewer, n = min(one, other), one + other
    return min(1.0, 2 * float(betainc(n - fewer, fewer + 1, 0.5)))
