"""Recalibration of scores of two classes: isotonic regression, logistic curves, steps, Venn-Abers, a moved threshold.

The logistic curves (Platt, temperature, beta, quadratic, spline) are one maximum likelihood in a few terms of the
score, on the levels of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between, Bins
from decal_cli.errors import Undefined
from decal_cli.learn.encoding import Encoded
from decal_cli.learn.method import Training, method
from decal_cli.learn.models import (
    Applied,
    Model,
    deciding_as,
    is_finite,
    model,
    need,
)
from decal_cli.learn.regions import Curve
from decal_cli.learn.scaling import (
    SCALINGS,
    ClassScaling,
    inverse_temperature,
    logarithms,
    of_size,
    softmax_fit,
    structure,
    tempered,
)
from decal_cli.tables import logistic
from decal_cli.tables.estimate import ratio
from decal_cli.tables.logistic import expit
from decal_cli.tables.population import moved_scores
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import BINS, Floats, Table, bin_of, tabulate
from decal_cli.task import constant_words

_TOLERANCE = 1e-9
"""The tolerance of a Newton step, as in `climb`, on terms of standard deviation 1."""
MIN_SCORE = 1e-12
"""Scores are clipped to [MIN_SCORE, 1 - MIN_SCORE] before a logarithm, as scikit-learn clips them."""


def logit(score: Floats) -> Floats:
    """log(p / (1 - p)) of clipped scores."""
    return logistic.log_odds(score, MIN_SCORE)


def counts_of(t: Table, smoothed: bool = False) -> tuple[Floats, Floats]:
    """Rows and positives of each level, (m,) each, or the positives expected under Platt's smoothed targets."""
    neg, pos = t.of_labels
    high, low = ((t.positives + 1) / (t.positives + 2), 1 / (t.negatives + 2)) if smoothed else (1.0, 0.0)
    return neg + pos, high * pos + low * neg


def need_different_scores(t: Table, least: int = 2) -> None:
    """Raise Undefined where there are fewer distinct scores than a curve has parameters."""
    if len(t) < least:
        few = "every score is the same" if len(t) == 1 else f"there are {len(t)}"
        raise Undefined(f"needs at least {least} distinct scores; {few}")


def need_overlap(t: Table) -> None:
    """Raise Undefined where a threshold separates the labels, so that the steepest curve is the likeliest."""
    if logistic.separated(t.pos, t.n):
        raise Undefined("needs overlapping labels: a threshold separates them, so the likelihood has no maximum")


def maximum(terms: Sequence[Floats], counts: tuple[Floats, Floats], intercept: bool = True) -> list[float]:
    """Coefficients of the terms, then the intercept, that make the counts likeliest; terms: shape (m,) each.

    Errors: Undefined, where there is no maximum or it is not found.
    """
    n, _ = counts
    x, total = np.array(terms, dtype=np.float64).reshape(len(terms), len(n)), n.sum()
    # Terms of mean 0 and deviation 1, so that one tolerance serves scores of any spread.
    middle = x @ n / total if intercept else np.zeros(len(x))
    x = x - middle[:, None]
    scale = np.sqrt(x**2 @ n / total)
    scale[scale == 0] = 1.0
    x /= scale[:, None]
    if intercept:
        x = np.vstack((x, np.ones(x.shape[1])))
    start = np.zeros(len(x))
    best, _ = logistic.climb(lambda at: logistic.row_slopes(x, *counts, at), start, _TOLERANCE, collinear=True)
    slopes: Floats = best[: len(terms)] / scale
    return [*slopes.tolist(), *([float(best[-1] - slopes @ middle)] if intercept else [])]


@method(title="Isotonic regression", kind="recalibration", source=cite("Zadrozny and Elkan 2002"), classes="any")
def isotonic(rows: Training) -> Model:
    """The increasing function of the score that fits the labels best by squared error.

    It is fitted by pooling adjacent violators; it is linear between fitted points and constant outside of them. It has
    no parameters, may return exactly 0 and 1, and is calibrated on the rows it was fitted to.
    """
    if rows.classes:
        return ClassCurves(tuple(rows.class_table.each_class(Curve.fitted)))
    return Curve.fitted(rows.table)


On = Literal["logit", "p"]
Targets = Literal["smoothed", "labels"]


