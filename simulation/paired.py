"""Coverage of the paired intervals of two models compared, in a world of known truth.

`python -m simulation.paired` prints the table of simulation/RESULTS.md. Two standard normal numbers say what there is
to know of a row; each of two logistic scores sees one of them. The truth is the difference on 2,000,000 rows.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import expit

from decal_cli.metrics import Inputs, Interval, MetricSpec, paired, parse
from decal_cli.metrics.measure import value_of
from decal_cli.tables.pairs import pair_up
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from simulation.few_positives import cell, covered
from simulation.study import CONFIDENCE

TASK = BinaryTask.of_threshold(0.3)
SEEN = 0.9, 0.6
"""What each number adds to the log-odds."""
SIZES, TRUTH_ROWS = (500, 2000), 2_000_000
COMPARED = tuple(
    parse(name)
    for name in (
        *(
            "brier",
            "log_loss",
            "accuracy",
            "auc",
            "average_precision",
            "expected_utility",
            "net_benefit",
            "utility_share",
        ),
        *("corp_mcb", "corp_dsc", "ece_debiased", "regret_calibration", "u_cal"),
    )
)


def draw(rows: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Rows with the score of each model."""
    known = rng.normal(size=(rows, 2))
    parts = known * SEEN
    label = (rng.random(rows) < expit(-1 + parts.sum(axis=1))).astype(np.int8)
    a, b = (Rows(expit(-1 + part), label) for part in parts.T)
    return a, b


def difference(a: Rows, b: Rows) -> dict[MetricSpec, float]:
    """B - A of each metric."""
    return {each: value_of(each, Inputs(b, TASK)) - value_of(each, Inputs(a, TASK)) for each in COMPARED}


def intervals(a: Rows, b: Rows, seed: int) -> dict[MetricSpec, Interval]:
    """The paired interval of each metric that has one."""
    pairs = pair_up(a.score, b.score, a.label)
    sides = paired.of_pairs(Inputs.of(TASK), Inputs.of(TASK, seed=seed), pairs)
    return paired.intervals(difference(a, b), *sides, CONFIDENCE, pairs)


def shares(size: int, replicates: int, seed: int, truth: dict[MetricSpec, float]) -> list[str]:
    """How often the intervals of so many rows hold the truth, for each metric."""
    found: dict[MetricSpec, list[tuple[float, float, float]]] = {each: [] for each in COMPARED}
    for number in range(replicates):
        ends = intervals(*draw(size, np.random.default_rng([seed, size, number])), number)
        for each, right in truth.items():
            found[each].append((*ends.get(each, (np.nan, np.nan)), right))
    return [cell(*covered(np.array(each))) for each in found.values()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--seed", type=int, default=2041)
    given = parser.parse_args()
    truth = difference(*draw(TRUTH_ROWS, np.random.default_rng([given.seed, 0])))
    columns = [shares(size, given.replicates, given.seed, truth) for size in SIZES]
    print("| metric | " + " | ".join(f"{size:,} rows" for size in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    for each, *cells in zip(COMPARED, *columns, strict=True):
        print(f"| {each.name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
