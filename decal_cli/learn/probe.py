"""What post-training on the features would still win beyond recalibration, before any method is named.

The probe is a small `blend`: a logistic regression and boosted trees on the score and the features, weighted with the
recalibrated score by how well they predict unseen rows. A row's probabilities come from models that have not seen it,
and its four weights from the other half. Nothing here knows t*. docs/probe.md says how it was chosen and how well it
predicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.learn import held_out
from decal_cli.learn.encoding import encoded
from decal_cli.learn.held_out import WIDENED
from decal_cli.learn.models import Applied, features_of, model
from decal_cli.learn.regions import LARGEST, Curve, Narrow, isotonic_fit, with_score
from decal_cli.learn.scaling import (
    MAX_FULL,
    SCALINGS,
    ClassScaling,
    beside_fixed,
    centred,
    inverse_temperature,
    linear,
    logarithms,
    mixing_weights,
    of_size,
    softmax,
    softmax_fit,
    structure,
)
from decal_cli.tables.estimate import MeanEstimate, dot
from decal_cli.tables.features import Features, Matrix
from decal_cli.tables.logistic import climb, expit, log_odds, row_slopes
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BLOCK, FEWEST_ROWS, Floats, Ints, Mask
from decal_cli.tables.threads import from_both_ends, one_thread, one_thread_for
from decal_cli.tables.units import Units, mean_over, run_of_each, runs_of, starts_of, units_of_rows

MAX_DISTANCE = 8.0
"""Standard deviations at which a standardised feature is cut: one row must not carry a regression."""
MIN_DEVIATION = 1e-9
"""Standard deviation, of features scaled to at most 1 or of log-odds, up to which they count as constant."""
PENALTY = 0.5
"""Penalty of the squared slopes of a regression, as in scikit-learn's LogisticRegression with C = 1."""
N_SEEDS = 2**32
"""scikit-learn takes seeds below this."""
N_TREES, LEARNING_RATE, MAX_LEAVES, MAX_BINS = 40, 0.18, 8, 63
"""Boosting: trees, learning rate, leaves of a tree, bins of a feature."""
LEAF_PENALTY = 10.0
"""Penalty of the squared value of a leaf (l2_regularization)."""
SPLIT_SHARE, MAX_SPLIT = 0.5, 64
"""Share of the columns that a split considers, drawn at random, and their largest number."""
LEAF_PART, LEAF_RANGE = 30, (5, 40)
"""A leaf holds one in LEAF_PART of the rows, within this range."""
SURE = 1e-3
"""Recalibrated scores are clipped at this distance from 0 and 1 before their log-odds are weighted."""
EQUAL = np.array([0.0, 0.5, 0.5, 0.0])
"""Intercept and weights to begin with: the mean log-odds of regression and trees, nothing of the recalibrated score."""
HOLD = np.array([0.25, 10.0, 10.0, 10.0])
"""Penalty of the squared distance of the intercept and each weight from EQUAL."""
_TOLERANCE = 1e-8
"""The tolerance of a Newton step, as in `climb`."""


def logistic_fit(columns: Floats, label: Floats, weight: Floats, penalty: Floats, centre: Floats) -> Floats:
    """Intercept and slopes, shape (1 + d,), of the logistic regression with the largest penalised likelihood.

    columns: shape (T, d). penalty: of the squared distance from the centre; shape (1 + d,) each, the intercept first.
    """
    x = np.vstack((np.ones(len(label)), columns.T))
    at, _ = climb(lambda at: row_slopes(x, weight, weight * label, at, penalty, centre), centre, _TOLERANCE)
    return at


def blend_weights(each: Floats, label: Floats, weight: Floats) -> Floats:
    """Intercept and weights of log-odds, shape (4,), by how well they predict rows that their models have not seen.

    each: log-odds by regression, trees and recalibrated score, shape (T, 3). weight: of mean 1.
    """
    return logistic_fit(each, label, weight, HOLD, EQUAL)


def blended(each: Floats, weights: Floats) -> Floats:
    """Probabilities from log-odds, shape (T, 3), and their weights, shape (4,)."""
    total = np.full(len(each), weights[0])
    # Column by column: a matrix product may round a row differently when other rows stand beside it.
    for column, of_column in zip(each.T, weights[1:], strict=True):
        total += of_column * column
    return expit(total)


