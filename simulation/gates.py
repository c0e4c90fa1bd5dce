"""What gates asked at every commit and planned numbers of rows promise, beside what happens.

`python -m simulation.gates looks` prints false failures and rows to show, of a rule asked after each of 20 growing
batches, at any look (`--anytime`) beside an interval of 95 % at each. `python -m simulation.gates plan` prints how
often the rows that `decal plan` names show what they were named for, `python -m simulation.gates pilots` how often the
range of rows that a pilot leaves likely holds them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.plan import POWERS, RowsNeeded, Sampler, made_up_pilot, plan_rows
from decal_cli.analysis.rules import OPERATORS, Rule, parse_rule
from decal_cli.data import from_arrays
from decal_cli.metrics import Inputs, measure_all
from decal_cli.sequential.betting import Bounded, look
from decal_cli.tables.rows import Rows
from decal_cli.tables.units import quantile
from decal_cli.task import BinaryTask
from simulation.worlds import Floats

SEED, CONFIDENCE = 20411, 0.95
STREAMS, LOOKS, BATCH = 400, 20, 1_000
SAMPLES = 500
MARGIN = 0.01
"""The drop of expected utility that the rule allows."""


class World(NamedTuple):
    """name; drop: of the mean from the old model to the new one; share: of rows on which they decide otherwise."""

    name: str
    drop: float
    share: float = 0.2


WORLDS = (
    World("drop as large as allowed", MARGIN),
    World("drop as large as allowed, few rows differ", MARGIN, 0.04),
    World("no drop", 0.0),
    World("better by the margin", -MARGIN),
    World("drop three times as large as allowed", 3 * MARGIN),
)


def drops(world: World, rng: np.random.Generator) -> Floats:
    """Old utility less new of each row, in [-.7, .7]: a miss costs .7, a false alarm .3, and some rows move."""
    n = LOOKS * BATCH
    # A row that moves wins or loses .5 in the middle of these two costs: its chance to lose gives the mean.
    loses = 0.5 * (1 + world.drop / (0.5 * world.share))
    moved, size = rng.random(n) < world.share, np.where(rng.random(n) < 0.5, 0.7, 0.3)
    return np.where(moved, np.where(rng.random(n) < loses, size, -size), 0.0)


def fixed(values: Floats, above: bool) -> int | None:
    """The first look at which one-sided interval of 95 % lies beyond the margin."""
    ends = BATCH * np.arange(1, LOOKS + 1)
    mean = np.cumsum(values)[ends - 1] / ends
    error = np.sqrt((np.cumsum(values**2)[ends - 1] / ends - mean**2) / ends)
    z = quantile(2 * CONFIDENCE - 1)
    beyond = mean - z * error > MARGIN if above else mean + z * error < MARGIN
    return int(np.flatnonzero(beyond)[0]) if beyond.any() else None


def anytime(values: Floats, above: bool) -> int | None:
    """The look from which on the bets show it."""
    since = look(Bounded(values, -0.7, 0.7), MARGIN, above, CONFIDENCE).since
    return None if since is None else (since - 1) // BATCH


def looks() -> Iterator[str]:
    """Markdown."""
    yield "| the new model | fails, fixed | fails, anytime | shown to pass, fixed | shown to pass, anytime |"
    yield "|---|---|---|---|---|"
    for number, world in enumerate(WORLDS):
        streams = [drops(world, np.random.default_rng([SEED, number, k])) for k in range(STREAMS)]
        cells = []
        for above in (True, False):
            for way in (fixed, anytime):
                found = [at for each in streams if (at := way(each, above)) is not None]
                rows = f", {(int(np.median(found)) + 1) * BATCH:,} rows" if len(found) * 2 > STREAMS else ""
                cells.append(f"{len(found) / STREAMS:.3f}{rows}")
        yield f"| {world.name} | " + " | ".join(cells) + " |"


SETTINGS = (
    (0.8, 0.3, 0.3, "brier<=0.19"),
    (0.75, 0.1, 0.1, "expected_utility>=-.075"),
    (0.8, 0.2, 0.3, "accuracy>=0.8"),
    (0.85, 0.05, 0.1, "expected_utility>=-.035"),
    (0.7, 0.4, 0.5, "auc>=0.67"),
    (0.9, 0.02, 0.05, "auc>=0.87"),
    (0.8, 0.3, 0.3, "sensitivity>=0.6"),
    (0.8, 0.1, 0.2, "ppv>=0.25"),
    (0.75, 0.2, 0.2, "net_benefit>=0.05"),
    (0.8, 0.3, 0.4, "log_loss<=0.55"),
    (0.8, 0.05, 0.1, "gain_recalibration<=0.01"),
    (0.75, 0.3, 0.3, "gain_recalibration<=0.01"),
)
"""AUC and share of label 1 of a calibrated score, threshold, and what is to show."""


def share_shown(
    rule: Rule, planned: RowsNeeded, rows: int, pilot: tuple[Floats, Floats], task: BinaryTask, samples: int,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """In what share of samples of so many rows of a pilot the interval shows what was planned."""
    assert rule.choice is not None
    (score, label), shown = pilot, 0
    for _ in range(samples):
        at = rng.integers(len(score), size=rows)
        inputs = Inputs(Rows(score[at], label[at]), task)
        interval = measure_all([rule.choice], inputs, CONFIDENCE)[rule.choice].interval
        # A sample without an interval shows nothing.
        if interval is not None:
            worst = interval[1 if rule.at_most == planned.holds else 0]
            shown += OPERATORS[rule.operator](worst, rule.number) == planned.holds
    return shown / samples


def plans() -> Iterator[str]:
    """Markdown."""
    yield "| AUC | label 1 | t* | rule | rows for 80 % | shown | rows for 90 % | shown |"
    yield "|---|---|---|---|---|---|---|---|"
    for number, (auc, prevalence, threshold, text) in enumerate(SETTINGS):
        score, label = made_up_pilot(auc, prevalence)
        task, rule = BinaryTask.of_threshold(threshold), parse_rule(text)
        (first, *_) = plan_rows(from_arrays({"p": score}, label), Plan((), task), [rule], None, "made up").planned
        rng, cells = np.random.default_rng([SEED, 100 + number]), []
        for _, rows in zip(POWERS, first.rows, strict=True):
            assert rows is not None
            share = share_shown(rule, first, rows, (score, label), task, SAMPLES, rng)
            cells.append(f"{rows:,} | {share:.2f}")
        yield f"| {auc} | {prevalence} | {threshold} | `{text}` | " + " | ".join(cells) + " |"


PILOTS, PILOT_SAMPLES = (10, 30, 100, 300, 1000), 300


def pilots() -> Iterator[str]:
    """Markdown: how often the likely rows of a pilot hold those that the whole population names."""
    yield "| AUC | label 1 | rule | rows | " + " | ".join(f"{rows:,}" for rows in PILOTS) + " |"
    yield "|---|---|---|---|" + "---|" * len(PILOTS)
    for number, (auc, prevalence, threshold, text) in enumerate(SETTINGS):
        (score, label), rule = made_up_pilot(auc, prevalence), parse_rule(text)
        plan = Plan((), BinaryTask.of_threshold(threshold))
        rng, cells, choice = np.random.default_rng([SEED, 200 + number]), [], rule.choice
        assert choice is not None
        if not choice.declared.size_free:
            continue

        def planned(rows: Rows, plan: Plan = plan, rule: Rule = rule) -> RowsNeeded | None:
            assert rule.choice is not None
            result = measure_all([rule.choice], plan.inputs(rows), CONFIDENCE)[rule.choice]
            if result.interval is None:
                return None
            sampler = Sampler(rows, plan, math.inf, lambda text: None, made_up=False)
            return sampler.for_bound("", rule.choice, result, rule.number, rule.at_most)

        whole = planned(Rows(score, label))
        assert whole is not None and whole.rows[0] is not None
        for rows in PILOTS:
            held = 0
            for _ in range(PILOT_SAMPLES):
                at = rng.integers(len(score), size=rows)
                found = planned(Rows(score[at], label[at]))
                if found is not None:
                    least, most = found.likely
                    held += least is not None and least <= whole.rows[0] <= (most or math.inf)
            cells.append(f"{held / PILOT_SAMPLES:.2f}")
        yield f"| {auc} | {prevalence} | `{text}` | {whole.rows[0]:,} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("looks", "plan", "pilots"))
    for line in {"looks": looks, "plan": plans, "pilots": pilots}[parser.parse_args().what]():
        print(line, flush=True)


if __name__ == "__main__":
    main()
