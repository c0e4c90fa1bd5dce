"""Worlds of known truth for the coverage study: scores, the true probability at each score, and population values.

A world is a distribution of the score p and a curve m(p) = E[y | p]; all that ignores features depends on these two
alone. Population values are integrals over the distribution on a grid of equal-mass quantiles (midpoint rule).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, logit

from decal_cli.tables.resample import TIE

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]

N_MASSES = 200_000


def cuts_of_folds(levels: Floats, of_levels: Floats, threshold: float) -> Floats:
    """The level from which the calibrator of each fold reaches a threshold, inf where none does; shape (folds,).

    levels, of_levels: as `held_out.HeldOutScores` has them.
    """
    reached = of_levels >= threshold * (1 - TIE)
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), len(levels))
    return np.append(levels, np.inf)[first]


@dataclass(frozen=True)
class World:
    """A distribution of the score, by its quantile function, and the probability of label 1 at each score."""

    name: str
    quantile: Map
    curve: Map
    thresholds: tuple[float, ...]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
        """n rows: scores and labels, shape (n,) each."""
        score = self.quantile(rng.random(n))
        return score, (rng.random(n) < self.curve(score)).astype(np.int64)

    @cached_property
    def score(self) -> Floats:
        """The score's quantiles at the midpoints of N_MASSES equal masses, increasing."""
        return self.quantile((np.arange(N_MASSES) + 0.5) / N_MASSES)

    @cached_property
    def truth(self) -> Floats:
        """E[y | p] on the grid."""
        return self.curve(self.score)

    @cached_property
    def brier(self) -> float:
        """E (p - y)^2."""
        return float(np.mean((self.score - self.truth) ** 2 + self.truth * (1 - self.truth)))

    @cached_property
    def auc(self) -> float:
        """P(p' < p | y' = 0, y = 1) + half of the ties."""
        first = np.unique(self.score, return_index=True)[1]
        pos, neg = np.add.reduceat(self.truth, first), np.add.reduceat(1 - self.truth, first)
        below = np.cumsum(neg) - neg
        return float(pos @ (below + neg / 2) / (pos.sum() * neg.sum()))

    def expected_utility(self, utility: tuple[tuple[float, float], tuple[float, float]], threshold: float) -> float:
        """E of the utility of deciding 1 iff p >= threshold."""
        (u00, u01), (u10, u11) = utility
        act = self.score >= threshold
        m = self.truth
        return float(np.mean(np.where(act, (1 - m) * u10 + m * u11, (1 - m) * u00 + m * u01)))

    def gain(self, thresholds: Floats, task_threshold: float, decision_threshold: float) -> Floats:
        """Population gain of each of these thresholds on p over the decision threshold, for u_delta = 1."""
        worth = np.append(np.cumsum((self.truth - task_threshold)[::-1])[::-1], 0.0) / N_MASSES
        at = np.searchsorted(self.score, np.append(thresholds, decision_threshold), side="left")
        return worth[at[:-1]] - worth[at[-1]]

    def binned_error(self, edges: Floats) -> float:
        """sum_k P(bin k) (E[p | k] - E[y | k])^2 for the bins (edge, next edge]: the target of ece_debiased.

        edges: the interior edges, held fixed; in the study, those of the equal-mass bins of the sample.
        """
        cuts = np.unique(np.concatenate(([0], np.searchsorted(self.score, edges, side="right"))))
        cuts = cuts[cuts < N_MASSES]
        mass = np.diff(np.append(cuts, N_MASSES)) / N_MASSES
        gap = np.add.reduceat(self.score - self.truth, cuts) / N_MASSES
        return float(np.sum(gap**2 / mass))


def uniform(low: float = 0.0, high: float = 1.0) -> Map:
    """Uniform scores."""
    return lambda u: low + (high - low) * u