class Standard(NamedTuple):
    """Features with mean 0 and variance 1, cut; constant columns are dropped, and missing values become the mean.

    column, largest, centre, spread: which columns, and their units, (d',) each.
    """

    column: Ints
    largest: Floats
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, features: Matrix, weight: Floats) -> Self:
        """The units of features, (T, d). Learned on all rows and without labels, so that folds may share it."""
        kept = []
        for column in range(features.shape[1]):
            values = _finite(features[:, column])
            known = ~np.isnan(values)
            largest = float(np.abs(values[known]).max(initial=0.0)) or 1.0
            values, mine = values[known] / largest, weight[known]
            total = float(mine.sum()) or 1.0
            centre = dot(mine, values) / total
            spread = math.sqrt(dot(mine, (values - centre) ** 2) / total)
            if spread > MIN_DEVIATION:
                kept.append((column, largest, centre, spread))
        columns, *units = np.array(kept).reshape(-1, 4).T
        return cls(columns.astype(np.int64), *units)

    def __call__(self, features: Matrix) -> Floats:
        """The standardised features of rows, shape (k, d') for features of shape (k, d)."""
        x = (_finite(features[:, self.column]) / self.largest - self.centre) / self.spread
        return np.nan_to_num(np.clip(x, -MAX_DISTANCE, MAX_DISTANCE), copy=False, nan=0.0)


def _finite(values: Matrix) -> Floats:
    """A copy as float64 without infinities; missing values stay missing."""
    return np.clip(values.astype(np.float64), -LARGEST, LARGEST)


class Regression:
    """Logistic regression on the log-odds of the recalibrated score and the standardised features."""

    def __init__(self, recalibrated: Floats, features: Floats, label: Floats, weight: Floats) -> None:
        self.middle, self.spread = float(recalibrated.mean()), float(recalibrated.std())
        if self.spread <= MIN_DEVIATION:
            self.spread = 1.0
        columns = self._columns(recalibrated, features)
        penalty, centre = np.full(1 + columns.shape[1], PENALTY), np.zeros(1 + columns.shape[1])
        penalty[0], centre[:1] = 0.0, log_odds(np.average(label[None], axis=1, weights=weight))
        self.coefficient = logistic_fit(columns, label, weight, penalty, centre)

    def _columns(self, recalibrated: Floats, features: Floats) -> Floats:
        return np.column_stack(((recalibrated - self.middle) / self.spread, features))

    def __call__(self, recalibrated: Floats, features: Floats) -> Floats:
        """Log-odds of rows, shape (k,)."""
        return self.coefficient[0] + self._columns(recalibrated, features) @ self.coefficient[1:]


def boosted(
    columns: Narrow, label: NDArray[Any], weight: Floats | None, seed: int, rounds: int, sizes: Mapping[str, float]
) -> Any:
    """A fitted HistGradientBoostingClassifier of so many rounds; sizes: {} for scikit-learn's own.

    It does not stop early, and leaves hold one in LEAF_PART of the rows, within LEAF_RANGE.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    leaf = int(np.clip(len(label) // LEAF_PART, *LEAF_RANGE))
    given = {**sizes, "min_samples_leaf": leaf, "early_stopping": False} if sizes else {}
    boosting = HistGradientBoostingClassifier(max_iter=rounds, **given, random_state=seed % N_SEEDS)
    # scikit-learn's boosting cannot take a column that has no value at all.
    empty = np.isnan(columns).all(axis=0)
    return boosting.fit(np.where(empty, np.float32(0), columns) if empty.any() else columns, label, weight)


MIN_TAUGHT, SHARE_TAUGHT = 12_000, 16
"""So many rows teach a fold's regression and trees, or one in SHARE_TAUGHT where these are more; all of its rows teach
its isotonic regression."""
MIN_SHARE = 1e-9
"""Share of a label up to which there is but one."""
JUDGE_PENALTY = 0.5
"""Penalty of the judge's squared parameters."""


