"""One unit: estimates from one half alone, gains from the other alone, both per unit of u_delta."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from decal_cli.analysis.study import Unit, measure
from decal_cli.analysis.study.points import ESTIMATES, OF_SCORES, WITH_INTERVALS, task_of
from decal_cli.data import Predictions
from decal_cli.learn.method import fit, training_rows
from decal_cli.learn.methods import parse as method
from decal_cli.metrics import Inputs, interval_of, parse, value_of
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from tests.helpers.studies import study_predictions, study_setting, two_halves

SIZE, SEED = 600, 3
UNIT = Unit("file.csv", "p", SEED)
SETTING = study_setting("isotonic", "platt", "threshold", "refit", "glar")
WORLD = study_predictions(SIZE)
FIT, TEST = two_halves(SIZE, SEED)


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


def test_the_same_unit_gives_the_same_numbers_and_another_seed_others(measured: dict) -> None:
    again, other = measure(UNIT, WORLD, SETTING), measure(replace(UNIT, seed=4), WORLD, SETTING)
    assert again["points"] == measured["points"]
    assert each_point(other, "estimates") != each_point(measured, "estimates") and each_point(
        other, "gains"
    ) != each_point(measured, "gains")


def test_labels_of_the_test_half_do_not_reach_the_estimates(measured: dict) -> None:
    changed = measure(UNIT, relabelled(TEST), SETTING)
    assert each_point(changed, "estimates") == each_point(measured, "estimates")
    assert each_point(changed, "gains") != each_point(measured, "gains")


def test_labels_of_the_fit_half_change_estimates_and_what_is_fitted(measured: dict) -> None:
    changed = measure(UNIT, relabelled(FIT), SETTING)
    assert each_point(changed, "estimates") != each_point(measured, "estimates")
    assert each_point(changed, "gains") != each_point(measured, "gains")


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


def test_what_others_look_at_is_the_same_at_every_threshold(measured: dict) -> None:
    for choice in OF_SCORES:
        assert len({tuple(estimates[choice.key]) for estimates in each_point(measured, "estimates")}) == 1


def test_accuracy_is_that_of_deciding_from_one_half_on(measured: dict) -> None:
    rows = WORLD.rows.take(FIT)
    right = float(np.mean((rows.score >= 0.5) == rows.label))
    assert measured["points"][0]["estimates"]["accuracy"][0] == pytest.approx(right, abs=1e-12)


def test_estimates_and_gains_meet_where_the_truth_is_known() -> None:
    """Half of the rows about score .2 with label 1 in .5 of them, half about .8 with .8: acting on .2 wins .15 / 2."""
    rng = np.random.default_rng(1)
    score = np.repeat([0.2, 0.8], 10_000) + rng.uniform(-0.05, 0.05, 20_000)
    label = (rng.random(len(score)) < np.repeat([0.5, 0.8], 10_000)).astype(np.uint8)
    model = Predictions("p", ("p",), Rows(score, label))
    record = measure(UNIT, model, study_setting("isotonic", "histogram", "threshold", thresholds=(0.35, 0.9)))
    one, none = record["points"]
    for name in ("regret_calibration", "gain_recalibration"):
        assert one["estimates"][name][0] == pytest.approx(0.075, abs=0.01)
        assert none["estimates"][name][0] == pytest.approx(0, abs=0.01)
    assert list(one["gains"].values()) == pytest.approx([0.075] * 3, abs=0.01)
    assert list(none["gains"].values()) == pytest.approx([0] * 3, abs=0.01)


def test_without_features_methods_that_need_them_say_so() -> None:
    record = measure(UNIT, study_predictions(SIZE, features=False), SETTING)
    assert set(record["seconds"]) == {"isotonic", "platt", "threshold"} == set(record["points"][0]["gains"])
    assert {name: reason.split(":")[0] for name, reason in record["reasons"].items()} == {
        "refit": "needs features",
        "glar": "needs features",
    }
    assert record["points"][0]["estimates"]["gain_beyond"] == [None, None, None]
