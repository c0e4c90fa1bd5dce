"""The rows that the tests of the methods learn from and score."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from decal_cli.learn.held_out import WIDENED
from decal_cli.learn.method import Training, fit
from decal_cli.learn.methods import METHODS, parse
from decal_cli.learn.models import Applied, Model
from decal_cli.metrics.decisions import Change
from decal_cli.metrics.inputs import decisions_on
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.units import Estimate
from decal_cli.task import BinaryTask, abstaining
from tests.helpers.worlds import fixture_columns

FIFTH = BinaryTask.of_threshold(0.2)
OF_TWO = [name for name, method in METHODS.items() if method.for_two]
"""The methods for scores of two classes."""
OF_THREE = [name for name, method in METHODS.items() if method.of_classes]
"""Those for several classes."""


def shipped_training(split: str) -> Training:
    """One half of the shipped file of known truth: split is cal or test."""
    data = fixture_columns("binary_n2000.csv")
    here = data["split"] == split
    features = np.column_stack([data[name].astype(float) for name in ("x1", "x2", "x3")])
    score, label = data["p"].astype(float), data["y"].astype(float)
    return Training(
        score[here], label[here], groups={"group": data["group"][here]}, features=features[here], task=FIFTH
    )


def random_training(size: int, seed: int, weighted: bool = False, levels: int | None = None) -> Training:
    """A world in which the second feature and the group matter and the score knows the first alone.

    levels: the score takes this many values, each the level set of some rows. One row lies a trifle below the lowest:
    the bins' rule joins the lowest score to the next, so that every other level can be a bin.
    """
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(size, 3))
    group = rng.choice(["a", "b", "c"], size=(size, 1))[:, 0]
    truth = 1 / (1 + np.exp(-features[:, 0] - np.sign(features[:, 1]) + (group == "b")))
    score = 1 / (1 + np.exp(-1.5 * features[:, 0]))
    if levels is not None:
        score = (np.floor(score * levels) + 0.5) / levels
        score[score.argmin()] -= 1e-12
    label = (rng.random(size) < truth).astype(float)
    label[:2] = 0, 1
    weight = rng.uniform(0.2, 3, size) if weighted else None
    return Training(score, label, weight, groups={"group": group}, features=features, task=FIFTH)


LETTERS = ("a", "b", "c")


def class_training(seed: int = 0, rows: int = 600, weighted: bool = False) -> Training:
    """Probabilities of three classes that are too sure, and a feature that says more than they."""
    rng = np.random.default_rng(seed)
    p, x = rng.dirichlet(np.full(3, 0.9), rows), rng.standard_normal((rows, 3))
    q = p * np.exp(np.column_stack((x[:, 0], -x[:, 0], np.zeros(rows))))
    q /= q.sum(axis=1, keepdims=True)
    label = (rng.random((rows, 1)) > np.cumsum(q, axis=1)[:, :2]).sum(axis=1)
    score = p**2 / (p**2).sum(axis=1, keepdims=True)
    weight = rng.integers(1, 3, rows).astype(float) if weighted else None
    task = abstaining(0.3).for_classes(LETTERS)
    return Training(score, label, weight, classes=LETTERS, features=x, task=task)


def gain_of(rows: Training, applied: Applied) -> Estimate:
    """What acting on a new score wins over the score as it is."""
    assert rows.task is not None
    return Change(decisions_on(rows, rows.task), decisions_on(rows, rows.task, applied), WIDENED).gain


def training_of(rows: Rows, task: BinaryTask = FIFTH) -> Training:
    """Rows with features and groups made from their content, so that equal rows stay equal."""
    features = np.column_stack((np.cos(40 * rows.score), rows.score * rows.label))
    groups = {"half": np.where(rows.score > 0.5, "high", "low")}
    label = rows.label.astype(float)
    return Training(rows.score, label, rows.weight, groups=groups, features=features, task=task)


def unlabelled(rows: Unlabelled) -> Unlabelled:
    """What a model sees of rows."""
    return Unlabelled(rows.score, classes=rows.classes, groups=rows.groups, features=rows.features)


def fit_method(key: str, rows: Training) -> Model:
    """The method of this key, fitted."""
    return fit(parse(key), rows)


def apply_in_sample(key: str, rows: Training) -> Applied:
    """In-sample."""
    return fit_method(key, rows)(unlabelled(rows))


def with_task(rows: Training, threshold: float) -> Training:
    return replace(rows, task=BinaryTask.of_threshold(threshold))


def utility_of_acts(rows: Training, acts: np.ndarray) -> float:
    """Mean utility of decisions per unit of u_delta, less that of deciding 0 always."""
    assert rows.binary is not None
    return float(np.average(acts * (rows.label - rows.binary.threshold), weights=rows.weights))


def spread_between(score: np.ndarray, region: np.ndarray, rows: Training) -> float:
    """Grouping loss on a partition, in-sample: mean variance of E[y | score, region] among the rows of one score."""
    cell = _mean_within(rows, score, region)
    mean = _mean_within(rows, score, np.zeros(len(rows)))
    return float(np.average((cell - mean) ** 2, weights=rows.weights))


def _mean_within(rows: Training, *keys: np.ndarray) -> np.ndarray:
    """Mean label of the rows that agree in all keys, for each row."""
    number = np.unique(np.column_stack([np.asarray(key, dtype=float) for key in keys]), axis=0, return_inverse=True)[1]
    number = number.ravel()
    return (np.bincount(number, rows.weights * rows.label) / np.bincount(number, rows.weights))[number]


def calibration_error(score: np.ndarray, rows: Training) -> float:
    """Largest distance between a score and the mean label of the rows that have it (to 12 digits)."""
    return float(np.abs(_mean_within(rows, np.round(score, 12)) - score).max())


any_training = st.builds(random_training, st.integers(60, 400), st.integers(0, 10**6), st.booleans())
any_training_with_levels = st.builds(
    random_training, st.integers(150, 500), st.integers(0, 10**6), st.booleans(), st.integers(2, 8)
)
