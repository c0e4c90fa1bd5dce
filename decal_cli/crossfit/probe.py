"""What post-training on the features would still win beyond recalibration, before any method is named.

The probe is `blend` in small: a logistic regression and boosted trees, both on the score and the features, whose
log-odds and those of the recalibrated score are weighted by how well they predict rows that they have not seen.
Everything is cross-fitted: a row's two probabilities, the probe's and that of isotonic regression of the score, come
from models that have not seen it. Nothing here knows t*: one call serves every task.

The gain at t* is the mean of two estimates of the same thing. One takes the held-out labels for what changed decisions
are worth: unbiased, noisy. The other takes a probability for it: less noisy, but the probe would be judge of its own
decisions, so the judge is the probe after one more recalibration with three parameters.

How it was chosen, and how well it predicts what methods win on real data, stands in docs/probe.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit import held_out
from decal_cli.crossfit.encoding import encoded
from decal_cli.crossfit.learners import SURE, Regression, Standard, Trees, blend_weights, blended, logistic_fit
from decal_cli.crossfit.regions import IsotonicFit, isotonic_fit
from decal_cli.tables.estimate import mean_over
from decal_cli.tables.features import Features
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BLOCK, Floats, Ints, MeanEstimate
from decal_cli.tables.threads import one_thread

Mask = NDArray[np.bool_]

MIN_TAUGHT, SHARE_TAUGHT = 12_000, 16
"""So many rows teach a fold's regression and trees, or one in SHARE_TAUGHT where these are more; all of its rows teach
its isotonic regression."""
MIN_SHARE = 1e-9
"""Share of a label up to which there is but one."""
JUDGE_PENALTY = 0.5
"""Of the judge's three squared parameters."""
WIDENED = 1.2
"""What the error of held-out differences is widened by: folds learn from each other's rows (docs/simulation.md)."""


class Probed(NamedTuple):
    """Rows in canonical order and what models that have not seen them say of them, shape (T,) each.

    Where there are too few rows to hold some out, nothing is said: shape (0,).
    """

    score: Floats
    label: Floats
    weight: Floats
    isotonic: Floats
    """Isotonic regression of the score."""
    recalibrated: Floats
    """The score by the calibrator that is chosen inside the other folds."""
    probe: Floats
    """Regression, trees and recalibrated score, weighted."""
    judge: Floats
    """The probe once more recalibrated, with three parameters: what its decisions are judged by."""
    fold: Ints
    """The fold of each row: its models have seen no row of this fold."""
    unit: Ints | None = None
    """The cluster of each row; None where rows are independent."""


def squared_loss_won(probed: Probed) -> MeanEstimate:
    """Squared loss of the recalibrated score less that of the probe, a mean over rows that neither has seen.

    Of the grouping loss it is the part that the probe sees, apart from the errors of the isotonic fit.
    """
    won = (probed.isotonic - probed.label) ** 2 - (probed.probe - probed.label) ** 2
    mean, error = mean_over(won, probed.weight, probed.unit)
    return MeanEstimate(mean, WIDENED * error)


def build_probe(rows: Rows, *, seed: int) -> Probed:
    """Cross-fitted probabilities of rows with features, in any order."""
    rows = with_mean_weight_one(rows)
    if rows.too_few_to_hold_out:
        nothing = np.empty(0)
        return Probed(rows.score, rows.label, rows.weights, *(nothing,) * 4, nothing.astype(np.int64))
    isotonic, probed, fold = np.empty(len(rows)), np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
    with one_thread():
        for number, rule in enumerate(fold_rules(rows, seed)):
            fold[rule.held] = number
            isotonic[rule.held] = rule.models.isotonic(rows.score[rule.held])
            probed[rule.held] = rule.held_out
        judge = _judged(probed, isotonic, rows)
    recalibrated = held_out.recalibrated_rows(rows, fold)
    return Probed(rows.score, rows.label, rows.weights, isotonic, recalibrated, probed, judge, fold, rows.unit)


def with_mean_weight_one(rows: Rows) -> Rows:
    """The rows in canonical order, with labels as float64 and weights, where there are any, of mean 1."""
    rows = rows.in_order()
    weight = None if rows.weight is None else rows.weight / rows.weight.mean()
    return replace(rows, score=rows.score + 0.0, label=rows.label.astype(np.float64), weight=weight)


def fold_rules(rows: Rows, seed: int) -> list[FoldRule]:
    """The rule of each fold, learned on the other folds."""
    split = Split(rows, seed)
    models = [FoldModels(split, fold) for fold in range(FOLDS)]
    each = np.empty((len(rows), 3))
    for fold, fitted in enumerate(models):
        for part in _blocks(np.flatnonzero(split.fold == fold)):
            each[part] = fitted(rows.score[part], split.features[part])
    return [FoldRule(split, fold, models[fold], each) for fold in range(FOLDS)]


