"""A study's points as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.study.points import ESTIMATES, WITH_INTERVALS
from decal_cli.analysis.study.run import Study
from decal_cli.analysis.study.tasks import CHOSEN
from decal_cli.metrics import named
from decal_cli.tables.table import Floats, MeanEstimate

BASE = "isotonic"
"""The recalibration from which gains beyond recalibration are counted."""
BEYOND_SUFFIX = f" - {BASE}"
MIN_CLUSTERS = 5
"""Files, or scores, that a bootstrap needs: with fewer, drawing them with replacement says nothing."""
MIN_POINTS = 10
"""Points of a halving that a correlation needs: with three, chance alone makes r2 a half."""


@dataclass(frozen=True, eq=False)
class StudyPoints:
    """All points of a study as columns, shape (P,) each; NaN where undefined.

    file, pair: number of the file, and of the file and score. estimates, gains: by name; ends: low and high of the
    estimates that are WITH_INTERVALS.
    """

    file: NDArray[np.int64]
    pair: NDArray[np.int64]
    seed: NDArray[np.int64]
    threshold: Floats
    estimates: Mapping[str, Floats]
    ends: Mapping[str, tuple[Floats, Floats]]
    gains: Mapping[str, Floats]
    constants: Floats
    """Gains of always deciding 0 and of always deciding 1, shape (2, P)."""
    files: tuple[str, ...]
    """As `labels` has them."""
    pairs: tuple[tuple[str, str], ...]
    base_rate: Floats
    """Of the file, shape (P,)."""
    task: NDArray[np.str_] | None = None
    """Names of tasks, shape (P,), where a study is over these; thresholds are NaN then."""

    @property
    def base(self) -> str:
        """The recalibration from which gains beyond recalibration are counted."""
        return CHOSEN if CHOSEN in self.gains else BASE

    @property
    def beyond(self) -> str:
        """What gains beyond recalibration end in, after the method."""
        return f" - {self.base}"

    @cached_property
    def targets(self) -> dict[str, Floats]:
        """Gains by method, and gains beyond recalibration by method and `beyond`."""
        beyond, base = {}, self.base
        if base in self.gains:
            beyond = {
                name + self.beyond: values - self.gains[base] for name, values in self.gains.items() if name != base
            }
        return {**self.gains, **beyond}

    @cached_property
    def in_utility(self) -> StudyPoints:
        """The same with utilities in the units of Perez-Lebel et al. 2025, where u_delta is 1/t*, not per u_delta."""
        u_delta = 1 / self.threshold
        utilities = {name for name in self.estimates if named(name).bounds_in_u_delta}
        return replace(
            self,
            estimates={name: v * u_delta if name in utilities else v for name, v in self.estimates.items()},
            ends={name: (low * u_delta, high * u_delta) for name, (low, high) in self.ends.items()},
            gains={name: values * u_delta for name, values in self.gains.items()},
            constants=self.constants * u_delta,
        )

    @property
    def bootstrap_unit(self) -> Literal["files", "scores"] | None:
        """What a bootstrap draws: files, scores where there are too few files, or None where both are too few."""
        if len(self.files) >= MIN_CLUSTERS:
            return "files"
        return "scores" if len(self.pairs) >= MIN_CLUSTERS else None

    def enough(self, rows: NDArray[np.bool_]) -> bool:
        """Whether these points are enough for a correlation; several halvings of the same rows do not count as more."""
        return bool(rows.sum() >= MIN_POINTS * len(np.unique(self.seed[rows])) > 0)

    def mean(self, values: Floats) -> MeanEstimate:
        """Mean over the points where the values are defined; the standard error is over scores, as clusters of points.

        The error is NaN where there is only one score.
        """
        usable = np.isfinite(values)
        counts = np.bincount(self.pair[usable])
        means = (np.bincount(self.pair[usable], values[usable]) / np.maximum(counts, 1))[counts > 0]
        error = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
        return MeanEstimate(float(values[usable].mean()), error)

    def over_clusters(self, values: Floats, confidence: float) -> tuple[float, float] | None:
        """Interval of the mean over what a bootstrap draws, by Student's t; None where there are too few of these."""
        if self.bootstrap_unit is None:
            return None
        from scipy.stats import t as student

        usable = np.isfinite(values)
        cluster = (self.file if self.bootstrap_unit == "files" else self.pair)[usable]
        mean = float(values[usable].mean())
        sums = np.bincount(cluster, values[usable] - mean)[np.unique(cluster)]
        error = float(np.sqrt(len(sums) / (len(sums) - 1) * (sums @ sums)) / usable.sum())
        reach = float(student.ppf((1 + confidence) / 2, len(sums) - 1)) * error
        return mean - reach, mean + reach