def beta(a: float, b: float) -> Map:
    """Beta scores; the quantile function is tabulated once."""
    grid = np.concatenate(([0.0], np.logspace(-8, -2, 400), np.linspace(0.01, 0.99, 4000)[1:-1]))
    grid = np.unique(np.concatenate((grid, 1 - grid)))
    values = stats.beta.ppf(grid, a, b)
    return lambda u: np.interp(u, grid, values)


def logit_normal(mean: float, spread: float) -> Map:
    """Scores whose log-odds are normal."""
    return lambda u: expit(mean + spread * stats.norm.ppf(np.clip(u, 1e-12, 1 - 1e-12)))


def rounded(quantile: Map, step: float) -> Map:
    """Scores rounded to a grid strictly inside (0, 1): a scorecard with few distinct scores."""
    return lambda u: np.clip(np.rint(quantile(u) / step) * step, step, 1 - step)


def calibrated(p: Floats) -> Floats:
    """E[y | p] = p."""
    return p


def tilted(shift: float, slope: float) -> Map:
    """Log-odds of the truth = shift + slope * log-odds of the score; slope < 1 is an overconfident model."""
    return lambda p: expit(shift + slope * logit(np.clip(p, 1e-12, 1 - 1e-12)))


def wavy(size: float, waves: float) -> Map:
    """p + a sine: miscalibrated in both directions, calibrated on average."""
    return lambda p: np.clip(p + size * np.sin(2 * np.pi * waves * p) * np.minimum(1, 4 * p * (1 - p)), 0, 1)


def reference() -> tuple[Map, Map]:
    """The world of fixtures/binary_n2000.csv: p, and E[y | p] with two of its three features integrated out."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    weights = weights / weights.sum()

    def curve(p: Floats) -> Floats:
        x1 = np.linspace(-6, 6, 2001)
        base = -1 + 1.2 * x1[:, None] + 0.4 * x1[:, None] * nodes
        mean = 0.5 * (expit(base + 0.8) + expit(base - 0.8)) @ weights
        return np.interp((logit(p) / 1.8 + 0.6) / 1.1, x1, mean)

    return logit_normal(-1.08, 1.98), curve


def coverage_worlds() -> list[World]:
    """The worlds of the coverage study, each with the t* at which decisions are judged."""
    return [
        World("uniform, calibrated", uniform(), calibrated, (0.2, 0.5)),
        World("beta(2,5), calibrated", beta(2, 5), calibrated, (0.1, 0.3)),
        World("logit-normal(-1,1.2), calibrated", logit_normal(-1, 1.2), calibrated, (0.2, 0.5)),
        World("rare positives, calibrated", logit_normal(-3.2, 1.0), calibrated, (0.05, 0.1)),
        World("beta(2,2), mildly overconfident", beta(2, 2), tilted(0, 0.8), (0.3, 0.5)),
        World("logit-normal(0,1.5), strongly overconfident", logit_normal(0, 1.5), tilted(0, 0.45), (0.2, 0.35)),
        World("uniform, mildly underconfident", uniform(), tilted(0, 1.25), (0.2, 0.6)),
        World("beta(3,3), strongly underconfident", beta(3, 3), tilted(0, 2.2), (0.3, 0.4)),
        World("beta(2,3), base rate shifted down", beta(2, 3), tilted(-0.7, 1.0), (0.2, 0.4)),
        World("rare positives, base rate shifted up", logit_normal(-3.0, 1.1), tilted(0.6, 1.0), (0.05, 0.1)),
        World("frequent positives, overconfident and shifted", beta(5, 2), tilted(-0.4, 0.6), (0.5, 0.7)),
        World("uniform, wavy", uniform(), wavy(0.08, 3), (0.4, 0.55)),
        World("reference file's world", *reference(), (0.1, 0.2, 0.3)),
        World("scorecard of 19 scores, overconfident", rounded(beta(1.2, 1.6), 0.05), tilted(0, 0.6), (0.2, 0.4)),
        World("scorecard of 19 scores, calibrated", rounded(beta(1.2, 1.6), 0.05), calibrated, (0.22, 0.5)),
    ]
