"""New models on the features: the last layer fitted again, models stacked on the score, their blend, and probing.

For several classes a regression is multinomial, and trees see the classes in an order by rows and mean probability, so
that their order in the file changes nothing.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.errors import Undefined
from decal_cli.learn.method import METHODS, Training, fit, method
from decal_cli.learn.models import (
    NO_FEATURES,
    Applied,
    Model,
    are_places,
    features_of,
    is_finite,
    model,
    need,
)
from decal_cli.learn.probe import (
    EQUAL,
    N_SEEDS,
    SLOPE_PENALTY,
    SURE,
    ClassPlane,
    blend_weights,
    blended,
    boosted,
    build_recalibrated,
    held_out_logits,
    mixed,
)
from decal_cli.learn.regions import LARGEST, Curve, Narrow, fits_of_other_folds, with_score
from decal_cli.learn.scaling import (
    SCALINGS,
    ClassScaling,
    mixing_weights,
    of_size,
    softmax,
    summed_by_column,
)
from decal_cli.learn.trees import Forest, baseline_of
from decal_cli.limits import MAX_PROBES, MAX_TREES, MAX_WIDTH
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats, Ints, Mask
from decal_cli.tables.threads import one_thread

MAX_ROUNDING = 1e-12
"""A column whose standard deviation is at most this share of its largest entry varies only by rounding."""
MAX_ITERATIONS = 1000
"""Iterations of the solver at most; on standardised columns it takes far fewer."""
CONVERGED = 1e-6
"""Largest slope of the mean loss at the end; Newton's method takes one step more than for scikit-learn's 1e-4."""
MAX_NEWTON_COLUMNS = 300
"""Up to so many columns, Newton's method is quick and its optimum exact; beyond, its matrix is too large."""


def float_columns(rows: Unlabelled) -> Floats:
    """The features as float64, shape (T, d), no larger than LARGEST; NaN where missing."""
    return np.clip(features_of(rows).astype(np.float64), -LARGEST, LARGEST)


@model(mean="c finite", scale="c positive")
class ColumnScale:
    """The unit of each column: it is shifted by mean and divided by scale, shape (columns,) each.

    A missing value counts as 0 in these units: as the mean, where the columns are standardised.
    """

    SAVED_AS = "Units"
    mean: Floats
    scale: Floats

    def __call__(self, columns: Floats) -> Floats:
        """Columns in their units, shape (T, columns)."""
        width = columns.shape[1]
        need(width == len(self.mean), f"a linear model of {len(self.mean)} columns meets rows of {width}")
        with np.errstate(over="ignore"):
            return np.nan_to_num(np.clip((columns - self.mean) / self.scale, -LARGEST, LARGEST), copy=False, nan=0.0)

    @classmethod
    def of(cls, columns: Floats, weight: Floats, standard: bool = True) -> ColumnScale:
        """Weighted mean and standard deviation of the columns; 1 for constant ones. Not standard: shift 0, scale 1."""
        if not standard:
            return cls(np.zeros(columns.shape[1]), np.ones(columns.shape[1]))
        known = ~np.isnan(columns)
        filled, of = np.where(known, columns, 0.0), weight[:, None] * known
        total = np.maximum(of.sum(axis=0), 1e-300)
        mean = (of * filled).sum(axis=0) / total
        scale = np.sqrt((of * (filled - mean) ** 2).sum(axis=0) / total)
        constant = scale <= MAX_ROUNDING * np.abs(filled).max(axis=0)
        return cls(mean, np.where(constant, 1.0, scale))


@model(coefficient="p,c finite", intercept="p finite")
class Planes:
    """Linear functions of columns in their units. coefficient: shape (planes, columns); intercept: (planes,)."""

    units: ColumnScale
    coefficient: Floats
    intercept: Floats

    def _check(self) -> None:
        need(self.coefficient.shape[1] == len(self.units.mean), "a linear model needs one coefficient for each column")

    def __call__(self, columns: Floats) -> Floats:
        """The functions' values, shape (T, planes)."""
        return summed_by_column(self.units(columns), self.coefficient, self.intercept)


