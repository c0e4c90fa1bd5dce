"""What post-training on the features would still win beyond recalibration, before any method is named.

A probe, not a model to be used: ridge regression of the label on the features, their squares and the recalibrated score
(one eigendecomposition), its penalty chosen and its output recalibrated on leave-one-out predictions, which ridge
regression has in closed form. Everything is cross-fitted: a row's two probabilities, the probe's and that of isotonic
regression of the score, come from folds that do not hold it. Nothing here knows t*: one call serves every task.

The gain at t* is the mean of two estimates of the same thing. One takes the held-out labels for what changed decisions
are worth: unbiased, noisy. The other takes a probability for it: less noisy, but the probe would be judge of its own
decisions, so the judge is the probe after one more recalibration with three parameters.

How it was chosen, and how well it foretells what methods win on real data, stands in docs/probe.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.regions import LARGEST, isotonic_fit
from decal_cli.errors import Undefined
from decal_cli.tables.design import dot
from decal_cli.tables.logistic import climb, expit, log_odds, row_slopes
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import BLOCK, FEWEST_ROWS, Estimate, Floats, Ints

Mask = NDArray[np.bool_]

DIVISIONS = 4
"""Divisions into folds, averaged: what one division makes of the rows is noise, while they are few."""
ENOUGH_ROWS = 20_000
"""Rows of all divisions together that are enough: from here on there is one."""
LEARNED_ON = 16_384
"""At most so many rows teach a fold's probe; all of its rows teach its isotonic regression."""
PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
"""Of standardised features, in rows."""
SCORE_PENALTY = 0.05
"""The score's own share of the penalty: what it is known to say is shrunk less."""
FARTHEST = 8.0
"""Standard deviations at which a standardised feature is cut: one row must not carry a regression."""
BEND = 3.0
"""Standard deviations at which a feature stops bending: its square is cut there."""
MOST_BENT = 100
"""Features above which squares are left out: they would cost more than they find."""
FLAT = 1e-9
"""Standard deviation, of features scaled to at most 1 or of predictions, up to which they count as constant; share of a
label up to which there is but one."""
HIGHEST_LEVERAGE = 0.95
"""A row's share in its own prediction is cut here: its leave-one-out prediction divides by the rest."""
SURE = 1e-3
"""Probabilities are cut at this distance from 0 and 1 before the judge takes their log-odds."""
WIDENED = 1.2
"""What the error of held-out differences is widened by: folds learn from each other's rows (docs/simulation.md)."""
_TOLERANCE = 1e-8
"""Of a Newton step."""


class Probed(NamedTuple):
    """Rows in canonical order, shape (T,), and what folds without them say, shape (divisions, T).

    No divisions where there are too few rows to hold some out.
    """

    score: Floats
    label: Floats
    weight: Floats
    isotonic: Floats
    """Isotonic regression of the score."""
    probe: Floats
    """The recalibrated ridge regression on features and score."""
    judge: Floats
    """The probe once more recalibrated, with three parameters: what its decisions are judged by."""


def gain_beyond(probed: Probed, threshold: float) -> Estimate:
    """Gain per decision and unit of u_delta of deciding by the probe rather than by the recalibrated score."""
    return _gain(probed, threshold, probed.isotonic >= threshold)


def gain_over_score(probed: Probed, threshold: float, decision_threshold: float) -> Estimate:
    """The same against acting on the score as it is."""
    return _gain(probed, threshold, (probed.score >= decision_threshold)[None, :])


def _gain(probed: Probed, threshold: float, now: Mask) -> Estimate:
    if not len(probed.probe):
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")
    acts = probed.probe >= threshold
    moved = np.flatnonzero((acts != now).any(axis=0))
    change = acts[:, moved].astype(np.float64) - now[:, moved]
    by_label = change.mean(axis=0) * (probed.label[moved] - threshold)
    by_judge = (change * (probed.judge[:, moved] - threshold)).mean(axis=0)
    weight, total = probed.weight[moved], float(probed.weight.sum())
    label_mean, judge_mean = dot(weight, by_label) / total, dot(weight, by_judge) / total
    # The error of the labels' estimate alone: the judge's is hard to state, and smaller.
    squares = dot(probed.weight, probed.weight)
    unmoved = max(squares - dot(weight, weight), 0.0)
    spread = dot(weight**2, (by_label - label_mean) ** 2) + label_mean**2 * unmoved
    # One more row that might have changed sides: with none, the error would be 0 where nothing was seen.
    unseen = threshold * (1 - threshold) * squares / len(probed.weight)
    return Estimate((label_mean + judge_mean) / 2, WIDENED * float(np.sqrt(spread + unseen)) / total)