def points_of(study: Study) -> StudyPoints:
    """The records as columns."""
    rows = [(record, point) for record in study.records for point in record["points"]]
    paths = tuple(dict.fromkeys(record["file"] for record in study.records))
    files = labels(paths)
    scores = tuple(dict.fromkeys((record["file"], record["score"]) for record in study.records))
    pairs = tuple((files[paths.index(path)], score) for path, score in scores)

    def column(values: Sequence[float | None]) -> Floats:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    estimates, ends = {}, {}
    tasks = [point.get("task") for _, point in rows] if study.setting.tasks else None
    for name in rows[0][1]["estimates"] if tasks else ESTIMATES:
        cells = [point["estimates"][name] for _, point in rows]
        value, low, high = (column(values) for values in zip(*cells, strict=True))
        estimates[name] = value
        if name in WITH_INTERVALS:
            ends[name] = (low, high)
    methods = [*([CHOSEN] if tasks else []), *(chosen.key for chosen in study.setting.methods)]
    gains = {name: column([point["gains"].get(name) for _, point in rows]) for name in methods}
    return StudyPoints(
        np.array([paths.index(record["file"]) for record, _ in rows]),
        np.array([scores.index((record["file"], record["score"])) for record, _ in rows]),
        np.array([record["seed"] for record, _ in rows]),
        column([point["threshold"] for _, point in rows]),
        estimates,
        ends,
        {name: values for name, values in gains.items() if np.isfinite(values).any()},
        np.array([point["constants"] for _, point in rows], dtype=np.float64).reshape(len(rows), -1).T,
        files,
        pairs,
        np.array([record["positives"] / record["rows"] for record, _ in rows]),
        None if tasks is None else np.array(tasks),
    )


def labels(paths: Sequence[str]) -> tuple[str, ...]:
    """Short names of files: the name without its ending, and as many folders, and the ending, as make it unique."""
    alike: dict[str, list[str]] = {}
    for path in paths:
        alike.setdefault(Path(path).stem, []).append(path)
    label_of = {path: label for group in alike.values() for path, label in _shortest_ends(group).items()}
    unique = tuple(label_of[path] for path in paths)
    return unique if len(set(unique)) == len(unique) else tuple(paths)


def _shortest_ends(paths: Sequence[str]) -> dict[str, str]:
    """The shortest ends of these paths that differ."""
    for depth in range(1, max(len(Path(path).parts) for path in paths) + 1):
        for whole in (False, True):
            ends = [Path(*(Path(path) if whole else Path(path).with_suffix("")).parts[-depth:]) for path in paths]
            if len(set(ends)) == len(ends):
                return {path: end.as_posix() for path, end in zip(paths, ends, strict=True)}
    return {path: path for path in paths}


def columns_of(points: StudyPoints) -> dict[str, NDArray[Any]]:
    """All points as named columns of a file: origin, estimates, and gains, such as 'gain of METHOD'."""
    columns: dict[str, NDArray[Any]] = {
        "file": np.array(points.files)[points.file],
        "score": np.array([score for _, score in points.pairs])[points.pair],
        "seed": points.seed,
        **({"threshold": points.threshold} if points.task is None else {"task": points.task}),
    }
    for name, values in points.estimates.items():
        columns[name] = values
        if name in points.ends:
            columns |= {f"{name} {end}": side for end, side in zip(("low", "high"), points.ends[name], strict=True)}
    for decision, values in enumerate(points.constants):
        columns[f"gain of always deciding {decision}"] = values
    return columns | {f"gain of {name}": values for name, values in points.gains.items()}