@model()
class Sigmoid:
    """s(slope * x + intercept), s the logistic function; x is the score, or its logit cut to +-27.6 (on: p, logit)."""

    on: str
    slope: float
    intercept: float

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.slope * term(rows.score, self.on) + self.intercept))


@model()
class Beta:
    """s(a log p - b log(1 - p) + c), s the logistic function; a, b >= 0; p is cut to [1e-12, 1 - 1e-12]."""

    a: float
    b: float
    c: float

    def __call__(self, rows: Unlabelled) -> Applied:
        first, second = beta_terms(rows.score)
        return Applied(expit(self.a * first + self.b * second + self.c))


def term(score: Floats, on: str) -> Floats:
    """The term that the exponent of a sigmoid is linear in."""
    if on not in ("logit", "p"):
        raise ValueError(f"a sigmoid on {on[:20]}")
    return logit(score) if on == "logit" else score


def beta_terms(score: Floats) -> tuple[Floats, Floats]:
    """log p and -log(1 - p) of clipped scores."""
    p = np.clip(score, MIN_SCORE, 1 - MIN_SCORE)
    return np.log(p), -np.log1p(-p)


@method(title="Platt scaling", kind="recalibration", source=f"{cite('Platt 1999')}; on=p as in scikit-learn")
def platt(
    rows: Training,
    *,
    on: Annotated[On, "the exponent is linear in logit(p), or in p"] = "logit",
    targets: Annotated[Targets, "fitted to Platt's smoothed targets, or to the labels themselves"] = "smoothed",
) -> Sigmoid:
    """A logistic curve with two parameters in logit(p), by maximum likelihood.

    p' = s(a logit(p) + b), where s is the logistic function. The targets are Platt's: (P + 1) / (P + 2) for label 1 and
    1 / (N + 2) for label 0, for P and N (weighted) rows of each, so that a maximum always exists; `targets=labels` is
    plain, unpenalised logistic regression. `on=p` is the older convention, linear in p itself. Scores are clipped to
    [1e-12, 1 - 1e-12] before the logit. It needs two distinct scores.
    """
    t = rows.table
    need_different_scores(t)
    if targets == "labels":
        need_overlap(t)
    return Sigmoid(on, *maximum([term(t.score, on)], counts_of(t, smoothed=targets != "labels")))


@method(title="Temperature scaling", kind="recalibration", source=cite("Guo et al. 2017"), classes="any")
def temperature(rows: Training) -> Model:
    """All log-odds divided by one temperature, by maximum likelihood.

    p' = s(logit(p) / T), where s is the logistic function: 0.5 stays, and for T > 1 scores move towards 0.5. Where no
    positive temperature helps (the score ranks rows the wrong way), T is infinite and every row gets 0.5. Scores are
    clipped to [1e-12, 1 - 1e-12] before the logit. It needs two distinct scores, and labels that 0.5 does not separate.
    """
    if rows.classes:
        return SCALINGS["temperature"](rows.score, rows.label, rows.weights)
    need_different_scores(rows.table)
    return fit_temperature(rows.table)


def fit_temperature(t: Table) -> Sigmoid:
    """Temperature scaling of a table. Errors: Undefined, where the best temperature is 0."""
    x, counts = logit(t.score), counts_of(t)
    of_label_1, of_label_0 = x * counts[1], x * (counts[0] - counts[1])
    if of_label_1.min() >= 0 >= of_label_0.max():
        raise Undefined("needs labels that 0.5 does not separate: the likeliest temperature is 0")
    if of_label_1.max() <= 0 <= of_label_0.min():
        return Sigmoid("logit", 0.0, 0.0)  # Every label lies on the wrong side.
    return Sigmoid("logit", max(maximum([x], counts, intercept=False)[0], 0.0), 0.0)


