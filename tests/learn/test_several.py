"""Methods for several classes: oracles, model files, weights, the order of rows and classes; fit, apply and --try."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from decal_cli.learn.method import Training, fit, try_out
from decal_cli.learn.methods import parse
from decal_cli.learn.stacks import grown_boosting, grown_forest
from tests.helpers.command import Decal, valid_json
from tests.helpers.training import LETTERS, OF_THREE, class_training, gain_of, unlabelled

pytestmark = pytest.mark.usefixtures("seen_rows_only")


@cache
def fitted(key: str) -> Any:
    return fit(parse(key), class_training())


@pytest.mark.parametrize("key", OF_THREE)
def test_classes_in_another_order_are_scored_alike(key: str) -> None:
    rows, order = class_training(), np.array([2, 0, 1])
    place = np.argsort(order)
    other = replace(rows, score=rows.score[:, order], label=place[rows.label], classes=("c", "a", "b"))
    score = fit(parse(key), other)(unlabelled(other)).score
    assert score[:, place] == pytest.approx(fitted(key)(unlabelled(rows)).score, abs=1e-5)


@pytest.mark.parametrize("key", ["stack-forest", "stack-boosting"])
@pytest.mark.parametrize("seen", [(0, 1, 2), (0, 2)])
def test_trees_predict_what_scikit_learn_predicts(key: str, seen: tuple[int, ...]) -> None:
    rows = class_training()
    rows = rows.take(np.isin(rows.label, seen)).in_order()
    model: Any = fit(parse(key), rows)
    columns = np.column_stack((rows.score[:, model.order], rows.features)).astype(np.float32)
    label = np.argsort(model.order)[rows.label]
    grown, trees = (grown_forest, 60) if key == "stack-forest" else (grown_boosting, 120)
    peer: Any = grown(columns, label, rows, trees, "decal")
    expected = np.zeros((len(rows), 3))
    expected[:, model.order[peer.classes_]] = peer.predict_proba(columns)
    assert model(unlabelled(rows)).score == pytest.approx(expected, abs=1e-9)


def test_an_ensemble_of_temperatures_is_the_likeliest_mixture() -> None:
    rows, model = class_training(), fitted("ensemble-temperature")
    tempered = np.maximum(rows.score, 1e-6) ** model.inverse
    tempered /= tempered.sum(axis=1, keepdims=True)
    parts = np.stack((tempered, rows.score, np.full_like(rows.score, 1 / 3)))
    assert model(unlabelled(rows)).score == pytest.approx(np.tensordot(model.weights, parts, 1), abs=1e-6)
    at = parts[:, np.arange(600), rows.label]

    def loss(weights: np.ndarray) -> float:
        return -float(np.log(weights @ at).mean())

    best = minimize(loss, np.full(3, 1 / 3), bounds=[(0, 1)] * 3, method="SLSQP", tol=1e-12,
                    constraints={"type": "eq", "fun": lambda w: w.sum() - 1})  # fmt: skip
    assert loss(model.weights) == pytest.approx(best.fun, abs=1e-7)
    assert np.array_equal(model(unlabelled(rows)).score.argmax(axis=1), rows.score.argmax(axis=1))


def test_one_vs_rest_isotonic_is_that_of_scikit_learn() -> None:
    rows = class_training()
    each = np.column_stack([
        IsotonicRegression(out_of_bounds="clip").fit(rows.score[:, k], rows.label == k).predict(rows.score[:, k])
        for k in range(3)
    ])  # fmt: skip
    total = each.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, each / np.where(total > 0, total, 1), rows.score)
    assert fitted("isotonic")(unlabelled(rows)).score == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("key", "beside"), [("vector", None), ("dirichlet", 10.0)])
def test_a_likeliest_map_is_that_of_a_general_optimiser(key: str, beside: float | None) -> None:
    rows = class_training(rows=200)
    logs, right = np.log(np.maximum(rows.score, 1e-6)), np.eye(3)[rows.label]

    def loss(flat: np.ndarray) -> float:
        weight = np.diag(flat[:3]) if beside is None else flat[3:].reshape(3, 3)
        intercept = flat[3:] if beside is None else flat[:3]
        logits = logs @ weight.T + intercept
        paid = 0.0 if beside is None else beside / 2 * float((weight[~np.eye(3, dtype=bool)] ** 2).sum()
                                                            + (intercept**2).sum())  # fmt: skip
        return float(np.logaddexp.reduce(logits, axis=1).sum() - (logits * right).sum()) + paid

    size = 6 if beside is None else 12
    best = minimize(loss, np.full(size, 0.1), method="BFGS", options={"gtol": 1e-6}).fun
    model: Any = fit(parse(key), rows)
    flat = (np.concatenate((np.diag(model.weight), model.intercept)) if beside is None
            else np.concatenate((model.intercept, model.weight.ravel())))  # fmt: skip
    assert loss(flat) == pytest.approx(best, abs=2e-2)


def test_a_gain_is_the_utility_of_the_new_actions_less_that_of_the_old() -> None:
    rows = class_training(5, 800)
    tried = try_out(parse("temperature"), rows)
    utility = np.array(rows.task.utility)
    after, before = ((score @ utility.T).argmax(axis=1) for score in (tried.applied.score, rows.score))
    won = utility[after, rows.label] - utility[before, rows.label]
    gain = gain_of(rows, tried.applied)
    assert gain.value == pytest.approx(won.mean(), abs=1e-12)
    assert gain.error == pytest.approx(1.2 * won.std() / np.sqrt(800), rel=1e-9)


def write(path: Path, rows: Training) -> Path:
    head = ",".join(["y", *(f"m:{c}" for c in LETTERS), "x0", "x1", "x2", "kind"])
    lines = [
        ",".join([LETTERS[label], *map(repr, score), *map(repr, x), "u" if x[0] > 0 else "v"])
        for label, score, x in zip(rows.label, rows.score.tolist(), rows.matrix.tolist(), strict=True)
    ]
    path.write_text("\n".join((head, *lines)) + "\n")
    return path


NAMED = ("--proba", "m:*", "--label", "y")


@pytest.mark.parametrize("method", ["structured-vector", "blend", "auto"])
def test_fit_and_apply(decal: Decal, tmp_path: Path, method: str) -> None:
    path, fresh = write(tmp_path / "a.csv", class_training(0)), write(tmp_path / "b.csv", class_training(1))
    line = ("fit", method, path, *NAMED, "--features", "x*", "--features", "kind", "--abstain", ".3")
    ran = decal(*line, "-o", tmp_path / "m.json", COLUMNS="100")
    assert ran.code == 0, ran.err
    assert "the 3 columns m_" in ran.out
    assert decal("apply", tmp_path / "m.json", fresh, "-o", tmp_path / "out.csv").code == 0
    name = "m_blend" if method == "auto" else f"m_{method.replace('-', '_')}"
    ran = decal("compare", tmp_path / "out.csv", *NAMED, "--proba", f"{name}:*", "-m", "log_loss", "-f", "json")
    document = valid_json(ran.out)
    assert document["comparison"]["contests"][0]["metrics"]["log_loss"]["difference"]["value"] < 0


def test_a_test_file_may_hold_the_classes_in_another_order(decal: Decal, tmp_path: Path) -> None:
    path, fresh = write(tmp_path / "a.csv", class_training(0)), write(tmp_path / "b.csv", class_training(1))
    lines = [line.split(",") for line in fresh.read_text().splitlines()]
    turned = tmp_path / "c.csv"
    turned.write_text("\n".join(",".join((line[0], line[3], line[1], line[2], *line[4:])) for line in lines) + "\n")
    gains = []
    for test in (fresh, turned):
        ran = decal("fit", "vector", path, *NAMED, "--abstain", ".3", "--test", test, "-o", tmp_path / "m.json",
                    "--force", "-f", "json")  # fmt: skip
        assert ran.code == 0, ran.err
        gains.append(valid_json(ran.out)["fit"]["gain"])
    assert gains[0]["value"] == pytest.approx(gains[1]["value"], abs=1e-12)


@pytest.mark.ci
def test_more_than_two_actions_are_tried_and_fitted(decal: Decal, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    score = rng.random(400)
    lines = [f"{p},{int(rng.random() < p**2)}" for p in score.tolist()]
    path = tmp_path / "two.csv"
    path.write_text("\n".join(("p,y", *lines)) + "\n")
    task = ("--utility", "home,0,-20;test,-2,-3;treat,-5,-1")
    ran = decal("recommend", path, *task, "--method", "isotonic", "-f", "json")
    tried = valid_json(ran.out)["recommendation"]["tried"][0]["attempts"][0]
    predicted, achieved = (tried[key]["value"] for key in ("predicted", "achieved"))
    assert abs(predicted - achieved) < 0.2
    ran = decal("fit", "isotonic", path, *task, "-o", tmp_path / "m.json", "-f", "json")
    assert valid_json(ran.out)["fit"]["gain"]["value"] == pytest.approx(achieved, abs=1e-9)
