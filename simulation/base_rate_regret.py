"""V-regret of forecasters of the base rate, for two classes, and their regret for five."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from decal_cli.analysis.online.judged import worst_v_regret
from decal_cli.analysis.online.plan import known_after_rows
from decal_cli.sequential.forecasters import CountForecaster, ForecastFTPL, ForecastHedge, RunningMean, perturbed_shares
from decal_cli.tables.table import Floats, tabulate
from simulation.sequences import SEQUENCES, against_an_adversary

N_SEEDS, N_SEEDS_LONG = 200, 10
"""Up to LONG rows, and beyond, where the adversary, who goes row by row, is not tried."""
LONG = 100_000
N_ROWS = (1_000, 10_000, 100_000, 1_000_000)
KINKS = np.sort(np.concatenate((np.arange(1, 100) / 100, np.arange(1, 100) / 100 - 1e-9)))
"""Thresholds, and what lies just below them."""
FORECASTERS: dict[str, Callable[[int, int], CountForecaster]] = {
    "hedge": lambda seed, rows: ForecastHedge(seed, rows),
    "hedge-unknown": lambda seed, rows: ForecastHedge(seed),
    "ftpl": lambda seed, rows: ForecastFTPL(seed, rows),
    "ftpl-unknown": lambda seed, rows: ForecastFTPL(seed),
    "mean": lambda seed, rows: RunningMean(),
}
KINDS = (*SEQUENCES, "adaptive")


class Regrets:
    """Of one forecaster on one sequence: the worst of each run, and the mean of the runs at each of KINKS."""

    def __init__(self) -> None:
        self.worst: list[float] = []
        self.at_kinks = np.zeros(len(KINKS))

    def add(self, prediction: Floats, label: np.ndarray) -> None:
        """One run."""
        self.worst.append(worst_v_regret(tabulate(prediction, label, None)).regret)
        self.at_kinks += _at_kinks(prediction, label)

    @property
    def expected(self) -> float:
        """The mean regret at the kink of KINKS where it is largest."""
        return float(self.at_kinks.max()) / len(self.worst)


def _at_kinks(prediction: Floats, label: np.ndarray) -> Floats:
    """What the better constant wins over acting where prediction > kink, shape (198,)."""
    # A prediction at a kink does not exceed it.
    place = np.searchsorted(KINKS, prediction, side="left")
    rows, positives = (np.bincount(place, weight, len(KINKS) + 1) for weight in (None, label))
    acted = np.cumsum(positives[::-1])[::-1][1:] - KINKS * np.cumsum(rows[::-1])[::-1][1:]
    return np.maximum(positives.sum() - KINKS * len(label), 0) - acted


@cache
def regrets(seed: int, share: float, kind: str, rows: int) -> dict[str, Regrets]:
    """Of each forecaster on one kind of sequence."""
    seeds = seeds_of(rows, share)
    results = {key: Regrets() for key in FORECASTERS}
    if kind == "adaptive":
        for key, result in results.items():
            run = against_an_adversary(key, rows, seeds)
            for k in range(seeds):
                result.add(run.prediction[:, k], run.label[:, k])
        return results
    known, score = known_after_rows(rows, 0), np.zeros(rows)
    for number in range(seeds):
        rng = np.random.default_rng([seed, list(SEQUENCES).index(kind), rows, number])
        label = SEQUENCES[kind](rows, 2, rng).astype(np.uint8)
        for key, result in results.items():
            result.add(FORECASTERS[key](number, rows).replay(score, label, known), label)
    return results


def rows_of(kind: str) -> tuple[int, ...]:
    """The T that a kind is tried at."""
    return tuple(rows for rows in N_ROWS if kind != "adaptive" or rows <= LONG)


def seeds_of(rows: int, share: float) -> int:
    """How many runs."""
    return max(2, round((N_SEEDS if rows <= LONG else N_SEEDS_LONG) * share))


def regret_table(seed: int, share: float) -> Iterator[str]:
    """V-regret in units of sqrt(T)."""
    yield "| sequence | T | seeds | Hedge, T known | 99th perc. | T unknown | FTPL, T known | T unknown | mean so far |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for kind in KINDS:
        for rows in rows_of(kind):
            result = regrets(seed, share, kind, rows)
            values = [float(np.mean(each.worst)) for each in result.values()]
            values.insert(1, float(np.quantile(result["hedge"].worst, 0.99)))
            cells = [f"{value / math.sqrt(rows):.3f}" for value in values]
            yield f"| {kind} | {rows:,} | {seeds_of(rows, share)} | {' | '.join(cells)} |"


def growth_table(seed: int, share: float) -> Iterator[str]:
    """How the worst regret grows with T, and the expectation at the worst fixed threshold beside its bound."""
    yield "| sequence | forecaster | T | expectation / sqrt(T) | its bound | worst ratio to it | grows as T to the |"
    yield "|---|---|---|---|---|---|---|"
    names = {
        "hedge": "Hedge, T known",
        "hedge-unknown": "Hedge, T unknown",
        "ftpl": "FTPL, T known",
        "ftpl-unknown": "FTPL, T unknown",
        "mean": "mean so far",
    }
    for kind in KINDS:
        for key, name in names.items():
            tried = rows_of(kind)
            runs = [regrets(seed, share, kind, rows)[key] for rows in tried]
            expected = [run.expected / math.sqrt(rows) for run, rows in zip(runs, tried, strict=True)]
            bounds = [guarantee(key, rows) for rows in tried]
            ratio = max((e / b for e, b in zip(expected, bounds, strict=True)), default=0.0) if bounds[0] else None
            # A regret of a few rows is none: its logarithm would say nothing about growth.
            worst = [max(float(np.mean(run.worst)), 1.0) for run in runs]
            slope = np.polyfit(np.log(tried), np.log(worst), 1)[0]
            cells = (
                f"{max(expected):.3f}",
                f"{max(bounds):.3f}" if ratio is not None else "none",
                f"{ratio:.2f}" if ratio is not None else "",
                f"{slope:.2f}",
            )
            yield f"| {kind} | {name} | {tried[0]:,} to {tried[-1]:,} | {' | '.join(cells)} |"


def guarantee(key: str, rows: int) -> float:
    """The theorem's bound in units of sqrt(T); 0 where there is none."""
    of_rows = FORECASTERS[key](0, rows).guarantee(rows)
    return of_rows.bound * math.sqrt(rows) if of_rows else 0.0