@model()
class ScoreColumn:
    """The log-odds of the recalibrated score, placed before the features.

    least: the recalibrated score is clipped to [least, 1 - least].
    """

    curve: Curve
    least: float

    def _check(self) -> None:
        need(0 < self.least <= 0.5, "log-odds need probabilities that are kept away from 0 and 1")

    def __call__(self, rows: Unlabelled) -> Floats:
        """Columns of rows, shape (T, 1 + d)."""
        return np.column_stack((self.log_odds(self.curve(rows).score), float_columns(rows)))

    def log_odds(self, score: Floats) -> Floats:
        """Log-odds of probabilities, kept away from 0 and 1."""
        return log_odds(score, self.least)


def with_recalibrated(rows: Training) -> tuple[ScoreColumn, Floats]:
    """The column of the recalibrated score for new rows, and the columns of the training rows, shape (T, 1 + d).

    A training row is recalibrated by the other folds, so that its own label has no part in its score.
    """
    # No more certain than the rule of succession is after as many rows of one label.
    column = ScoreColumn(Curve.fitted(rows.table), 1 / (len(rows) + 2))
    fold = rows.folds(rows.generator(FOLDS))
    score = fits_of_other_folds(rows, fold)
    return column, np.column_stack((column.log_odds(score), float_columns(rows)))


