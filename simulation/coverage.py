"""Coverage of every metric's interval in the worlds of simulation/known.py.

`python -m simulation.coverage --rows 2000 --replicates 100 --output DIR` writes a file for each world;
`python -m simulation.coverage --table DIR --rows 2000` prints the table of simulation/RESULTS.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from decal_cli.metrics import METRICS, Inputs, parse
from decal_cli.metrics.measure import measure_all
from simulation.known import WORLDS, World, truths

CONFIDENCE = 0.9
NONE = float("nan")
ELSEWHERE = ("gain_beyond", "gain_post_training")
"""Metrics whose coverage stands in simulation/RESULTS.md."""
JUDGED = [
    name
    for name, metric in METRICS.items()
    if metric.takes(False) and metric.interval is not None and name not in ELSEWHERE
]


def outcomes(world: World, n: int, replicates: int, names: Sequence[str], seed: int) -> dict[str, Any]:
    """By metric: value, ends and truth of each replicate, shape (replicates, 4); NaN where there is none."""
    rng = np.random.default_rng([seed, n, [one.name for one in WORLDS].index(world.name)])
    columns: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    for _ in range(replicates):
        rows, own = world.draw(n, rng).rows, int(rng.integers(2**31))
        found = measure_all([parse(name) for name in names], Inputs(rows, world.task, own), CONFIDENCE)
        truth = truths(world, rows, own, rng, names)
        for name, result in zip(names, found.values(), strict=True):
            value = NONE if result.value is None else result.value
            columns[name].append((value, *(result.interval or (NONE, NONE)), truth[name]))
    return {name: np.array(values) for name, values in columns.items()}


def covered(values: Any) -> str:
    """Share of the intervals that hold the truth; '-' where there is no interval, or nothing to hold."""
    value, low, high, truth = values.T
    there = np.isfinite(low) & np.isfinite(truth)
    if 2 * there.sum() < len(value):
        return "-"
    slack = 1e-9 * (1 + np.abs(truth[there]))
    return f"{np.mean((low[there] - slack <= truth[there]) & (truth[there] <= high[there] + slack)):.2f}"


def table(directory: Path, n: int) -> str:
    """Markdown: a row for each metric, a column for each world."""
    found = {world.name: np.load(path) for world in WORLDS if (path := directory / f"{n} {world.name}.npz").exists()}
    lines = ["| metric | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    for name in next(iter(found.values())):
        lines.append(f"| {name} | " + " | ".join(covered(columns[name]) for columns in found.values()) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the worlds, or print their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20262)
    parser.add_argument("--worlds", default=";".join(world.name for world in WORLDS))
    parser.add_argument("--metrics", default=",".join(JUDGED))
    parser.add_argument("--output", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table:
        print(table(given.table, given.rows))
        return
    given.output.mkdir(parents=True, exist_ok=True)
    for world in WORLDS:
        if world.name in given.worlds.split(";"):
            began = time.perf_counter()
            found = outcomes(world, given.rows, given.replicates, given.metrics.split(","), given.seed)
            np.savez(given.output / f"{given.rows} {world.name}.npz", **found)
            print(f"{world.name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
