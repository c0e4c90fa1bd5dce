"""One unit: estimates from one half alone, gains from the other alone, both per unit of u_delta."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from decal_cli.analysis.study import (
    BY_DEFAULT,
    CHOSEN,
    ESTIMATES,
    WITH_INTERVALS,
    NamedTask,
    Setting,
    Unit,
    _halves,
    measure,
    task_of,
    tasks_named,
)
from decal_cli.data import Predictions
from decal_cli.errors import DecalError
from decal_cli.learn.method import Training, fit, training_rows
from decal_cli.learn.methods import parse as method
from decal_cli.learn.probe import build_recalibrated
from decal_cli.metrics import Inputs, interval_of, parse, value_of
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from decal_cli.task import task_of as task_from
from tests.helpers.command import Decal, valid_json
from tests.helpers.studies import study_predictions, study_setting, two_halves

SIZE, SEED = 600, 3
UNIT = Unit("file.csv", "p", SEED)
SETTING = study_setting("isotonic", "platt", "threshold", "refit", "glar")
WORLD = study_predictions(SIZE)
FIT, TEST = two_halves(WORLD.rows, SEED)


@pytest.fixture(scope="module")
def measured() -> dict:
    return measure(UNIT, WORLD, SETTING)


def relabelled(rows: np.ndarray) -> Predictions:
    label = WORLD.rows.label.copy()
    label[rows] = np.random.default_rng(9).permutation(label[rows])
    return replace(WORLD, rows=replace(WORLD.rows, label=label))


def each_point(record: dict, what: str) -> list:
    return [point[what] for point in record["points"]]


def test_a_record_is_plain_data(measured: dict) -> None:
    assert json.loads(json.dumps(measured, allow_nan=False)) == measured
    assert (measured["file"], measured["score"], measured["seed"], measured["rows"]) == ("file.csv", "p", SEED, SIZE)
    assert measured["positives"] == WORLD.rows.positives
    assert each_point(measured, "threshold") == list(SETTING.thresholds)
    for point in measured["points"]:
        assert tuple(point["estimates"]) == ESTIMATES
        assert set(point["gains"]) == {chosen.key for chosen in SETTING.methods} == set(measured["seconds"])


@pytest.mark.parametrize(
    ("unit", "world", "changed"),
    [
        (UNIT, WORLD, ()),
        (replace(UNIT, seed=4), WORLD, ("estimates", "gains")),
        (UNIT, relabelled(TEST), ("gains",)),
        (UNIT, relabelled(FIT), ("estimates", "gains")),
    ],
    ids=["the same unit", "another seed", "labels of the test half", "labels of the fit half"],
)
def test_estimates_rest_on_one_half_and_gains_on_both(
    measured: dict, unit: Unit, world: Predictions, changed: tuple[str, ...]
) -> None:
    again = measure(unit, world, SETTING)
    for what in ("estimates", "gains"):
        assert (each_point(again, what) != each_point(measured, what)) == (what in changed), what


@pytest.mark.parametrize("name", ["isotonic", "platt", "threshold", "refit", "glar"])
def test_a_gain_is_what_rows_of_the_test_half_win(measured: dict, name: str) -> None:
    rows = training_rows(WORLD, None, SEED)
    for point in measured["points"]:
        t = point["threshold"]
        utility = np.array([[1.0, 0.0], [0.0, 1 / t - 1]])
        applied = fit(method(name), replace(rows.take(FIT), task=task_of(t)))(rows.take(TEST))
        limit = np.full(len(TEST), t) if applied.threshold is None else np.broadcast_to(applied.threshold, len(TEST))
        won = [
            utility[int(applied.score[k] >= limit[k]), WORLD.rows.label[row]]
            - utility[int(rows.score[row] >= t), WORLD.rows.label[row]]
            for k, row in enumerate(TEST)
        ]
        # One unit of u_delta is 1 / t*.
        assert point["gains"][name] == pytest.approx(t * sum(won) / len(won), abs=1e-12)


@pytest.mark.parametrize("name", ["regret_calibration", "gain_recalibration", "regret_grouping_worst"])
def test_estimates_are_over_u_delta(measured: dict, name: str) -> None:
    table = WORLD.rows.take(FIT).table
    for point in measured["points"]:
        value, low, high = point["estimates"][name]
        inputs = Inputs.of(table, BinaryTask.of_threshold(point["threshold"]), seed=SEED)
        assert value == pytest.approx(value_of(parse(name), inputs), abs=1e-12)
        if name in WITH_INTERVALS:
            ends = interval_of(parse(name), inputs, SETTING.confidence)
            assert (low, high) == pytest.approx(ends, abs=1e-12)
        else:
            assert (low, high) == (None, None)


def test_without_features_methods_that_need_them_say_so() -> None:
    record = measure(UNIT, study_predictions(SIZE, features=False), SETTING)
    assert set(record["seconds"]) == {"isotonic", "platt", "threshold"} == set(record["points"][0]["gains"])
    assert {name: reason.split(":")[0] for name, reason in record["reasons"].items()} == {
        "refit": "needs features",
        "glar": "needs features",
    }
    assert record["points"][0]["estimates"]["gain_beyond"] == [None, None, None]


CLASSES = ("a", "b", "c")


def class_predictions(size: int = 400) -> Predictions:
    """Probabilities that are too sure, and a feature that knows more."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(size, 2))
    logits = np.column_stack((x[:, 0], -x[:, 0], x[:, 1]))
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    label = np.array([rng.choice(3, p=each) for each in chance])
    sure = np.exp(3 * np.column_stack((x[:, 0], -x[:, 0], np.zeros(size))))
    score = sure / sure.sum(axis=1, keepdims=True)
    return Predictions("m", ("m",), Rows(score, label, features=x, classes=CLASSES), ("x0", "x1"))


