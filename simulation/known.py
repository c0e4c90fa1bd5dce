"""Fourteen worlds of known truth for the coverage of every metric's interval, and what each interval is meant to hold.

A world is a law of the score p (its quantile function), a curve c(p) = E[y | p], and where features say more a latent
score with a hidden signal: q = E[y | p, features], else q = c. One world is weighted: rows come from the sampling law,
the population is the one that the weights make of it. Population values are those of a table of exact rates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from decal_cli.errors import Undefined
from decal_cli.learn import held_out
from decal_cli.learn.regions import bounds
from decal_cli.metrics import METRICS, Inputs, decisions, parse, value_of
from decal_cli.metrics.gaps import levels_used
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table, tabulate
from decal_cli.task import BinaryTask
from simulation.worlds import Floats, Map, beta, calibrated, cuts_of_folds, logit_normal, rounded, tilted, uniform

LEVELS = 60_000
FRESH = 200_000
MASS = 1e12
"""Total mass of a population's table, whose rows are endless."""

Signal = Callable[[Floats], Floats]


class Known(NamedTuple):
    """Rows with five features, and the truths c and q, shape (n,) each."""

    rows: Rows
    c: Floats
    q: Floats


@dataclass(frozen=True, eq=False)
class World:
    """A world. latent: mean and spread of the latent log-odds where a signal of some strength is hidden.

    Then c is the latent score averaged over the signal, the score is `law` of c, and `curve` is not used.
    """

    name: str
    law: Map
    curve: Map
    threshold: float
    signal: Signal | None = None
    strength: float = 0.0
    latent: tuple[float, float] = (0.0, 1.0)
    weighted: bool = False
    u_delta: float = 1.0

    @cached_property
    def task(self) -> BinaryTask:
        """The task at which decisions are judged."""
        return BinaryTask.of_costs(self.u_delta * self.threshold, self.u_delta * (1 - self.threshold))

    @cached_property
    def _averaged(self) -> tuple[Floats, Floats]:
        assert self.signal is not None
        drawn = np.sort(self.signal(np.random.default_rng(1).standard_normal((400_000, 2))))
        grid = np.linspace(-14, 14, 1401)
        return grid, expit(grid[:, None] + self.strength * drawn[250::500]).mean(axis=1)

    def _at(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Score, c and latent log-odds at these quantiles."""
        if self.signal is None:
            score = self.law(u)
            return score, self.curve(score), np.zeros_like(u)
        latent = self.latent[0] + self.latent[1] * ndtri(np.clip(u, 1e-12, 1 - 1e-12))
        c = np.interp(latent, *self._averaged)
        return self.law(c), c, latent

    def draw(self, n: int, rng: np.random.Generator, stratified: bool = False) -> Known:
        """n rows."""
        u = (np.arange(n) + rng.random(n)) / n if stratified else rng.random(n)
        score, c, latent = self._at(u)
        hidden = rng.standard_normal((n, 2))
        q = c if self.signal is None else expit(latent + self.strength * self.signal(hidden))
        label = (rng.random(n) < q).astype(np.int64)
        weight = self.mean_weight(score) * (0.2 + rng.exponential(size=n)) / 1.2 if self.weighted else None
        known = ndtri(np.clip(u, 1e-9, 1 - 1e-9)) + 0.5 * rng.standard_normal(n)
        features = np.column_stack((hidden, known, rng.standard_normal((n, 2))))
        return Known(Rows(score, label, weight, features=features), c, q)

    def mean_weight(self, score: Floats) -> Floats:
        """E[weight | score]."""
        return 0.4 + score if self.weighted else np.ones_like(score)

    @cached_property
    def population(self) -> Table:
        """Levels with their mass and that of the positives."""
        score, c, _ = self._at((np.arange(LEVELS) + 0.5) / LEVELS)
        weight = self.mean_weight(score)
        order = np.argsort(score, kind="stable")
        score, c, weight = score[order], c[order], weight[order]
        starts = np.flatnonzero(np.concatenate(([True], score[1:] != score[:-1])))
        n, pos = np.add.reduceat(weight, starts), np.add.reduceat(weight * c, starts)
        return Table(score[starts], n * (MASS / n.sum()), np.minimum(pos, n) * (MASS / n.sum()))

    @cached_property
    def fresh(self) -> Known:
        """Many more rows, on which what rests on features is judged by q."""
        return self.draw(FRESH, np.random.default_rng(77), stratified=True)

    @cached_property
    def _found(self) -> dict[str, float]:
        return {}

    def value(self, name: str) -> float:
        """A metric's value in the population, on exact levels; NaN where it is undefined."""
        if name not in self._found:
            exact = f"{name}(levels=exact)" if name in LEVELLED else name
            try:
                self._found[name] = value_of(parse(exact), Inputs.of(self.population, self.task))
            except Undefined:
                self._found[name] = float("nan")
        return self._found[name]


def heavy(u: Floats) -> Floats:
    """15 % exactly 0, 15 % exactly 1, a U between."""
    inner = np.clip(beta(0.7, 0.7)(np.clip((u - 0.15) / 0.7, 0, 1)), 1e-6, 1 - 1e-6)
    return np.where(u < 0.15, 0.0, np.where(u >= 0.85, 1.0, inner))


def _heavy_curve(p: Floats) -> Floats:
    inner = tilted(0.1, 0.7)(np.clip(p, 1e-6, 1 - 1e-6))
    return np.where(p == 0, 0.04, np.where(p == 1, 0.95, inner))


def _step(hidden: Floats) -> Floats:
    return np.where(hidden[:, 0] > 0.2, 1.0, -1.0)


def _product(hidden: Floats) -> Floats:
    return np.asarray(hidden[:, 0] * hidden[:, 1])


WORLDS = (
    World("calibrated", logit_normal(-0.5, 1.2), calibrated, 0.3),
    World("overconfident", logit_normal(0, 1.5), tilted(0, 0.45), 0.3),
    World("underconfident", beta(3, 3), tilted(0, 2.2), 0.4),
    World("shifted base rate", beta(2, 3), tilted(-0.7, 1.0), 0.4),
    World("ranks backwards", uniform(0.03, 0.97), tilted(-0.4, -0.5), 0.3),
    World("useless", beta(70, 163), lambda p: np.full_like(p, 0.32), 0.3),
    World("19 levels, overconfident", rounded(beta(1.2, 1.6), 0.05), tilted(0, 0.6), 0.4),
    World("19 levels, calibrated", rounded(beta(1.2, 1.6), 0.05), calibrated, 0.42),
    World("rare positives", logit_normal(-4.7, 1.1), tilted(0.3, 1.0), 0.05, u_delta=10.0),
    World("grouping", calibrated, calibrated, 0.4, _step, 2.0, (-0.4, 1.0)),
    World("product", calibrated, calibrated, 0.4, _product, 2.0, (-0.4, 1.0)),
    World("overconfident, grouping", tilted(0.3, 1.8), calibrated, 0.3, _step, 1.2, (-0.6, 1.0)),
    World("exact 0 and 1", heavy, _heavy_curve, 0.3),
    World("weighted", logit_normal(-0.3, 1.2), tilted(0, 0.6), 0.3, weighted=True),
)

LEVELLED = ("cdl", "v_cdl", "cfdl", "rule_cfdl")
AT_EDGES = ("ece", "ece_debiased", "cl", "rmsce", "mce", "regret_calibration", "regret_grouping_worst", *LEVELLED)
CALM = {name: name.removesuffix("_null") for name in METRICS if name.endswith("_null")}
BOUNDS = tuple(f"regret_grouping_{bound}" for bound in ("lower", "upper", "upper_sharp"))
OF_FEATURES = ("grouping_loss", *BOUNDS, "regret_grouping", "regret")
AGAINST: dict[str, Callable[[Table, BinaryTask], float]] = {
    "gain_recalibration": lambda t, task: task.decision_threshold,
    "gain_over_constant": lambda t, task: -np.inf if t.base_rate > task.threshold else np.inf,
}
"""What decides now, where the gain of recalibration is over that."""


def truths(world: World, rows: Rows, seed: int, rng: np.random.Generator, names: Collection[str]) -> dict[str, float]:
    """What the intervals of these metrics are meant to hold on these rows."""
    t, found = rows.table, {}
    for name in names:
        if name in CALM:
            calm = tabulate(rows.score, (rng.random(len(rows)) < rows.score).astype(np.int64), rows.weight)
            found[name] = value_of(parse(CALM[name]), Inputs.of(calm, world.task))
        elif name in AGAINST:
            found[name] = _recalibrated(world, t, seed, AGAINST[name](t, world.task))
        elif name not in (*AT_EDGES, *OF_FEATURES):
            found[name] = world.value(name)
    if set(AT_EDGES) & set(names):
        found |= _at_edges(world, t)
    if set(OF_FEATURES) & set(names):
        found |= _of_features(world, rows)
    return {name: found[name] for name in names}


def _at_edges(world: World, t: Table) -> dict[str, float]:
    """The population's values for the bins of the sample, edges held fixed; on exact levels where it uses them."""
    population, task = world.population, world.task
    edges = t.bin_edges()
    starts = np.unique(np.concatenate(([0], np.searchsorted(population.score, edges, side="right"))))
    starts = starts[starts < len(population)]
    bins = population.merge_levels(starts)
    rate, share = bins.pos / bins.n, bins.n / bins.total
    gap, threshold = np.abs(rate - bins.score), task.threshold
    acts = int(np.searchsorted(population.score, task.decision_threshold))
    mass = np.concatenate(([0.0], np.cumsum(population.n))) / population.total
    below = mass[np.clip(acts, starts, np.append(starts[1:], len(population)))] - mass[starts]
    worst = bounds(rate * (1 - rate), rate, share, threshold).sharp
    square = float(share @ gap**2)
    found = {
        **{
            "ece": float(share @ gap),
            "ece_debiased": square,
            "cl": square,
            "rmsce": square**0.5,
            "mce": float(gap.max()),
        },
        "regret_calibration": task.u_delta * float(decisions.calibration_regret(rate, below, share - below, threshold)),
        "regret_grouping_worst": task.u_delta * float(worst),
    }
    for name in LEVELLED:
        on_bins = levels_used(t) == "bins"
        found[name] = value_of(parse(f"{name}(levels=exact)"), Inputs.of(bins, task)) if on_bins else world.value(name)
    return found


def _recalibrated(world: World, t: Table, seed: int, now: float) -> float:
    """Mean population gain of the thresholds that the folds learned over the one that decides now."""
    population, task = world.population, world.task
    held = held_out.of_table(t, seed)
    learned = cuts_of_folds(held.levels, held.of_levels, task.threshold)
    worth = held_out.from_top(population.pos - task.threshold * population.n) / population.total
    at = np.searchsorted(population.score, np.append(learned, now), side="left")
    return task.u_delta * float((worth[at[:-1]] - worth[at[-1]]).mean())


def _of_features(world: World, rows: Rows) -> dict[str, float]:
    """The grouping family in the population, on the bins of these rows, whatever shows it."""
    (fresh, c, q), task, t = world.fresh, world.task, rows.table
    weight = world.mean_weight(fresh.score)
    weight = weight / weight.sum()
    starts = t.score[t.bin_starts(15)]
    number = np.maximum(np.searchsorted(starts, fresh.score, side="right") - 1, 0)
    share, rate, loss = (np.bincount(number, weight * one, len(starts)) for one in (np.ones_like(q), q, (q - c) ** 2))
    some = share > 0
    each = bounds(loss[some] / share[some], rate[some] / share[some], share[some], task.threshold)
    gain, acts = weight * (q - task.threshold), q >= task.threshold
    return {
        "grouping_loss": float(loss.sum()),
        **{name: task.u_delta * float(bound) for name, bound in zip(BOUNDS, each, strict=True)},
        "regret_grouping": task.u_delta * float(gain @ (acts * 1.0 - (c >= task.threshold))),
        "regret": task.u_delta * float(gain @ (acts * 1.0 - (fresh.score >= task.decision_threshold))),
    }
