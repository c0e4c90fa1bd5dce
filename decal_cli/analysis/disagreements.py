"""Rows that two models decide differently, and whether chance alone would make one of them right more often."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from decal_cli.declarations.document import Hidden, Share, Size
from decal_cli.metrics.decisions import decide
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.clusters import Clustered
from decal_cli.tables.design import Design
from decal_cli.tables.pairs import PairTable
from decal_cli.task import ClassDecision


@dataclass(frozen=True)
class Disagreements:
    """Rows, or their summed weight, by the decisions of A and B and by label.

    rows[a][b]: the rows with label 0 and with label 1, of decision a by A and decision b by B. p_value: of McNemar's
    exact test that both are right on as many of the rows on which they disagree; None for weighted rows. Of clustered
    rows: by the lead of A in each cluster, normal with t quantiles (Durkalski et al. 2003).
    """

    rows: tuple[tuple[tuple[float, float], tuple[float, float]], tuple[tuple[float, float], tuple[float, float]]]
    p_value: float | None
    clustered: bool = False

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
    if pairs.design.clustered:
        # On every row, who is right alone: A, B (-1), or neither (0); by label.
        right = np.stack((b.astype(np.float64) - a, a.astype(np.float64) - b))
        lead = counted.a_right - counted.b_right
        p_value = clustered_sign_test(lead, pairs.units.spread(right.ravel()), pairs.design)
        return replace(counted, p_value=p_value, clustered=True)
    if pairs.weighted:
        return counted
    return Disagreements(rows, exact_sign_test(round(counted.a_right), round(counted.b_right)))


@dataclass(frozen=True)
class ActionPair:
    """Rows, or their summed weight, for which A takes one action and B another. gain: what B wins on them, summed."""

    a: str
    b: str
    rows: Size
    gain: float


@dataclass(frozen=True)
class ClassDisagreements:
    """Rows of several classes for which two models take different actions.

    a_better, b_better: rows, or their summed weight, on which the action of A, or of B, is worth more. same: on which
    both are worth the same. p_value: of the exact sign test that neither is better more often; None for weighted rows.
    pairs: of actions, those of most rows first.
    """

    a_better: Size
    b_better: Size
    same: Size
    p_value: Share | None
    pairs: tuple[ActionPair, ...]
    clustered: Hidden[bool] = False


def class_disagreements(a: ClassTable, b: ClassTable, decision: ClassDecision) -> ClassDisagreements:
    """The rows of two models of several classes for which the action worth most is not the same."""
    by_a, by_b = (decide(c, decision) for c in (a, b))
    apart = np.flatnonzero(by_a.action != by_b.action)
    weight = np.ones(len(apart)) if a.weight is None else a.weight[apart]
    gain = (by_b.won - by_a.won)[apart]
    size = len(decision.actions)
    number = by_a.action[apart] * size + by_b.action[apart]
    rows, gains = np.bincount(number, weight, size**2), np.bincount(number, weight * gain, size**2)
    order = np.flatnonzero(rows)[np.argsort(-rows[rows > 0], kind="stable")]
    names = decision.actions
    pairs = tuple(ActionPair(names[k // size], names[k % size], float(rows[k]), float(gains[k])) for k in order)
    better, worse = float(weight[gain < 0].sum()), float(weight[gain > 0].sum())
    p_value = exact_sign_test(round(better), round(worse)) if a.weight is None else None
    if a.unit is not None:
        leads = np.bincount(a.unit[apart], weight * -np.sign(gain), int(a.unit.max()) + 1)
        p_value = clustered_sign_test(better - worse, float(leads @ leads), a.top.design)
    return ClassDisagreements(better, worse, float(weight[gain == 0].sum()), p_value, pairs, a.unit is not None)


def clustered_sign_test(lead: float, spread: float | None, design: Design) -> float | None:
    """Two-sided probability of so large a lead, were no side ahead; spread: sum over clusters of squared leads."""
    if not spread or design.confidence(0.5) is None:
        return None
    from scipy.special import stdtr

    assert isinstance(design, Clustered)
    return 2 * float(stdtr(design.effective_clusters - 1, -abs(lead) / math.sqrt(spread)))


def exact_sign_test(one: int, other: int) -> float:
    """Two-sided probability of a split at least as uneven, were both sides as likely."""
    if one == other:
        return 1.0
    # Loaded late: whoever does not compare decisions needs no scipy.
    from scipy.special import betainc

    fewer, n = min(one, other), one + other
    return min(1.0, 2 * float(betainc(n - fewer, fewer + 1, 0.5)))