OF_CLASSES = Setting((), (method("temperature"),), 0.9).for_rows(True, "f")


def test_gains_are_those_of_decisions_on_the_other_half() -> None:
    model = class_predictions()
    record = measure(Unit("f", "m", 3), model, OF_CLASSES)
    # Three classes have three dearer misses.
    assert [point["task"] for point in record["points"]] == [task.name for task in BY_DEFAULT[:-1]]
    rows = model.rows
    first, test = two_halves(rows, 3)
    chosen = build_recalibrated(rows.take(first), seed=3).chosen
    training = training_rows(model, None, 3)
    for name, spec in (("temperature", method("temperature")), (CHOSEN, method(chosen))):
        score = fit(spec, training.take(first))(training.take(test)).score
        label, now = rows.label[test], rows.score[test]
        # Abstaining at .1 is worth .9.
        worth = [np.where(p.max(axis=1) < 0.9, 0.9, p.argmax(axis=1) == label).mean() for p in (now, score)]
        point = next(point for point in record["points"] if point["task"] == "abstain 0.1")
        assert point["gains"][name] == pytest.approx((worth[1] - worth[0]) / 2, abs=1e-12)
        cost = (1 - np.eye(3)) * (10.0, 1.0, 1.0)
        lost = [cost[np.argmin(p @ cost.T, axis=1), label].mean() for p in (now, score)]
        point = next(point for point in record["points"] if point["task"] == "misses of class 1 x 10")
        # The worst and the best action differ by 10, 1 and 1.
        assert point["gains"][name] == pytest.approx((lost[0] - lost[1]) / (2 * 12 / 3), abs=1e-12)


def test_the_task_of_more_actions_is_measured_for_two_classes() -> None:
    rng = np.random.default_rng(1)
    score = rng.random(400)
    model = Predictions("p", ("p",), Rows(score, (rng.random(400) < score**2).astype(np.uint8)))
    setting = Setting((), (method("isotonic"),), 0.9, tasks_named(task_from(utility="0,-20;-2,-3;-5,-1")))
    record = measure(Unit("f", "p", 0), model, setting.for_rows(False, "f"))
    (point,) = record["points"]
    assert set(point["gains"]) == {"isotonic"} and point["estimates"]["gain_recalibration"][0] is not None


def test_what_a_task_may_not_be() -> None:
    with pytest.raises(DecalError, match="studied by its t"):
        tasks_named(task_from(threshold=0.3))
    for given, several in ((task_from(abstain=0.1), False), (task_from(utility="0,-20;-2,-3;-5,-1"), True)):
        with pytest.raises(DecalError, match="the task is not"):
            replace(OF_CLASSES, tasks=(NamedTask("one", given),)).for_rows(several, "f")


@pytest.mark.ci
def test_the_command_studies_several_classes(decal: Decal, tmp_path: Path) -> None:
    model = class_predictions()
    rows, x = model.rows, model.rows.features
    lines = ["y,x0,x1,m:a,m:b,m:c"]
    for k in range(len(rows)):
        lines.append(",".join([CLASSES[rows.label[k]], *map(repr, x[k].tolist()), *map(repr, rows.score[k].tolist())]))
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    line = ("study", path, "--proba", "m:*", "--label", "y", "--features", "x*", "--seeds", "2", "--workers", "1")
    more = ("--method", "temperature", "--method", "stack", "-o", tmp_path / "study")
    ran = decal(*line, *more, COLUMNS="100")
    assert ran.code == 0, ran.err
    assert "1 file, 1 score, 10 tasks, 2 halvings: 20 points" in ran.out and "beyond chosen" in ran.out
    assert "task by task" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100
    document = valid_json((tmp_path / "study" / "summary.json").read_text())
    assert document["study"]["thresholds"] == [] and document["study"]["tasks"][0] == "accuracy"
    again = decal(*line, *more, "-f", "csv")
    assert "decal: 2 units to measure, 2 of them measured before" in again.err
    assert again.out.splitlines()[0].startswith("file,score,seed,task,gain_recalibration,")
    other = decal(*line, "--abstain", ".1", "--method", "temperature", "-o", tmp_path / "other")
    assert "1 task" in other.out, other.err
    assert "a task of two actions" in decal(*line, "--utility", "0,-1;-1,0", "-o", tmp_path / "none").err


@pytest.mark.parametrize("clustered", [False, True])
def test_halves_are_the_same_whatever_the_order_of_rows(clustered: bool) -> None:
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 40, 200) if clustered else None
    rows = Rows(rng.random(200), rng.integers(0, 2, 200), cluster=cluster)
    shuffled = rows.take(rng.permutation(200))
    for one, other in zip(_halves(rows, 3), _halves(shuffled, 3), strict=True):
        assert one.score.tolist() == other.score.tolist()


def test_halves_keep_clusters_whole_for_tasks_by_name_too() -> None:
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(100), 4)
    rows = Training(rng.random(400), rng.integers(0, 2, 400).astype(float), cluster=cluster)
    one, other = _halves(rows, 3)
    assert len(one) + len(other) == 400 and not set(one.cluster) & set(other.cluster)
