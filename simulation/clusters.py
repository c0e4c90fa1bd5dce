"""Coverage of intervals of rows in clusters, and of the intervals that ignore the clusters.

`python -m simulation.clusters --replicates 200` prints the table of simulation/RESULTS.md.

Clusters have 1 to 200 rows. A part of the score and a part of the log-odds beyond it are shared within a cluster, so
that residuals go together. Weights are gamma. The truth is that of 400,000 rows of the same world: of the debiased ECE
for the bins that the rows have, of the gain for the cuts that the folds learned.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from decal_cli.learn.held_out import of_table
from decal_cli.metrics import Inputs, measure_all, paired, parse
from decal_cli.metrics.measure import MetricSpec, value_of
from decal_cli.tables.pairs import PairTable, pair_up
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask
from simulation.worlds import cuts_of_folds

CONFIDENCE = 0.9
TASK = BinaryTask.of_threshold(0.3)
METRICS = tuple(map(parse, ("brier", "auc", "ece_debiased", "expected_utility", "gain_recalibration")))
DELTAS = tuple(map(parse, ("brier", "auc", "expected_utility")))
N_POPULATION = 400_000


class World(NamedTuple):
    """clusters: how many; tail: spread of the logarithm of their sizes; score, label: how much of each is shared."""

    name: str
    clusters: int
    tail: float
    score: float
    label: float
    weighted: bool = False


WORLDS = (
    World("independent rows", 250, 1.2, 0.0, 0.0),
    World("sizes alike", 60, 0.0, 0.5, 0.6),
    World("sizes 1 to 200", 400, 1.2, 0.5, 0.6),
    World("sizes 1 to 200, weights", 400, 1.2, 0.5, 0.6, True),
    World("residuals tied", 400, 1.2, 0.5, 1.5),
    World("scores and residuals tied", 400, 1.2, 0.9, 1.5),
)


class Drawn(NamedTuple):
    """Rows of the first model, the score of the second, and the probability of every label, shape (T,) each."""

    rows: Rows
    other: Floats
    true: Floats


def drawn(world: World, clusters: int, rng: np.random.Generator) -> Drawn:
    """So many clusters of a world."""
    sizes = np.clip(np.exp(rng.normal(2.2, world.tail, clusters)).round(), 1, 200).astype(np.int64)
    unit = np.repeat(np.arange(clusters), sizes)
    rows = len(unit)
    x = world.score * rng.normal(size=clusters)[unit] + np.sqrt(1 - world.score**2) * rng.normal(size=rows)
    true = expit(-1 + 1.3 * x + world.label * rng.normal(size=clusters)[unit])
    label = (rng.random(rows) < true).astype(np.uint8)
    weight = rng.gamma(2, 0.5, rows) + 0.1 if world.weighted else None
    other = expit(-1 + 0.8 * x + 0.5 * rng.normal(size=rows))
    return Drawn(Rows(expit(-0.8 + 1.5 * x), label, weight, unit), other, true)


def outcomes(world: World, replicates: int, seed: int) -> Iterator[tuple[str, bool, bool]]:
    """Metric, whether its interval holds the truth, and whether the one of independent rows does, by replicate."""
    many = int(N_POPULATION / np.exp(2.2 + world.tail**2 / 2))
    population = drawn(world, many, np.random.default_rng([seed, 1]))
    alike = Rows(population.rows.score, population.rows.label, population.rows.weight)
    whole = Inputs(alike, TASK)
    pairs = pair_up(alike.score, population.other, alike.label, alike.weight)
    fixed = {spec: value_of(spec, whole) for spec in DELTAS}
    apart = {spec: _difference(spec, pairs) for spec in DELTAS}
    for number in range(replicates):
        sample = drawn(world, world.clusters, np.random.default_rng([seed, 2, number]))
        naive = Rows(sample.rows.score, sample.rows.label, sample.rows.weight)
        truths = {}
        holds: dict[str, list[bool]] = {}
        for rows in (sample.rows, naive):
            truths = fixed | {parse("ece_debiased"): _binned(rows, population)}
            truths[parse("gain_recalibration")] = _learned(rows, population, number)
            sure = rows.adjusted_confidence(CONFIDENCE)
            assert sure is not None  # there are more than five clusters
            for spec, result in measure_all(METRICS, Inputs(rows, TASK, number), sure).items():
                if result.interval is not None:
                    low, high = result.interval
                    holds.setdefault(spec.key, []).append(low <= truths[spec] <= high)
            both = pair_up(rows.score, sample.other, rows.label, rows.weight, rows.unit)
            sides = paired.of_pairs(Inputs.of(TASK), Inputs.of(TASK, seed=number), both)
            values = {spec: _difference(spec, both) for spec in DELTAS}
            for spec, (low, high) in paired.intervals(values, *sides, sure, both).items():
                holds.setdefault(f"difference of {spec.key}", []).append(low <= apart[spec] <= high)
        yield from ((name, *each) for name, each in holds.items() if len(each) == 2)


def _difference(spec: MetricSpec, pairs: PairTable) -> float:
    estimate = paired.difference(spec, *paired.of_pairs(Inputs.of(TASK), Inputs.of(TASK), pairs), pairs)
    assert estimate is not None  # DELTAS have an analytic one
    return estimate.value


def _binned(rows: Rows, population: Drawn) -> float:
    """The squared calibration error of the population in the bins that the rows have."""
    edges = rows.table.score[rows.table.bin_starts()]
    number = np.maximum(np.searchsorted(edges, population.rows.score, side="right") - 1, 0)
    weight = population.rows.weights
    n, score, true = (
        np.bincount(number, weight * v, len(edges)) for v in (1.0, population.rows.score, population.true)
    )
    some = n > 0
    return float(((score - true)[some] ** 2 / n[some]).sum() / n.sum())


def _learned(rows: Rows, population: Drawn, seed: int) -> float:
    """The mean gain, in the population, of the cuts that the folds learn."""
    held = of_table(rows.table, seed)
    at = cuts_of_folds(held.levels, held.of_levels, TASK.threshold)
    share = np.bincount(held.fold, held.units.weight, len(at)) / held.units.total
    weight = population.rows.weights * (population.true - TASK.threshold)
    now = float(weight[population.rows.score >= TASK.decision_threshold].sum())
    won = [float(weight[population.rows.score >= score].sum()) - now for score in at]
    return TASK.u_delta * float(np.dot(share, won)) / float(population.rows.weights.sum())


def main() -> None:
    """A row for each world: coverage with clusters / without, by metric."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261)
    asked = parser.parse_args()
    names = [spec.key for spec in METRICS] + [f"difference of {spec.key}" for spec in DELTAS]
    print("| world | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for world in WORLDS:
        counts: dict[str, list[tuple[bool, bool]]] = {name: [] for name in names}
        for name, clustered, naive in outcomes(world, asked.replicates, asked.seed):
            counts[name].append((clustered, naive))
        cells = [" / ".join(f"{share:.2f}" for share in np.mean(counts[name], axis=0)) for name in names]
        print(f"| {world.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
