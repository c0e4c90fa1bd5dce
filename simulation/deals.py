"""Half-width and coverage of held-out gains on few rows, which are dealt into folds several times.

`python -m simulation.deals --rows 500 --samples 120` prints the table of docs/statistics.md.

Log-odds of label 1 are a + b z + c x, with z the log-odds of the score and x the first of six features. The number that
an interval should hold is the mean of the gain over all samples: what the procedure wins with so many rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from decal_cli.learn.probe import build_probe
from decal_cli.metrics.decisions import Featured, Recalibrating, post_training
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from simulation.worlds import Floats

CONFIDENCE = 0.95


class Kind(NamedTuple):
    """A world: slope b and intercept a of the score's log-odds, weight c of a feature, and the threshold t*."""

    slope: float
    shift: float
    feature: float
    threshold: float


WORLDS = {
    "calibrated": Kind(1.0, 0.0, 0.0, 0.3),
    "shift": Kind(1.0, -0.8, 0.0, 0.3),
    "steep": Kind(0.5, 0.0, 0.0, 0.2),
    "feature": Kind(1.0, 0.0, 0.8, 0.3),
}
GAINS = ("gain_recalibration", "gain_beyond", "gain_post_training")


def gains(name: str, n: int, sample: int) -> Floats:
    """Value, low and high end of the three gains on a sample of n rows, shape (3, 3)."""
    world, rng = WORLDS[name], np.random.default_rng([sample, n, len(name)])
    features, z = rng.normal(size=(n, 6)), rng.normal(size=n) * 1.2 - 0.6
    chance = expit(world.shift + world.slope * z + world.feature * features[:, 0])
    rows = Rows(expit(z), (rng.random(n) < chance).astype(int), features=features)
    task = BinaryTask.of_threshold(world.threshold)
    recalibrating = Recalibrating.of_table(rows.table, task, sample)
    featured = Featured.of_scores(build_probe(rows, seed=sample), task)
    estimates = recalibrating.gain, featured.gain, post_training(recalibrating, featured)
    return np.array([(each.value, *each.normal(CONFIDENCE)) for each in estimates])


def lines(n: int, samples: int) -> Iterator[str]:
    """A table: each gain of each world, per 1,000 decisions."""
    yield "| world | gain | mean | standard deviation | half-width | over 1.96 standard deviations | coverage |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name in WORLDS:
        drawn = np.stack([gains(name, n, sample) for sample in range(samples)])
        for k, gain in enumerate(GAINS):
            value, low, high = 1000 * drawn[:, k].T
            width, spread = float((high - low).mean()) / 2, float(value.std())
            held = float(np.mean((low <= value.mean()) & (value.mean() <= high)))
            numbers = f"{value.mean():.1f} | {spread:.1f} | {width:.1f} | {width / 1.96 / spread:.2f} | {held:.2f}"
            yield f"| {name} | `{gain}` | {numbers} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--samples", type=int, default=120)
    given = parser.parse_args(arguments)
    for line in lines(given.rows, given.samples):
        print(line, flush=True)


if __name__ == "__main__":
    main()