@method(title="Beta calibration", kind="recalibration", source=cite("Kull et al. 2017"))
def beta(rows: Training) -> Beta:
    """A curve with three parameters, for scores that follow beta distributions, by maximum likelihood.

    p' = s(a log p - b log(1 - p) + c), where s is the logistic function and a, b >= 0 keep the order of the scores;
    a = b is Platt scaling on logit(p), and a = b = 1, c = 0 changes nothing. Scores are clipped to [1e-12, 1 - 1e-12]
    before the logarithm. It needs three distinct scores, and labels that no threshold separates.
    """
    t = rows.table
    need_different_scores(t, 3)
    need_overlap(t)
    # The likeliest of the fits on the faces of a, b >= 0 is the maximum, because the likelihood is concave.
    terms, counts, rate = beta_terms(t.score), counts_of(t), t.base_rate

    def log_likelihood(fit: tuple[float, float, float]) -> float:
        eta = np.array(fit) @ np.vstack((*terms, np.ones(len(t))))
        return float(counts[1] @ eta - counts[0] @ np.logaddexp(0.0, eta))

    best = 0.0, 0.0, float(np.log(rate) - np.log1p(-rate))
    for used in ((0, 1), (0,), (1,)):
        try:
            *slopes, intercept = maximum([terms[k] for k in used], counts)
        except Undefined:
            continue  # The likelihood has no maximum there.
        a, b = (dict(zip(used, slopes, strict=True)).get(k, 0.0) for k in (0, 1))
        if a < 0 or b < 0:
            continue
        if len(used) == 2:
            return Beta(a, b, intercept)  # The maximum without constraints meets them.
        best = max(best, (a, b, intercept), key=log_likelihood)
    return Beta(*best)


MAX_LOGIT = 10.0
"""Logits are cut here: a bend must not rest on the few rows of exactly 0 or 1."""
KNOT_SHARES = (0.05, 0.275, 0.5, 0.725, 0.95)
"""Quantiles of the logits at which a spline may bend (Harrell 2001, five knots)."""
MIN_KNOTS = 3


@model()
class Quadratic:
    """s(square * z^2 + slope * z + intercept), s the logistic function, z the logit of the score cut to +-10."""

    square: float
    slope: float
    intercept: float

    def __call__(self, rows: Unlabelled) -> Applied:
        z = _cut(rows.score)
        return Applied(expit(self.square * z**2 + self.slope * z + self.intercept))


@model(knots="k+2 rising", bends="k finite")
class Spline:
    """s of a natural cubic spline of z, the logit of the score cut to +-10.

    knots: (k,), increasing; slope of z, bends of the k - 2 terms that are cubic between the knots and linear beyond.
    """

    knots: Floats
    slope: float
    bends: Floats
    intercept: float

    def _check(self) -> None:
        need(len(self.knots) >= MIN_KNOTS, f"a spline needs at least {MIN_KNOTS} knots")

    def __call__(self, rows: Unlabelled) -> Applied:
        z = _cut(rows.score)
        total = self.slope * z + self.intercept
        for bend, term in zip(self.bends, _bent(z, self.knots), strict=True):
            total = total + bend * term
        return Applied(expit(total))


def _cut(score: Floats) -> Floats:
    return np.asarray(np.clip(logit(score), -MAX_LOGIT, MAX_LOGIT))


def _bent(z: Floats, knots: Floats) -> list[Floats]:
    """The terms of a natural cubic spline beside 1 and z, shape (k - 2, T): linear beyond the outer knots."""
    last, before = knots[-1], knots[-2]

    def cube(knot: float) -> Floats:
        return np.asarray(np.maximum(z - knot, 0.0) ** 3)

    return [
        (cube(knot) - cube(before) * (last - knot) / (last - before) + cube(last) * (before - knot) / (last - before))
        / (last - knots[0]) ** 2
        for knot in knots[:-2]
    ]


@method(
    title="Quadratic scaling",
    kind="recalibration",
    source="logistic regression on logit(p) and its square; Platt's targets as for platt",
)
def quadratic(rows: Training) -> Quadratic:
    """A logistic curve with a quadratic term in logit(p), by maximum likelihood.

    p' = s(a z^2 + b z + c), where s is the logistic function and z = logit(p), cut to [-10, 10]. The targets are those
    of `platt`, so that a maximum always exists. It bends where Platt scaling cannot, for one parameter more, and needs
    three distinct scores. Far from most scores it may turn round.
    """
    t = rows.table
    need_different_scores(t, 3)
    z = _cut(t.score)
    return Quadratic(*maximum([z**2, z], counts_of(t, smoothed=True)))


