"""Six kinds of worlds of four classes, drawn at random, with the action that is right in each; coverage in them.

q = P(y | everything observed) is a softmax of a latent vector that the score knows, moved by two hidden signs that are
features; c = P(y | what the score knows) is its mean over the signs; the score is c, or c at another temperature and
with other intercepts. True regrets are 0, or at least MIN_REGRET of the task's unit; other draws are rejected.

`python -m simulation.several --actions 100` counts actions, `--coverage 200` coverage; `--seed` is the stream.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.recommend import EVIDENCE, Preferences, recommend
from decal_cli.data import Dataset, Predictions
from decal_cli.learn.probe import ClassPlane, Recalibrated, dealt, mixed, own_half
from decal_cli.learn.scaling import SCALINGS, ClassScaling, centred, logarithms, mixing_weights, softmax
from decal_cli.metrics import Inputs, parse
from decal_cli.metrics.measure import measure_all
from decal_cli.tables.classes import best_actions
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows
from decal_cli.task import ClassDecision, ClassTask, abstaining, class_task
from simulation.kinds import MIN_REGRET
from simulation.worlds import Floats

CLASSES = ("a", "b", "c", "d")
SIGNS = np.array([(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)])
N_FRESH = 60_000
PER_WORLD = 25
MAX_DRAWS = 10_000
RIGHT = {
    "calibrated and sufficient": "done",
    "miscalibrated": "recalibrate",
    "miscalibrated, no decision changes": "done",
    "class structure hidden in features": "post-train",
    "miscalibrated, and hidden structure": "post-train",
    "abstention that pays": "recalibrate",
}
COVERED = ("brier", "log_loss", "ece_top_debiased", "expected_utility", "gain_recalibration", "gain_beyond",
           "gain_post_training")  # fmt: skip
CONFIDENCE = 0.9


class Drawn(NamedTuple):
    """Rows, and the truths c and q, shape (n, 4) each."""

    rows: Rows
    c: Floats
    q: Floats


@dataclass(frozen=True)
class Kind:
    """One world. known: (4, 3) of the latent vector; signs: (4, 2); slope, shift: of the score on log c."""

    name: str
    task: ClassTask
    intercept: Floats
    known: Floats
    signs: Floats
    slope: float
    shift: Floats

    @property
    def decision(self) -> ClassDecision:
        """The task of these classes."""
        return self.task.for_classes(CLASSES)

    def draw(self, n: int, rng: np.random.Generator) -> Drawn:
        """n rows."""
        known, hidden = rng.standard_normal((n, 3)), SIGNS[rng.integers(4, size=n)]
        latent = self.intercept + known @ self.known.T
        q = softmax(latent + hidden @ self.signs.T)
        c = np.mean([softmax(latent + self.signs @ sign) for sign in SIGNS], axis=0)
        label = (rng.random((n, 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
        score = c if self.slope == 1 and not self.shift.any() else softmax(self.slope * np.log(c) + self.shift)
        features = np.hstack((hidden, known, rng.standard_normal((n, 2))))
        return Drawn(Rows(score, label, classes=CLASSES, features=features), c, q)

    def worth(self, score: Floats, q: Floats) -> Floats:
        """What deciding by a score is worth to each row, in expectation over its label."""
        utility = np.array(self.decision.utility)
        return np.asarray((q * utility[best_actions(score, np.array(self.decision.utility))]).sum(axis=1))

    def is_clear(self, rng: np.random.Generator) -> bool:
        """Whether regrets are 0 or large, and the recalibrated score is worth more than a constant action."""
        rows, c, q = self.draw(20_000, rng)
        utility, unit = np.array(self.decision.utility), self.decision.unit
        by_c = self.worth(c, q).mean()
        calibration, grouping = by_c - self.worth(rows.score, q).mean(), self.worth(q, q).mean() - by_c
        constant = (utility @ q.mean(axis=0)).max()
        needed = {"recalibrate": (True, False), "done": (False, False)}.get(RIGHT[self.name])
        if needed is None:
            needed = "miscalibrated" in self.name, True
        clear = (
            regret >= MIN_REGRET * unit if due else abs(regret) < 1e-9
            for regret, due in zip((calibration, grouping), needed, strict=True)
        )
        return all(clear) and by_c - constant >= MIN_REGRET * unit


def draw_kind(name: str, rng: np.random.Generator) -> Kind:
    """A world of this kind."""
    for _ in range(MAX_DRAWS):
        world = _any(name, rng)
        if world.is_clear(rng):
            return world
    raise AssertionError(f"no world of the kind {name!r}")


def _any(name: str, rng: np.random.Generator) -> Kind:
    hidden = "hidden" in name
    known = rng.normal(size=(4, 3)) * rng.uniform(0.8, 1.6)
    signs = rng.normal(size=(4, 2)) * rng.uniform(0.8, 1.4) if hidden else np.zeros((4, 2))
    slope, shift = 1.0, np.zeros(4)
    if "miscalibrated" in name:
        slope = float(rng.choice((rng.uniform(0.35, 0.6), rng.uniform(1.8, 3.0))))
    if name in ("miscalibrated", "miscalibrated, and hidden structure"):
        shift = 0.5 * rng.normal(size=4)
    if name == "abstention that pays":
        slope = rng.uniform(2.0, 3.5)
    return Kind(name, _task(name, rng), 0.4 * rng.normal(size=4), known, signs, slope, shift)


def _task(name: str, rng: np.random.Generator) -> ClassTask:
    if name == "miscalibrated, no decision changes":
        return class_task(np.eye(4).tolist())
    if name == "abstention that pays" or rng.random() < 0.5:
        return abstaining(float(rng.uniform(0.15, 0.45)))
    costs = -rng.uniform(0.3, 3.0, size=(4, 4))
    np.fill_diagonal(costs, 0.0)
    return class_task(costs.tolist())


def advised(world: Kind, n: int, rng: np.random.Generator) -> str:
    """What `decal recommend` advises on n rows."""
    rows = world.draw(n, rng).rows
    data = Dataset((), {}, (), (Predictions("model", CLASSES, rows),), ())
    plan = Plan(EVIDENCE_OF_CLASSES, world.task, seed=int(rng.integers(2**31)))
    return recommend(data, plan, Preferences()).advice[0].action


EVIDENCE_OF_CLASSES = tuple(choice for choice in EVIDENCE if choice.declared.takes(True))


def actions(name: str, n: int, replicates: int, rng: np.random.Generator) -> Counter[str]:
    """Actions advised, each in a world of its own."""
    return Counter(advised(draw_kind(name, rng), n, rng) for _ in range(replicates))


def truths(world: Kind, rows: Rows, seed: int, fresh: Drawn) -> dict[str, float]:
    """What the intervals of COVERED are meant to hold on these rows."""
    score, q = fresh.rows.score, fresh.q
    losses = {
        "brier": float(((score**2).sum(axis=1) - 2 * (q * score).sum(axis=1) + 1).mean()),
        "log_loss": float(-(q * np.log(score)).sum(axis=1).mean()),
        "expected_utility": float(world.worth(score, q).mean()),
        "ece_top_debiased": _top_error(rows, score, q),
    }
    return losses | _gains(world, rows, seed, fresh)


def _top_error(rows: Rows, score: Floats, q: Floats) -> float:
    """The squared error of the top class in the bins of the sample, edges held fixed."""
    edges = rows.class_table.top.bin_edges()
    top, right = score.max(axis=1), q[np.arange(len(q)), score.argmax(axis=1)]
    number = np.searchsorted(edges, top, side="left")
    mass = np.bincount(number, minlength=len(edges) + 1)
    gap = np.bincount(number, top - right, len(edges) + 1)
    return float((gap[mass > 0] ** 2 / mass[mass > 0]).sum() / len(top))


def _gains(world: Kind, rows: Rows, seed: int, fresh: Drawn) -> dict[str, float]:
    """Mean gains in the population of the rules that the folds learned."""
    inputs = Inputs(rows, world.decision, seed)
    recalibrated: Recalibrated = inputs.get(Recalibrated)
    fold, taught = dealt(Rows(rows.score, rows.label, classes=rows.classes), seed)
    scalings, regressions = [], []
    logits = np.empty(rows.score.shape)
    for k in range(FOLDS):
        learn, here = rows.take(taught & (fold != k)), fold == k
        scalings.append(_chosen(learn, rows.score[here], recalibrated.score[here]))
        regressions.append(ClassPlane.fitted(learn))
        logits[here] = regressions[k].logits(rows.take(here))
    each = np.stack((centred(logits), centred(logarithms(recalibrated.score))))
    now, scaled, blended = world.worth(fresh.rows.score, fresh.q).mean(), [], []
    for k in range(FOLDS):
        weights = mixing_weights(each, rows.label, own_half(rows.weights, fold == k))
        score = scalings[k].of(fresh.rows.score)
        scaled.append(world.worth(score, fresh.q).mean())
        blended.append(world.worth(mixed(weights, regressions[k].logits(fresh.rows), score), fresh.q).mean())
    gain, beyond = float(np.mean(scaled) - now), float(np.mean(blended) - np.mean(scaled))
    return {"gain_recalibration": gain, "gain_beyond": beyond, "gain_post_training": gain + beyond}


def _chosen(learn: Rows, score: Floats, recalibrated: Floats) -> ClassScaling:
    """The scaling that the fold used: the one that gives the probabilities it gave."""
    fitted = [fit(learn.score, learn.label, learn.weights) for fit in SCALINGS.values()]
    return min(fitted, key=lambda scaling: float(np.abs(scaling.of(score) - recalibrated).max()))


def coverage(name: str, n: int, replicates: int, rng: np.random.Generator) -> dict[str, float]:
    """Share of intervals that hold the truth; every PER_WORLD replicates in a new world."""
    held = dict.fromkeys(COVERED, 0)
    for replicate in range(replicates):
        if replicate % PER_WORLD == 0:
            world = draw_kind(name, rng)
            fresh = world.draw(N_FRESH, rng)
        rows, seed = world.draw(n, rng).rows, int(rng.integers(2**31))
        choices = [parse(name) for name in COVERED]
        results = measure_all(choices, Inputs(rows, world.decision, seed), CONFIDENCE)
        truth = truths(world, rows, seed, fresh)
        for choice in choices:
            low, high = results[choice].interval or (np.inf, -np.inf)
            held[choice.name] += low - 1e-9 <= truth[choice.name] <= high + 1e-9
    return {name: count / replicates for name, count in held.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print rows of the tables of simulation/RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actions", type=int, default=0)
    parser.add_argument("--coverage", type=int, default=0)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=20263)
    parser.add_argument("--kinds", default=";".join(RIGHT))
    given = parser.parse_args(arguments)
    for name in given.kinds.split(";"):
        rng = np.random.default_rng([given.seed, given.rows, list(RIGHT).index(name)])
        began = time.process_time()
        if given.actions:
            counts = actions(name, given.rows, given.actions, rng)
            others = ", ".join(f"{action} {count}" for action, count in counts.most_common() if action != RIGHT[name])
            print(f"| {name} | {given.rows:,} | {RIGHT[name]} | {counts[RIGHT[name]]} | {others} |", flush=True)
        if given.coverage:
            shares = coverage(name, given.rows, given.coverage, rng)
            print(
                f"| {name} | {given.rows:,} | " + " | ".join(f"{shares[each]:.2f}" for each in COVERED) + " |",
                flush=True,
            )
        print(f"{name}: {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
