"""What a study's points say, against numpy's own correlations and lines."""

import csv
import io
import os
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from decal_cli.analysis.study import Study
from decal_cli.analysis.study_summary import (
    StudyPoints,
    Summary,
    advised,
    advised_as_printed,
    correlation,
    labels,
    of_each_task,
    points_of,
    policies,
    summarise,
    without_each_file,
)
from decal_cli.errors import DecalError
from decal_cli.render.format import Page
from decal_cli.render.formats.markdown import Markdown
from decal_cli.render.results.study import Studied, study_lines, study_tables
from tests.helpers.command import GOLDEN, valid_json
from tests.helpers.results import as_text
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
    at, without = (
        {name: correlation(points, estimate, target, part) for name, part in parts.items()}
        for parts in (of_each_task(points), without_each_file(points))
    )
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
    for part in of_each_task(constant_ece.points).values():
        assert np.isnan(correlation(constant_ece.points, "ece", "refit", part))


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


def test_means_have_the_error_of_scores() -> None:
    points = points_of(made_up_study(files=2, seeds=2))
    values = np.arange(len(points.pair), dtype=float)
    by_score = [values[points.pair == k].mean() for k in range(4)]
    mean, error = points.mean(values)
    assert (mean, error) == pytest.approx((values.mean(), np.std(by_score, ddof=1) / 2))
    assert np.isnan(points.mean(np.where(points.pair == 0, values, np.nan)).error)


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
    assert np.isnan(
        [correlation(more.points, "regret", "refit", part) for part in of_each_task(more.points).values()]
    ).all()


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


METHODS = ("isotonic", "refit", "stack", "stack-boosting", "blend")


def estimates(
    recalibration: tuple[float, float], beyond: tuple[float, float], together: tuple[float, float]
) -> dict[str, tuple[float, float, float]]:
    """Each gain as its middle and how far its interval reaches."""
    named = {"gain_recalibration": recalibration, "gain_beyond": beyond, "gain_post_training": together}
    return {name: (value, value - reach, value + reach) for name, (value, reach) in named.items()}


SURE = 0.0005
POINTS = [
    # advised and gains of the methods in order; costs are .002 and .01
    ("nothing", estimates((0, SURE), (0, SURE), (0, SURE)), (-0.001, -0.003, 0.0, 0.001, 0.0)),
    ("recalibrate", estimates((0.1, SURE), (0, SURE), (0.1, SURE)), (0.09, 0.091, 0.08, 0.08, 0.092)),
    ("post-train", estimates((0, SURE), (0.1, SURE), (0.1, SURE)), (0.0, 0.12, 0.11, 0.08, 0.1)),
    # Nothing is sure: what the estimates lean to.
    ("recalibrate", estimates((0.05, 0.1), (0, 0.1), (0.05, 0.1)), (0.001, 0.04, 0.0, 0.0, 0.02)),
]
# The best net gain known afterwards less that of each way of choosing, by hand:
#   best: nothing 0; isotonic .088; refit .11; refit .03
FOLLOWED = [0.0, 0.0, 0.11 - 0.09, 0.03 - (-0.001)]
ISOTONIC = [0.003, 0.0, 0.11 + 0.002, 0.03 + 0.001]
REFIT = [0.013, 0.088 - 0.081, 0.0, 0.0]
BLEND = [0.01, 0.088 - 0.082, 0.11 - 0.09, 0.03 - 0.01]
NOTHING = [0.0, 0.088, 0.11, 0.03]


def studied(methods: tuple[str, ...] = METHODS) -> Study:
    """Two scores of two points each."""
    points = [
        study_point(0.1 * (k + 1), estimated, dict(zip(methods, gains, strict=False)))
        for k, (_, estimated, gains) in enumerate(POINTS)
    ]
    records = (study_record("a.csv", "p", 0, points[:2]), study_record("a.csv", "q", 0, points[2:]))
    return Study(records, (), study_setting(*methods))


def test_the_advice_is_that_of_the_flowchart() -> None:
    actions = advised(points_of(studied()), [1000] * 4, {"recalibrate": 0.002, "post-train": 0.01})
    expected = ["nothing" if action in ("done", "do-not-post-train") else action for action in actions]
    assert expected == [action for action, _, _ in POINTS]


def test_losses_are_those_by_hand() -> None:
    result = policies(points_of(studied()), [1000] * 4, 1.0)
    by_hand = {
        "follow the advice": FOLLOWED,
        "flowchart as printed": NOTHING,  # without regrets it has nothing to go by
        "always nothing": NOTHING,
        "always isotonic": ISOTONIC,
        "always refit": REFIT,
        "always blend": BLEND,
    }
    assert [policy.name for policy in result.policies] == list(by_hand)
    for policy in result.policies:
        losses = by_hand[policy.name]
        assert policy.loss == pytest.approx(np.mean(losses), abs=1e-12)
        by_score = [np.mean(losses[:2]), np.mean(losses[2:])]
        assert policy.error == pytest.approx(np.std(by_score, ddof=1) / np.sqrt(2), abs=1e-12)
    assert result.share == pytest.approx(np.mean(FOLLOWED) / min(np.mean(ISOTONIC), np.mean(REFIT)))
    assert result.right == 0.5
    assert result.policies[0].chosen == {"do-not-post-train": 0.25, "post-train": 0.25, "recalibrate": 0.5}
    assert result.policies[4].chosen == {"refit": 1.0}
    assert all(policy.interval is None for policy in result.policies), "two scores are too few"