@method(
    title="Spline scaling",
    kind="recalibration",
    source="Harrell 2001, restricted cubic splines; Lucena 2018, for calibration; Platt's targets as for platt",
)
def spline(rows: Training) -> Spline:
    """A logistic curve through a natural cubic spline of logit(p), by maximum likelihood.

    p' = s(f(z)), where s is the logistic function, z = logit(p), cut to [-10, 10], and f is cubic between five knots,
    at the quantiles 0.05, 0.275, 0.5, 0.725 and 0.95 of z, and linear beyond them. The targets are those of `platt`. It
    follows calibration curves of any smooth shape with five parameters. It needs three different knots.
    """
    t = rows.table
    z = _cut(t.score)
    reached = np.cumsum(t.n) / t.total
    knots = np.unique(z[np.minimum(np.searchsorted(reached, KNOT_SHARES), len(z) - 1)])
    if len(knots) < MIN_KNOTS:
        raise Undefined(f"needs at least {MIN_KNOTS} different knots; the quantiles of these scores give {len(knots)}")
    slope, *bends, intercept = maximum([z, *_bent(z, knots)], counts_of(t, smoothed=True))
    return Spline(knots, slope, np.array(bends), intercept)


Miscoverage = Annotated[float, "share of correctly decided rows that may get 0.5", Between(0, 1)]
RANKED_PART = 10
"""One in so many correctly decided rows sets the cut of Meta-Cal, as in its authors' code."""
MAX_RANKED = 500
"""At most so many rows set the cut."""


@model(edges="k increasing", value="k+1 in [0, 1]")
class Steps:
    """A step function of the score. edges: increasing, (k - 1,), each belongs to the step below it; value: (k,)."""

    edges: Floats
    value: Floats

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(self.value[bin_of(rows.score, self.edges)])


@model()
class Binned:
    """A curve, and steps on its values."""

    curve: Sigmoid
    steps: Steps

    def __call__(self, rows: Unlabelled) -> Applied:
        return self.steps(replace(rows, score=self.curve(rows).score))


@model()
class Abstaining:
    """A curve, and 0.5 for scores within `cut` of 0.5."""

    curve: Sigmoid
    cut: float

    def _check(self) -> None:
        need(0 <= self.cut <= 0.5, "a cut lies in [0, 0.5]")

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(np.where(np.abs(rows.score - 0.5) <= self.cut, 0.5, self.curve(rows).score))


@method(title="Histogram binning", kind="recalibration", source=cite("Zadrozny and Elkan 2001"))
def histogram(rows: Training, *, bins: Bins = BINS) -> Steps:
    """The frequency of label 1 in equal-mass bins of the score.

    Edges are the i/k quantiles of the training scores for k bins, linearly interpolated; a score equal to an edge
    belongs to the lower bin. The frequencies need not increase, and all rows of a bin get the same score.
    """
    t = rows.table
    levels = t.bins(bins)
    return Steps(t.bin_edges(bins), levels.pos / levels.n)


@method(title="Scaling-binning", kind="recalibration", source=cite("Kumar et al. 2019"))
def scaling_binning(rows: Training, *, bins: Bins = BINS) -> Binned:
    """Platt scaling, then the mean of its values in equal-mass bins of these values.

    A curve has less noise than frequencies, and the calibration error of a step function can be measured. The curve is
    `platt`; bins are cut at the i/k quantiles of its values on the training rows, for k bins, and each bin gets the
    mean of its values, not of the labels. It needs two distinct scores.
    """
    curve: Any = platt(rows)
    fitted = tabulate(curve(rows).score, rows.label, rows.weight)
    return Binned(curve, Steps(fitted.bin_edges(bins), fitted.bins(bins).score))