N_CLASSES, N_UTILITIES, N_ACTIONS = 5, 100, 4
N_SEEDS_CLASSES = 20
N_ROWS_CLASSES = (1_000, 10_000, 100_000)


def classes_table(seed: int, share: float) -> Iterator[str]:
    """FTPL for five classes: regret of the Brier score and of seeded utilities, in units of sqrt(T)."""
    yield "| sequence | T | seeds | Brier | largest mean of a utility | mean of the largest | both grow as T to the |"
    yield "|---|---|---|---|---|---|---|"
    utilities = np.random.default_rng([seed, 5]).random((N_UTILITIES, N_ACTIONS, N_CLASSES))
    seeds = max(2, round(N_SEEDS_CLASSES * share))
    for kind in KINDS:
        lines, growth = [], []
        for rows in N_ROWS_CLASSES:
            brier, of_utility = [], []
            for number in range(seeds):
                rng = np.random.default_rng([seed, 6, KINDS.index(kind), rows, number])
                prediction, label = _class_run(kind, rows, rng, number, utilities)
                brier.append(_brier_regret(prediction, label))
                of_utility.append([_utility_regret(prediction, label, utility) for utility in utilities])
            means = (np.mean(brier), np.mean(of_utility, axis=0).max(), np.max(of_utility, axis=1).mean())
            lines.append(f"| {kind} | {rows:,} | {seeds} | {' | '.join(f'{m / math.sqrt(rows):.3f}' for m in means)} |")
            growth.append([max(float(means[0]), 1.0), max(float(means[2]), 1.0)])
        slopes = np.polyfit(np.log(N_ROWS_CLASSES), np.log(growth), 1)[0]
        for number, line in enumerate(lines):
            last = number == len(lines) - 1
            yield line + (f" {slopes[0]:.2f}, {slopes[1]:.2f} |" if last else " |")


def _class_run(
    kind: str, rows: int, rng: np.random.Generator, number: int, utilities: np.ndarray
) -> tuple[Floats, np.ndarray]:
    if kind != "adaptive":
        label = SEQUENCES[kind](rows, N_CLASSES, rng)
        before = np.cumsum(label[:, None] == np.arange(N_CLASSES), axis=0) - (label[:, None] == np.arange(N_CLASSES))
        return perturbed_shares(before, np.arange(rows), number, rows), label
    # It sets the label that is worst for what the counts alone would do, under the utility that has lost most.
    counts = np.zeros(N_CLASSES, dtype=np.int64)
    prediction, label, utility, looked = np.empty((rows, N_CLASSES)), np.zeros(rows, dtype=np.int64), utilities[0], 100
    for row in range(rows):
        prediction[row] = perturbed_shares(counts[None], np.array([row]), number, rows)[0]
        action = int((utility @ (counts + math.sqrt(rows) / 2)).argmax())
        label[row] = int((utility[action] - utility.max(axis=0)).argmin())
        counts[label[row]] += 1
        if row == looked:
            looked = int(1.5 * looked)
            so_far = [_utility_regret(prediction[: row + 1], label[: row + 1], each) for each in utilities]
            utility = utilities[int(np.argmax(so_far))]
    return prediction, label


def _brier_regret(prediction: Floats, label: np.ndarray) -> float:
    is_class = np.eye(N_CLASSES)[label]
    base_rate = is_class.mean(axis=0)
    return float(((prediction - is_class) ** 2).sum() - ((base_rate - is_class) ** 2).sum())


def _utility_regret(prediction: Floats, label: np.ndarray, utility: np.ndarray) -> float:
    """What the best constant action wins over acting on the predictions."""
    action = (prediction @ utility.T).argmax(axis=1)
    count = np.bincount(label, minlength=N_CLASSES)
    return float((utility @ count).max() - utility[action, label].sum())