# The gain at t* is the mean of two estimates. One takes the held-out labels for what changed decisions are worth:
# unbiased, noisy. The other takes a probability in their place, and is less noisy. The probe would judge its own
# decisions, so the judge is a logistic curve of the probe and of both recalibrated scores, with four parameters. It is
# fitted to the same labels, and how they move it is part of the error of the gain.
class Judge(NamedTuple):
    """What the decisions of a probe are judged by, in each of some deals of the rows, and what moves it.

    chance: a probability of label 1, (deals, T). slopes: what its weighted sum over rows gains by one more of each
    parameter, row by row, (deals, T, 4). pull: what one more unit of weight of a row adds to the parameters of its
    deal, (deals, T, 4).
    """

    chance: Floats
    slopes: Floats
    pull: Floats

    @classmethod
    def of(cls, rows: Rows, *learned: Floats) -> Self:
        """The judge of one deal, from held-out probabilities of the rows, (T,) each."""
        each = np.column_stack([log_odds(p, SURE) for p in learned])
        known = np.column_stack((np.ones(len(each)), each))
        size = known.shape[1]
        at = logistic_fit(each, rows.label, rows.weights, np.full(size, JUDGE_PENALTY), np.zeros(size))
        chance = expit(known @ at)
        slopes = known * (rows.weights * chance * (1 - chance))[:, None]
        information = slopes.T @ known + 2 * JUDGE_PENALTY * np.eye(size)
        pull = np.linalg.solve(information, known.T).T * (rows.label - chance)[:, None]
        return cls(chance[None], slopes[None], pull[None])

    @classmethod
    def together(cls, deals: Iterable[Self]) -> Self:
        """The judge of several deals, one deal after the other."""
        return cls(*map(np.concatenate, zip(*deals, strict=True)))

    def moved(self, worth: Floats) -> Floats:
        """What one more unit of weight of each row adds to the weighted sum of worth x chance over all rows, (m,).

        worth: what label 1 is worth more than label 0 on each row, for the rows of one deal after the other.
        """
        of_deals = np.einsum("dt,dtk->dk", worth.reshape(self.chance.shape), self.slopes)
        return np.einsum("dtk,dk->dt", self.pull, of_deals).ravel()


@dataclass(frozen=True, eq=False)
class Probed:
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
    """Regression, trees and recalibrated score, weighted; the four weights know something of the fold's labels."""
    learned: Floats
    """The mean log-odds of regression and trees, which nothing weights."""
    judge: Judge
    """What the probe's decisions are judged by beside the labels."""
    fold: Ints
    """The fold of each row: its models have seen no row of this fold."""
    unit: Ints | None = None
    """The cluster of each row; None where rows are independent."""
    others: tuple[Probed, ...] = ()
    """What models say of these rows in other deals into folds: gains are means over all deals."""

    def need_probe(self) -> None:
        """Raise Undefined where there were too few rows, or clusters, to hold some out."""
        if not len(self.probe):
            raise held_out.too_few_of(len(self.score))

    @cached_property
    def all_deals(self) -> DealtScores:
        """The scores of one deal after the other. Errors: Undefined, where there are too few rows to hold some out."""
        self.need_probe()
        deals = (self, *self.others)
        units = units_of_rows(self.label, self.weight, self.unit).dealt(len(deals))
        recalibrated, probe = (
            np.concatenate([getattr(deal, name) for deal in deals]) for name in ("recalibrated", "probe")
        )
        return DealtScores(units, recalibrated, probe, Judge.together(deal.judge for deal in deals))


class DealtScores(NamedTuple):
    """Units of all deals, shape (m,), a recalibrated score and the probe, both learned without them, and the judge."""

    units: Units
    recalibrated: Floats
    probe: Floats
    judge: Judge


def squared_loss_won(probed: Probed) -> MeanEstimate:
    """Squared loss of the recalibrated score less that of the probe, a mean over rows that neither has seen.

    This is the part of the grouping loss that the probe sees, apart from the errors of the isotonic fit.
    """
    won = (probed.isotonic - probed.label) ** 2 - (probed.probe - probed.label) ** 2
    mean, error = mean_over(won, probed.weight, probed.unit)
    return MeanEstimate(mean, WIDENED * error)


MAX_DEALS, WORK = 4, 20_000
"""Rows are dealt into folds so often at most, and so many rows in all deals together."""


def build_probe(rows: Rows, *, seed: int) -> Probed:
    """Cross-fitted probabilities of rows with features, in any order."""
    rows = with_mean_weight_one(rows)
    if rows.too_few_to_hold_out:
        nothing = np.empty(0)
        judge = Judge(*(nothing,) * 3)
        return Probed(rows.score, rows.label, rows.weights, *(nothing,) * 4, judge, nothing.astype(np.int64))
    deals = held_out.deals_of(len(rows), MAX_DEALS, WORK)
    each = [partial(_one_deal, rows, seed + deal * N_SEEDS) for deal in range(deals)]
    # Of fewer rows, two threads that take turns in Python need longer than one.
    with one_thread():
        first, *others = from_both_ends(each, worth=len(rows) >= WORK)
    return replace(first, others=tuple(others))


