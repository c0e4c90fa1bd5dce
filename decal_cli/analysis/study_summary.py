"""What a study came to: its points, what policies would have won on them, and how estimates and gains go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.evidence import EVIDENCE_KEYS, FITS, Action, Evidence, Item
from decal_cli.analysis.flowchart import walk
from decal_cli.analysis.study import CHOSEN, ESTIMATES, WITH_INTERVALS, Study
from decal_cli.data.words import grouped
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.declarations.document import Known, Limit, Names
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.metrics import named
from decal_cli.metrics.confidence import quantile
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.table import Floats, Ints, Mask, Values

Texts = NDArray[np.str_]
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

    file: Ints
    pair: Ints
    seed: Ints
    threshold: Floats
    estimates: Mapping[str, Floats]
    ends: Mapping[str, tuple[Floats, Floats]]
    gains: Mapping[str, Floats]
    constants: Floats
    """Gains of always deciding 0 and of always deciding 1, shape (2, P)."""
    files: Names
    """As `labels` has them."""
    pairs: tuple[tuple[str, str], ...]
    base_rate: Floats
    """The base rate of each point's file, shape (P,)."""
    tasks: Texts
    """Names of tasks, shape (P,), where a study is over these, and thresholds are NaN; else shape (0,)."""

    @property
    def over_tasks(self) -> bool:
        """Whether the study is over tasks by name, and not over thresholds."""
        return len(self.tasks) > 0

    @property
    def varied(self) -> tuple[str, Values]:
        """What the study is over, and that of each point, shape (P,)."""
        return ("task", self.tasks) if self.over_tasks else ("threshold", self.threshold)

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
        """The points with utilities in the units of Perez-Lebel et al. 2025, where u_delta is 1/t*, not per u_delta."""
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

    @property
    def cluster(self) -> Ints:
        """The number of what is drawn, or of the score where both are too few, shape (P,)."""
        return self.file if self.bootstrap_unit == "files" else self.pair

    def enough(self, rows: Mask) -> bool:
        """Whether these points are enough for a correlation; several halvings of the same rows do not count as more."""
        return bool(rows.sum() >= MIN_POINTS * len(np.unique(self.seed[rows])) > 0)

    def mean(self, values: Floats) -> MeanEstimate:
        """Mean over the points where the values are defined; the standard error is over scores, as clusters of points.

        The error is NaN where there is only one score.
        """
        usable = np.isfinite(values)
        pair = np.unique(self.pair[usable], return_inverse=True)[1]
        means = np.bincount(pair, values[usable]) / np.bincount(pair)
        error = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
        return MeanEstimate(float(values[usable].mean()), error)

    def over_clusters(self, values: Floats, confidence: float) -> tuple[float, float] | None:
        """Interval of the mean over what a bootstrap draws, by Student's t; None where there are too few of these."""
        if self.bootstrap_unit is None:
            return None
        from scipy.stats import t as student

        usable = np.isfinite(values)
        cluster = self.cluster[usable]
        mean = float(values[usable].mean())
        sums = np.bincount(cluster, values[usable] - mean)[np.unique(cluster)]
        error = float(np.sqrt(len(sums) / (len(sums) - 1) * (sums @ sums)) / usable.sum())
        half_width = float(student.ppf((1 + confidence) / 2, len(sums) - 1)) * error
        return mean - half_width, mean + half_width


