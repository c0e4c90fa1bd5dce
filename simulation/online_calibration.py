"""The CDL algorithm and almost one step ahead, against their bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from decal_cli.analysis.online.judged import worst_v_regret
from decal_cli.analysis.online.plan import known_after_rows
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.sequential import forecaster_of
from decal_cli.sequential import parse as parse_online
from decal_cli.sequential.forecasters import AlmostOneStepAhead, CdlForecaster
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, tabulate
from simulation.sequences import SEQUENCES

KINDS = (*SEQUENCES, "adaptive")
N_ROWS_SEEDS = ((1_000, 200), (10_000, 50), (100_000, 4))


def cdl_table(seed: int, share: float) -> Iterator[str]:
    """Calibration decision loss of the CDL algorithm, in units of log T / sqrt(T)."""
    yield "| sequence | T | seeds | mean | largest | grows as T to the |"
    yield "|---|---|---|---|---|---|"
    for kind in KINDS:
        means = []
        for rows, seeds in N_ROWS_SEEDS:
            losses = [cdl_of(kind, rows, seed, number) for number in range(max(2, round(seeds * share)))]
            means.append(np.mean(losses))
            units = np.array(losses) * math.sqrt(rows) / math.log(rows)
            last = rows == N_ROWS_SEEDS[-1][0]
            slope = np.polyfit(np.log([rows for rows, _ in N_ROWS_SEEDS]), np.log(means), 1)[0] if last else None
            cells = f"{units.mean():.2f} | {units.max():.2f} | {f'{slope:.2f}' if slope is not None else ''}"
            yield f"| {kind} | {rows:,} | {len(losses)} | {cells} |"


def cdl_of(kind: str, rows: int, seed: int, number: int) -> float:
    """Calibration decision loss of one run."""
    forecaster = CdlForecaster(number, rows)
    if kind == "adaptive":
        prediction, label = _againstcdl_of(forecaster, rows)
    else:
        rng = np.random.default_rng([seed, 4, KINDS.index(kind), rows, number])
        label = SEQUENCES[kind](rows, 2, rng).astype(np.uint8)
        prediction = forecaster.replay(np.zeros(rows), label, known_after_rows(rows, 0))
    return float(value_of(parse("cdl(levels=exact)"), Inputs(Rows(prediction, label))))


def _againstcdl_of(forecaster: CdlForecaster, rows: int) -> tuple[Floats, np.ndarray]:
    """Labels that move the bias of each bucket further away from 0, as far as the next draw can be known."""
    prediction, label, bias = np.empty(rows), np.empty(rows, dtype=np.uint8), np.zeros(forecaster.buckets)
    for row in range(rows):
        draw = forecaster.draw()
        gain = 0.0
        for point, chance in ((draw.low, draw.chance), (draw.high, 1 - draw.chance)):
            # What the label 1 rather than 0 adds to the expected size of the bias.
            value = bias[max(math.ceil(point * forecaster.buckets - 1e-9) - 1, 0)]
            gain += chance * (abs(value + point - 1) - abs(value + point))
        prediction[row], label[row] = forecaster.predict_one(0.0), gain > 0
        forecaster.learn_one(0.0, int(label[row]))
        bias[round(prediction[row] * forecaster.buckets) - 1] += prediction[row] - label[row]
    return prediction, label


def distance_table(seed: int, share: float) -> Iterator[str]:
    """Distance to calibration of almost one step ahead, summed over rows, in units of 2 sqrt(T) + 1: at most so much.

    It is at most what the theorem's own sequence is away from the predictions, and itself from calibration.
    """
    yield "| sequence | T | sequences | largest, T known | mean | largest, T unknown | its bound |"
    yield "|---|---|---|---|---|---|---|"
    for kind in KINDS:
        for rows, seeds in N_ROWS_SEEDS:
            known, unknown = [], []
            # Two of the kinds are one sequence each.
            tried = 1 if kind in ("alternating", "blocks") else max(2, round(seeds * share))
            for number in range(tried):
                rng = np.random.default_rng([seed, 7, KINDS.index(kind), rows, number])
                known.append(_distance(AlmostOneStepAhead(rows), kind, rows, rng))
                unknown.append(_distance(AlmostOneStepAhead(), kind, rows, rng))
            unit = 2 * math.sqrt(rows) + 1
            cells = (max(known), np.mean(known), max(unknown), AlmostOneStepAhead().guarantee(rows).bound * rows)
            yield f"| {kind} | {rows:,} | {tried} | {' | '.join(f'{cell / unit:.3f}' for cell in cells)} |"


def _distance(forecaster: AlmostOneStepAhead, kind: str, rows: int, rng: np.random.Generator) -> float:
    prediction, ahead = np.empty(rows), np.empty(rows)
    if kind == "adaptive":
        # It is deterministic: the label may answer the prediction itself, but for one in ten.
        label, coin = np.empty(rows, dtype=np.uint8), rng.random((rows, 2))
    else:
        label = SEQUENCES[kind](rows, 2, rng).astype(np.uint8)
    for row in range(rows):
        prediction[row] = forecaster.predict_one(0.0)
        if kind == "adaptive":
            label[row] = prediction[row] < 0.5 if coin[row, 0] < 0.9 else coin[row, 1] < 0.5
        lower, steps = forecaster.pairs[-1]
        ahead[row] = (lower + int(label[row])) / steps
        forecaster.learn_one(0.0, int(label[row]))
    level, index = np.unique(np.round(ahead, 9), return_inverse=True)
    bias = np.bincount(index, level[index] - label)
    return float(np.abs(ahead - prediction).sum() + np.abs(bias).sum())


DELAYS, N_DELAYED, N_SEEDS_DELAYED = (0, 10, 100, 1000), 10_000, 10


def delay_table(seed: int, share: float) -> Iterator[str]:
    """Worst V-regret in units of sqrt(T) where labels come late, mean over seeds: on the worst kind of sequence."""
    methods = ("hedge", "ftpl", "cdl-algorithm", "almost-one-step-ahead", "running-mean")
    yield f"| delay in rows | T | seeds | {' | '.join(method.replace('-', ' ') for method in methods)} |"
    yield "|---" * (3 + len(methods)) + "|"
    seeds = max(2, round(N_SEEDS_DELAYED * share))
    for delay in DELAYS:
        known, cells = known_after_rows(N_DELAYED, delay), []
        for method in methods:
            of_kinds = []
            for kind, draw in SEQUENCES.items():
                worst = []
                for number in range(seeds):
                    rng = np.random.default_rng([seed, 9, KINDS.index(kind), number])
                    label = draw(N_DELAYED, 2, rng).astype(np.uint8)
                    forecaster = forecaster_of(parse_online(method), number, N_DELAYED)
                    worst.append(
                        worst_v_regret(
                            tabulate(forecaster.replay(np.zeros(N_DELAYED), label, known), label, None)
                        ).regret
                    )
                of_kinds.append((float(np.mean(worst)) / math.sqrt(N_DELAYED), kind))
            cells.append("{:.2f}, {}".format(*max(of_kinds)))
        yield f"| {delay:,} | {N_DELAYED:,} | {seeds} | {' | '.join(cells)} |"