def test_a_constant_decision_that_is_ahead_is_followed() -> None:
    ahead = {"eu_never": -0.3, "eu_always": -0.1, "external_regret": 0.05, "expected_utility": -0.15}
    named = estimates((0, SURE), (0, SURE), (0, SURE)) | {name: (value, value, value) for name, value in ahead.items()}
    gains = dict(zip(METHODS, (0.01, 0.0, 0.0, 0.0, 0.0), strict=True))
    records = (study_record("a.csv", "p", 0, [study_point(0.1, named, gains, constants=(-0.1, 0.04))]),)
    study = Study(records, (), study_setting(*METHODS))
    assert advised(points_of(study), [1000], {"recalibrate": 0.002, "post-train": 0.01}).tolist() == ["always-1"]
    result = policies(points_of(study), [1000], 1.0)
    losses = {policy.name: policy.loss for policy in result.policies}
    assert losses["follow the advice"] == 0 and losses["always nothing"] == pytest.approx(0.04)


def regrets(calibration: float, grouping: float) -> dict[str, tuple[float, float, float]]:
    values = {"regret_calibration": calibration, "regret_grouping": grouping, "regret": calibration + grouping}
    return {name: (value, value, value) for name, value in values.items()}


PRINTED = [
    # t*, regrets, what the paper's flowchart advises; a grouping regret is 0 up to .02 t*, costs are .002 and .01
    (0.5, regrets(0.0, 0.0), "nothing"),
    (0.5, regrets(0.1, 0.009), "recalibrate"),
    (0.5, regrets(0.1, 0.011), "post-train"),
    (0.1, regrets(0.1, 0.009), "post-train"),
    (0.5, regrets(0.001, 0.0005), "nothing"),
    (0.1, regrets(0.001, 0.005), "nothing"),
]


def test_the_printed_flowchart_goes_by_the_plug_in_regrets() -> None:
    gains = dict(zip(METHODS, (0.02, 0.0, 0.0, 0.0, 0.05), strict=True))
    points = [study_point(t, estimated, gains) for t, estimated, _ in PRINTED]
    study = Study((study_record("a.csv", "p", 0, points),), (), study_setting(*METHODS))
    assert advised_as_printed(points_of(study), {"recalibrate": 0.002, "post-train": 0.01}).tolist() == [
        action for _, _, action in PRINTED
    ]
    # Best is blend, .04 after its cost; isotonic wins .018.
    _, printed = policies(points_of(study), [1000] * len(PRINTED), 1.0).policies[:2]
    assert printed.loss == pytest.approx((3 * 0.04 + 0.022) / 6, abs=1e-12) and printed.right == pytest.approx(2 / 6)


def test_intervals_over_files_are_those_of_students_t() -> None:
    losses = [0.01, 0.02, 0.04, 0.05, 0.08]
    points = [[study_point(0.5, {}, {"isotonic": loss, "refit": 0.0, "blend": 0.0})] for loss in losses]
    records = [study_record(f"{k}.csv", "p", 0, each) for k, each in enumerate(points)]
    study = Study(tuple(records), (), study_setting("isotonic", "refit", "blend"))
    nothing = policies(points_of(study), [1000] * 5, 0.0, 0.9).policies[2]
    assert nothing.name == "always nothing" and nothing.loss == pytest.approx(0.04)
    reach = scipy.stats.t.ppf(0.95, 4) * np.std(losses, ddof=1) / np.sqrt(5)
    assert nothing.interval == pytest.approx((0.04 - reach, 0.04 + reach), abs=1e-12)


def test_where_methods_cost_more_than_they_win_nothing_is_best() -> None:
    losses = policies(points_of(studied()), [1000] * 4, 1000.0)
    loss = {policy.name: policy.loss for policy in losses.policies}
    assert loss["always nothing"] == loss["follow the advice"] == 0 and losses.right == 1
    assert loss["always isotonic"] == pytest.approx(2 - np.mean([gains[0] for _, _, gains in POINTS]))


def test_points_without_a_gain_are_left_out() -> None:
    study = studied()
    study.records[1]["points"][1]["gains"]["refit"] = None
    losses = policies(points_of(study), [1000] * 4, 1.0)
    assert losses.policies[0].loss == pytest.approx(np.mean(FOLLOWED[:3]))
    assert losses.right == pytest.approx(2 / 3)


def test_without_the_methods_there_is_nothing_to_compare() -> None:
    assert policies(points_of(studied(METHODS[:4])), [1000] * 4, 1.0) is None


@pytest.fixture(scope="module")
def rendered_summary() -> Summary:
    return replace(summarise(made_up_study()), reasons={"glar": "needs a task", "stack": "needs a task"})


