"""Coverage of every metric's interval where few rows have label 1: 3 to 20 are expected among 400.

`python -m simulation.few_positives --replicates 200` prints the first table of simulation/RESULTS.md, and with
`--others` the second one: weights, clusters, utilities of each row, places, several classes, and two models compared.

Among rows of label 0 a number is standard normal; among those of label 1 it is 1.2 larger, and spreads a third as much,
as much or three times as much. The score is calibrated where it spreads as much. t* is the share of label 1, so that
decisions hang on every row of label 1. Samples without label 1 are drawn again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import expit, logit, ndtr

from decal_cli.analysis.described import select_rows
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.metrics import METRICS, Inputs, paired, parse
from decal_cli.metrics.measure import interval_of, measure_all, value_of
from decal_cli.tables.pairs import pair_up
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity
from decal_cli.task import ClassDecision, RowTask
from simulation.coverage import ELSEWHERE, JUDGED, NONE
from simulation.known import OF_FEATURES, World, truths
from simulation.worlds import Floats

ROWS, APART = 400, 1.2
EXPECTED = (3, 5, 9, 20)
SPREADS = {"a third": 1 / 3, "as much": 1.0, "three times": 3.0}
PROMISED = ("auc", "brier", "expected_utility", "net_benefit", "gain_recalibration")
"""Metrics that have an interval from 5 rows of label 1 on."""
WITHOUT_FEATURES = [name for name in JUDGED if name not in (*OF_FEATURES, *ELSEWHERE, "irreducible_loss")]


def few(positives: float, spread: float, rows: int = ROWS) -> World:
    """The world in which so many of the rows are expected to have label 1."""
    rate, grid = positives / rows, np.linspace(-14, 16, 60_001)
    below = (1 - rate) * ndtr(grid) + rate * ndtr((grid - APART) / spread)
    shift = logit(rate) - APART**2 / 2

    def law(u: Floats) -> Floats:
        return np.asarray(np.clip(expit(shift + APART * np.interp(u, below, grid)), 1e-9, 1 - 1e-9))

    def curve(score: Floats) -> Floats:
        at = (logit(score) - shift) / APART
        odds = rate / (1 - rate) * np.exp((at**2 - ((at - APART) / spread) ** 2) / 2) / spread
        return np.asarray(odds / (1 + odds))

    return World(f"{positives:g}, {spread:.2g}", law, curve, rate)


def intervals(world: World, names: Sequence[str], replicates: int, seed: int, rows: int = ROWS) -> dict[str, Floats]:
    """By metric: both ends and the truth of each replicate, (replicates, 3); NaN where there is none."""
    rng, specs = np.random.default_rng(seed), [parse(name) for name in names]
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    while len(found[names[0]]) < replicates:
        drawn, own = world.draw(rows, rng).rows, int(rng.integers(2**31))
        if not drawn.label.any():
            continue
        truth = truths(world, drawn, own, rng, names)
        results = measure_all(specs, Inputs(drawn, world.task, own), CONFIDENCE)
        for name, result in zip(names, results.values(), strict=True):
            found[name].append((*(result.interval or (NONE, NONE)), truth[name]))
    return {name: np.array(values) for name, values in found.items()}


def covered(of_metric: Floats) -> tuple[float, float]:
    """The share of intervals that hold the truth, and of replicates that have one."""
    low, high, truth = of_metric.T
    there, slack = np.isfinite(low) & np.isfinite(truth), 1e-9 * (1 + np.abs(truth))
    held = (low - slack <= truth) & (truth <= high + slack)
    return float(held[there].mean()) if there.any() else NONE, float(there.mean())


def cell(share: float, there: float) -> str:
    """How often the intervals hold the truth; in brackets how often there is one, where that is not always."""
    return "-" if not there else f"{share:.2f}" + ("" if there > 0.995 else f" ({there:.2f})")


Ends = tuple[float, float] | None
POPULATION = 1000
"""Times the rows of a sample, which say what is true."""
COSTS = RowTask(("amount", "cost_fp_column"))
CLASSES = ClassDecision(((0.0, -0.5, -20.0), (-0.5, 0.0, -20.0), (-0.3, -0.3, 0.0)), ("a", "b", "rare"))


def _weighted(rows: Rows, world: World, rng: np.random.Generator) -> Inputs:
    return Inputs(replace(rows, weight=rng.uniform(0.2, 3, len(rows))), world.task)


def _clustered(rows: Rows, world: World, rng: np.random.Generator) -> Inputs:
    """Every row twice."""
    twice = rows.take(np.repeat(np.arange(len(rows)), 2))
    return Inputs(replace(twice, cluster=np.repeat(np.arange(len(rows)), 2)), world.task)


def _priced(rows: Rows, world: World, rng: np.random.Generator) -> Inputs:
    missed, alarm = np.exp(rng.normal(0, 0.8, len(rows))), world.threshold / (1 - world.threshold)
    return Inputs(
        replace(rows, amounts={"amount": missed, "cost_fp_column": alarm * np.exp(rng.normal(0, 0.3, len(rows)))}),
        decision=COSTS,
    )


def _placed(rows: Rows, world: World, rng: np.random.Generator) -> Inputs:
    """One row in twenty can be acted on."""
    listed = select_rows(rows, Capacity("0.05", 0.05, 1.0), world.task, 0)
    return Inputs(listed, world.task)


def _classed(rows: Rows, world: World, rng: np.random.Generator) -> Inputs:
    """Label 1 is the rare one of three classes; which of the other two is a toss of a known coin."""
    coin = rng.beta(2, 2, len(rows))
    score = np.column_stack(((1 - rows.score) * coin, (1 - rows.score) * (1 - coin), rows.score))
    label = np.where(rows.label == 1, 2, (rng.random(len(rows)) > coin).astype(np.int64))
    return Inputs(Rows(score, label, classes=("a", "b", "rare")), decision=CLASSES)


OTHERS: dict[str, tuple[Callable[[Rows, World, np.random.Generator], Inputs], tuple[str, ...]]] = {
    "weights": (_weighted, ("brier", "log_loss", "auc", "expected_utility", "net_benefit")),
    "every row twice, a cluster": (_clustered, ("brier", "log_loss", "auc", "expected_utility", "net_benefit")),
    "utilities of each row": (_priced, ("expected_utility", "external_regret", "eu_never")),
    "places for 1 in 20": (_placed, ("capture", "precision_at_capacity", "lift", "utility_at_capacity")),
    "three classes": (_classed, ("brier", "log_loss", "rps", "expected_utility", "external_regret")),
}
COMPARED = ("brier", "log_loss", "auc", "expected_utility", "net_benefit")


def _rivals(rows: Rows, world: World, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """The score, and one that is blurred."""
    return rows, replace(rows, score=expit(logit(rows.score) + rng.normal(0, 0.7, len(rows))))


def _apart(rivals: tuple[Rows, Rows], world: World) -> dict[str, tuple[float, Ends]]:
    """The difference of each metric, with its interval."""
    a, b = rivals
    pairs = pair_up(a.score, b.score, a.label)
    found = [[value_of(parse(name), Inputs(each, world.task)) for name in COMPARED] for each in rivals]
    values = {parse(name): of_b - of_a for name, of_a, of_b in zip(COMPARED, *found, strict=True)}
    sides = paired.of_pairs(Inputs.of(world.task), Inputs.of(world.task), pairs)
    ends = paired.intervals(values, *sides, CONFIDENCE, pairs)
    return {spec.name: (value, ends.get(spec)) for spec, value in values.items()}


def others(world: World, replicates: int, rng: np.random.Generator) -> dict[tuple[str, str], tuple[float, float]]:
    """How often intervals hold the truth, by what is done with the rows and by metric."""
    held: dict[tuple[str, str], list[tuple[float, float, float]]] = {}

    def drawn(times: int = 1) -> Rows:
        rows = world.draw(times * ROWS, rng).rows
        return rows if rows.label.any() else drawn(times)

    def count(kind: str, name: str, ends: Ends, truth: float) -> None:
        low, high = ends or (NONE, NONE)
        held.setdefault((kind, name), []).append((low, high, truth))

    for kind, (made, names) in OTHERS.items():
        whole = made(drawn(POPULATION), world, rng)
        truths_of = {name: value_of(parse(name), whole) for name in names}
        for _ in range(replicates):
            sample = made(drawn(), world, rng)
            for name, truth in truths_of.items():
                count(kind, name, interval_of(parse(name), sample, CONFIDENCE), truth)
    truth_of = _apart(_rivals(drawn(POPULATION), world, rng), world)
    for _ in range(replicates):
        for name, (_, ends) in _apart(_rivals(drawn(), world, rng), world).items():
            count("two models", name, ends, truth_of[name][0])
    return {key: covered(np.array(each)) for key, each in held.items()}


def print_others(replicates: int, seed: int) -> None:
    """The table of the other worlds."""
    columns = {f"{count}, {words}": few(count, spread) for count in (5, 9) for words, spread in SPREADS.items()}
    shares = [others(world, replicates, np.random.default_rng([seed, k])) for k, world in enumerate(columns.values())]
    print("| rows | metric | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 2) + "|")
    for kind, name in shares[0]:
        print(f"| {kind} | {name} | " + " | ".join(cell(*each[kind, name]) for each in shares) + " |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2029)
    parser.add_argument("--metrics", default=",".join(WITHOUT_FEATURES))
    parser.add_argument("--expected", default=",".join(map(str, EXPECTED)))
    parser.add_argument("--others", action="store_true")
    given = parser.parse_args()
    if given.others:
        print_others(given.replicates, given.seed)
        return
    names = [name for name in METRICS if name in given.metrics.split(",")]
    worlds = {
        f"{count}, {words}": few(count, spread)
        for count in map(int, given.expected.split(","))
        for words, spread in SPREADS.items()
    }
    columns = [intervals(world, names, given.replicates, given.seed) for world in worlds.values()]
    print("| metric | " + " | ".join(worlds) + " |")
    print("|---" * (len(worlds) + 1) + "|")
    for name in names:
        cells = [cell(*covered(column[name])) for column in columns]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
