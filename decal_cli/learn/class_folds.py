"""What recalibration, and the features on top of it, win for rows of several classes: cross-fitted, before any method.

A row's recalibrated probabilities come from folds that do not hold it. The scaling that recalibrates a fold is the one
with the lowest log loss on the other folds, each of their rows scaled without itself. On the features, a multinomial
regression on the scaled logarithms and the features is mixed with the recalibrated probabilities by two weights, which
are learned on rows that neither has seen: what the method `blend` does on all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.learn.encoding import encoded
from decal_cli.learn.probe import N_SEEDS, Standard
from decal_cli.learn.scaling import (
    MAX_FULL,
    SCALINGS,
    Scaling,
    beside_fixed,
    centred,
    inverse_temperature,
    linear,
    logarithms,
    mixing_weights,
    softmax,
    softmax_fit,
    structure,
)
from decal_cli.tables.estimate import dot
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BLOCK, FEWEST_ROWS, Floats, Ints

MIN_TAUGHT = 12_000
"""So many rows teach a fold; of more, so many drawn at random."""
SLOPE_PENALTY = 3.0
"""Of half the squared slopes on standardised features."""
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """Rows as given: probabilities from scalings that have not seen them, (T, K); the fold of each row, (T,).

    chosen: the scaling of lowest log loss on held-out rows. others: the same rows by other deals into folds.
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
        raise Undefined(f"needs at least {2 * FEWEST_ROWS} rows to learn from some and judge on others")
    place = np.empty(len(rows), dtype=np.int64)
    # Only of clusters does it matter which rows they are.
    ordered = rows if rows.unit is None else rows.take(rows.order)
    place[rows.order] = ordered.places(Seed(seed).generator("classes"))
    return place % FOLDS, place < MIN_TAUGHT * FOLDS // (FOLDS - 1)


MAX_DEALS, WORK = 3, 20_000
"""Rows are dealt into folds so often at most, and so many probabilities in all deals together."""


