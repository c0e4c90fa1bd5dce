"""Half-width and coverage of held-out gains on few rows, which are dealt into folds several times, in ten worlds.

`python -m simulation.deals --rows 500 --samples 60` prints the table of simulation/RESULTS.md, and in how many samples
of a calibrated score `recommend` says that there is nothing to win.

A feature is one of six. The gain that an interval should hold is what the rules of the folds win by the true chances of
their held-out rows: the mean over samples, and that of each sample.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from decal_cli.data import Predictions
from decal_cli.learn import held_out
from decal_cli.learn.probe import build_probe
from decal_cli.metrics.decisions import Change, Featured, Recalibrating, post_training
from decal_cli.tables.rows import Rows
from decal_cli.tables.threads import one_thread
from decal_cli.task import BinaryTask
from simulation.advice import advice_on
from simulation.worlds import Floats

CONFIDENCE, FEATURES = 0.95, 6


class World(NamedTuple):
    """threshold: t*. chance: log-odds of label 1 by z and the features. offset: of z, the log-odds of the score."""

    threshold: float
    chance: Callable[[Floats, Floats], Floats]
    offset: float = 0.0


WORLDS = {
    "calibrated": World(0.3, lambda z, x: z),
    "calibrated, rare": World(0.1, lambda z, x: z, -1.6),
    "shift": World(0.3, lambda z, x: z - 0.8),
    "steep": World(0.2, lambda z, x: 0.5 * z),
    "bent": World(0.4, lambda z, x: z + 0.5 * np.sin(2 * z) - 0.3),
    "one feature": World(0.3, lambda z, x: z + 0.8 * x[:, 0]),
    "two weak features": World(0.3, lambda z, x: z + 0.3 * x[:, 0] + 0.2 * x[:, 1]),
    "six weak features": World(0.5, lambda z, x: z + 0.3 * x.sum(axis=1)),
    "product": World(0.3, lambda z, x: z + 0.9 * x[:, 0] * x[:, 1]),
    "steep, one feature": World(0.25, lambda z, x: 0.7 * z - 0.5 + 0.6 * x[:, 2]),
}
GAINS = ("gain_recalibration", "gain_beyond", "gain_post_training")


def draw(name: str, n: int, sample: int) -> tuple[Rows, Floats]:
    """n rows in the order of their content, and the true chance of label 1 of each."""
    world, rng = WORLDS[name], np.random.default_rng([sample, n, list(WORLDS).index(name)])
    features, z = rng.normal(size=(n, FEATURES)), rng.normal(size=n) * 1.2 - 0.6 + world.offset
    chance = expit(world.chance(z, features))
    label = (rng.random(n) < chance).astype(np.int64)
    rows = Rows(expit(z), label, features=features)
    return rows.take(rows.order), chance[rows.order]


def true_gain(change: Change, chance: Floats) -> float:
    """What a change wins by the true chance of each of its units, shape (m,)."""
    stakes, then, now = change.before.stakes, change.after.action, change.before.action
    of_zero, of_one = (stakes[then, label] - stakes[now, label] for label in (0, 1))
    return float(np.average((1 - chance) * of_zero + chance * of_one, weights=change.before.units.weight))


def gains(name: str, n: int, sample: int) -> Floats:
    """True gain, value, low and high end of the three gains on a sample of n rows, shape (3, 4)."""
    rows, chance = draw(name, n, sample)
    task = BinaryTask.of_threshold(WORLDS[name].threshold)
    recalibrating = Recalibrating.of_table(rows.table, task, sample)
    probed = build_probe(rows, seed=sample)
    featured = Featured.of_scores(probed, task)
    # No two rows have one score, so that the score says which row a unit is.
    row_of_unit = np.searchsorted(rows.score, held_out.of_table(rows.table, sample).score)
    truth = (
        true_gain(recalibrating, chance[row_of_unit]),
        true_gain(featured, np.tile(chance, 1 + len(probed.others))),
    )
    estimates = recalibrating.gain, featured.gain, post_training(recalibrating, featured)
    of_each = zip((*truth, sum(truth)), estimates, strict=True)
    return np.array([(true, each.value, *each.normal(CONFIDENCE)) for true, each in of_each])


def lines(n: int, samples: int) -> Iterator[str]:
    """Markdown: each gain of each world, per 1,000 decisions."""
    yield (
        "| world | gain | mean truth | mean | sd | half-width | half-width / (1.96 sd) "
        "| the same, of estimate less truth | coverage | of its own truth |"
    )
    yield "|---" * 10 + "|"
    for name in WORLDS:
        drawn = np.stack([gains(name, n, sample) for sample in range(samples)])
        for k, gain in enumerate(GAINS):
            truth, value, low, high = 1000 * drawn[:, k].T
            width, mean = float((high - low).mean()) / 2, truth.mean()
            spread, off = (float(each.std(ddof=1)) for each in (value, value - truth))
            held, own = (float(np.mean((low <= each) & (each <= high))) for each in (mean, truth))
            numbers = f"{mean:.1f} | {value.mean():.1f} | {spread:.1f} | {width:.1f}"
            yield (
                f"| {name} | `{gain}` | {numbers} | {width / 1.96 / spread:.2f} | {width / 1.96 / off:.2f} "
                f"| {held:.2f} | {own:.2f} |"
            )


def recognised(n: int, samples: int) -> float:
    """The share of samples of a calibrated score in which `recommend` says that there is nothing to win."""
    task, said = BinaryTask.of_threshold(WORLDS["calibrated"].threshold), 0
    for sample in range(samples):
        model = Predictions("model", ("score",), draw("calibrated", n, sample)[0])
        said += advice_on(model, task, sample)[1].action == "done"
    return said / samples


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--samples", type=int, default=60)
    given = parser.parse_args(arguments)
    with one_thread():
        for line in lines(given.rows, given.samples):
            print(line, flush=True)
        print(f"\nNothing to win is said in {recognised(given.rows, given.samples):.2f} of the calibrated samples.")


if __name__ == "__main__":
    main()
