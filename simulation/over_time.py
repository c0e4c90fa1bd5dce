"""The guarantees over time, tried: V-regret of base-rate forecasters, false alarms and power, confidence sequences.

`python -m simulation.over_time` runs it whole and writes its tables into docs/simulation.md, between their markers.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.sequential.base_rate import CountForecaster, ForecastFTPL, ForecastHedge, RunningMean
from decal_cli.sequential.calibration_alarm import first_alarm, log_e_process
from decal_cli.sequential.clock import known_after_rows
from decal_cli.sequential.decision_loss import CdlForecaster
from decal_cli.sequential.difference import difference_sequence, utility_difference
from decal_cli.sequential.randomness import logistic, uniform
from decal_cli.sequential.worst_regret import worst_v_regret
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask
from simulation.study import PAGE, write

N_SEEDS, N_CALIBRATED, N_SHIFTED, N_SEQUENCES = 200, 2000, 1000, 1000
"""Of each row of a table; `--share` takes a part of them."""
N_ROWS = (1_000, 10_000, 100_000)
SHIFT = 0.5
Labels = np.ndarray
Rng = np.random.Generator


def _random(rows: int, rng: Rng) -> Labels:
    return rng.random(rows) < 0.5


def _drifting(rows: int, rng: Rng) -> Labels:
    return rng.random(rows) < 0.5 + 0.4 * np.sin(2 * np.pi * np.arange(rows) / rows)


def _alternating(rows: int, rng: Rng) -> Labels:
    return np.arange(rows) % 2 == 1


def _blocks(rows: int, rng: Rng) -> Labels:
    """0 and 1 in turn, each block as long as all before it."""
    return np.floor(np.log2(np.arange(rows) + 1.0)) % 2 == 1


SEQUENCES: dict[str, Callable[[int, Rng], Labels]] = {
    "random": _random,
    "drifting": _drifting,
    "alternating": _alternating,
    "blocks": _blocks,
}
SHAPES: dict[str, Callable[[Rng, int], Floats]] = {
    "uniform": lambda rng, rows: rng.random(rows),
    "beta(2,5)": lambda rng, rows: rng.beta(2, 5, rows),
    "logit-normal(-1,1.2)": lambda rng, rows: expit(rng.normal(-1, 1.2, rows)),
    ".5 +- .05": lambda rng, rows: 0.45 + 0.1 * rng.random(rows),
    "beta(1,9)": lambda rng, rows: rng.beta(1, 9, rows),
    "19 values": lambda rng, rows: rng.integers(1, 20, rows) / 20,
}


def regret_table(seed: int, share: float) -> Iterator[str]:
    """V-regret in units of sqrt(T): ForecastHedge with and without the horizon, and the running mean."""
    seeds = round(N_SEEDS * share)
    yield "| sequence | T | seeds | Hedge, T known | 99th perc. | T unknown | FTPL, T known | running mean |"
    yield "|---|---|---|---|---|---|---|---|"
    for kind, (name, draw) in enumerate(SEQUENCES.items()):
        for rows in N_ROWS:
            known, score = known_after_rows(rows, 0), np.zeros(rows)
            worst: dict[str, list[float]] = {"known": [], "unknown": [], "ftpl": [], "mean": []}
            for number in range(seeds):
                label = draw(rows, np.random.default_rng([seed, kind, rows, number])).astype(np.uint8)
                forecasters: dict[str, CountForecaster] = {
                    "known": ForecastHedge(number, rows),
                    "unknown": ForecastHedge(number),
                    "ftpl": ForecastFTPL(number, rows),
                    "mean": RunningMean(),
                }
                for key, forecaster in forecasters.items():
                    worst[key].append(worst_v_regret(forecaster.replay(score, label, known), label).regret)
            yield _regret_row(name, rows, worst)
    for rows in N_ROWS:
        yield _regret_row("adaptive", rows, _against_an_adversary(rows, seeds))


def _regret_row(name: str, rows: int, worst: dict[str, list[float]]) -> str:
    unit = math.sqrt(rows)
    values = (
        np.mean(worst["known"]),
        np.quantile(worst["known"], 0.99),
        np.mean(worst["unknown"]),
        np.mean(worst["ftpl"]),
        np.mean(worst["mean"]),
    )
    return (
        f"| {name} | {rows:,} | {len(worst['known'])} | " + " | ".join(f"{value / unit:.3f}" for value in values) + " |"
    )


def _against_an_adversary(rows: int, seeds: int) -> dict[str, list[float]]:
    """V-regret where each label is chosen by one who knows the algorithm and the past, but not the next coin.

    It looks for the kink at which the forecaster has lost most, and sets the label that makes it lose more there.
    """
    worst = {}
    for key in ("known", "unknown", "ftpl", "mean"):
        prediction, label = np.empty((rows, seeds)), np.zeros((rows, seeds), dtype=np.uint8)
        positives, kink, looked = np.zeros(seeds), np.full(seeds, 0.5), 100
        most = math.ceil(math.sqrt(rows))
        for row in range(rows):
            horizon = row + 1 if key == "unknown" else rows
            eta = math.sqrt(8 * math.log(2) / horizon)
            lead = positives - row * kink
            if key == "ftpl":
                one, zero = (1 + np.floor(most * uniform(2 * row + side, np.arange(seeds))) for side in (0, 1))
                prediction[row] = (positives + one) / (row + one + zero)
                # The adversary takes the numbers that it does not know as their mean.
                acts = 1.0 * (lead + (most + 1) / 2 * (1 - 2 * kink) > 0)
            elif key == "mean":
                prediction[row] = positives / row if row else 0.5
                acts = 1.0 * (lead > 0)
            else:
                prediction[row] = _hedged(positives, row, logistic(row, np.arange(seeds)) / eta)
                acts = expit(eta * lead)
            label[row] = acts < kink
            positives += label[row]
            if row == looked:
                looked = int(1.3 * looked)
                so_far = [worst_v_regret(prediction[: row + 1, k], label[: row + 1, k]).kink for k in range(seeds)]
                kink = np.clip(so_far, 0.01, 0.99)
        worst[key] = [worst_v_regret(prediction[:, k], label[:, k]).regret for k in range(seeds)]
    return worst


def _hedged(positives: Floats, row: int, noise: Floats) -> Floats:
    return np.clip((positives + noise) / row, 0, 1) if row else np.asarray(noise > 0, dtype=np.float64)


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
            highest.append(float(log_e_process(score, (rng.random(2000) < score).astype(np.uint8)).max()))
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
                log_e = log_e_process(score, label)
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
        task, covered, widths, share = BinaryTask.of_threshold(threshold), 0, [], []
        for stream in range(streams):
            rng = np.random.default_rng([seed, 3, number, stream])
            truth = rng.beta(2, 5, rows)
            score = expit(log_odds(truth) + shift * np.sin(np.arange(rows) / 1000) ** 2)
            label = (rng.random(rows) < truth).astype(np.uint8)
            first, second = score >= threshold, truth >= threshold
            ends = difference_sequence(first, second, label, task, 0.05)
            running = np.cumsum((second.astype(float) - first) * (truth - threshold)) / np.arange(1, rows + 1)
            covered += bool(((ends.low <= running + 1e-12) & (ends.high >= running - 1e-12)).all())
            fixed = 2 * 1.96 * np.std(utility_difference(first, second, label, task)) / math.sqrt(rows)
            widths.append((ends.high[-1] - ends.low[-1]) / fixed)
            share.append(np.mean(first != second))
        cells = (
            "beta(2,5)",
            f"{threshold:g}",
            f"0 to {shift:g}",
            f"{np.mean(share):.3f}",
            f"{streams:,}",
            f"{covered / streams:.3f}",
            f"{np.mean(widths):.2f}",
        )
        yield f"| {' | '.join(cells)} |"


def cdl_table(seed: int, share: float) -> Iterator[str]:
    """Calibration decision loss of the CDL algorithm, in units of log T / sqrt(T): mean and largest over seeds."""
    seeds = round(N_SEEDS * share)
    yield "| sequence | T | seeds | mean | largest |"
    yield "|---|---|---|---|---|"
    cdl = parse("cdl(levels=exact)")
    for kind, (name, draw) in enumerate(SEQUENCES.items()):
        for rows in N_ROWS[:2]:
            known, loss = known_after_rows(rows, 0), []
            for number in range(seeds):
                label = draw(rows, np.random.default_rng([seed, 4, kind, rows, number])).astype(np.uint8)
                prediction = CdlForecaster(number, rows).replay(np.zeros(rows), label, known)
                loss.append(value_of(cdl, Inputs(Rows(prediction, label))) * math.sqrt(rows) / math.log(rows))
            yield f"| {name} | {rows:,} | {seeds} | {np.mean(loss):.2f} | {max(loss):.2f} |"


TABLES: dict[str, Callable[[int, float], Iterator[str]]] = {
    "alarms": alarm_table,
    "power": power_table,
    "sequences": sequence_table,
    "regret": regret_table,
    "cdl": cdl_table,
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
