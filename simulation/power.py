"""How often as many rows as `recommend` names show a gain, or a utility that is good enough, in five worlds.

`python -m simulation.power --replicates 300` prints the table of simulation/RESULTS.md.

Of each world, the mean value and the mean half-width of the interval at some rows say how many rows are named; of as
many fresh rows it is counted how often their interval shows the effect.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from decal_cli.analysis.evidence import Evidence, Item
from decal_cli.analysis.flowchart import rows_for
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.metrics import Inputs, parse
from decal_cli.metrics.measure import measure
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask, ClassDecision, RowTask
from simulation.worlds import Floats

TASK = BinaryTask.of_utility([[0.0, -0.7], [-0.3, 0.0]])
COSTS = RowTask(("amount", "cost_fp_column"))
CLASSES = ClassDecision(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.7, 0.7, 0.7)), ("a", "b", "c", "ask"))
"""Asking somebody is worth .7."""
PER_CLUSTER = 8

Draw = Callable[[int, np.random.Generator], Inputs]


class World(NamedTuple):
    """A law of rows with their task; as many rows as the number is named from; and what they are to show.

    short: how far the utility that is wanted lies below what the rows are worth; None where the gain of recalibration
    is to show.
    """

    name: str
    draw: Draw
    rows: int
    short: float | None = None


def _too_steep(n: int, rng: np.random.Generator, shared: Floats | float = 0.0) -> tuple[Floats, Floats]:
    z = rng.normal(-0.8, 1.2, n)
    return 1 / (1 + np.exp(-1.5 * z)), (rng.random(n) < 1 / (1 + np.exp(-0.75 * z - shared))).astype(np.int64)


def alike(n: int, rng: np.random.Generator) -> Inputs:
    """Rows that count one each."""
    return Inputs(Rows(*_too_steep(n, rng)), TASK)


def weighted(n: int, rng: np.random.Generator) -> Inputs:
    """Rows with weights."""
    score, label = _too_steep(n, rng)
    return Inputs(Rows(score, label, rng.uniform(0.2, 3, n)), TASK)


def clustered(n: int, rng: np.random.Generator) -> Inputs:
    """Clusters of eight rows whose labels hang together."""
    unit = np.arange(n) // PER_CLUSTER
    score, label = _too_steep(n, rng, 0.8 * rng.standard_normal(int(unit[-1]) + 1)[unit])
    return Inputs(Rows(score, label, None, unit), TASK)


def priced(n: int, rng: np.random.Generator) -> Inputs:
    """Rows with utilities of their own."""
    score, label = _too_steep(n, rng)
    amounts = {"amount": np.exp(rng.normal(0, 0.6, n)), "cost_fp_column": rng.uniform(0.2, 0.8, n)}
    return Inputs(Rows(score, label, amounts=amounts), decision=COSTS)


def classed(n: int, rng: np.random.Generator) -> Inputs:
    """Rows of three classes, one of whose actions is to ask somebody."""
    known = rng.standard_normal((n, 3)) * 1.2
    true, score = (np.exp(slope * known) for slope in (1.0, 1.6))
    true, score = (each / each.sum(axis=1, keepdims=True) for each in (true, score))
    label = (rng.random((n, 1)) > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    return Inputs(Rows(score, label, classes=("a", "b", "c")), decision=CLASSES)


WORLDS = (
    World("two classes", alike, 2000),
    World("weights", weighted, 2000),
    World("clusters of 8", clustered, 2000),
    World("utilities of each row", priced, 1000),
    World("three classes, four actions", classed, 600),
    World("two classes: good enough", alike, 400, 0.012),
    World("clusters of 8: good enough", clustered, 400, 0.012),
    World("utilities of each row: good enough", priced, 400, 0.02),
    World("three classes: good enough", classed, 400, 0.02),
)


def _measured(world: World, rows: int, replicates: int, rng: np.random.Generator) -> Floats:
    """Value and ends of the interval, shape (replicates, 3)."""
    spec = parse("gain_recalibration" if world.short is None else "expected_utility")
    found = [measure(spec, world.draw(rows, rng), CONFIDENCE) for _ in range(replicates)]
    return np.array([(each.value, *each.interval) for each in found if each.value is not None and each.interval])


class Power(NamedTuple):
    """The effect, the rows that are named for it, and how many of so many samples show it."""

    effect: float
    rows: int
    shown: float


def power(world: World, replicates: int, rng: np.random.Generator, size: int | None = None) -> Power:
    """What is named from `replicates` samples, and shown by as many others; size: of these, where it is not that."""
    value, low, high = _measured(world, world.rows, replicates, rng).mean(axis=0)
    effect = float(value if world.short is None else world.short)
    item = Item("gain_recalibration", float(value), (float(value - (high - low) / 2), float(value + (high - low) / 2)))
    rows = rows_for(Evidence({}, world.rows, False), item, effect)
    assert rows is not None
    limit = 0.0 if world.short is None else value - effect
    shown = _measured(world, rows if size is None else size, replicates, rng)[:, 1] > limit
    return Power(effect, rows, float(shown.mean()))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--seed", type=int, default=2028)
    given = parser.parse_args()
    print("| world | effect | from rows | rows named | shown |\n|---|---|---|---|---|")
    for number, world in enumerate(WORLDS):
        found = power(world, given.replicates, np.random.default_rng([given.seed, number]))
        cells = (world.name, f"{found.effect:.4f}", f"{world.rows:,}", f"{found.rows:,}", f"{found.shown:.2f}")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