def points_of(study: Study) -> StudyPoints:
    """The records as columns."""
    rows = [(record, point) for record in study.records for point in record["points"]]
    paths = tuple(dict.fromkeys(record["file"] for record in study.records))
    files = labels(paths)
    scores = tuple(dict.fromkeys((record["file"], record["score"]) for record in study.records))
    pairs = tuple((files[paths.index(path)], score) for path, score in scores)

    tasks = [point["task"] for _, point in rows if "task" in point]
    names = rows[0][1]["estimates"] if tasks else ESTIMATES
    # What is None in a record is NaN here.
    estimates = {name: np.array([point["estimates"][name] for _, point in rows], dtype=float).T for name in names}
    methods = [*([CHOSEN] if tasks else []), *(chosen.key for chosen in study.setting.methods)]
    gains = {name: np.array([point["gains"].get(name) for _, point in rows], dtype=float) for name in methods}
    return StudyPoints(
        np.array([paths.index(record["file"]) for record, _ in rows]),
        np.array([scores.index((record["file"], record["score"])) for record, _ in rows]),
        np.array([record["seed"] for record, _ in rows]),
        np.array([point["threshold"] for _, point in rows], dtype=float),
        {name: value for name, (value, _, _) in estimates.items()},
        {name: (low, high) for name, (_, low, high) in estimates.items() if name in WITH_INTERVALS},
        {name: values for name, values in gains.items() if np.isfinite(values).any()},
        np.array([point["constants"] for _, point in rows], dtype=float).reshape(len(rows), -1).T,
        files,
        pairs,
        np.array([record["positives"] / record["rows"] for record, _ in rows]),
        np.array(tasks, dtype=str),
    )


def labels(paths: Sequence[str]) -> Names:
    """Short names of files: the name without its ending, and as many folders, and the ending, as make it unique."""
    alike = grouped((Path(path).stem, path) for path in paths)
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


def columns_of(points: StudyPoints) -> dict[str, Values]:
    """All points as named columns of a file: origin, estimates, and gains, such as 'gain of METHOD'."""
    what, varied = points.varied
    columns = {
        "file": np.array(points.files)[points.file],
        "score": np.array([score for _, score in points.pairs])[points.pair],
        "seed": points.seed,
        what: varied,
    }
    for name, values in points.estimates.items():
        columns[name] = values
        if name in points.ends:
            columns |= {f"{name} {end}": side for end, side in zip(("low", "high"), points.ends[name], strict=True)}
    for decision, values in enumerate(points.constants):
        columns[f"gain of always deciding {decision}"] = values
    return columns | {f"gain of {name}": values for name, values in points.gains.items()}


COSTS: Mapping[Action, float] = {"recalibrate": 0.002, "post-train": 0.01}
"""Per decision, in units of u_delta; doing nothing is free."""
MULTIPLES = (0.5, 1.0, 2.0, 4.0)
HINDSIGHT = ("isotonic", "refit", "stack", "stack-boosting", "blend")
"""The methods that the best choice in hindsight is taken from, besides doing nothing and always deciding the same."""
REFIT = "refit"
ALWAYS = ("always-0", "always-1")
"""The constant decisions, which are free."""
OURS, AS_PRINTED = "follow the advice", "flowchart as printed"
"""The advice of `decal recommend`, and that of the flowchart of Perez-Lebel et al. 2025, appendix A."""
ABOUT_0 = 0.02
"""Grouping regret in the paper's units up to which it counts as 0: its r of GLAR (app. C.3)."""


@dataclass(frozen=True)
class Policy:
    """A way of choosing, over all points.

    loss: mean utility lost compared with the best choice in hindsight, in units of u_delta; error: its standard error
    over scores of files; interval: over files, or scores where there are too few files, None where there are too few
    of both; right: share of points that lost at most NEARLY_BEST; chosen: share of points for each action.
    """

    name: str
    loss: Known
    error: Known
    interval: tuple[float, float] | None
    right: Known
    chosen: Mapping[str, float]


@dataclass(frozen=True)
class Policies:
    """All ways of choosing at one multiple of the costs.

    share: loss of following the advice, as a share of the loss of the better of 'always isotonic' and 'always refit'.
    right: share of points at which the advised action was best in hindsight, or lost at most the tolerance.
    """

    multiple: float
    policies: Annotated[tuple[Policy, ...], Limit(minItems=1)]
    share: Known
    right: Known


NEARLY_BEST = 0.002
"""In units of u_delta: the advice was right where it lost at most this compared with the best action."""