def build_probe(rows: Rows, *, seed: int) -> Probed:
    """Cross-fitted probabilities of rows with features, in any order."""
    rows = with_mean_weight_one(rows)
    if len(rows) < FEWEST_ROWS:
        nothing = np.empty((0, len(rows)))
        return Probed(rows.score, rows.label, rows.weights, nothing, nothing, nothing)
    shape = divisions(len(rows)), len(rows)
    isotonic, probed, judge = (np.empty(shape) for _ in range(3))
    features = StandardFeatures(rows)
    for division in range(shape[0]):
        for here, rule in fold_rules(rows, features, division, seed):
            isotonic[division, here], probed[division, here] = rule(rows.score[here], features.at(here))
        judge[division] = _judged(probed[division], isotonic[division], rows)
    return Probed(rows.score, rows.label, rows.weights, isotonic, probed, judge)


def divisions(rows: int) -> int:
    """Into folds, of so many rows."""
    return min(DIVISIONS, -(-ENOUGH_ROWS // rows))


def with_mean_weight_one(rows: Rows) -> Rows:
    """The rows in canonical order, with labels as float64 and weights, where there are any, of mean 1."""
    rows = rows.in_order()
    weight = None if rows.weight is None else rows.weight / rows.weight.mean()
    return replace(rows, score=rows.score + 0.0, label=rows.label.astype(np.float64), weight=weight)


class Standard:
    """Features and their squares with mean 0 and variance 1, cut; constant ones left out.

    Learned on all rows and without labels, so that folds may share it.
    """

    def __init__(self, features: NDArray[Any], weight: Floats) -> None:
        kept, bent = [], []
        for column in range(features.shape[1]):
            values = _finite(features[:, column])
            largest = float(np.abs(values).max(initial=0.0)) or 1.0
            values /= largest
            centre, spread = _moments(values, weight)
            if spread > FLAT:
                kept.append((column, largest, centre, spread))
                bent.append(_moments(_bent(_cut((values - centre) / spread)), weight))
        self.column = np.array([entry[0] for entry in kept], dtype=np.int64)
        self.largest, self.centre, self.spread = np.array([entry[1:] for entry in kept]).reshape(-1, 3).T
        self.bent = np.flatnonzero([spread > FLAT for _, spread in bent] if len(bent) <= MOST_BENT else [])
        self.bent_centre, self.bent_spread = np.array(bent).reshape(-1, 2)[self.bent].T

    def __call__(self, features: NDArray[Any]) -> Floats:
        """The standardised features of rows, shape (k, d') for features of shape (k, d)."""
        x = _cut((_finite(features[:, self.column]) / self.largest - self.centre) / self.spread)
        return np.column_stack((x, (_bent(x[:, self.bent]) - self.bent_centre) / self.bent_spread))


def _finite(values: NDArray[Any]) -> Floats:
    """A copy as float64, missing values as 0."""
    known = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=LARGEST, neginf=-LARGEST)
    return np.clip(known, -LARGEST, LARGEST)


def _moments(values: Floats, weight: Floats) -> tuple[float, float]:
    """Mean and standard deviation."""
    centre = dot(weight, values) / len(weight)
    return centre, float(np.sqrt(dot(weight, (values - centre) ** 2) / len(weight)))


def _cut(x: Floats) -> Floats:
    return np.clip(x, -FARTHEST, FARTHEST)


def _bent(x: Floats) -> Floats:
    return np.minimum(x**2, BEND**2)


class StandardFeatures:
    """Standardised features of rows: kept where folds ask for them often, else computed when they are asked for."""

    def __init__(self, rows: Rows) -> None:
        self.features = rows.matrix
        self.standard = Standard(self.features, rows.weights)
        self.kept = self.standard(self.features) if len(rows) < ENOUGH_ROWS else None

    def at(self, which: Ints) -> Floats:
        """Those of some rows, shape (k, d')."""
        return self.standard(self.features[which]) if self.kept is None else self.kept[which]


def fold_rules(rows: Rows, features: StandardFeatures, division: int, seed: int) -> Iterator[tuple[Ints, FoldRule]]:
    """Each fold of a division, as indices, with the rule learned on the other folds."""
    place = np.random.default_rng([seed, division, FOLDS]).permutation(len(rows))
    some = place < LEARNED_ON * FOLDS // (FOLDS - 1)
    for k in range(FOLDS):
        here = place % FOLDS == k
        yield np.flatnonzero(here), FoldRule(rows, features, ~here, ~here & some)


class FoldRule:
    """What some rows teach: isotonic regression of the score, and the probe."""

    def __init__(self, rows: Rows, features: StandardFeatures, learn: Mask, some: Mask) -> None:
        weights = rows.weights
        self.isotonic = isotonic_fit(
            rows.score[learn], rows.label[learn], None if rows.weight is None else weights[learn]
        )
        here = np.flatnonzero(some)
        label, weight = rows.label[here], weights[here]
        self.rate = float(weight @ label / weight.sum())
        self.taught = FLAT < self.rate < 1 - FLAT
        if not self.taught:
            return
        # Two rows of the base rate: the ends of the isotonic fit are 0 and 1, where the log-odds are not.
        self.drawn = 2 / (len(here) + 2)
        self.centre, self.spread = 0.0, 1.0
        logit = self._logit(self.isotonic(rows.score[here]))
        self.centre = float(logit.mean())
        self.spread = float((logit - self.centre).std())
        if self.spread <= FLAT:
            self.spread = 1.0
        ridge = Ridge(self._with_score(logit - self.centre, features.at(here)), label, weight)
        self.ridge = ridge
        self.curve = Recalibration(ridge.left_out, label, weight, None if rows.weight is None else weight)

    def _logit(self, fitted: Floats) -> Floats:
        return log_odds(fitted * (1 - self.drawn) + self.rate * self.drawn)

    def _with_score(self, centred: Floats, x: Floats) -> Floats:
        return np.column_stack((centred / self.spread / np.sqrt(SCORE_PENALTY), x))

    def __call__(self, score: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Both probabilities of rows with these standardised features."""
        fitted = self.isotonic(score)
        if not self.taught:
            return fitted, fitted
        probe = np.empty(len(score))
        for start in range(0, len(score), BLOCK):
            part = slice(start, start + BLOCK)
            probe[part] = self.curve(self.ridge(self._with_score(self._logit(fitted[part]) - self.centre, x[part])))
        return fitted, probe


class Ridge:
    """Ridge regression with an intercept, its penalty the one whose leave-one-out predictions are best."""

    def __init__(self, inputs: Floats, y: Floats, w: Floats, penalties: tuple[float, ...] = PENALTIES) -> None:
        total = w.sum()
        self.middle, self.rate = w @ inputs / total, float(w @ y / total)
        centred, off = inputs - self.middle, y - self.rate
        values, vectors = np.linalg.eigh(centred.T @ (centred * w[:, None]))
        turned = centred @ vectors
        moment, leverage = turned.T @ (w * off), turned**2 * w[:, None]
        best = np.inf
        for penalty in penalties:
            shrunk = 1 / (np.maximum(values, 0.0) + penalty)
            hat = np.minimum(leverage @ shrunk + w / total, HIGHEST_LEVERAGE)
            residual = (off - turned @ (shrunk * moment)) / (1 - hat)
            loss = float(w @ residual**2)
            if loss < best:
                best, self.penalty = loss, penalty
                self.left_out, self.coefficient = y - residual, vectors @ (shrunk * moment)

    def __call__(self, inputs: Floats) -> Floats:
        """Predictions of new rows."""
        return self.rate + (inputs - self.middle) @ self.coefficient


class Recalibration:
    """The mean of a logistic curve, which is smooth in the tails, and isotonic regression, which fits any shape."""

    def __init__(self, raw: Floats, y: Floats, w: Floats, weight: Floats | None) -> None:
        self.middle, self.spread = float(raw.mean()), float(raw.std())
        self.rate = float(w @ y / w.sum())
        if self.spread < FLAT:
            return
        self.slope = logistic_slopes(((raw - self.middle) / self.spread)[:, None], y, w)
        self.lowest = float(raw.min())
        self.isotonic = isotonic_fit(raw - self.lowest, y, weight)

    def __call__(self, raw: Floats) -> Floats:
        """Probabilities of new predictions."""
        if self.spread < FLAT:
            return np.full(len(raw), self.rate)
        smooth = expit(self.slope[0] + self.slope[1] * (raw - self.middle) / self.spread)
        return (smooth + self.isotonic(raw - self.lowest)) / 2


def _judged(probe: Floats, isotonic: Floats, rows: Rows) -> Floats:
    inputs = np.column_stack([log_odds(p, SURE) for p in (probe, isotonic)])
    slope = logistic_slopes(inputs, rows.label, rows.weights)
    return expit(slope[0] + inputs @ slope[1:])


def logistic_slopes(inputs: Floats, y: Floats, w: Floats) -> Floats:
    """Intercept and slopes of a logistic curve through one or two scores, with penalty 1/2."""
    x = np.vstack((np.ones(len(y)), inputs.T))
    at, _ = climb(lambda at: row_slopes(x, w, w * y, at, penalty=0.5), np.zeros(len(x)), _TOLERANCE)
    return at