def _one_deal(rows: Rows, seed: int) -> Probed:
    (isotonic, probed, learned), fold = np.empty((3, len(rows))), np.empty(len(rows), dtype=np.int64)
    for number, rule in enumerate(fold_rules(rows, seed)):
        fold[rule.held] = number
        isotonic[rule.held] = rule.models.isotonic.of(rows.score[rule.held])
        probed[rule.held] = blended(rule.each, rule.weights)
        learned[rule.held] = rule.each[:, :2].mean(axis=1)
    _, level, fitted, _ = held_out.recalibrated_levels(rows, fold)
    recalibrated = fitted[fold, level]
    judge = Judge.of(rows, probed, isotonic, recalibrated)
    of_rows = rows.score, rows.label, rows.weights, isotonic, recalibrated, probed, learned
    return Probed(*of_rows, judge, fold, rows.unit)


def with_mean_weight_one(rows: Rows) -> Rows:
    """The rows in canonical order, with labels as float64 and weights, where there are any, of mean 1."""
    rows = rows.in_order()
    weight = None if rows.weight is None else rows.weight / rows.weight.mean()
    return replace(rows, score=rows.score + 0.0, label=rows.label.astype(np.float64), weight=weight)


def fold_rules(rows: Rows, seed: int) -> list[FoldRule]:
    """The rule of each fold: models that have not seen it, and weights by how well such models predict rows."""
    split = Split(rows, seed)
    models = [FoldModels(split, fold) for fold in range(FOLDS)]
    held_by = [np.flatnonzero(split.fold == fold) for fold in range(FOLDS)]
    each = np.empty((len(rows), 3))
    for fitted, held in zip(models, held_by, strict=True):
        for start in range(0, len(held), BLOCK):
            part = held[start : start + BLOCK]
            each[part] = fitted(rows.score[part], split.features[part])
    # Four numbers need no more rows than the models do.
    some = split.taught
    label, weight, of = rows.label[some], independent(rows)[some], split.fold[some]
    weights = [blend_weights(each[some], label, own_half(weight, of == fold)) for fold in range(FOLDS)]
    return [FoldRule(*parts, each[parts[1]]) for parts in zip(models, held_by, weights, strict=True)]


OWN = 0.5
"""What the rows of a fold count in the weights by which it is predicted itself."""


def independent(rows: Rows) -> Floats:
    """What each row counts in a few weights: rows of clusters count as the independent rows that say as much."""
    if rows.unit is None:
        return rows.weights
    effective = (rows.class_table if rows.classes else rows.table).effective_rows
    return rows.weights * (effective / rows.weights.sum())


def own_half(weight: Floats, own: Mask) -> Floats:
    """What rows count where the models of a fold are weighted: rows of the fold (`own`) count half.

    Without the fold's rows, its weights would be learned from rows whose models have seen it. If more of its labels are
    1 than expected, those models predict too much for the other rows, the weights correct that, and the fold looks
    worse predicted than new rows are. If its rows counted in full, it would look better (docs/probe.md).
    """
    return np.where(own, OWN * weight, weight)


