"""Studies over tasks by name: of several classes, and of more than two actions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from decal_cli.analysis.study.points import Setting, Unit, is_record, measure
from decal_cli.analysis.study.tasks import BY_DEFAULT, CHOSEN, NamedTask, tasks_named
from decal_cli.data import Predictions
from decal_cli.errors import DecalError
from decal_cli.learn.class_folds import build_recalibrated
from decal_cli.learn.methods import parse
from decal_cli.tables.rows import Rows
from decal_cli.task import task_of
from tests.helpers.command import Decal, valid_json
from tests.helpers.studies import two_halves

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


def test_gains_are_those_of_decisions_on_the_other_half() -> None:
    model = class_predictions()
    setting = Setting((), (parse("temperature"),), 0.9).for_rows(True, "f")
    record = measure(Unit("f", "m", 3), model, setting)
    assert is_record(record, Unit("f", "m", 3), setting)
    # Three classes have three dearer misses.
    assert [point["task"] for point in record["points"]] == [task.name for task in BY_DEFAULT[:-1]]
    fit, test = two_halves(400, 3)
    rows = model.rows
    chosen = build_recalibrated(rows.take(fit), seed=3).chosen
    from decal_cli.learn.method import fit as fitted
    from decal_cli.learn.method import training_rows

    training = training_rows(model, None, 3)
    for name, spec in (("temperature", parse("temperature")), (CHOSEN, parse(chosen))):
        score = fitted(spec, training.take(fit))(training.take(test)).score
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
    setting = Setting((), (parse("isotonic"),), 0.9, tasks_named(task_of(utility="0,-20;-2,-3;-5,-1")))
    record = measure(Unit("f", "p", 0), model, setting.for_rows(False, "f"))
    (point,) = record["points"]
    assert set(point["gains"]) == {"isotonic"} and point["estimates"]["gain_recalibration"][0] is not None


def test_what_a_record_or_a_task_may_not_be() -> None:
    setting = Setting((), (parse("temperature"),), 0.9).for_rows(True, "f")
    record = measure(Unit("f", "m", 3), class_predictions(), setting)
    for broken in ({"points": [{"task": "other"}]}, {"score": "n"}, {"points": [{}]}):
        assert not is_record({**record, **broken}, Unit("f", "m", 3), setting)
    with pytest.raises(DecalError, match="studied by its t"):
        tasks_named(task_of(threshold=0.3))
    for given, several in ((task_of(abstain=0.1), False), (task_of(utility="0,-20;-2,-3;-5,-1"), True)):
        with pytest.raises(DecalError, match="the task is not"):
            replace(setting, tasks=(NamedTask("one", given),)).for_rows(several, "f")


def test_the_command_studies_several_classes(decal: Decal, tmp_path: Path) -> None:
    model = class_predictions()
    rows, x = model.rows, model.rows.features
    assert isinstance(x, np.ndarray)
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