@method(title="Meta-Cal", kind="recalibration", source=f"{cite('Ma and Blaschko 2021')}; miscoverage constraint")
def meta_cal(rows: Training, *, miscoverage: Miscoverage = 0.05) -> Abstaining:
    """Temperature scaling, and 0.5 for the rows that the score cannot decide.

    A row is doubtful where its score lies as near to 0.5 as those of the nearest 5 % (miscoverage) of the rows that
    p >= 0.5 decides correctly; a tenth of these rows, at most 500, drawn at random (--seed), sets the cut. Doubtful
    rows get 0.5; all other rows get temperature scaling, fitted to the remaining rows that are not doubtful. It needs
    10 rows that p >= 0.5 decides correctly.
    """
    right = np.flatnonzero((rows.score >= 0.5) == (rows.label == 1))
    if len(right) < RANKED_PART:
        raise Undefined(f"needs at least {RANKED_PART} rows that p >= 0.5 decides correctly; there are {len(right)}")
    ranking = rows.generator(RANKED_PART).permutation(right)[: min(len(right) // RANKED_PART, MAX_RANKED)]
    distance = np.abs(rows.score - 0.5)
    cut = _lower_quantile(distance[ranking], rows.weights[ranking], miscoverage)
    fitted = distance > cut
    fitted[ranking] = False
    if not fitted.any():
        raise Undefined("needs scores that differ more: all lie within the cut around 0.5")
    kept = rows.take(fitted)
    return Abstaining(fit_temperature(kept.table), cut)


def _lower_quantile(values: Floats, weight: Floats, share: float) -> float:
    """The quantile of weighted values, rounded down to one of them; for equal weights numpy's method 'lower'."""
    order = np.argsort(values, kind="stable")
    before = np.cumsum(weight[order]) - weight[order]
    reached = np.searchsorted(before, share * (weight.sum() - weight.mean()) * (1 + 1e-12), side="right")
    return float(values[order][reached - 1])


Point = tuple[float, float]
"""Cumulative rows and positives: isotonic regression is the slope of the greatest convex minorant of such points."""


@model(at0="k increasing", p0="k+1 increasing in [0, 1]", at1="m increasing", p1="m+1 increasing in [0, 1]")
class VennAbers:
    """p0 and p1 as step functions of the score.

    at0, p0: shape (k,), (k + 1,): p0[i] holds from at0[i - 1] up to below at0[i]. at1, p1: p1[i] holds from above
    at1[i - 1] up to at1[i].
    """

    at0: Floats
    p0: Floats
    at1: Floats
    p1: Floats

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
    neg, pos = t.of_labels
    n = neg + pos
    at1, p1 = _runs(t.score, fits_with_one_more(n, pos), last=True)
    # With the order of scores and the labels reversed, label 0 is label 1.
    mirrored = 1 - fits_with_one_more(n[::-1], neg[::-1])[::-1]
    at0, p0 = _runs(t.score, mirrored, last=False)
    return VennAbers(at0, np.append(0.0, p0), at1, np.append(p1, 1.0))


def _runs(score: Floats, value: Floats, last: bool) -> tuple[Floats, Floats]:
    """Runs of levels of one value: the score of their last, or first, level and the value."""
    changes = value[1:] != value[:-1]
    ends = np.append(changes, True) if last else np.append(True, changes)
    return score[ends], value[ends]


def fits_with_one_more(n: Floats, pos: Floats) -> Floats:
    """Isotonic fit at each level with one more row of label 1 at that level, shape (m,), increasing.

    A new row of label 1 between two levels gets the value of the upper one. The corner points below follow Vovk
    et al. 2015, algorithms 1 and 2: the new row first comes before all levels, then moves up level by level, and the
    convex minorant right of it loses a corner or gains one; all in linear time.
    """
    rows = np.concatenate(([-1.0, 0.0], np.cumsum(n))).tolist()
    positives = np.concatenate(([-1.0, 0.0], np.cumsum(pos))).tolist()
    points: list[Point] = list(zip(rows, positives, strict=True))
    # Corners of the greatest convex minorant; the leftmost one is on top of the stack.
    corners: list[Point] = []
    for point in reversed(points):
        while len(corners) > 1 and _cross(point, corners[-1], corners[-2]) <= 0:
            corners.pop()
        corners.append(point)
    fits = np.empty(len(n))
    for level in range(len(n)):
        (left, low), (right, high) = corners[-1], corners[-2]
        fits[level] = (high - low) / (right - left)
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


def _cross(a: Point, b: Point, c: Point) -> float:
    """Above 0 where the path from a over b to c turns left, that is, upwards."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


NEVER = 2.0
"""A threshold that no score reaches."""


@model()
class Threshold:
    """The score as it is; act when score >= threshold: 0 acts always, 2 never."""

    threshold: float

    def _check(self) -> None:
        need(0 <= self.threshold <= NEVER, "a threshold of scores lies in [0, 1], or is 2 where nothing reaches it")

    @property
    def note(self) -> str:
        """What to act on."""
        if self.threshold == NEVER:
            return f"No recalibrated score reaches t*: {constant_words(0)}."
        return f"Act when score >= {self.threshold!r}."

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(rows.score, threshold=np.full(len(rows), self.threshold))


@method(
    title="Adjusted threshold",
    kind="recalibration",
    source=cite("Perez-Lebel et al. 2025", "prop. 3.3"),
    needs=("task",),
)
def threshold(rows: Training) -> Threshold:
    """Another threshold in place of t*; the scores stay as they are.

    Act when score >= the smallest training score whose isotonic fit reaches t* (the metric threshold_adjusted); on the
    training rows this decides as the isotonic fit does at t*. Where every fit reaches t*, all rows are decided 1; where
    none does, 0. It gains what isotonic recalibration gains at this t*, and nothing at other thresholds.
    """
    assert rows.binary
    t = rows.table
    reached = np.flatnonzero(t.isotonic.pos / t.isotonic.n >= rows.binary.threshold)
    if not len(reached):
        return Threshold(NEVER)
    return Threshold(0.0 if reached[0] == 0 else float(t.score[t.pools[reached[0]]]))


@model(factors="K positive")
class InPopulation:
    """A model of scores that are first moved to a population with other shares of the labels.

    factors: what a row of each label counts there, for labels 0 and 1 or for each class, shape (K,).
    """

    factors: Floats
    fitted: Model

    def _check(self) -> None:
        need(len(self.factors) > 1, "a population has a share for each label")

    def moved(self, score: Floats) -> Floats:
        """The scores in the population."""
        need(len(self.factors) == (score.shape[1] if score.ndim > 1 else 2), "the population is of other labels")
        return moved_scores(score, self.factors)

    def __call__(self, rows: Unlabelled) -> Applied:
        applied = self.fitted(replace(rows, score=self.moved(rows.score)))
        if applied.threshold is None:
            return applied
        # On the scores as they come, and beyond rounding where each of them is decided.
        zero, one = self.factors
        near = zero * applied.threshold / (zero * applied.threshold + one * (1 - applied.threshold))
        return Applied(rows.score, threshold=deciding_as(applied.score >= applied.threshold, near, rows.score))


def in_population(fitted: Model, factors: Sequence[float]) -> Model:
    """A model of moved scores as one of scores as they come; factors: as `InPopulation` has them."""
    if isinstance(fitted, Encoded):
        return replace(fitted, fitted=in_population(fitted.fitted, factors))
    moving = InPopulation(np.array(factors), fitted)
    if not isinstance(fitted, Threshold):
        return moving
    if fitted.threshold in (0.0, NEVER):
        return fitted
    # The least score that is moved at least so far: moving keeps the order of scores.
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        reached = float(moving.moved(np.array([middle]))[0]) >= fitted.threshold
        low, high = (low, middle) if reached else (middle, high)
    return Threshold(high)


Penalty = Annotated[float, "of half the squared entries beside the diagonal, and intercepts", Between(1e-9, 1e9)]


@model()
class ClassCurves:
    """An increasing curve for each class against the rest; what they give is divided by its sum."""

    curves: tuple[Curve, ...]

    def __call__(self, rows: Unlabelled) -> Applied:
        score = of_size(rows, len(self.curves))
        each = np.column_stack([curve.of(column) for column, curve in zip(score.T, self.curves, strict=True)])
        total = each.sum(axis=1, keepdims=True)
        # Where every curve says 0, nothing is known that the probabilities do not say.
        return Applied(ratio(each, total, score))


@method(
    title="Structured vector scaling",
    kind="recalibration",
    source="Berta et al. 2025, structured matrix scaling, its diagonal part",
    classes="several",
)
def structured_vector(rows: Training) -> ClassScaling:
    """A slope and an intercept for the logarithm of each class's probability, near temperature scaling.

    p' = softmax(a_k log p_k + b_k). What a and b move away from the best temperature is penalised, so that few rows
    move them little. Probabilities are clipped at 1e-6 before the logarithm.
    """
    return SCALINGS["structured-vector"](rows.score, rows.label, rows.weights)


@method(
    title="Structured matrix scaling",
    kind="recalibration",
    source="Berta et al. 2025, structured matrix scaling",
    classes="several",
)
def structured_matrix(rows: Training) -> ClassScaling:
    """A linear map of the logarithms of all probabilities, near temperature scaling; for at most 20 classes.

    p' = softmax(W log p + b). The diagonal of W and b are penalised for what they move away from the best temperature,
    entries beside the diagonal more, the more the more classes there are.
    """
    return SCALINGS["structured-matrix"](rows.score, rows.label, rows.weights)


@model(weights="3 in [0, 1]")
class EnsembleTemperature:
    """A mixture of p^s, rescaled to sum 1, of p and of equal probabilities; weights: (3,), of sum 1."""

    inverse: float
    weights: Floats

    def _check(self) -> None:
        need(abs(float(self.weights.sum()) - 1) < 1e-6 and is_finite(self.inverse), "weights must sum to 1")

    def __call__(self, rows: Unlabelled) -> Applied:
        each = _tempered(rows.score, self.inverse)
        mixture = sum(weight * part for weight, part in zip(self.weights, each, strict=True))
        return Applied(np.asarray(mixture / mixture.sum(axis=1, keepdims=True)))


def _tempered(score: Floats, inverse: float) -> tuple[Floats, Floats, Floats]:
    classes = score.shape[1]
    return tempered(inverse, classes).of(score), score, np.full_like(score, 1 / classes)


N_MIXING_STEPS = 1000
"""At most so many steps of expectation and maximisation: each makes the labels likelier."""


@method(
    title="Ensemble temperature scaling",
    kind="recalibration",
    source="Zhang et al. 2020, Mix-n-Match",
    classes="several",
)
def ensemble_temperature(rows: Training) -> EnsembleTemperature:
    """Temperature scaling mixed with the probabilities as they are and with equal ones.

    p' = w1 p^(1/T), rescaled to sum 1, + w2 p + w3 / K, with the likeliest T first and then the likeliest weights of
    sum 1. The order of the classes of a row stays as it is.
    """
    inverse = inverse_temperature(logarithms(rows.score), rows.label, rows.weights)
    at_label = np.column_stack([part[np.arange(len(rows)), rows.label] for part in _tempered(rows.score, inverse)])
    share, weights = rows.weights / rows.weights.sum(), np.full(3, 1 / 3)
    for _ in range(N_MIXING_STEPS):
        parts = at_label * weights
        ahead = share @ (parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300))
        done = bool(np.abs(ahead - weights).max() < 1e-10)
        weights = ahead
        if done:
            break
    return EnsembleTemperature(inverse, weights / weights.sum())


@method(title="Vector scaling", kind="recalibration", source=cite("Guo et al. 2017"), classes="several")
def vector(rows: Training) -> ClassScaling:
    """A slope and an intercept for the logarithm of each class's probability, by maximum likelihood.

    p' = softmax(a_k log p_k + b_k). A penalty of 0.001 keeps the maximum finite where classes are separated.
    """
    return _likeliest(rows, 1e-3, 1e9)


@method(
    title="Dirichlet calibration",
    kind="recalibration",
    source="Kull et al. 2019, with their penalty of what lies beside the diagonal",
    classes="several",
)
def dirichlet(rows: Training, *, penalty: Penalty = 10.0) -> ClassScaling:
    """A linear map of the logarithms of all probabilities, as if they followed a Dirichlet distribution in each class.

    p' = softmax(W log p + b), by maximum likelihood, less `penalty` / 2 times the squared entries of W beside its
    diagonal and of b.
    """
    return _likeliest(rows, 1e-3, penalty, intercept=penalty)


def _likeliest(rows: Training, diagonal: float, beside: float, intercept: float = 1e-3) -> ClassScaling:
    classes = len(rows.classes)
    _, centre = structure(classes)
    slopes = np.full((classes, classes), beside)
    np.fill_diagonal(slopes, diagonal)
    penalty = np.vstack((np.full(classes, intercept), slopes))
    at = softmax_fit(logarithms(rows.score), rows.label, rows.weights, penalty, centre)
    return ClassScaling(at[1:].T.copy(), at[0])