def _blocks(which: Ints) -> Iterator[Ints]:
    return (which[start : start + BLOCK] for start in range(0, len(which), BLOCK))


class Split:
    """Rows, each in a fold; those that teach regressions and trees; and isotonic fits without one or two folds."""

    def __init__(self, rows: Rows, seed: int) -> None:
        place = rows.places(Seed(seed).generator("probe"))
        self.rows, self.seed, self.fold = rows, seed, place % FOLDS
        self.taught = place < max(MIN_TAUGHT, len(rows) // SHARE_TAUGHT) * FOLDS // (FOLDS - 1)
        self.features = rows.typed
        # What categories and missing values stand for is learned from labels, by each fold for itself.
        self.standard = Standard(rows.matrix, rows.weights) if self.features.plain else None
        self._without_two: dict[frozenset[int], IsotonicFit] = {}

    def without(self, fold: int) -> IsotonicFit:
        """Isotonic regression of all other folds."""
        return self._isotonic(self.fold != fold)

    def without_two(self, fold: int, other: int) -> IsotonicFit:
        """Isotonic regression of the rows that teach, less these two folds."""
        folds = frozenset((fold, other))
        if folds not in self._without_two:
            self._without_two[folds] = self._isotonic(self.taught & (self.fold != fold) & (self.fold != other))
        return self._without_two[folds]

    def _isotonic(self, learn: Mask) -> IsotonicFit:
        rows = self.rows
        return isotonic_fit(rows.score[learn], rows.label[learn], None if rows.weight is None else rows.weight[learn])


class FoldModels:
    """What a fold's regression, trees and recalibrated score say of rows, all learned without it."""

    def __init__(self, split: Split, fold: int) -> None:
        rows = split.rows
        self.isotonic = split.without(fold)
        learn = np.flatnonzero(split.taught & (split.fold != fold))
        label, weight = rows.label[learn], rows.weights[learn]
        self.rate = float(weight @ label / weight.sum())
        self.has_both = MIN_SHARE < self.rate < 1 - MIN_SHARE
        if not self.has_both:
            return
        # Two rows of the base rate: the ends of the isotonic fit are 0 and 1, where the log-odds are not.
        self.shrunken = 2 / (len(learn) + 2)
        self.encoder, taught = encoded(rows.take(learn), seed=split.seed)
        score, features = taught.score, taught.matrix
        recalibrated = np.empty(len(learn))
        for other in set(range(FOLDS)) - {fold}:
            held = split.fold[learn] == other
            recalibrated[held] = split.without_two(fold, other)(score[held])
        self.standard = Standard(features, weight) if split.standard is None else split.standard
        self.regression = Regression(self._log_odds(recalibrated), self.standard(features), label, weight)
        self.trees = Trees(score, features, label, None if rows.weight is None else weight, split.seed)

    def _log_odds(self, recalibrated: Floats) -> Floats:
        return log_odds(recalibrated * (1 - self.shrunken) + self.rate * self.shrunken)

    def __call__(self, score: Floats, features: Features) -> Floats:
        """Log-odds of rows by regression, trees and recalibrated score, shape (k, 3)."""
        recalibrated = self.isotonic(score)
        known = log_odds(recalibrated, SURE)
        if not self.has_both:
            return np.column_stack((known, known, known))
        numbers = features.matrix if self.encoder is None else self.encoder(features)
        regression = self.regression(self._log_odds(recalibrated), self.standard(numbers))
        return np.column_stack((regression, self.trees(score, numbers), known))


class FoldRule:
    """What decides a fold: models that have not seen it, weighted by how well they predict the other folds."""

    def __init__(self, split: Split, fold: int, models: FoldModels, each: Floats) -> None:
        self.models, self.held = models, np.flatnonzero(split.fold == fold)
        others, rows = split.fold != fold, split.rows
        self.weights = blend_weights(each[others], rows.label[others], rows.weights[others])
        self.held_out = blended(each[self.held], self.weights)

    def __call__(self, score: Floats, features: Features) -> tuple[Floats, Floats]:
        """Both probabilities of new rows, of isotonic regression and of the probe."""
        return self.models.isotonic(score), blended(self.models(score, features), self.weights)


def _judged(probe: Floats, isotonic: Floats, rows: Rows) -> Floats:
    each = np.column_stack([log_odds(p, SURE) for p in (probe, isotonic)])
    slopes = logistic_fit(each, rows.label, rows.weights, np.full(3, JUDGE_PENALTY), np.zeros(3))
    return expit(slopes[0] + each @ slopes[1:])
