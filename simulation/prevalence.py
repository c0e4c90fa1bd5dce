"""Rows of a real set, sampled at other shares of label 1 and counted as the set they came from.

`python -m simulation.prevalence FILE SCORE` prints the table of simulation/RESULTS.md; without a file it draws rows
with 40 % positives, counts them as a population with 5 %, and says how often the value of the scores, as these rows
moved them, lies in its interval.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import expit

from decal_cli.data import Columns, read
from decal_cli.errors import Undefined
from decal_cli.metrics import Inputs, measure, parse
from decal_cli.metrics.confidence import normal
from decal_cli.metrics.label_shift import N_BINS, binned, label_shift
from decal_cli.tables.population import Population, population_share
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask

SHARES = (0.01, 0.05, 0.1, 0.3, 0.5)
METRICS = ("brier", "log_loss", "auc", "expected_utility", "net_benefit")
DRAWS, N_ROWS, CONFIDENCE = 1000, 4000, 0.95
SHARES_ACTED_ON = ("selection_rate", "accuracy", "ppv", "npv", "sensitivity", "specificity", "net_benefit")
TASK = BinaryTask.of_threshold(0.3)


def drawn(whole: Rows, share: float, rng: np.random.Generator) -> Rows:
    """Rows of the set, with replacement, of label 1 with this chance."""
    label = np.asarray(whole.label) == 1
    ones = rng.binomial(N_ROWS, share)
    which = np.concatenate((rng.choice(np.flatnonzero(label), ones), rng.choice(np.flatnonzero(~label), N_ROWS - ones)))
    return whole.take(which)


def agreement(whole: Rows, share: float, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    """How often the interval of each metric holds the value of the whole set; and that of the label shift its share."""
    base = population_share(whole)
    specs = [parse(name) for name in METRICS]
    truth = {spec: measure(spec, Inputs(whole, TASK)).value or 0.0 for spec in specs}
    edges = whole.table.bin_edges(N_BINS)
    zero, one = (binned(whole.table, edges, label) for label in (0, 1))
    held, shifts = dict.fromkeys(METRICS, 0), 0
    for _ in range(DRAWS):
        sample = drawn(whole, share, rng)
        at_share = Population.of_ones(share, base, kept=False)
        made = Rows(at_share.moved(sample.score), sample.label)
        back = Population.of_ones(base, population_share(made), kept=False).counted(made)
        for spec in specs:
            ends = measure(spec, Inputs(back, TASK), CONFIDENCE).interval
            held[spec.name] += ends is not None and ends[0] <= truth[spec] <= ends[1]
        try:
            low, high = normal(label_shift(zero, one, binned(sample.table, edges)).prevalence, CONFIDENCE, 0.0, 1.0)
        except Undefined:
            continue
        shifts += low <= share <= high
    return {name: count / DRAWS for name, count in held.items()}, shifts / DRAWS


def held_as_moved(n_rows: int, draws: int, rng: np.random.Generator) -> dict[str, float]:
    """How often the interval of a share holds that of a large population, moved as the rows were."""

    def made(count: int) -> Rows:
        label = (rng.random(count) < 0.4).astype(np.uint8)
        return Rows(expit(rng.normal(1.6 * label - 0.5, 1.2)), label)

    large, specs, task = made(300_000), [parse(name) for name in SHARES_ACTED_ON], BinaryTask.of_threshold(0.1)
    held = dict.fromkeys(SHARES_ACTED_ON, 0)
    for _ in range(draws):
        rows = made(n_rows)
        population = Population.of_ones(0.05, population_share(rows), kept=False)
        moved = Rows(population.moved(large.score), large.label)
        truth = Inputs(Population.of_ones(0.05, population_share(large), kept=True).counted(moved), task)
        sample = Inputs(population.counted(rows), task)
        for spec in specs:
            ends, value = measure(spec, sample, CONFIDENCE).interval, measure(spec, truth).value
            held[spec.name] += ends is not None and value is not None and ends[0] <= value <= ends[1]
    return {name: count / draws for name, count in held.items()}


def main(path: str, score: str) -> None:
    """Print the table."""
    whole = read([path], Columns(score=(score,), label="y")).models[0].rows
    whole = Rows(np.clip(whole.score, 1e-6, 1 - 1e-6), whole.label)
    names = ", ".join(f"`{name}`" for name in METRICS)
    print(f"| share of label 1 drawn | {names.replace(', ', ' | ')} | share told from the scores |")
    print("|" + " --- |" * (len(METRICS) + 2))
    for number, share in enumerate(SHARES):
        held, shifts = agreement(whole, share, np.random.default_rng([5, number]))
        cells = " | ".join(f"{held[name]:.3f}" for name in METRICS)
        print(f"| {share:g} | {cells} | {shifts:.3f} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(*sys.argv[1:3])
    else:
        for number, n_rows in enumerate((400, 3000)):
            print(n_rows, held_as_moved(n_rows, 600, np.random.default_rng([6, number])), flush=True)
