"""Claims 5.2 and 6 of Gao et al. 2017 where the truth is known: what isotonic regression loses, and how it converges.

`python -m simulation.pooled` prints the table of simulation/RESULTS.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from decal_cli.tables.table import tabulate
from simulation.worlds import Floats, World, logit_normal, tilted

WORLD = World("logit-normal, overconfident", logit_normal(0, 1.5), tilted(0, 0.45), (0.3,))
AT = np.arange(0.02, 1.0, 0.02)
N_ROWS = (500, 2000, 8000, 32000)
REPLICATES = 100
DELTA = 0.01


class Pooled(NamedTuple):
    """One fit: sup over t of the distance of G_e from G, and by how much it loses more than the score, at worst t*.

    own, fresh: on the rows of the fit, and in the population.
    """

    distance: float
    own: float
    fresh: float


def pooled(n: int, rng: np.random.Generator, world: World = WORLD) -> Pooled:
    """An isotonic fit to n rows of the world, held against its population."""
    table = tabulate(*world.draw(n, rng))
    rate, pools = table.isotonic.pos / table.isotonic.n, table.score[table.pools]
    on_rows, fresh = (
        rate[np.maximum(np.searchsorted(pools, score, side="right") - 1, 0)] for score in (table.score, world.score)
    )
    own_rows = (table.n - table.pos) / n, table.pos / n
    population = (1 - world.truth) / len(fresh), world.truth / len(fresh)
    return Pooled(
        float(np.abs(np.cumsum(fresh - world.truth)).max() / len(fresh)),
        float((_lost(on_rows, *own_rows) - _lost(table.score, *own_rows)).max()),
        float((_lost(fresh, *population) - _lost(world.score, *population)).max()),
    )


def _lost(key: Floats, neg: Floats, pos: Floats) -> Floats:
    """Loss of deciding 1 from each of AT on by a key that increases: t for label 0, 1 - t for a missed label 1."""
    cut = np.searchsorted(key, AT, side="left")
    alarmed, missed = np.append(np.cumsum(neg[::-1])[::-1], 0.0), np.append(0.0, np.cumsum(pos))
    return np.asarray(AT * alarmed[cut] + (1 - AT) * missed[cut])


def bound(n: int, delta: float = DELTA) -> float:
    """2 epsilon of claim 6, which fails with probability 5 delta; with the Rademacher range of one walk for R."""
    complexity = 2 * math.sqrt(2 * (n + 1) / math.pi) / n
    return 4 * (complexity + math.sqrt(2 * math.log(8 / delta) / n))


def table() -> str:
    """Markdown: a row for each number of rows."""
    lines = [
        f"| rows | sup distance, mean | largest of {REPLICATES} | bound | own rows, at worst | fresh rows, at worst |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for n in N_ROWS:
        fits = np.array([pooled(n, np.random.default_rng([n, k])) for k in range(REPLICATES)])
        mean, most = fits[:, 0].mean(), fits[:, 0].max()
        lines.append(
            f"| {n:,} | {mean:.4f} | {most:.4f} | {bound(n):.2f} | {fits[:, 1].max():.4f} | {fits[:, 2].max():.4f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