def policies(
    points: StudyPoints, rows: Sequence[int], multiple: float, confidence: float = CONFIDENCE
) -> Policies | None:
    """All ways of choosing at one multiple of COSTS; None where it lacks a method that they need, or is over tasks."""
    methods = [name for name in HINDSIGHT if name in points.gains]
    if points.over_tasks or not {BASE, REFIT, FITS["post-train"]} <= set(methods):
        return None
    costs = {action: multiple * cost for action, cost in COSTS.items()}
    net = {"nothing": np.zeros(len(points.threshold)), **dict(zip(ALWAYS, points.constants, strict=True))}
    for name in methods:
        net[name] = points.gains[name] - costs["recalibrate" if name == BASE else "post-train"]
    best = np.max(list(net.values()), axis=0)
    choices = {**net, "recalibrate": net[BASE], "post-train": net[FITS["post-train"]]}
    ways = {OURS: advised(points, rows, costs), AS_PRINTED: advised_as_printed(points, costs)}
    ways |= {f"always {name}": np.full(len(best), name) for name in ("nothing", BASE, REFIT, FITS["post-train"])}
    made = []
    for label, actions in ways.items():
        loss = best - np.select([actions == action for action in choices], [*choices.values()], 0.0)
        usable = np.isfinite(loss)
        shares = {
            action: count / int(usable.sum()) for action, count in sorted(Counter(actions[usable].tolist()).items())
        }
        # No choice does better than the best one in hindsight.
        interval = points.over_clusters(loss, confidence)
        ends = None if interval is None else (max(interval[0], 0.0), interval[1])
        right = float(np.mean(loss[usable] <= NEARLY_BEST))
        made.append(Policy(label, *points.mean(loss), ends, right, shares))
    always = min(policy.loss for policy in made if policy.name in (f"always {BASE}", f"always {REFIT}"))
    return Policies(multiple, tuple(made), made[0].loss / always if always > 0 else float("nan"), made[0].right)


def advised_as_printed(points: StudyPoints, costs: Mapping[Action, float]) -> Texts:
    """What the flowchart of Perez-Lebel et al. 2025 advises on the plug-in estimates, shape (P,), in one round.

    "About 0" is the paper's own r, at which GLAR begins to correct: 0.02 in its units, which is 0.02 t* u_delta.
    """
    regret, grouping = points.estimates["regret"], points.estimates["regret_grouping"]
    selected = np.where(grouping <= ABOUT_0 * points.threshold, "recalibrate", "post-train")
    cost = np.where(selected == "recalibrate", costs["recalibrate"], costs["post-train"])
    return np.where(regret > cost, selected, "nothing")


def advised(points: StudyPoints, rows: Sequence[int], costs: Mapping[Action, float]) -> Texts:
    """What the flowchart advises at every point, shape (P,): an action or, by name, a constant decision.

    Where it cannot tell, the action that it leans to.
    """
    followed = []
    for k in range(len(points.threshold)):
        advice = walk(_evidence(points, k, rows[k], costs))
        action = advice.fallback_action or advice.action
        constant = None if action in FITS else advice.constant
        followed.append(action if constant is None else ALWAYS[int(constant.decision)])
    return np.array(followed)


def _evidence(points: StudyPoints, at: int, rows: int, costs: Mapping[Action, float]) -> Evidence:
    items = {}
    for key in EVIDENCE_KEYS:
        value = points.estimates[key][at]
        low, high = (float(end[at]) for end in points.ends[key]) if key in points.ends else (np.nan, np.nan)
        if np.isfinite(value):
            items[key] = Item(key, float(value), (low, high) if np.isfinite(low) else None)
    costs_by_name = {str(action): cost for action, cost in costs.items()}
    return Evidence(items, rows, True, costs=costs_by_name, acts_from=float(points.threshold[at]))


N_CLUSTER_RESAMPLES = 400
MIN_RELATIVE_VARIANCE = 1e-12
"""Variance, as a share of the mean square, up to which values differ only by rounding."""
_SHORT = {"mce": "MCE", "rmsce": "RMSCE", "cl": "CL"}


def short_title(estimate: str) -> str:
    """The name of an estimate in tables and pictures."""
    return _SHORT.get(estimate, named(estimate).title)