def planes_of(
    columns: Floats, label: Floats, weights: list[Floats], units: ColumnScale, penalty: float = 1.0
) -> Planes:
    """One penalised logistic regression for each array of weights, shape (T,).

    penalty: of half the squared coefficients, added to the weighted sum of the log loss: a weight of 2 is two rows.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    solver = "newton-cholesky" if columns.shape[1] <= MAX_NEWTON_COLUMNS else "lbfgs"
    regression = LogisticRegression(
        C=1 / penalty, solver=solver, tol=CONVERGED, max_iter=MAX_ITERATIONS, warm_start=True
    )
    scaled = units(columns)
    coefficient, intercept = [], []
    with warnings.catch_warnings(), np.errstate(all="ignore"), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        for weight in weights:
            regression.fit(scaled, label == 1, weight)
            coefficient.append(regression.coef_[0].copy())
            intercept.append(float(regression.intercept_[0]))
    if not (np.isfinite(coefficient).all() and np.isfinite(intercept).all()):
        raise Undefined("needs features of similar size: the regression did not converge")
    return Planes(units, np.array(coefficient), np.array(intercept))


_PENALTIES = Between(1e-9, 1e9)
_TREE_SHARE, _MAX_TREE_ROWS, _MIN_FOREST_LEAF = 0.6, 16_384, 5
"""A tree of a forest: share of the rows it is grown on, at most so many rows, and smallest number of rows in a leaf."""
_SPLIT_ROOTS = 2.0
"""Columns that a split of a forest considers, in square roots of their number: 11 of 33, and fast for 1,000."""
_N_ROUNDS, _LEARNING_RATE, _MAX_LEAVES, _MAX_BINS, _SPLIT_SHARE = 120, 0.05, 16, 63, 0.3
"""Boosting: trees, learning rate, leaves of a tree, bins of a feature, share of the columns that a split considers."""
Sizes = Literal["decal", "scikit-learn"]
"""Who chose the sizes of trees, apart from their number: decal, or scikit-learn by its defaults."""


@model()
class Refitted:
    """Logistic regression on the features: one plane, a coefficient for each feature."""

    planes: Planes

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.planes(float_columns(rows))[:, 0]))


@model()
class Stacked:
    """Logistic regression on the recalibrated score (the first coefficient) and the features (the others)."""

    score: ScoreColumn
    planes: Planes

    def log_odds(self, rows: Unlabelled) -> Floats:
        """Log-odds of rows, shape (T,)."""
        return self.planes(self.score(rows))[:, 0]

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.log_odds(rows)))


@model()
class StackedForest:
    """Trees on the score (column 0) and the features; the sum of their values is the score."""

    forest: Forest

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(np.clip(self.forest.total(_columns(rows)), 0.0, 1.0))


@model()
class StackedBoosting:
    """Trees on the score (column 0) and the features; the baseline plus the sum of their values is the log-odds."""

    forest: Forest
    baseline: float

    def _check(self) -> None:
        need(is_finite(self.baseline), "log-odds must be finite")

    def log_odds(self, rows: Unlabelled) -> Floats:
        """Log-odds of rows, shape (T,)."""
        return self.baseline + self.forest.total(_columns(rows))

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.log_odds(rows)))


def _columns(rows: Unlabelled, order: Ints | None = None) -> Narrow:
    """Score and features side by side as trees see them; order: of the classes, where there are several."""
    score = rows.score if order is None else of_size(rows, len(order))[:, order]
    return with_score(score, features_of(rows))


def _as_trees_see(rows: Training) -> tuple[Ints, Narrow, NDArray[Any]]:
    """The classes by their rows and mean probability, where there are several; the columns, and the labels."""
    if not rows.classes:
        return np.arange(2), _columns(rows), rows.label == 1
    order = np.lexsort((rows.weights @ rows.score, np.bincount(rows.label, rows.weights, len(rows.classes))))
    return order, _columns(rows, order), np.argsort(order)[rows.label]


def _weights(rows: Training) -> Floats | None:
    """Weights of mean 1: boosting does not split where weights add up to next to nothing."""
    return None if rows.weight is None else rows.weight / rows.weight.mean()


def _one_regression(columns: Floats, rows: Training, standard: bool, penalty: float) -> Planes:
    units = ColumnScale.of(columns, rows.weights, standard)
    return planes_of(columns, rows.label, [rows.weights], units, penalty)


@method(
    title="Refitting the last layer",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Perez-Lebel et al. 2025', 'app. C.3 (fine-tuning)')}; scikit-learn's LogisticRegression",
    classes="any",
)
def refit(
    rows: Training,
    *,
    penalty: Annotated[float, "weight of the squared coefficients", _PENALTIES] = 1.0,
    units: Annotated[Literal["standard", "own"], "features standardised, or as they are"] = "standard",
) -> Model:
    """Logistic regression of the labels on the features alone.

    p' = s(w . z + b), where s is the logistic function and z the features, standardised to mean 0 and standard
    deviation 1; w and b minimise the weighted log loss, summed over rows, plus `penalty` |w|^2 / 2. The score is not
    used: this is the last layer of the model, fitted again on these rows. `units=own` takes the features as they are,
    as in Perez-Lebel et al. 2025; the result then depends on their units.
    """
    if rows.classes:
        return ClassPlane.fitted(rows, penalty, score=False)
    return Refitted(_one_regression(float_columns(rows), rows, units == "standard", penalty))


@method(
    title="Stacking by logistic regression",
    kind="post-training",
    needs=("features",),
    source=cite("Wolpert 1992"),
    classes="any",
)
def stack(
    rows: Training,
    *,
    penalty: Annotated[float, "weight of the squared coefficients", _PENALTIES] = 1.0,
) -> Model:
    """Logistic regression of the labels on the recalibrated score and the features.

    p' = s(a logit(c(p)) + w . z + b), where s is the logistic function, c isotonic regression and z the features; all
    columns are standardised to mean 0 and standard deviation 1, and a and w are penalised as in `refit`. During the
    fit, c of each row comes from the other four of five folds. It learns how much weight the score deserves beside the
    features, for the cost of one regression.
    """
    if rows.classes:
        return ClassPlane.fitted(rows, SLOPE_PENALTY * penalty)
    score, columns = with_recalibrated(rows)
    return Stacked(score, _one_regression(columns, rows, True, penalty))


@method(
    title="Stacking by a random forest",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Perez-Lebel et al. 2025', 'app. C.3')}; scikit-learn's RandomForestClassifier, with fewer rows "
    "per tree and larger leaves",
    classes="any",
)
def stack_forest(
    rows: Training,
    *,
    trees: Annotated[int, "number of trees", Between(0, MAX_TREES + 1)] = 60,
    sizes: Annotated[Sizes, "the sizes described here, or scikit-learn's defaults"] = "decal",
) -> Model:
    """The mean probability of trees grown on resampled rows, from the score and the features.

    Each of 60 trees is grown on rows drawn with replacement, 6 for every 10 rows, at most 16,384. A split considers
    twice the square root of the number of columns, and a leaf holds at least 5 rows. It finds effects that are neither
    linear nor monotone in the features. The model file holds the trees. `trees=100,sizes=scikit-learn` is the forest
    of Perez-Lebel et al. 2025, whose trees grow until every leaf has one label.
    """
    order, columns, label = _as_trees_see(rows)
    grown = grown_forest(columns, label, rows, trees, sizes)
    forest = Forest.of_forest(grown)
    if not rows.classes:
        return StackedForest(forest)
    values = np.zeros((len(forest.nodes.left), len(order)))
    values[:, grown.classes_] = np.vstack([each.tree_.value[:, 0, :] for each in grown.estimators_])
    return ClassForest(forest, values, order)


# The sizes of trees were chosen by log loss, which is nobody's utility, on eleven text data sets (32 features, 1,000 to
# 12,000 rows, two scores each; one half to fit, the other to evaluate), among about ten settings that take less than a
# second at 3,000 rows. Mean log loss on these sets: boosting 0.418, 0.473 with scikit-learn's defaults; forests 0.438,
# 0.448 with the defaults; refit 0.421, 0.428 in the features' own units; stack 0.421; probing 0.420.
def grown_forest(columns: Narrow, label: NDArray[Any], rows: Training, trees: int, sizes: str) -> Any:
    """A fitted RandomForestClassifier of so many trees; columns, label: of the rows as it sees them."""
    from sklearn.ensemble import RandomForestClassifier

    count, width = columns.shape
    given = {
        "max_samples": int(np.clip(_TREE_SHARE * count, 1, _MAX_TREE_ROWS)),
        "max_features": int(min(width, _SPLIT_ROOTS * width**0.5)),
        "min_samples_leaf": _MIN_FOREST_LEAF,
    }
    seed = rows.seed % N_SEEDS
    forest = RandomForestClassifier(trees, **(given if sizes == "decal" else {}), n_jobs=1, random_state=seed)
    return forest.fit(columns, label, _weights(rows))


@method(
    title="Stacking by boosted trees",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Perez-Lebel et al. 2025', 'app. C.3')}; scikit-learn's HistGradientBoostingClassifier, with small "
    "steps and small trees",
    classes="any",
)
def stack_boosting(
    rows: Training,
    *,
    rounds: Annotated[int, "number of trees", Between(0, 10_001)] = _N_ROUNDS,
    sizes: Annotated[Sizes, "the sizes and steps described here, or scikit-learn's defaults"] = "decal",
) -> Model:
    """Trees on the score and the features, each grown on what the trees before it leave unexplained.

    logit p' = b + the sum of the trees' values. Each of 120 trees has at most 16 leaves of at least a thirtieth of the
    rows (this minimum lies between 5 and 40 rows), and has learning rate 0.05; a split considers 3 in 10 columns. No
    rows are held out to stop early: the number of trees is fixed. `rounds=100,sizes=scikit-learn` is the boosting of
    Perez-Lebel et al. 2025, which stops early where there are more than 10,000 rows.
    """
    order, columns, label = _as_trees_see(rows)
    rounds = max(1, min(rounds, MAX_CLASS_TREES // len(order))) if rows.classes else rounds
    boosting = grown_boosting(columns, label, rows, rounds, sizes)
    forests = Forest.of_boosting(boosting)
    if not rows.classes:
        return StackedBoosting(forests[0], baseline_of(boosting))
    # Of two classes seen there are trees for the second alone.
    grown = boosting.classes_ if len(boosting.classes_) > 2 else boosting.classes_[1:]
    baseline = np.full(len(order), UNSEEN)
    baseline[boosting.classes_] = 0.0
    baseline[grown] = np.ravel(boosting._baseline_prediction)
    return ClassBoosting(forests, grown.astype(np.int64), baseline, order)


def grown_boosting(columns: Narrow, label: NDArray[Any], rows: Training, rounds: int, sizes: str) -> Any:
    """A fitted HistGradientBoostingClassifier of so many rounds; columns, label: of the rows as it sees them."""
    given = {
        "learning_rate": _LEARNING_RATE,
        "max_leaf_nodes": _MAX_LEAVES,
        "max_bins": _MAX_BINS,
        "max_features": _SPLIT_SHARE,
    }
    with one_thread():
        return boosted(columns, label, _weights(rows), rows.seed, rounds, given if sizes == "decal" else {})


_MAX_WEIGHED_ROWS = 16_384
"""So many rows, drawn at random, are enough to learn three weights."""


@model()
class Blended:
    """Log-odds of a regression, boosted trees and the recalibrated score; weights: shape (4,), the intercept first."""

    regression: Stacked
    boosting: StackedBoosting
    weights: Floats

    def _check(self) -> None:
        finite = self.weights.shape == EQUAL.shape and is_finite(self.weights)
        need(finite, "a blend needs an intercept and three weights, all finite")

    def each(self, rows: Unlabelled) -> Floats:
        """Log-odds of rows by each of the three, shape (T, 3)."""
        known = log_odds(self.regression.score.curve(rows).score, SURE)
        return np.column_stack((self.regression.log_odds(rows), self.boosting.log_odds(rows), known))

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(blended(self.each(rows), self.weights))


@method(
    title="Stacking, regression and boosted trees blended",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Wolpert 1992')}; two stacks and the recalibrated score, weighted on held-out rows",
    classes="any",
)
def blend(rows: Training) -> Model:
    """A weighted mean of the log-odds that `stack`, `stack-boosting` and isotonic recalibration give.

    The regression finds linear effects with little noise, the trees find the others; each limits the overfitting of the
    other. The weights are learned on rows that the models have not seen, in five folds of at most 16,384 rows, and are
    held close to 1/2, 1/2 and 0 where rows are few. `decal recommend` names this method where recalibration is not
    enough: on real data sets it gained more than any other method, on average (docs/study.md).
    """
    if not rows.classes:
        return replace(_both_stacks(rows), weights=_blend_weights(rows))
    recalibrated = build_recalibrated(rows, seed=rows.seed)
    each, _ = held_out_logits(rows, recalibrated.score, rows.seed)
    scaling = SCALINGS[recalibrated.chosen](rows.score, rows.label, rows.weights)
    return ClassMixture(ClassPlane.fitted(rows), scaling, mixing_weights(each, rows.label, rows.weights))


def _both_stacks(rows: Training) -> Blended:
    """Both stacks, with equal weights."""
    regression: Any = stack(rows)
    boosting: Any = stack_boosting(rows)
    return Blended(regression, boosting, EQUAL)


def _blend_weights(rows: Training) -> Floats:
    """Weights of regression, trees and recalibrated score, by models of the other folds' rows on each of five folds."""
    rows = rows.take(np.sort(rows.generator(FOLDS, 1).permutation(len(rows))[:_MAX_WEIGHED_ROWS]))
    if min(rows.positives, len(rows) - rows.positives) < 2:
        return EQUAL
    fold, each = _folds(rows), np.empty((len(rows), 3))
    for k in range(FOLDS):
        here = fold == k
        each[here] = _both_stacks(rows.take(~here)).each(rows.take(here))
    weight = rows.weights
    return blend_weights(each, rows.label, weight / weight.mean())


