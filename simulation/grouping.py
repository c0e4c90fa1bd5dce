"""How often the lower end of grouping_loss, and the upper end of irreducible_loss, hold where regions are hard to see.

`python -m simulation.grouping` prints the table of simulation/RESULTS.md. The score is calibrated and knows z; what
else decides is a subgroup of 12 %, one of 80 categories, a product of two features, a step in one, or nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np

from decal_cli.metrics import Inputs, measure, parse
from decal_cli.tables.features import Features
from decal_cli.tables.rows import Rows

WORLDS = ("subgroup of 12 %", "80 categories", "product", "step", "nothing")
CONFIDENCE, STRENGTH, NOISE = 0.95, 1.6, 4
"""STRENGTH: of what else decides, in log-odds. NOISE: further features, which say nothing."""


def drawn(rng: np.random.Generator, world: str, rows: int) -> tuple[Rows, np.ndarray]:
    """Rows with features, and the true probability of each."""
    z, x = rng.normal(-0.3, 1, rows), rng.normal(size=(rows, 2 + NOISE))
    category = rng.integers(0, 80, rows)
    hidden = {
        "subgroup of 12 %": 1.5 * ((x[:, 0] > 0.39) & (x[:, 1] > 0.39)),
        "80 categories": np.random.default_rng(80).normal(size=80)[category],
        "product": x[:, 0] * x[:, 1],
        "step": np.sign(x[:, 0]),
        "nothing": np.zeros(rows),
    }[world]
    chance = 1 / (1 + np.exp(-z - STRENGTH * hidden))
    names = tuple(f"c{k:02}" for k in range(80))
    kinds = ("number",) * x.shape[1] + ("category",)
    features = Features(x, category.astype(np.int32)[:, None], (names,), kinds)
    label = (rng.random(rows) < chance).astype(np.int64)
    return Rows(1 / (1 + np.exp(-z)), label, features=features), chance


def truth(world: str) -> tuple[float, float]:
    """The population's grouping loss and irreducible loss, from 400,000 rows in 200 bins of the score."""
    rows, chance = drawn(np.random.default_rng(12), world, 400_000)
    number = np.argsort(np.argsort(rows.score)) // 2000
    mean = np.bincount(number, chance) / np.bincount(number)
    return float(np.mean((chance - mean[number]) ** 2)), float(np.mean(chance * (1 - chance)))


def held(world: str, rows: int, replicates: int, seed: int = 1) -> Mapping[str, tuple[float, float]]:
    """By metric: the mean of the end that is promised, and the share of samples in which it holds."""
    rng, ends = np.random.default_rng([seed, WORLDS.index(world)]), []
    for _ in range(replicates):
        inputs = Inputs(drawn(rng, world, rows)[0])
        loss, rest = (measure(parse(name), inputs, CONFIDENCE) for name in ("grouping_loss", "irreducible_loss"))
        assert loss.interval is not None and rest.interval is not None  # these rows are enough
        ends.append((loss.interval[0], rest.interval[1]))
    (low, high), (grouped, left) = np.transpose(ends), truth(world)
    return {
        "grouping_loss": (float(low.mean()), float(np.mean(low <= grouped))),
        "irreducible_loss": (float(high.mean()), float(np.mean(high >= left))),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1000)
    given = parser.parse_args()
    print(f"| world | grouping loss | at least | held | irreducible loss | at most | held |\n|{'---|' * 7}")
    for world in WORLDS:
        grouped, left = truth(world)
        ends = held(world, given.rows, given.replicates)
        cells = [f"{grouped:.4f}", *_cells(ends["grouping_loss"]), f"{left:.4f}", *_cells(ends["irreducible_loss"])]
        print(f"| {' | '.join((world, *cells))} |", flush=True)


def _cells(of: tuple[float, float]) -> list[str]:
    return [f"{of[0]:.4f}", f"{of[1]:.3f}"]


if __name__ == "__main__":
    main()
