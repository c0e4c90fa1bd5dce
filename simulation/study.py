"""The study behind simulation/RESULTS.md: coverage of intervals, and the action advised, in worlds of known truth.

`python -m simulation.study` runs it whole and writes its tables into simulation/RESULTS.md, between their markers.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decal_cli.analysis.evidence import EVIDENCE_KEYS, Evidence, Item
from decal_cli.analysis.flowchart import Advice, walk
from decal_cli.learn import held_out, probe
from decal_cli.metrics import Inputs, interval_of, measure, parse, value_of
from decal_cli.tables.features import Features
from decal_cli.tables.table import Floats, Table, tabulate
from decal_cli.tables.threads import one_thread
from decal_cli.task import BinaryTask
from simulation.kinds import RIGHT_ACTION, Draw, Kind, draw_kind
from simulation.worlds import World, coverage_worlds, cuts_of_folds

PAGE = Path(__file__).parent.parent / "simulation" / "RESULTS.md"
STREAMS = {"coverage": 1, "features": 22, "actions": 23, "small": 20, "without": 21}
"""Of the seed; 2 was spent on regret's interval, 3 to 9 on the estimators of gains before this one,
11 on worlds of which some had a score that no threshold makes better than a constant decision,
10, 12 to 14, 16 to 19 on the rules before this one, 15 on intervals of grouping that did not ask the probe."""
CONFIDENCE = 0.9
ACTED_ON = 0.95
COVERED = ("brier", "auc", "ece_debiased")
COVERED_WITH_TASK = ("expected_utility", "gain_recalibration")
GAINS = ("gain_recalibration", "gain_beyond", "gain_post_training")
WITH_FEATURES = (*GAINS, "grouping_loss", "regret_grouping", "regret")
TRUTH_ROWS = 20_000
KINDS = tuple(RIGHT_ACTION)
N_ADVISED = (1000, 4000)
"""Rows at which advice is counted."""
Streams = Callable[..., np.random.Generator]
"""Numbers, such as that of a row of a table, to the random stream of their own."""


def stream(seed: int, table: str, *numbers: int) -> np.random.Generator:
    """The random stream of a table, or of one of its rows, so that a row may be run by itself."""
    return np.random.default_rng([seed, STREAMS[table], *numbers])


class Outcome(NamedTuple):
    """One replicate: the value, its interval, and the truth it is for."""

    value: float
    low: float
    high: float
    truth: float


@dataclass(frozen=True)
class Coverage:
    """How often a metric's interval held the truth in a world."""

    world: str
    metric: str
    threshold: float | None
    outcomes: tuple[Outcome, ...]

    @property
    def share(self) -> float:
        """Share of the intervals that hold the truth."""
        return float(np.mean([o.low <= o.truth <= o.high for o in self._with_interval]))

    @property
    def _with_interval(self) -> list[Outcome]:
        return [o for o in self.outcomes if np.isfinite(o.low)]

    @property
    def error(self) -> float:
        """Standard deviation of value - truth."""
        return float(np.std([o.value - o.truth for o in self.outcomes]))

    @property
    def distance(self) -> float:
        """Mean truth, in standard errors from 0."""
        return float(np.mean([o.truth for o in self.outcomes])) / self.error

    def row(self) -> str:
        """A row of the table in docs."""
        at = "" if self.threshold is None else f"{self.threshold:g}"
        truth = float(np.mean([o.truth for o in self.outcomes]))
        shown = self._with_interval
        width = float(np.mean([o.high - o.low for o in shown])) / (2 * 1.645) if shown else None
        held = "no interval" if width is None else f"{self.share:.3f}"
        if 0 < len(shown) < len(self.outcomes):
            held += f" of {len(shown)}"
        cells = (self.world, self.metric, at, f"{truth:.5f}", f"{self.error:.5f}",
                 "" if width is None else f"{width:.5f}", f"{self.distance:.1f}", held)  # fmt: skip
        return "| " + " | ".join(cells) + " |"


def _judged(metric: str, table: Table, task: BinaryTask | None, seed: int) -> tuple[float, float, float]:
    result = measure(parse(metric), Inputs.of(table, task, seed=seed), CONFIDENCE)
    if result.value is None or result.interval is None:
        raise ValueError(f"{metric} has no interval of its own")
    return result.value, *result.interval


def _truth(metric: str, world: World, table: Table, task: BinaryTask | None, seed: int) -> float:
    """What the metric's interval is for."""
    if metric in ("brier", "auc"):
        return float(getattr(world, metric))
    if task is None:
        edges = table.bin_edges()
        return world.binned_error(edges)
    if metric == "expected_utility":
        return world.expected_utility(task.utility, task.decision_threshold)
    learned = _learned_thresholds(table, task, seed)
    return task.u_delta * float(world.gain(learned, task.threshold, task.decision_threshold).mean())


