"""The guarantees over time, tried: V-regret of base-rate forecasters, false alarms and power, confidence sequences.

`python -m simulation.over_time` runs it whole and writes its tables into simulation/RESULTS.md, between their markers.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from decal_cli.sequential.anytime import CalibrationAlarm, RunningDifference, first_alarm, utility_difference
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask
from simulation.base_rate_regret import classes_table, growth_table, regret_table
from simulation.cluster_streams import cluster_alarm_table, cluster_sequence_table
from simulation.drifts import drift_table
from simulation.late_labels import alike_table, late_alarm_table
from simulation.online_calibration import cdl_table, delay_table, distance_table
from simulation.study import PAGE, write

N_CALIBRATED, N_SHIFTED, N_SEQUENCES = 2000, 1000, 1000
"""Streams of each row of a table; `--share` takes a part of them."""
SHIFT = 0.5
SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "uniform": lambda rng, rows: rng.random(rows),
    "beta(2,5)": lambda rng, rows: rng.beta(2, 5, rows),
    "logit-normal(-1,1.2)": lambda rng, rows: expit(rng.normal(-1, 1.2, rows)),
    ".5 +- .05": lambda rng, rows: 0.45 + 0.1 * rng.random(rows),
    "beta(1,9)": lambda rng, rows: rng.beta(1, 9, rows),
    "19 values": lambda rng, rows: rng.integers(1, 20, rows) / 20,
}


def alarm_table(seed: int, share: float) -> Iterator[str]:
    """False alarms of calibrated streams of 2,000 rows, with 99 % upper confidence limits, at two levels."""
    streams = round(N_CALIBRATED * share)
    yield "| scores | streams | false alarms at .05 | upper limit | at .01 | upper limit |"
    yield "|---|---|---|---|---|---|"
    for number, (name, draw) in enumerate(SHAPES.items()):
        highest = []
        for stream in range(streams):
            rng = np.random.default_rng([seed, 1, number, stream])
            score = draw(rng, 2000)
            highest.append(float(CalibrationAlarm().advance(score, (rng.random(2000) < score).astype(np.uint8)).max()))
        cells = []
        for alpha in (0.05, 0.01):
            alarms = int(np.sum(np.array(highest) >= -math.log(alpha)))
            cells.append(f"{alarms / streams:.4f} | {_upper(alarms, streams):.4f}")
        yield f"| {name} | {streams:,} | {' | '.join(cells)} |"


def _upper(count: int, trials: int) -> float:
    from scipy.stats import beta

    return float(beta.ppf(0.99, count + 1, trials - count))


def power_table(seed: int, share: float) -> Iterator[str]:
    """How often a shift of the log-odds by .5 is found in time at .05; beside it the likelihood ratio that knows it."""
    streams = round(N_SHIFTED * share)
    yield "| scores | streams | shifted from row | rows to find it | found | likelihood ratio that knows the shift |"
    yield "|---|---|---|---|---|---|"
    for number, (name, draw) in enumerate(SHAPES.items()):
        for start in (0, 1000):
            within = (600, 900) if name != "beta(1,9)" else (1000, 1300)
            rows = within[start > 0]
            hits, best = 0, 0
            for stream in range(streams):
                rng = np.random.default_rng([seed, 2, number, start, stream])
                score = np.clip(draw(rng, start + rows), 1e-9, 1 - 1e-9)
                shifted = expit(log_odds(score) + SHIFT)
                chance = np.where(np.arange(start + rows) < start, score, shifted)
                label = (rng.random(start + rows) < chance).astype(np.uint8)
                log_e = CalibrationAlarm().advance(score, label)
                # Streams with a false alarm before the shift do not count as found.
                alarm = first_alarm(log_e, 0.05)
                hits += alarm is not None and alarm >= start
                ratio = np.where(label == 1, np.log(shifted / score), np.log((1 - shifted) / (1 - score)))[start:]
                best += bool(np.cumsum(ratio).max() >= math.log(20))
            yield f"| {name} | {streams:,} | {start + 1:,} | {rows:,} | {hits / streams:.3f} | {best / streams:.3f} |"


def sequence_table(seed: int, share: float) -> Iterator[str]:
    """Coverage at all times at once, and the final width beside that of the interval for one fixed time."""
    streams = round(N_SEQUENCES * share)
    yield "| scores | t* | off by, in log-odds | decided differently | streams | covered | width / fixed-time width |"
    yield "|---|---|---|---|---|---|---|"
    rows = 8000
    for number, (threshold, shift) in enumerate(((0.3, -0.4), (0.5, 0.15), (0.1, 0.8), (0.3, 0.1))):
        task, covered, widths, differing = BinaryTask.of_threshold(threshold), 0, [], []
        for stream in range(streams):
            rng = np.random.default_rng([seed, 3, number, stream])
            truth = rng.beta(2, 5, rows)
            score = expit(log_odds(truth) + shift * np.sin(np.arange(rows) / 1000) ** 2)
            label = (rng.random(rows) < truth).astype(np.uint8)
            first, second = score >= threshold, truth >= threshold
            ends = RunningDifference(task).advance(first, second, label).sequence(0.05)
            running = np.cumsum((second.astype(float) - first) * (truth - threshold)) / np.arange(1, rows + 1)
            covered += bool(((ends.low <= running + 1e-12) & (ends.high >= running - 1e-12)).all())
            fixed = 2 * 1.96 * np.std(utility_difference(first, second, label, task)) / math.sqrt(rows)
            widths.append((ends.high[-1] - ends.low[-1]) / fixed)
            differing.append(np.mean(first != second))
        cells = (
            "beta(2,5)",
            f"{threshold:g}",
            f"0 to {shift:g}",
            f"{np.mean(differing):.3f}",
            f"{streams:,}",
            f"{covered / streams:.3f}",
            f"{np.mean(widths):.2f}",
        )
        yield f"| {' | '.join(cells)} |"


TABLES: dict[str, Callable[[int, float], Iterator[str]]] = {
    "alarms": alarm_table,
    "power": power_table,
    "drifts": drift_table,
    "sequences": sequence_table,
    "cluster_alarms": cluster_alarm_table,
    "cluster_sequences": cluster_sequence_table,
    "late_alarms": late_alarm_table,
    "alike": alike_table,
    "regret": regret_table,
    "growth": growth_table,
    "classes": classes_table,
    "cdl": cdl_table,
    "distance": distance_table,
    "delays": delay_table,
}


def main() -> None:
    """Run it and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20261)
    parser.add_argument("--share", type=float, default=1.0, help="of the streams and seeds")
    parser.add_argument("--parts", default=",".join(TABLES), help="which tables")
    parser.add_argument("--output", type=Path, help="the page to write them into; standard output if '-'", default=PAGE)
    given = parser.parse_args()
    for name in given.parts.split(","):
        lines = list(TABLES[name](given.seed, given.share))
        if str(given.output) == "-":
            print("\n".join(lines), end="\n\n", flush=True)
        else:
            write(given.output, name, lines, "over_time")


if __name__ == "__main__":
    main()