class Split:
    """The fold of each row, which rows teach regressions and trees, and isotonic fits without one or two folds."""

    def __init__(self, rows: Rows, seed: int) -> None:
        place = rows.places(Seed(seed).generator("probe"))
        self.rows, self.seed, self.fold = rows, seed, place % FOLDS
        self.taught = place < max(MIN_TAUGHT, len(rows) // SHARE_TAUGHT) * FOLDS // (FOLDS - 1)
        self.features = rows.typed
        # What categories and missing values stand for is learned from labels, by each fold for itself.
        self.standard = Standard.of(rows.matrix, rows.weights) if self.features.plain else None
        self._without_two: dict[frozenset[int], Curve] = {}

    def without_two(self, fold: int, other: int) -> Curve:
        """Isotonic regression of the rows that teach, without those of these two folds."""
        folds = frozenset((fold, other))
        if folds not in self._without_two:
            self._without_two[folds] = isotonic_fit(self.rows, self.taught & (self.fold != fold) & (self.fold != other))
        return self._without_two[folds]


class FoldModels:
    """What a fold's regression, trees and recalibrated score say of rows, all learned without it."""

    def __init__(self, split: Split, fold: int) -> None:
        rows = split.rows
        self.isotonic = isotonic_fit(rows, split.fold != fold)
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
            recalibrated[held] = split.without_two(fold, other).of(score[held])
        self.standard = split.standard or Standard.of(features, weight)
        self.regression = Regression(self._log_odds(recalibrated), self.standard(features), label, weight)
        columns = with_score(score, features)
        sizes = {
            "learning_rate": LEARNING_RATE,
            "max_leaf_nodes": MAX_LEAVES,
            "max_bins": MAX_BINS,
            # A feature that says nothing by itself, but much beside another, is split on now and then.
            "max_features": min(SPLIT_SHARE, MAX_SPLIT / columns.shape[1]),
            "l2_regularization": LEAF_PENALTY,
        }
        with one_thread_for(len(label)):
            own = None if rows.weight is None else weight
            self.trees = boosted(columns, label == 1, own, split.seed, N_TREES, sizes)

    def _log_odds(self, recalibrated: Floats) -> Floats:
        return log_odds(recalibrated * (1 - self.shrunken) + self.rate * self.shrunken)

    def __call__(self, score: Floats, features: Features) -> Floats:
        """Log-odds of rows by regression, trees and recalibrated score, shape (k, 3)."""
        recalibrated = self.isotonic.of(score)
        known = log_odds(recalibrated, SURE)
        if not self.has_both:
            return np.column_stack((known, known, known))
        numbers = self.encoder(features) if self.encoder else features.matrix
        regression = self.regression(self._log_odds(recalibrated), self.standard(numbers))
        with one_thread_for(len(score)):
            trees = self.trees.decision_function(with_score(score, numbers))
        return np.column_stack((regression, trees, known))


class FoldRule(NamedTuple):
    """What decides a fold: its models, and the weights of their log-odds, shape (4,).

    held: its rows. each: what the models say of them, shape (k, 3).
    """

    models: FoldModels
    held: Ints
    weights: Floats
    each: Floats

    def __call__(self, score: Floats, features: Features) -> tuple[Floats, Floats]:
        """Both probabilities of new rows, of isotonic regression and of the probe."""
        return self.models.isotonic.of(score), blended(self.models(score, features), self.weights)


ROWS_ALIKE = 20
"""Rows of one fold, next to each other by their score, that count as of nearly the same score."""
LEAST = 1e-6
"""Distance from 0 and 1 at which probabilities are clipped before their log-odds are compared."""
TINY = 1e-300
"""The variance that stands in place of 0."""


# What a probe wins at t* grows slowly with the rows. Long before it is clear, the probe may show that there is
# something to learn: among rows of nearly the same score, does the label go with what was learned without it? Where the
# features say nothing more, the sum of the products of both residuals has mean 0, whatever the probe learned. That is
# the generalised covariance measure of Shah and Peters, with what the probe learned in place of a feature: the mean of
# its two learners, because its weights know the labels.
def no_signal(probed: Probed) -> float:
    """Probability of so clear a signal, or a clearer one, where the features say nothing beyond the score."""
    probed.need_probe()
    alike = _alike(probed.score, probed.fold)
    share = probed.weight / np.bincount(alike, probed.weight)[alike]
    label = _centred(probed.label, alike, share)
    score, learned = (_centred(values, alike, share) for values in (log_odds(probed.score, LEAST), probed.learned))
    # Within a few rows, what the probe owes to the score is a line.
    line = np.bincount(alike, share * score * learned) / np.maximum(np.bincount(alike, share * score**2), TINY)
    products = probed.weight * label * (learned - line[alike] * score)
    if probed.unit is not None:
        products = np.bincount(probed.unit, products).astype(np.float64)
    spread = float(products @ products)
    if spread <= 0:
        return 1.0
    return math.erfc(float(products.sum()) / (WIDENED * math.sqrt(2 * spread))) / 2


def _alike(score: Floats, fold: Ints) -> Ints:
    """The number of each row's group: a few rows of one fold with nearly the same score. Equal scores stay together.

    The score is in ascending order.
    """
    order, starts = runs_of((fold, score))
    folds = starts_of((fold[order],))
    begins = folds[run_of_each(folds, len(order))]
    block = (starts[run_of_each(starts, len(order))] - begins) // ROWS_ALIKE
    blocks = starts_of((begins, block))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = run_of_each(blocks, len(order))
    return number


def _centred(values: Floats, alike: Ints, share: Floats) -> Floats:
    return values - np.bincount(alike, share * values)[alike]


SLOPE_PENALTY = 3.0
"""Penalty of half the squared slopes on standardised features."""


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """Rows as given: probabilities from scalings that have not seen them, (T, K); the fold of each row, (T,).

    chosen: the scaling of lowest log loss on held-out rows. others: what other deals into folds give for these rows.
    """

    score: Floats
    fold: Ints
    chosen: str
    others: tuple[Recalibrated, ...] = ()

    @property
    def all_deals(self) -> Floats:
        """The probabilities of all deals, one deal after the other."""
        return np.concatenate([deal.score for deal in (self, *self.others)])


@dataclass(frozen=True, eq=False)
class ClassProbed:
    """Rows with features: probabilities of the probe from models that have not seen them, (deals x T, K)."""

    score: Floats


def dealt(rows: Rows, seed: int) -> tuple[Ints, Mask]:
    """The fold of each row, and which rows teach; whatever the order of rows and classes."""
    if rows.class_table.effective_rows < 2 * FEWEST_ROWS:
        raise held_out.too_few(2 * FEWEST_ROWS)
    place = np.empty(len(rows), dtype=np.int64)
    bare = replace(rows, groups={}, features=None)
    order = bare.order
    if rows.has_features:
        # Features change no fold, but rows that differ in them alone are not alike.
        whole = replace(rows, groups={}).order
        order = whole[bare.take(whole).order]
    # Only of clusters does it matter which rows they are.
    ordered = bare if rows.unit is None else bare.take(order)
    place[order] = ordered.places(Seed(seed).generator("classes"))
    return place % FOLDS, place < MIN_TAUGHT * FOLDS // (FOLDS - 1)


MAX_CLASS_DEALS = 3
"""Rows of several classes are dealt so often at most, and so many probabilities in all deals together as WORK."""


def build_recalibrated(rows: Rows, *, seed: int) -> Recalibrated:
    """Cross-fitted scalings of rows of several classes, in any order. Errors: Undefined, where there are too few."""
    rows = replace(rows, features=rows.typed) if rows.has_features else rows
    deals = int(np.clip(WORK // rows.score.size, 1, MAX_CLASS_DEALS))
    first, *others = (_one_deal_of(rows, seed + deal * N_SEEDS) for deal in range(deals))
    return replace(first, others=tuple(others))


def _one_deal_of(rows: Rows, seed: int) -> Recalibrated:
    fold, taught = dealt(rows, seed)
    # Of many rows those that teach also choose: applying one scaling to all rows takes long enough.
    score, label, weight, of = rows.score[taught], rows.label[taught], rows.weights[taught], fold[taught]
    by_name: dict[str, list[ClassScaling]] = {}
    losses: dict[str, Floats] = {}
    for name, fit in SCALINGS.items():
        try:
            by_name[name] = [fit(score[of != k], label[of != k], weight[of != k]) for k in range(FOLDS)]
        except Undefined:
            continue
        losses[name] = -logarithms(of_folds(by_name[name], score, of)[np.arange(len(label)), label])
    chosen = [by_name[_least(losses, weight, of != k)][k] for k in range(FOLDS)]
    simplest = _least(losses, weight, np.ones(len(label), dtype=bool))
    return Recalibrated(of_folds(chosen, rows.score, fold), fold, simplest)


def of_folds(scalings: Sequence[ClassScaling], score: Floats, fold: Ints) -> Floats:
    """Probabilities, (T, K), each row's by the scaling of its fold."""
    out = np.empty(score.shape, order="F")
    for start in range(0, len(score), BLOCK):
        part = slice(start, start + BLOCK)
        # A row for each class: what runs over classes then runs along whole rows.
        logs, here = logarithms(score[part].T), fold[part]
        logits = np.array([scaling.intercept for scaling in scalings])[here].T.copy()
        weights = np.array([scaling.weight for scaling in scalings])
        for to, by in np.argwhere(weights.any(axis=0)):
            logits[to] += weights[here, to, by] * logs[by]
        logits -= logits.max(axis=0)
        raised = np.exp(logits, out=logits)
        out[part] = (raised / raised.sum(axis=0)).T
    return out


def _least(losses: Mapping[str, Floats], weight: Floats, which: Mask) -> str:
    """The name of the lowest weighted sum of losses of these rows; the simplest one of equals."""
    return min(losses, key=lambda name: dot(weight[which], losses[name][which]))


@model(
    weight="K,K finite",
    slopes="K,d finite",
    intercept="K finite",
    column="d",
    largest="d positive",
    centre="d finite",
    spread="d positive",
)
class ClassPlane:
    """Logits: weight @ log p + slopes @ z + intercept, z the features in `column`, standardised and cut.

    weight: (K, K); slopes: (K, d); intercept: (K,); column, largest, centre, spread: (d,).
    """

    weight: Floats
    slopes: Floats
    intercept: Floats
    column: Ints
    largest: Floats
    centre: Floats
    spread: Floats

    def logits(self, rows: Unlabelled) -> Floats:
        """The logits of rows, shape (T, K)."""
        score = of_size(rows, len(self.intercept))
        columns = Standard(self.column, self.largest, self.centre, self.spread)(features_of(rows))
        return linear(logarithms(score), self.weight, self.intercept) + linear(
            columns, self.slopes, np.zeros(len(self.intercept))
        )

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(softmax(self.logits(rows)))

    @classmethod
    def fitted(cls, rows: Rows, penalty: float = SLOPE_PENALTY, score: bool = True) -> Self:
        """Multinomial regression on the logarithms at their best temperature and the standardised features, numbers.

        penalty: of half the squared slopes on the features. score: whether the probabilities count at all.
        """
        standard = Standard.of(rows.matrix, rows.weights)
        columns, logs = standard(rows.matrix), logarithms(rows.score)
        classes = logs.shape[1]
        s = inverse_temperature(logs, rows.label, rows.weights)
        hold, centre = structure(classes)
        holds = np.vstack((hold, np.full((columns.shape[1], classes), penalty)))
        centre = np.vstack((centre, np.zeros((columns.shape[1], classes))))
        free = np.ones(centre.shape, dtype=bool)
        if classes > MAX_FULL:
            free[: 1 + classes] = beside_fixed(classes)
        if not score:
            centre[1 : 1 + classes], free[1 : 1 + classes] = 0.0, False
        at = softmax_fit(np.column_stack((s * logs, columns)), rows.label, rows.weights, holds, centre, free)
        return cls(s * at[1 : 1 + classes].T, at[1 + classes :].T, at[0], *standard)


def mixed(weights: Floats, logits: Floats, recalibrated: Floats) -> Floats:
    """Probabilities of the regression's logits and the recalibrated probabilities, (T, K) each, by two weights."""
    return softmax(weights[0] * centred(logits) + weights[1] * centred(logarithms(recalibrated)))


def held_out_logits(rows: Rows, recalibrated: Floats, seed: int) -> tuple[Floats, Ints]:
    """Centred logits, (2, T, K), by regressions that have not seen the rows and of the recalibrated probabilities.

    Also the fold of each row, (T,).
    """
    fold, taught = dealt(rows, seed)
    logits = np.empty(rows.score.shape)
    for k in range(FOLDS):
        learn, here = rows.take(taught & (fold != k)), rows.take(fold == k)
        encoder, learn = (None, learn) if isinstance(rows.features, np.ndarray) else encoded(learn, seed=seed)
        here = replace(here, features=encoder(here.typed)) if encoder else here
        logits[fold == k] = ClassPlane.fitted(learn).logits(here)
    return np.stack((centred(logits), centred(logarithms(recalibrated)))), fold


def build_class_probe(rows: Rows, recalibrated: Recalibrated, *, seed: int) -> ClassProbed:
    """Cross-fitted probabilities of rows of several classes with features, in any order."""
    rows = replace(rows, features=rows.typed)
    deals = enumerate((recalibrated, *recalibrated.others))
    return ClassProbed(np.concatenate([_probe_of_deal(rows, each.score, seed + k * N_SEEDS) for k, each in deals]))


def _probe_of_deal(rows: Rows, recalibrated: Floats, seed: int) -> Floats:
    """Held-out probabilities of rows, (T, K); recalibrated: by the same folds."""
    each, fold = held_out_logits(rows, recalibrated, seed)
    score, weight = np.empty(rows.score.shape), independent(rows)
    for k in range(FOLDS):
        weights = mixing_weights(each, rows.label, own_half(weight, fold == k))
        score[fold == k] = softmax(np.tensordot(weights, each[:, fold == k], 1))
    return score