def _learned_thresholds(table: Table, task: BinaryTask, seed: int) -> Floats:
    """The score from which each fold of gain_recalibration decides 1, shape (folds,)."""
    held = held_out.of_table(table, seed)
    return cuts_of_folds(held.levels, held.of_levels, task.threshold)


def covered(world: World, n: int, replicates: int, rng: np.random.Generator) -> list[Coverage]:
    """Coverage of every metric of the study in a world."""
    tasks: list[tuple[str, BinaryTask | None]] = [(metric, None) for metric in COVERED]
    for threshold in world.thresholds:
        tasks += [(metric, BinaryTask.of_threshold(threshold)) for metric in COVERED_WITH_TASK]
    outcomes: list[list[Outcome]] = [[] for _ in tasks]
    for _ in range(replicates):
        table, seed = tabulate(*world.draw(n, rng)), int(rng.integers(2**31))
        for (metric, task), found in zip(tasks, outcomes, strict=True):
            found.append(Outcome(*_judged(metric, table, task, seed), _truth(metric, world, table, task, seed)))
    return [
        Coverage(world.name, metric, task.threshold if task else None, tuple(found))
        for (metric, task), found in zip(tasks, outcomes, strict=True)
    ]


def feature_coverage(kind: str, n: int, replicates: int, rng: np.random.Generator) -> list[Coverage]:
    """Coverage of what rests on features in worlds of a kind; utilities per unit of u_delta."""
    found: dict[str, list[Outcome]] = {metric: [] for metric in WITH_FEATURES}
    for _ in range(replicates):
        world = draw_kind(kind, rng)
        rows, fresh, seed = world.draw(n, rng), world.draw(TRUTH_ROWS, rng), int(rng.integers(2**31))
        inputs = Inputs(rows.rows, world.task, seed)
        for metric, truth in (_gains(world, rows, fresh, seed) | _regrets(world, fresh)).items():
            spec, unit = parse(metric), 1.0 if metric == "grouping_loss" else world.task.u_delta
            low, high = interval_of(spec, inputs, CONFIDENCE) or (np.nan, np.nan)
            found[metric].append(Outcome(value_of(spec, inputs) / unit, low / unit, high / unit, truth))
    return [Coverage(kind, metric, None, tuple(outcomes)) for metric, outcomes in found.items()]


def _gains(world: Kind, rows: Draw, fresh: Draw, seed: int) -> dict[str, float]:
    """Population gains of what the folds learned, from the exact q of fresh rows, per unit of u_delta."""
    t = world.task.threshold
    worth = (fresh.q - t) / len(fresh.q)
    learned = _learned_thresholds(rows.rows.table, world.task, seed)
    recalibrated = np.mean([worth[fresh.score >= cut].sum() for cut in learned])
    recalibration = float(recalibrated - worth[fresh.score >= world.task.decision_threshold].sum())
    with one_thread():
        ordered = probe.with_mean_weight_one(rows.rows)
        rules = probe.fold_rules(ordered, seed)
        probed = [rule(fresh.score, Features.of_numbers(fresh.features))[1] for rule in rules]
        levels, _, of_levels, _ = held_out.recalibrated_levels(ordered, probe.Split(ordered, seed).fold)
    before = [worth[fresh.score >= cut].sum() for cut in cuts_of_folds(levels, of_levels, t)]
    beyond = float(np.mean([worth[each >= t].sum() for each in probed]) - np.mean(before))
    return dict(zip(GAINS, (recalibration, beyond, recalibration + beyond), strict=True))


def _regrets(world: Kind, fresh: Draw) -> dict[str, float]:
    """Population grouping loss and regrets, from the exact c and q of fresh rows, per unit of u_delta."""
    t = world.task.threshold
    best, recalibrated, now = ((p >= t).astype(float) for p in (fresh.q, fresh.c, fresh.score))
    return {
        "grouping_loss": float(np.mean((fresh.q - fresh.c) ** 2)),
        "regret_grouping": float(np.mean((fresh.q - t) * (best - recalibrated))),
        "regret": float(np.mean((fresh.q - t) * (best - recalibrated) + (fresh.c - t) * (recalibrated - now))),
    }