def _folds(rows: Training) -> Ints:
    """The fold of each row; both labels are dealt out evenly, so that no fold takes all rows of one.

    Clusters stay whole, whatever their labels.
    """
    if rows.unit is not None:
        return rows.folds(rows.generator(FOLDS, 2))
    order = rows.generator(FOLDS, 2).permutation(len(rows))
    fold = np.empty(len(rows), dtype=np.int64)
    fold[order[np.argsort(rows.label[order], kind="stable")]] = np.arange(len(rows)) % FOLDS
    return fold


MAX_DECISIONS = 1 << 22
"""Decisions of probes that are held at once: rows times probes."""
EVEN = 0.5
"""The score from which a classifier that was fitted with the costs as weights decides 1."""
_LAST_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE]-?\d+)?$")


class Deciding:
    """What decides 0 or 1 in each cell of thresholds; its score is the integral of the decisions over these.

    edges: shape (cells + 1,), increasing from 0 to 1; cell k is from edge k to edge k + 1.
    """

    edges: Floats

    def decisions(self, rows: Unlabelled) -> Mask:
        """The decisions of rows, shape (T, cells)."""
        raise NotImplementedError

    def __call__(self, rows: Unlabelled) -> Applied:
        step = max(1, MAX_DECISIONS // (len(self.edges) - 1))
        blocks = (np.arange(at, min(at + step, len(rows))) for at in range(0, max(len(rows), 1), step))
        widths = np.diff(self.edges)
        each = [np.where(self.decisions(rows.take(one)), widths, 0.0).sum(axis=1) for one in blocks]
        return Applied(np.clip(np.concatenate(each), 0.0, 1.0))


@model()
class Probes(Deciding):
    """Classifiers for thresholds: probe k decides 1 where its plane is not below 0.

    The planes' columns are the log-odds of the recalibrated score and the features.
    """

    score: ScoreColumn
    planes: Planes
    edges: Floats

    def _check(self) -> None:
        need_grid(self.edges, len(self.planes.intercept))

    def decisions(self, rows: Unlabelled) -> Mask:
        """The decisions of the probes, shape (T, probes)."""
        return self.planes(self.score(rows)) >= 0


def grid(probes: int) -> Floats:
    """Edges of as many cells of thresholds as probes, shape (probes + 1,): sin^2 of equal steps.

    A probability is known to about sqrt(p (1 - p) / n). Cells that shrink like this error waste no probe in the middle,
    and leave a few probes below thresholds such as 0.01.
    """
    return np.append(np.sin(np.pi / 2 * np.arange(probes) / probes) ** 2, 1.0)


def costs(label: Floats, threshold: float) -> Floats:
    """Cost of a wrong decision on each row, shape (T,): 1 - t for label 1, t for label 0 (Tasche 2021, eq. 3.3a)."""
    return np.where(label == 1, 1 - threshold, threshold)


@model()
class LearnedProbes(Deciding):
    """Models for thresholds, each fitted with the costs of its own; probe k decides 1 where it scores at least 1/2."""

    learners: tuple[Model, ...]
    edges: Floats

    def _check(self) -> None:
        need_grid(self.edges, len(self.learners))

    def decisions(self, rows: Unlabelled) -> Mask:
        """The decisions of the probes, shape (T, probes)."""
        return np.column_stack([learner(rows).score >= EVEN for learner in self.learners])


@model()
class GivenDecisions(Deciding):
    """Decisions for thresholds that stand in the rows themselves. places: of their columns among the features."""

    places: Ints
    edges: Floats

    def _check(self) -> None:
        need_grid(self.edges, len(self.places))
        need(are_places(self.places, 0, MAX_WIDTH), "decisions stand in columns of features")

    def decisions(self, rows: Unlabelled) -> Mask:
        """The decisions, shape (T, probes); a missing one counts as 0."""
        features = features_of(rows)
        if self.places.max() >= features.shape[1]:
            raise Undefined(NO_FEATURES)
        return np.asarray(features[:, self.places] >= EVEN)


def need_grid(edges: Floats, probes: int) -> None:
    """Refuse edges that are no grid of so many cells of thresholds. Errors: ValueError."""
    need(probes <= MAX_PROBES, f"a model has at most {MAX_PROBES:,} probes")
    rises = probes > 0 and edges.shape == (probes + 1,) and bool((np.diff(edges) > 0).all())
    need(rises, "probes need one more edge than there are, in increasing order")
    need(edges[0] == 0 and edges[-1] == 1, "probes must cover the thresholds from 0 to 1")


def given_decisions(names: Sequence[str], pattern: str) -> GivenDecisions:
    """The columns that the pattern names, whose names end in their thresholds: 'd_0.25'. Errors: Undefined."""
    at: list[tuple[float, int]] = []
    for place, name in enumerate(names):
        if fnmatchcase(name, pattern):
            number = _LAST_NUMBER.search(name)
            if number is None or not 0 < float(number[0]) < 1:
                raise Undefined(f"needs names that end in a threshold between 0 and 1, such as d_0.25, not {name!r}")
            at.append((float(number[0]), place))
    if not at:
        raise Undefined(f"needs features that {pattern!r} names")
    thresholds, places = np.array(sorted(at)).T
    if (np.diff(thresholds) <= 0).any():
        raise Undefined("needs one column of decisions for a threshold, not two")
    edges = np.concatenate(([0.0], (thresholds[:-1] + thresholds[1:]) / 2, [1.0]))
    return GivenDecisions(places.astype(np.int64), edges)


@method(
    title="Probing reduction",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Langford and Zadrozny 2005')}; {cite('Tasche 2021', 'sec. 4')}",
)
def probing(
    rows: Training,
    *,
    probes: Annotated[int, "number of thresholds, each with a classifier", Between(0, MAX_PROBES + 1)] = 40,
    learner: Annotated[
        Literal["logistic", "refit", "stack-forest", "stack-boosting"], "what the classifiers are"
    ] = "logistic",
    columns: Annotated[str, "features that hold decisions of your own classifiers, such as 'd_*'"] = "",
) -> Probes | LearnedProbes | GivenDecisions:
    """The mean decision of classifiers trained for thresholds between 0 and 1.

    p' = integral of h(t, x) dt, where h(t, .) is a classifier trained with costs 1 - t for a missed label 1 and t for a
    false alarm; there is one for each of the `probes` cells of thresholds, which are narrower near 0 and 1. Each
    classifier is a weighted logistic regression on the recalibrated score and the features (the columns of `stack`),
    which may weigh them differently at every t. The Brier score of p' is at most twice the classifiers' mean cost over
    t, and the loss of p' compared with the true probability at most twice their loss compared with the best decisions
    (Tasche 2021, thm. 4.2). `learner` takes another method as classifier, fitted with these costs as weights.

    `columns=d_*` fits nothing: it integrates decisions 0 and 1 of classifiers of your own, which are among the features
    in columns whose names end in the threshold, such as d_0.25. Each decision counts for the thresholds nearest to its
    own; on new rows, a missing one counts as 0.
    """
    if columns:
        given = given_decisions(rows.feature_names, columns)
        # Where categories or missing values were encoded, the columns are no longer those of the names.
        features = features_of(rows)
        plain = features.shape[1] == len(rows.feature_names)
        if not plain or not np.isin(features[:, given.places], (0, 1)).all():
            raise Undefined("needs decisions of 0 and 1, none missing, beside features that are numbers")
        return given
    edges = grid(probes)
    middles = (edges[:-1] + edges[1:]) / 2
    weights = [rows.weights * costs(rows.label, t) for t in middles]
    # Of the same sum, so that the penalty acts equally on all probes.
    weights = [weight * (rows.weights.sum() / weight.sum()) for weight in weights]
    if learner != "logistic":
        spec = METHODS.parse(learner)
        return LearnedProbes(tuple(fit(spec, replace(rows, weight=weight, cache={})) for weight in weights), edges)
    score, known = with_recalibrated(rows)
    return Probes(score, planes_of(known, rows.label, weights, ColumnScale.of(known, rows.weights)), edges)


@model(weights="2 finite")
class ClassMixture:
    """Logits of a regression and of recalibrated probabilities, mixed by two weights."""

    regression: ClassPlane
    scaling: ClassScaling
    weights: Floats

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(mixed(self.weights, self.regression.logits(rows), self.scaling(rows).score))


MAX_CLASS_TREES = 2400
"""Trees of boosting at most, for all classes together: more classes get fewer rounds."""
UNSEEN = -30.0
"""The logit of a class that no training row has."""


def _need_order(order: Ints) -> None:
    need(np.array_equal(np.sort(order), np.arange(len(order))), "trees need an order of the classes")


@model(values="n,K in [0, 1]")
class ClassForest:
    """The mean of trees' probabilities. values: of each node, (nodes, K); order: of the classes, (K,)."""

    forest: Forest
    values: Floats
    order: Ints

    def _check(self) -> None:
        _need_order(self.order)
        shape = len(self.forest.nodes.left), len(self.order)
        need(self.values.shape == shape, "every node needs K probabilities")

    def __call__(self, rows: Unlabelled) -> Applied:
        total, score = self.forest.total(_columns(rows, self.order), self.values), np.empty(rows.score.shape)
        score[:, self.order] = total / total.sum(axis=1, keepdims=True)
        return Applied(score)


@model(baseline="K finite")
class ClassBoosting:
    """Logits that are sums of trees. forests: of the classes in `grown`, (g,); baseline: (K,); order: (K,)."""

    forests: tuple[Forest, ...]
    grown: Ints
    baseline: Floats
    order: Ints

    def _check(self) -> None:
        _need_order(self.order)
        need(self.baseline.shape == self.order.shape, "every class needs a logit")
        need(len(self.grown) == len(self.forests) and are_places(self.grown, 0, len(self.order)), "trees need a class")

    def __call__(self, rows: Unlabelled) -> Applied:
        columns, score = _columns(rows, self.order), np.empty(rows.score.shape)
        logits = np.tile(self.baseline, (len(columns), 1))
        for number, forest in zip(self.grown, self.forests, strict=True):
            logits[:, number] += forest.total(columns)
        score[:, self.order] = softmax(logits)
        return Applied(score)