def rendered(name: str, rendered_summary: Summary) -> str:
    if name.endswith(".md"):
        return Markdown(Page()).document(Studied(rendered_summary, {"beyond.png": "What is won"}))
    return as_text(Studied(rendered_summary), width=int(re.sub(r"\D", "", name)))


@pytest.mark.parametrize("name", ["study_80.txt", "study_100.txt", "study.md"])
def test_golden(name: str, rendered_summary: Summary) -> None:
    text, path = rendered(name, rendered_summary), GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_the_first_lines_say_what_there_is_too_little_of() -> None:
    first, _, few, dash = study_lines(summarise(made_up_study(files=1, scores=1, seeds=1)))
    assert first == "1 file, 1 score, 3 thresholds, 1 halving: 3 points"
    assert few == "Too few scores for intervals: they need at least 5 files or 5 scores."
    assert dash == "–: fewer than 10 points in a halving, too few for a correlation."
    assert len(study_lines(summarise(made_up_study(files=4, scores=1)))) == 3
    assert len(study_lines(summarise(made_up_study(files=1, scores=5)))) == 2
    for files in (2, 3):
        titles = [table.title for table in study_tables(summarise(made_up_study(files=files)))]
        assert any(title.endswith(", without each file") for title in titles) == (files == 3)


def test_a_method_is_better_where_it_wins_more_and_not_where_it_wins_as_much() -> None:
    gains = [{"isotonic": 0.01, "platt": each} for each in (0.02, 0.01, 0.01, 0.0)]
    points = [study_point(0.1 * k, {}, each) for k, each in enumerate(gains, 1)]
    record = study_record("a", "p", 0, points, seconds=dict.fromkeys(gains[0], 1.0))
    tables = study_tables(summarise(Study((record,), (), study_setting("isotonic", "platt"))))
    (table,) = (each for each in tables if each.title == "Time and gain of each method")
    assert [[cell.text for cell in row.cells[3:]] for row in table.rows] == [["", ""], ["+0.00", "25 %"]]


def test_a_method_that_could_not_be_fitted_everywhere_is_named_beside_the_means() -> None:
    """Means over different points differ by more than what the method wins beyond isotonic regression."""
    gains = [{"isotonic": 0.01, "platt": 0.01}, {"isotonic": 0.04}]
    points = [study_point(0.1 * k, {}, each) for k, each in enumerate(gains, 1)]
    record = study_record("a", "p", 0, points, seconds=dict.fromkeys(gains[0], 1.0))
    tables = study_tables(summarise(Study((record,), (), study_setting("isotonic", "platt"))))
    (table,) = (each for each in tables if each.title == "Time and gain of each method")
    assert table.caption.endswith(" where the method could be fitted, 2 but for platt at 1 point.")


def test_the_json_is_known_to_the_schema_and_holds_everything(rendered_summary: Summary) -> None:
    document = valid_json(as_text(Studied(rendered_summary), "json"))["study"]
    assert document["files"][0] == "file_0" and document["scores"][0] == ["file_0", "p_0"]
    assert (document["thresholds"], document["seeds"], document["points"]) == ([0.1, 0.5, 0.9], [0, 1], 72)
    assert document["notes"] == ["folder/file_0.csv, p_none: dropped"]
    assert len(document["relations"]) == len(rendered_summary.relations)
    relation = next(each for each in document["relations"] if (each["estimate"], each["target"]) == ("regret", "refit"))
    assert relation["r2"] == rendered_summary.relations["regret", "refit"].r2
    assert [each["multiple"] for each in document["policies"]] == [0.5, 1.0, 2.0, 4.0]


def test_what_is_undefined_is_null_in_json_and_a_dash_in_tables() -> None:
    """One file of one score: nothing to draw from, no error of a mean."""
    few = summarise(made_up_study(files=1, scores=1, seeds=1))
    document = valid_json(as_text(Studied(few), "json"))["study"]
    assert {each["interval"] for each in document["relations"]} == {None}
    assert {policy["error"] for each in document["policies"] for policy in each["policies"]} == {None}
    for text in (as_text(Studied(few)), as_text(Studied(few), "markdown")):
        assert "nan" not in text and "bootstrap" not in text
    titles = {table.title: table for table in study_tables(few)}
    assert {row.cells[2].text for row in titles["Do the estimates have the right size?"].rows} == {"–"}
    assert not any(title.startswith("What predicts the gain") for title in titles), "of dashes alone"


def test_points_are_written_with_every_number(rendered_summary: Summary) -> None:
    rows = list(csv.DictReader(io.StringIO(as_text(Studied(rendered_summary), "csv"))))
    points = rendered_summary.points
    assert len(rows) == 72
    for name in ("regret", "gain_beyond", "brier"):
        assert [float(row[name]) for row in rows] == points.estimates[name].tolist()
    assert [float(row["gain of refit"]) for row in rows] == points.gains["refit"].tolist()
    assert [float(row["gain_beyond high"]) for row in rows] == points.ends["gain_beyond"][1].tolist()
    assert {row["threshold_adjusted"] for row in rows} == {""}
    assert "nan" not in as_text(Studied(rendered_summary), "csv")