def advised(rows: Draw, task: BinaryTask, seed: int, features: bool = True) -> Advice:
    """The advice on these rows, as `decal recommend` gives it at its defaults."""
    inputs = Inputs(rows.rows if features else replace(rows.rows, features=None), task, seed)
    items = {key: _item(key, inputs) for key in EVIDENCE_KEYS}
    return walk(Evidence(items, len(rows.score), features, acts_from=task.decision_threshold))


def _item(key: str, inputs: Inputs) -> Item:
    result = measure(parse(key), inputs, ACTED_ON)
    return Item(key, result.value, result.interval, result.reason)


def actions(
    kind: str, n: int, replicates: int, rng: np.random.Generator, features: bool = True, small: bool = False
) -> Counter[str]:
    """How often each action was advised in worlds of a kind; small: where regrets are close to the tolerance."""
    found: Counter[str] = Counter()
    for _ in range(replicates):
        world = draw_kind(kind, rng, small)
        found[advised(world.draw(n, rng), world.task, int(rng.integers(2**31)), features).action] += 1
    return found


def coverage_table(found: Iterable[Coverage]) -> Iterator[str]:
    """Markdown, a row for each."""
    yield "| world | metric | t* | mean truth | sd of error | mean standard error | truth / sd | covered |"
    yield "|---|---|---|---|---|---|---|---|"
    for coverage in found:
        yield coverage.row()


def action_table(rows: Iterable[tuple[str, int, Counter[str]]]) -> Iterator[str]:
    """Markdown, a row for each kind and number of rows."""
    yield "| kind | n | right action | right | advised |"
    yield "|---|---|---|---|---|"
    for kind, n, found in rows:
        right = RIGHT_ACTION[kind]
        yield f"| {kind} | {n} | {right} | {found[right]} of {found.total()} | {_listed(found)} |"


def small_table(rows: Iterable[tuple[str, int, Counter[str]]]) -> Iterator[str]:
    """Markdown, a row for each kind and number of rows; "cannot-tell" is not wrong."""
    yield "| kind | n | right action | not wrong | advised |"
    yield "|---|---|---|---|---|"
    for kind, n, found in rows:
        right = RIGHT_ACTION[kind]
        not_wrong = found[right] + found["cannot-tell"]
        yield f"| {kind} | {n} | {right} | {not_wrong} of {found.total()} | {_listed(found)} |"


def _listed(found: Counter[str]) -> str:
    return ", ".join(f"{action} {count}" for action, count in found.most_common())


def main() -> None:
    """Run the study and write its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20261)
    parser.add_argument("--replicates", type=int, default=400, help="of each world, for coverage")
    parser.add_argument("--actions", type=int, default=100, help="worlds of each kind")
    parser.add_argument("--parts", default=",".join(STREAMS), help="which tables")
    parser.add_argument("--output", type=Path, help="the page to write them into; standard output if '-'", default=PAGE)
    given = parser.parse_args()
    tables: dict[str, Callable[[Streams], Iterator[str]]] = {
        "coverage": lambda rng: coverage_table(
            one for own in [rng()] for world in coverage_worlds() for one in covered(world, 2000, given.replicates, own)
        ),
        "features": lambda rng: coverage_table(
            one for kind in KINDS for one in feature_coverage(kind, 2000, given.actions, rng(KINDS.index(kind)))
        ),
        "actions": lambda rng: action_table(
            (kind, n, actions(kind, n, given.actions, rng(n, KINDS.index(kind)))) for n in N_ADVISED for kind in KINDS
        ),
        "small": lambda rng: small_table(
            (kind, 4000, actions(kind, 4000, given.actions, rng(4000, KINDS.index(kind)), small=True))
            for kind in KINDS
            if RIGHT_ACTION[kind] != "done"
        ),
        "without": lambda rng: action_table(
            (kind, 4000, actions(kind, 4000, given.actions, rng(KINDS.index(kind)), features=False)) for kind in KINDS
        ),
    }
    for name, table in tables.items():
        if name in given.parts.split(","):
            began = time.perf_counter()
            lines = list(table(partial(stream, given.seed, name)))
            print(f"{name}: seed {given.seed}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
            if str(given.output) == "-":
                print("\n".join(lines), end="\n\n", flush=True)
            else:
                write(given.output, name, lines)


def write(page: Path, name: str, lines: Iterable[str], script: str = "study") -> None:
    """Put a table between its markers in a page."""
    begin, end = f"<!-- {name}: written by simulation/{script}.py -->\n", f"<!-- end of {name} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    if not found:
        raise ValueError(f"{page} has no marker for {name}")
    after = rest[rest.index(end) :]
    page.write_text(before + begin + "\n" + "\n".join(lines) + "\n\n" + after, encoding="utf-8")


if __name__ == "__main__":
    main()