@dataclass(frozen=True)
class Relation:
    """How an estimate predicts a gain over all points, seed by seed and then averaged.

    r2: squared Pearson correlation; interval: its bootstrap interval, None where there are too few files and scores
    (`Points.bootstrap_unit`). slope: of the gain on the estimate; mean_error: gain minus estimate, per unit of u_delta;
    both are meaningful for estimates that are utilities. r2 and slope are NaN where there are too few points
    (`Points.enough`).
    """

    estimate: str
    target: str
    r2: Known
    interval: tuple[float, float] | None
    slope: Known
    mean_error: Known


def relations(points: StudyPoints, confidence: float) -> dict[tuple[str, str], Relation]:
    """The relation of every (estimate, target) pair, over the points at which both are defined."""
    by_pair: dict[tuple[str, str], Relation] = {}
    for estimates, targets in product(_alike(points.estimates), _alike(points.targets)):
        stacked = np.array([*estimates.values(), *targets.values()])
        usable = np.isfinite(stacked).all(axis=0)
        if not usable.any():
            continue
        enough = points.enough(usable)
        sums = _sums(stacked[:, usable], points.cluster[usable], points.seed[usable])
        whole = _statistics(sums.sum(axis=1))
        half_width = np.full_like(whole.r2, np.nan)
        if points.bootstrap_unit is not None and enough:
            half_width = _reach(sums, confidence, np.random.default_rng([SEED, N_CLUSTER_RESAMPLES]))
        for (i, estimate), (j, target) in product(enumerate(estimates), enumerate(targets, len(estimates))):
            r2, slope = (float(each[i, j]) if enough else float("nan") for each in (whole.r2, whole.slope))
            ends = None
            if np.isfinite(half_width[i, j]):
                ends = max(r2 - float(half_width[i, j]), 0.0), min(r2 + float(half_width[i, j]), 1.0)
            error = float(whole.mean[j] - whole.mean[i])
            by_pair[estimate, target] = Relation(estimate, target, r2, ends, slope, error)
    return by_pair


def _alike(columns: Mapping[str, Floats]) -> list[dict[str, Floats]]:
    """Columns grouped by the points at which they are defined; columns that are defined nowhere are dropped."""
    defined = {name: np.isfinite(values) for name, values in columns.items()}
    alike = grouped((where.tobytes(), name) for name, where in defined.items() if where.any())
    return [{name: columns[name] for name in names} for names in alike.values()]


def _reach(sums: Floats, confidence: float, rng: np.random.Generator) -> Floats:
    """Half the length of the intervals of r2, by drawing clusters with replacement."""
    clusters = sums.shape[1]
    times = rng.multinomial(clusters, np.full(clusters, 1 / clusters), N_CLUSTER_RESAMPLES)
    draws = np.array([_statistics(np.einsum("c,scij->sij", counts, sums)).r2 for counts in times])
    return quantile(confidence) * _mean(np.abs(draws - _mean(draws)) ** 2) ** 0.5


