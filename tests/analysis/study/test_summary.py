"""What a study's points say, against numpy's own correlations and lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from decal_cli.analysis.study import Study, Summary, summarise
from decal_cli.analysis.study.columns import StudyPoints, columns_of, labels, points_of
from decal_cli.analysis.study.summary import by_threshold, without_a_file
from decal_cli.errors import DecalError
from tests.helpers.studies import STUDY_METHODS, made_up_study, study_point, study_record, study_setting

PAIRS = [
    ("gain_recalibration", "isotonic"),
    ("regret", "refit"),
    ("gain_beyond", "refit - isotonic"),
    ("ece", "stack-boosting"),
]


@pytest.fixture(scope="module")
def study() -> Study:
    return made_up_study()


@pytest.fixture(scope="module")
def summary(study: Study) -> Summary:
    return summarise(study)


def estimate_and_target(points: StudyPoints, estimate: str, target: str) -> tuple[np.ndarray, np.ndarray]:
    return points.estimates[estimate], points.targets[target]


def per_seed(points: StudyPoints, compute: Callable[[np.ndarray], float], rows: np.ndarray | None = None) -> float:
    """Mean over seeds of a number of the points of each."""
    rows = np.ones(len(points.seed), dtype=bool) if rows is None else rows
    return float(np.mean([compute(rows & (points.seed == seed)) for seed in np.unique(points.seed)]))


def squared(points: StudyPoints, estimate: str, target: str, rows: np.ndarray | None = None) -> float:
    x, y = estimate_and_target(points, estimate, target)
    return per_seed(points, lambda here: np.corrcoef(x[here], y[here])[0, 1] ** 2, rows)


@pytest.mark.parametrize(("estimate", "target"), PAIRS)
def test_correlation_slope_and_error_are_numpys_averaged_over_seeds(
    summary: Summary, estimate: str, target: str
) -> None:
    points, relation = summary.points, summary.relations[estimate, target]
    x, y = estimate_and_target(points, estimate, target)
    assert relation.r2 == pytest.approx(squared(points, estimate, target), abs=1e-12)
    assert relation.slope == pytest.approx(per_seed(points, lambda h: np.polyfit(x[h], y[h], 1)[0]), abs=1e-10)
    assert relation.mean_error == pytest.approx(per_seed(points, lambda h: np.mean(y[h] - x[h])), abs=1e-12)


@pytest.mark.parametrize(("estimate", "target"), PAIRS)
def test_by_threshold_and_without_a_file(summary: Summary, estimate: str, target: str) -> None:
    points = summary.points
    at, without = by_threshold(points, estimate, target), without_a_file(points, estimate, target)
    assert list(at) == [0.1, 0.5, 0.9] and list(without) == [f"file_{k}" for k in range(6)]
    for t, value in at.items():
        assert value == pytest.approx(squared(points, estimate, target, points.threshold == t), abs=1e-12)
    for k, value in enumerate(without.values()):
        assert value == pytest.approx(squared(points, estimate, target, points.file != k), abs=1e-12)


def test_every_estimate_meets_every_target(summary: Summary) -> None:
    targets = {*STUDY_METHODS, *(f"{name} - isotonic" for name in STUDY_METHODS[1:])}
    assert {target for _, target in summary.relations} == targets == set(summary.points.targets)
    assert ("brier", "refit") in summary.relations
    # Undefined everywhere in this study.
    assert ("threshold_adjusted", "refit") not in summary.relations


def test_intervals_are_of_files(study: Study, summary: Summary) -> None:
    """As wide as what a plain bootstrap over files gives; the same each time; wider than nothing."""
    points = summary.points
    rng = np.random.default_rng(5)
    for estimate, target in PAIRS:
        relation = summary.relations[estimate, target]
        x, y = estimate_and_target(points, estimate, target)
        draws = []
        for _ in range(200):
            rows = np.concatenate([np.flatnonzero(points.file == k) for k in rng.integers(6, size=6)])

            def of(here: np.ndarray, rows: np.ndarray = rows, x: np.ndarray = x, y: np.ndarray = y) -> float:
                kept = rows[here[rows]]
                return float(np.corrcoef(x[kept], y[kept])[0, 1] ** 2)

            draws.append(per_seed(points, of))
        low, high = relation.interval
        assert 0 <= low <= relation.r2 <= high <= 1
        reach = 1.96 * np.std(draws)
        assert max(relation.r2 - low, high - relation.r2) == pytest.approx(reach, rel=0.35)
    assert summarise(study).relations == summary.relations


def test_of_few_files_scores_are_drawn_and_of_few_scores_nothing() -> None:
    assert summarise(made_up_study(files=3)).points.bootstrap_unit == "scores"
    few = summarise(made_up_study(files=2))
    assert few.points.bootstrap_unit is None
    assert {relation.interval for relation in few.relations.values()} == {None}


def test_what_does_not_vary_correlates_with_nothing(study: Study) -> None:
    records = [
        {**each, "points": [{**p, "estimates": {**p["estimates"], "ece": [0.1, None, None]}} for p in each["points"]]}
        for each in study.records
    ]
    with np.errstate(all="raise"):
        constant_ece = summarise(replace(study, records=tuple(records)))
    relation = constant_ece.relations["ece", "refit"]
    assert np.isnan(relation.r2) and np.isnan(relation.slope) and relation.interval is None
    assert constant_ece.relations["regret", "refit"].r2 > 0.5
    assert np.isnan(list(by_threshold(constant_ece.points, "ece", "refit").values())).all()


def test_a_method_that_fails_somewhere_takes_no_points_from_the_others(study: Study, summary: Summary) -> None:
    first = study.records[0]
    points = [{**p, "gains": {**p["gains"], "blend": None}} for p in first["points"]]
    failed = {**first, "points": points, "reasons": {"blend": "needs more rows"}}
    with_a_failure = summarise(replace(study, records=(failed, *study.records[1:])))
    others, alone = with_a_failure.relations["regret", "refit"], summary.relations["regret", "refit"]
    for name in ("r2", "interval", "slope", "mean_error"):
        np.testing.assert_allclose(getattr(others, name), getattr(alone, name), rtol=1e-12, err_msg=name)
    x, y = estimate_and_target(with_a_failure.points, "regret", "blend")
    fitted = np.isfinite(y)
    assert fitted.sum() == len(y) - 3
    expected = per_seed(with_a_failure.points, lambda here: np.corrcoef(x[here], y[here])[0, 1] ** 2, fitted)
    assert with_a_failure.relations["regret", "blend"].r2 == pytest.approx(expected, abs=1e-12)
    assert with_a_failure.reasons == {"blend": "in 1 of 24 halvings: needs more rows"}


def test_a_reason_that_holds_everywhere_is_said_as_it_is(study: Study) -> None:
    records = tuple({**each, "reasons": {"glar": "needs features"}} for each in study.records)
    assert summarise(replace(study, records=records)).reasons == {"glar": "needs features"}


def test_seconds_are_medians(study: Study) -> None:
    times = iter(range(1, 100))
    records = tuple({**each, "seconds": {"isotonic": float(next(times))}} for each in study.records)
    assert summarise(replace(study, records=records)).seconds == {"isotonic": 12.5}


def test_means_have_the_error_of_scores() -> None:
    points = points_of(made_up_study(files=2, seeds=2))
    values = np.arange(len(points.pair), dtype=float)
    by_score = [values[points.pair == k].mean() for k in range(4)]
    mean, error = points.mean(values)
    assert (mean, error) == pytest.approx((values.mean(), np.std(by_score, ddof=1) / 2))
    assert np.isnan(points.mean(np.where(points.pair == 0, values, np.nan)).error)


def test_points_as_columns_of_a_file(study: Study) -> None:
    points = points_of(study)
    table = columns_of(points)
    assert {len(values) for values in table.values()} == {6 * 2 * 2 * 3}
    assert [table[name][4] for name in ("file", "score", "seed", "threshold")] == ["file_0", "p_0", 1, 0.5]
    assert table["gain of refit"][4] == study.records[1]["points"][1]["gains"]["refit"]
    assert table["gain_beyond low"][4] == study.records[1]["points"][1]["estimates"]["gain_beyond"][1]
    assert "regret low" not in table and np.isnan(table["threshold_adjusted"]).all()


def test_files_of_one_name_keep_their_folders() -> None:
    records = tuple(
        study_record(path, "p", 0, [study_point(0.5, {}, {"isotonic": 0.1})])
        for path in ("a/x.csv", "b/x.csv", "b/z.csv")
    )
    points = points_of(Study(records, (), study_setting("isotonic")))
    assert points.files == ("a/x", "b/x", "z")
    assert points.pairs == (("a/x", "p"), ("b/x", "p"), ("z", "p"))


@pytest.mark.parametrize(
    ("paths", "called"),
    [
        (("a/x.csv", "a/y.csv"), ("x", "y")),
        (("x.csv", "x.parquet"), ("x.csv", "x.parquet")),
        (("2023/north/x.csv", "2024/north/x.csv", "2024/south/y.csv"), ("2023/north/x", "2024/north/x", "y")),
        (("x.csv", "a/x.csv", "/b/a/x.csv"), ("x", "a/x", "b/a/x")),
        (("a/x.csv", "b/x.csv", "b/x.parquet"), ("a/x.csv", "b/x.csv", "b/x.parquet")),
        (("x.csv", "x.parquet", "x.csv.gz"), ("x.csv", "x.parquet", "x.csv.gz")),
        (("x.csv", "./x.csv"), ("x.csv", "./x.csv")),
    ],
)
def test_files_are_told_apart_by_the_end_of_their_path(paths: tuple[str, ...], called: tuple[str, ...]) -> None:
    assert labels(paths) == called


def test_few_points_of_a_halving_correlate_with_nothing_however_often_they_are_halved() -> None:
    """Three points: any two columns would seem to go together."""
    few = summarise(made_up_study(files=1, scores=3, seeds=20))
    assert not few.points.enough(np.ones(len(few.points.seed), dtype=bool))
    assert few.relations and np.isnan([[each.r2, each.slope] for each in few.relations.values()]).all()
    assert {each.interval for each in few.relations.values()} == {None}
    assert np.isfinite([each.mean_error for each in few.relations.values()]).all()
    more = summarise(made_up_study(files=1, scores=4, seeds=2))
    assert more.points.enough(np.ones(len(more.points.seed), dtype=bool))
    assert np.isfinite([each.r2 for each in more.relations.values()]).all()
    # At one threshold there are fewer.
    assert np.isnan(list(by_threshold(more.points, "regret", "refit").values())).all()


def test_without_any_gain_there_is_no_study() -> None:
    study = made_up_study(files=1, methods=())
    reasons = {"glar": "needs features", "refit": "needs features", "platt": "needs rows"}
    records = tuple({**each, "reasons": reasons} for each in study.records)
    with pytest.raises(DecalError, match=r"could be fitted \(glar, refit: needs features; platt: needs rows\)"):
        summarise(replace(study, records=records))


def test_in_the_papers_units_utilities_are_over_t_and_other_metrics_stay() -> None:
    """U = [[1, 0], [0, 1/t* - 1]] has u_delta 1/t*."""
    points = points_of(made_up_study())
    other, factor = points.in_utility, 1 / points.threshold
    for name in ("regret", "gain_beyond"):
        np.testing.assert_allclose(other.estimates[name], points.estimates[name] * factor)
    for name in ("ece", "auc", "accuracy"):
        np.testing.assert_array_equal(other.estimates[name], points.estimates[name])
    np.testing.assert_allclose(other.ends["gain_beyond"][1], points.ends["gain_beyond"][1] * factor)
    np.testing.assert_allclose(other.gains["refit"], points.gains["refit"] * factor)
    summary = summarise(made_up_study())
    x, y = (values * factor for values in (points.estimates["regret"], points.gains["refit"]))
    by_seed = [np.corrcoef(x[points.seed == s], y[points.seed == s])[0, 1] ** 2 for s in (0, 1)]
    assert summary.in_utility["regret", "refit"].r2 == pytest.approx(np.mean(by_seed), abs=1e-12)
