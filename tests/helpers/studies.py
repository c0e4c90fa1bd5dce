"""Worlds and records that the tests of a study are made of."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from decal_cli.analysis.study import ESTIMATES, WITH_INTERVALS, Setting, Study
from decal_cli.data import Predictions
from decal_cli.learn.methods import parse
from decal_cli.tables.rows import Rows

STUDY_METHODS = ("isotonic", "platt", "refit", "stack-boosting", "blend")


def study_predictions(size: int, seed: int = 0, features: bool = True) -> Predictions:
    """The score squares what the first feature says of the truth; the second feature matters as well."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, 3))
    known = 1 / (1 + np.exp(-1.5 * x[:, 0]))
    label = (rng.random(size) < 1 / (1 + np.exp(-1.5 * x[:, 0] - x[:, 1]))).astype(np.uint8)
    rows = Rows(known**2, label, features=(lambda: x) if features else None)
    return Predictions("p", ("p",), rows, ("x0", "x1", "x2"))


def study_setting(*methods: str, thresholds: tuple[float, ...] = (0.3, 0.6)) -> Setting:
    return Setting(thresholds, tuple(map(parse, methods)))


def two_halves(rows: Rows, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are fitted to, and rows that are judged, whatever the order of all."""
    size = len(rows)
    order = rows.order[np.random.default_rng([seed, size]).permutation(size)]
    return order[: size // 2], order[size // 2 :]


def study_point(
    threshold: float,
    estimates: Mapping[str, tuple[float, float, float]],
    gains: Mapping[str, float | None],
    constants: tuple[float, float] = (-0.2, -0.1),
) -> dict[str, Any]:
    """A point of a record; estimates that are not named are undefined."""
    cells = {name: [None, None, None] for name in ESTIMATES} | {name: list(cell) for name, cell in estimates.items()}
    return {"threshold": threshold, "estimates": cells, "gains": dict(gains), "constants": list(constants)}


def study_record(file: str, score: str, seed: int, points: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    base = {"file": file, "score": score, "seed": seed, "rows": 2000, "positives": 600.0, "seconds": {}, "reasons": {}}
    return {**base, "points": points, **more}


def made_up_study(files: int = 6, scores: int = 2, seeds: int = 2, methods: tuple[str, ...] = STUDY_METHODS) -> Study:
    """A made-up study: gains are their estimates and noise, other metrics know little of them."""
    records = []
    for f in range(files):
        for s in range(scores):
            for seed in range(seeds):
                rng = np.random.default_rng([f, s, seed])
                points = [_random_point(t, methods, f, rng) for t in (0.1, 0.5, 0.9)]
                seconds = {name: 0.001 * (k + 1) ** 3 for k, name in enumerate(methods)}
                records.append(study_record(f"folder/file_{f}.csv", f"p_{s}", seed, points, seconds=seconds))
    return Study(tuple(records), ("folder/file_0.csv, p_none: dropped",), study_setting(*methods))


def _random_point(t: float, methods: tuple[str, ...], file: int, rng: np.random.Generator) -> dict[str, Any]:
    recalibration, beyond = 0.1 * rng.random(), 0.01 * (file + rng.random())
    true = {
        "gain_recalibration": recalibration,
        "gain_beyond": beyond,
        "gain_post_training": recalibration + beyond,
        "regret_calibration": recalibration + 0.002,
        "regret_grouping": beyond / 3,
        "regret": recalibration + beyond / 3,
        **{name: rng.random() for name in ("ece", "mce", "rmsce", "cl", "brier", "auc", "accuracy")},
    }
    cells = {
        name: (value, *((value - 0.01, value + 0.01) if name in WITH_INTERVALS else (None, None)))
        for name, value in true.items()
    }
    base = {name: recalibration + (0 if name in ("isotonic", "platt") else beyond) for name in methods}
    return study_point(t, cells, {name: gain + 0.005 * rng.normal() for name, gain in base.items()})