def build_recalibrated(rows: Rows, *, seed: int) -> Recalibrated:
    """Cross-fitted scalings of rows of several classes, in any order. Errors: Undefined, where there are too few."""
    deals = int(np.clip(WORK // rows.score.size, 1, MAX_DEALS))
    first, *others = (_one_deal_of(rows, _seed_of(seed, deal)) for deal in range(deals))
    return replace(first, others=tuple(others))


def _seed_of(seed: int, deal: int) -> int:
    return seed + deal * N_SEEDS


def _one_deal_of(rows: Rows, seed: int) -> Recalibrated:
    fold, taught = dealt(_bare(rows), seed)
    # Of many rows those that teach also choose: applying one scaling to all rows takes long enough.
    score, label, weight, of = rows.score[taught], rows.label[taught], rows.weights[taught], fold[taught]
    by_name: dict[str, list[Scaling]] = {}
    losses: dict[str, Floats] = {}
    for name, fit in SCALINGS.items():
        try:
            by_name[name] = [fit(score[of != k], label[of != k], weight[of != k]) for k in range(FOLDS)]
        except Undefined:
            continue
        losses[name] = _log_losses(of_folds(by_name[name], score, of), label)
    chosen = [by_name[_least(losses, weight, of != k)][k] for k in range(FOLDS)]
    simplest = _least(losses, weight, np.ones(len(label), dtype=bool))
    return Recalibrated(of_folds(chosen, rows.score, fold), fold, simplest)


def _bare(rows: Rows) -> Rows:
    """The rows without what folds do not depend on."""
    return rows if rows.features is None and not rows.groups else replace(rows, groups={}, features=None)


def of_folds(scalings: Sequence[Scaling], score: Floats, fold: Ints) -> Floats:
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


def _log_losses(score: Floats, label: Ints) -> Floats:
    return -logarithms(score[np.arange(len(score)), label])


def _least(losses: Mapping[str, Floats], weight: Floats, which: Mask) -> str:
    """The name of the lowest weighted sum of losses of these rows; the simplest one of equals."""
    return min(losses, key=lambda name: dot(weight[which], losses[name][which]))


class ClassRegression:
    """Multinomial regression on the logarithms at their best temperature and the standardised features.

    encoder: what makes numbers of the features, None where they are. weight: (K, K) of the logarithms, slopes: (K, d)
    of the features in their units, intercept: (K,).
    """

    def __init__(self, rows: Rows, seed: int, penalty: float = SLOPE_PENALTY, score: bool = True) -> None:
        """penalty: of half the squared slopes on the features. score: whether the probabilities count at all."""
        most = int(np.argmax(np.bincount(rows.label, rows.weights)))
        taught = replace(rows, label=(rows.label == most).astype(np.float64))
        self.encoder = None
        if not isinstance(rows.features, np.ndarray):
            self.encoder, taught = encoded(taught, seed=seed)
        self.standard = Standard(taught.matrix, rows.weights)
        columns, logs = self.standard(taught.matrix), logarithms(rows.score)
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
        self.intercept, self.weight, self.slopes = at[0], s * at[1 : 1 + classes].T, at[1 + classes :].T

    def logits(self, rows: Rows) -> Floats:
        """Of rows, shape (T, K)."""
        features = rows.matrix if self.encoder is None else self.encoder(rows.typed)
        columns = self.standard(features)
        return linear(logarithms(rows.score), self.weight, self.intercept) + linear(
            columns, self.slopes, np.zeros(len(self.intercept))
        )


def mixed(weights: Floats, logits: Floats, recalibrated: Floats) -> Floats:
    """Probabilities of the regression's logits and the recalibrated probabilities, (T, K) each, by two weights."""
    return softmax(weights[0] * centred(logits) + weights[1] * centred(logarithms(recalibrated)))


class ClassBlend(NamedTuple):
    """A regression and a scaling, fitted to all rows, with weights learned on rows that neither had seen."""

    regression: ClassRegression
    scaling: Scaling
    weights: Floats


def class_blend(rows: Rows, seed: int) -> ClassBlend:
    """What the probe estimates the gain of. Errors: Undefined, where there are too few rows."""
    recalibrated = build_recalibrated(rows, seed=seed)
    logits, _ = _held_out_logits(rows, seed)
    each = np.stack((centred(logits), centred(logarithms(recalibrated.score))))
    scaling = SCALINGS[recalibrated.chosen](rows.score, rows.label, rows.weights)
    return ClassBlend(ClassRegression(rows, seed), scaling, mixing_weights(each, rows.label, rows.weights))


def _held_out_logits(rows: Rows, seed: int) -> tuple[Floats, Ints]:
    """Logits of regressions that have not seen the rows, and the folds."""
    fold, taught = dealt(_bare(rows), seed)
    logits = np.empty(rows.score.shape)
    for k in range(FOLDS):
        regression = ClassRegression(rows.take(taught & (fold != k)), seed)
        logits[fold == k] = regression.logits(rows.take(fold == k))
    return logits, fold


def build_class_probe(rows: Rows, recalibrated: Recalibrated, *, seed: int) -> ClassProbed:
    """Cross-fitted probabilities of rows of several classes with features, in any order."""
    rows = replace(rows, features=rows.typed)
    deals = enumerate((recalibrated, *recalibrated.others))
    return ClassProbed(np.concatenate([_probe_of_deal(rows, each.score, _seed_of(seed, k)) for k, each in deals]))


def _probe_of_deal(rows: Rows, recalibrated: Floats, seed: int) -> Floats:
    """Held-out probabilities of rows, (T, K); recalibrated: by the same folds."""
    logits, fold = _held_out_logits(rows, seed)
    each = np.stack((centred(logits), centred(logarithms(recalibrated))))
    score = np.empty(rows.score.shape)
    for k in range(FOLDS):
        others, here = fold != k, fold == k
        weights = mixing_weights(each[:, others], rows.label[others], rows.weights[others])
        score[here] = mixed(weights, logits[here], recalibrated[here])
    return score
