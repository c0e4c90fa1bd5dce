"""Coverage of intervals at a limited capacity, for a task that all rows share and for utilities of each row.

`python -m simulation.places --replicates 1000` prints the tables of simulation/RESULTS.md.

The score is too steep. Rows stand by themselves, come in days of about 60 with a list each, in clusters of 1 to 19,
or weighted. Amounts know a little of the label. The truth is that of 300 times as many rows of the same world.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from decal_cli.analysis.described import select_rows
from decal_cli.metrics import Inputs, interval_of, parse, value_of
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity
from decal_cli.task import BinaryTask, RowTask

CONFIDENCE, POPULATION = 0.9, 300
TASK = BinaryTask.of_utility([[0.0, -0.7], [-0.3, 0.0]])
"""t* = .3."""
COSTS = RowTask(("amount", "cost_fp_column"))
SIZES = {"rows": 1000, "days": 40, "clusters": 150, "weights": 1000}
"""Rows, days or clusters of a sample."""
SHARES = (0.02, 0.1, 0.25)
SHARED = ("capture", "precision_at_capacity", "lift", "utility_at_capacity", "capacity_cost", "shadow_price",
          "capacity_threshold")  # fmt: skip
BY_ROW = ("utility_at_capacity", "capacity_cost", "shadow_price", "value_capture", "least_gain", "eu_score_ranking",
          "eu_amount_ranking", "gain_over_score_ranking", "gain_over_amount_ranking")  # fmt: skip


def drawn(rng: np.random.Generator, kind: str, size: int) -> Rows:
    """A score that is too steep; rows by themselves, in days of about 60, in clusters of 1 to 19, or weighted."""
    unit = day = weight = None
    if kind == "days":
        day = np.repeat(np.arange(size), rng.poisson(60, size) + 1)
    elif kind == "clusters":
        unit = np.repeat(np.arange(size), rng.integers(1, 20, size))
    of_row = day if unit is None else unit
    rows = size if of_row is None else len(of_row)
    z = rng.normal(-1, 1, rows)
    between = np.zeros(rows)
    if unit is not None:
        z, between = 0.8 * rng.normal(-1, 1, size)[unit] + 0.6 * z, rng.normal(size=size)[unit]
    if kind == "weights":
        weight = rng.uniform(0.2, 3, rows)
    label = rng.random(rows) < 1 / (1 + np.exp(-0.7 * z - between))
    return Rows(1 / (1 + np.exp(-z)), label.astype(int), weight, unit, day)


def priced(rng: np.random.Generator, kind: str, size: int) -> Rows:
    """The same with amounts, larger for label 1, and with costs of a false alarm."""
    rows = drawn(rng, kind, size)
    amount = np.exp(rng.normal(0.3 * np.asarray(rows.label), 0.8))
    return replace(rows, amounts={"amount": amount, "cost_fp_column": rng.uniform(0.2, 0.8, len(rows))})


def limited(rows: Rows, share: float) -> Inputs:
    """The rows of which this share can be acted on; of those with amounts, by their own utilities."""
    capacity, row_task = Capacity(f"{share:g}", share, 1.0), COSTS if rows.amounts else None
    listed = select_rows(rows, capacity, row_task or TASK, 0)
    return Inputs(listed, row_task or TASK)


def coverage(kind: str, share: float, replicates: int, by_row: bool, rng: np.random.Generator) -> list[float]:
    """How often the interval of each metric holds the truth; one that there is not does not hold it."""
    names, draw, size = (BY_ROW, priced, SIZES[kind]) if by_row else (SHARED, drawn, SIZES[kind])
    specs = [parse(name) for name in names]
    whole = limited(draw(rng, kind, POPULATION * size), share)
    truth = [value_of(spec, whole) for spec in specs]
    held = np.zeros(len(specs))
    for _ in range(replicates):
        sample = limited(draw(rng, kind, size), share)
        for number, spec in enumerate(specs):
            ends = interval_of(spec, sample, CONFIDENCE)
            held[number] += ends is not None and ends[0] <= truth[number] <= ends[1]
    return list(held / replicates)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table for each kind of task."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    replicates = parser.parse_args(argv).replicates
    for by_row, names in ((False, SHARED), (True, BY_ROW)):
        print(f"| world | share with a place | {' | '.join(f'`{name}`' for name in names)} |")
        print("|" + " --- |" * (len(names) + 2))
        for number, kind in enumerate(SIZES):
            for place, share in enumerate(SHARES):
                held = coverage(kind, share, replicates, by_row, np.random.default_rng([17, by_row, number, place]))
                cells = " | ".join(f"{each:.3f}".lstrip("0") for each in held)
                print(f"| {kind} | {share:g} | {cells} |", flush=True)
        print()


if __name__ == "__main__":
    main()
