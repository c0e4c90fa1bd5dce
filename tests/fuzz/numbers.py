"""Extreme numbers: scores, weights, thresholds and utilities at the edge of floats, against sums in extended precision.

What a metric says is finite, lies in its range, and agrees to 1e-9 with its definition in numpy's extended precision,
relative to the terms that are summed.
"""

import random
from pathlib import Path
from typing import Any

import numpy as np

from decal_cli.data import from_arrays
from decal_cli.errors import DecalError, Undefined
from decal_cli.metrics import METRICS, Inputs, parse, value_of
from decal_cli.task import BinaryTask

EDGES = [0.0, 1.0, 5e-324, 1e-300, 1e-30, 1e-17, 1e-9, 0.5, 1 - 2**-53, 1 - 1e-9, np.nextafter(0.5, 1), 2**-1022, 0.3]
MAX_RELATIVE_ERROR = 1e-9
Long = np.longdouble
SLOW = ("dist_cal_lower", "dist_cal_upper")


def scores(rng: random.Random, size: int) -> np.ndarray:
    """Scores in [0, 1]: usual ones, edges, and few or many levels."""
    shift = rng.choice([1.0, 1e-3, 1e-160, 1e-320])
    draws = {
        "usual": lambda: rng.random(),
        "edges": lambda: float(rng.choice(EDGES)),
        "near": lambda: 0.5 + rng.randrange(-3, 4) * 2**-53,
        "small": lambda: rng.random() * shift,
        "large": lambda: 1 - rng.random() * shift,
    }
    kinds = rng.sample(list(draws), rng.randrange(1, 4))
    return np.array([draws[rng.choice(kinds)]() for _ in range(size)])


def task_of(rng: random.Random) -> BinaryTask:
    """A decision with extreme utilities or threshold. Errors: DecalError, where it is none."""
    if rng.random() < 0.3:
        return BinaryTask.of_threshold(float(rng.choice(EDGES[2:])) if rng.random() < 0.5 else rng.random())
    unit = 10.0 ** rng.randrange(-14, 15)
    base, a, b = rng.choice([0.0, 1.0, -1e3]), rng.random(), rng.random() * 10.0 ** rng.randrange(-6, 7)
    return BinaryTask.of_utility([[unit * (base + a), unit * (base - b)], [unit * base, unit * base]])


def expected(y: Any, p: Any, w: Any, task: BinaryTask) -> dict[str, tuple[Any, Any]]:
    """Metric -> (its definition, the size of its terms), in extended precision."""
    utility = np.array(task.utility, dtype=Long)
    act = (p >= Long(task.decision_threshold)).astype(int)
    label = y.astype(int)
    total = w.sum()

    def mean(terms: Any) -> tuple[Any, Any]:
        return (w * terms).sum() / total, (w * np.abs(terms)).sum() / total

    never, always, made = (mean(utility[d, label]) for d in (0 * act, 0 * act + 1, act))
    best = max(never[0], always[0])
    size = np.abs(utility).max()
    perfect = mean(np.where(label == 1, utility[1, 1], utility[0, 0]))
    swaps = [(w * (act == d) * (utility[1 - d, label] - utility[d, label])).sum() / total for d in (0, 1)]
    # A threshold near 1 has lost digits of them.
    odds = (utility[0, 0] - utility[1, 0]) / (utility[1, 1] - utility[0, 1])
    values = {
        "brier": mean((p - y) ** 2),
        "expected_utility": (made[0], size),
        "eu_never": (never[0], size),
        "eu_always": (always[0], size),
        "external_regret": (best - made[0], size),
        "utility_at_stake": (perfect[0] - best, size),
        "swap_regret": (sum(max(each, Long(0)) for each in swaps), size),
        "net_benefit": mean(act * np.where(label == 1, Long(1), -odds)),
    }
    if not ((p == 0) & (label == 1)).any() and not ((p == 1) & (label == 0)).any():
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(p), np.log1p(-p)
        values["log_loss"] = mean(-np.where(label == 1, log_p, log_q))
    if 0 < label.sum() < len(label):
        one, zero = label == 1, label == 0
        above = (p[one, None] > p[None, zero]) + 0.5 * (p[one, None] == p[None, zero])
        pairs = w[one, None] * w[None, zero]
        values["auc"] = ((pairs * above).sum() / pairs.sum(), Long(1))
    return values


def case(rng: random.Random, folder: Path) -> str:
    """Rows and a decision: every metric is a number in its range or has a reason, and some agree with an oracle."""
    size = rng.choice([1, 2, 3, 10, 40])
    score = scores(rng, size)
    chance = score if rng.random() < 0.5 else np.full(size, rng.random())
    label = (np.array([rng.random() for _ in range(size)]) < chance).astype(np.uint8)
    weight = np.array([10.0 ** rng.uniform(-4, 4) for _ in range(size)]) if rng.random() < 0.4 else None
    power = rng.randrange(-150, 150)
    try:
        task = task_of(rng)
        given = None if weight is None else weight * 10.0**power
        rows = from_arrays(score, label.astype(np.int64), weight=given).models[0].rows
    except DecalError:
        return "refused"
    inputs = Inputs(rows, task)
    exact = np.ones(size, dtype=Long) if given is None else given.astype(Long)
    oracle = expected(label.astype(Long), score.astype(Long), exact, task)
    what = f"{task}: p = {score.tolist()}, y = {label.tolist()}, w = {exact.tolist()}"
    names = [*oracle, *rng.sample([name for name in METRICS if name not in SLOW], 6)]
    for name in dict.fromkeys(names):
        spec = parse(name)
        try:
            value = value_of(spec, inputs)
        except Undefined:
            assert name not in oracle or name in ("net_benefit",), name
            continue
        low, high = spec.declared.bounds(task)
        slack = MAX_RELATIVE_ERROR * max(1.0 if not spec.declared.bounds_in_u_delta else task.u_delta, abs(value))
        assert np.isfinite(value) and low - slack <= value <= high + slack, f"{name} is {value!r} for {what}"
        if name in oracle:
            right, terms = oracle[name]
            error = abs(value - right) / max(abs(right), terms, np.finfo(np.float64).smallest_normal)
            assert error <= MAX_RELATIVE_ERROR, f"{name} is {value!r}, not {right!r}, for {what}"
    return "measured"