def _mean(values: Floats) -> Floats:
    """Mean over the first axis of the defined values; NaN where there are none."""
    defined = np.isfinite(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(defined, values, 0.0).sum(axis=0) / defined.sum(axis=0)


class _Statistics(NamedTuple):
    r2: Floats
    slope: Floats
    mean: Floats


def _sums(columns: Floats, cluster: Ints, seed: Ints) -> Floats:
    """Sums of products of the columns and a constant one, by seed and cluster: shape (S, C, V + 1, V + 1)."""
    with_one = np.vstack((columns, np.ones(columns.shape[1])))
    seeds, clusters = np.unique(seed), np.unique(cluster)
    out = np.empty((len(seeds), len(clusters), len(with_one), len(with_one)))
    for a, s in enumerate(seeds):
        for b, c in enumerate(clusters):
            part = with_one[:, (seed == s) & (cluster == c)]
            out[a, b] = part @ part.T
    return out


def _statistics(sums: Floats) -> _Statistics:
    """Correlations and slopes of each seed from its sums, shape (S, V + 1, V + 1), averaged over seeds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moments = sums / sums[:, -1, -1][:, None, None]
        mean = moments[:, :-1, -1]
        cov = moments[:, :-1, :-1] - mean[:, :, None] * mean[:, None, :]
        variance, square = (np.einsum("sii->si", each) for each in (cov, moments[:, :-1, :-1]))
        # A column that varies only by rounding correlates with nothing.
        variance = np.where(variance > MIN_RELATIVE_VARIANCE * square, variance, np.nan)
        r2 = np.clip(cov**2 / (variance[:, :, None] * variance[:, None, :]), 0, 1)
        return _Statistics(_mean(r2), _mean(cov / variance[:, :, None]), _mean(mean))


def correlation(points: StudyPoints, estimate: str, target: str, rows: Mask) -> float:
    """Squared correlation on some points, averaged over seeds; NaN where it is not defined or there are too few."""
    columns = np.array((points.estimates[estimate], points.targets[target]))
    rows = rows & np.isfinite(columns).all(axis=0)
    if not points.enough(rows):
        return float("nan")
    one = np.zeros(int(rows.sum()), dtype=int)
    return float(_statistics(_sums(columns[:, rows], one, points.seed[rows])[:, 0]).r2[0, 1])


def of_each_task(points: StudyPoints) -> dict[Any, Mask]:
    """The points at each threshold, or for each task by name, shape (P,) each."""
    _, varied = points.varied
    return {each: varied == each for each in dict.fromkeys(varied.tolist())}


def without_each_file(points: StudyPoints) -> dict[Any, Mask]:
    """The points of all files but each, shape (P,) each."""
    return {name: points.file != k for k, name in enumerate(points.files)}


@dataclass(frozen=True, eq=False)
class Summary:
    """A study in numbers. in_utility: the relations in the units of Perez-Lebel et al. 2025, where u_delta is 1/t*.
    seconds: median processor time of a fit by method; reasons: why a method has no gain, and in how many halvings.
    """

    points: StudyPoints
    relations: Mapping[tuple[str, str], Relation]
    in_utility: Mapping[tuple[str, str], Relation]
    seconds: Mapping[str, float]
    reasons: Mapping[str, str]
    policies: tuple[Policies, ...] = ()
    notes: Names = ()

    @property
    def mean_gains(self) -> dict[str, float]:
        """The mean gain of each method on the other half, over u_delta."""
        return {name: float(np.nanmean(gains)) for name, gains in self.points.gains.items()}


def summarise(study: Study) -> Summary:
    """All tables of a study. Errors: DecalError where no method has a gain anywhere."""
    points = points_of(study)
    if not points.gains:
        why = "; ".join(listed_reasons(_reasons(study)))
        raise DecalError(
            f"no method could be fitted ({why})", f"give what they need, or name others: {Hint('method', 'METHOD')}"
        )
    # The advice is estimated from one half of the rows.
    rows = [record["rows"] // 2 for record in study.records for _ in record["points"]]
    return Summary(
        points,
        relations(points, study.setting.confidence),
        {} if points.over_tasks else relations(points.in_utility, study.setting.confidence),
        {name: float(np.median(values)) for name, values in _of_methods(study, "seconds").items()},
        _reasons(study),
        tuple(filter(None, (policies(points, rows, multiple, study.setting.confidence) for multiple in MULTIPLES))),
        study.notes,
    )


def listed_reasons(reasons: Mapping[str, str]) -> list[str]:
    """Why methods have no gain, a line for each reason."""
    methods = grouped((reason, name) for name, reason in reasons.items())
    return [f"{', '.join(names)}: {reason}" for reason, names in methods.items()]


def _of_methods(study: Study, what: str) -> dict[str, list[Any]]:
    """What the records say of each method."""
    return grouped(pair for record in study.records for pair in record[what].items())


def _reasons(study: Study) -> dict[str, str]:
    """The commonest reason of each method that lacks a gain somewhere."""
    commonest, of = {}, len(study.records)
    for name, reasons in _of_methods(study, "reasons").items():
        ((reason, _),) = Counter(reasons).most_common(1)
        commonest[name] = reason if len(reasons) == of else f"in {len(reasons)} of {of} halvings: {reason}"
    return commonest
