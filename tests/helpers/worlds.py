"""The tables that the tests of the metrics look at: shipped files, hand-made rows, and rows that hypothesis draws."""

import contextlib
import csv
from dataclasses import replace
from functools import cache

import numpy as np
from hypothesis import strategies as st

from decal_cli import metrics
from decal_cli.errors import Undefined
from decal_cli.learn.probe import Probed
from decal_cli.metrics import Inputs, Metric
from decal_cli.metrics.decisions import Featured
from decal_cli.tables.features import Features
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Table
from decal_cli.tables.units import Estimate
from decal_cli.task import BinaryTask
from tests.helpers.command import FIXTURES


def rows_by_level(levels: dict[float, str]) -> Rows:
    """rows({.2: "00100"}): five rows of score .2, one of them with label 1."""
    score = np.concatenate([np.full(len(labels), score) for score, labels in levels.items()])
    return Rows(score, np.array([int(label) for labels in levels.values() for label in labels]))


def table_of_levels(*each: tuple[float, int, int]) -> Table:
    """levels((.2, 5, 1)): five rows of score .2, one of them positive."""
    score, n, pos = zip(*each, strict=True)
    return Table(np.array(score, dtype=float), np.array(n), np.array(pos))


def random_table(rng: np.random.Generator) -> Table:
    """2 to 25 levels; exact 0 and 1 among them, and scores that are some level's frequency or the base rate."""
    m = int(rng.integers(2, 26))
    n = rng.integers(1, 7, m)
    pos = rng.binomial(n, rng.random(m))
    score = np.round(rng.random(m), 2) if rng.random() < 0.5 else rng.random(m)
    special = np.array([0.0, 1.0, pos.sum() / n.sum(), pos[0] / n[0], 0.5])
    some = special[rng.random(5) < 0.4][:m]
    score[: len(some)] = some
    score, first = np.unique(score, return_index=True)
    return Table(score, n[first], pos[first])


def featured_rows(
    size: int = 500, seed: int = 0, columns: int = 4, strength: float = 1.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Score, label, weight and features; the second feature knows more than the score."""
    rng = np.random.default_rng(seed)
    features = np.round(rng.normal(size=(size, columns)), 3)
    chance = 1 / (1 + np.exp(-features[:, 0] - strength * np.sign(features[:, 1])))
    score = np.round(1 / (1 + np.exp(-features[:, 0])), 2)
    return score, (rng.random(size) < chance).astype(int), np.round(rng.uniform(0.5, 2, size), 1), features


def category_features(codes: np.ndarray, names: tuple[str, ...]) -> Features:
    """A column of zeros and one of categories."""
    blocks = np.zeros((len(codes), 1)), codes.astype(np.int32)[:, None]
    return Features(*blocks, (names,), ("number", "category"))


def mixed_rows(size: int, seed: int, strength: float = 1.5, categories: int = 4) -> Rows:
    """Rows whose score knows a number and misses a category: one in four of them, where known, raises the chance.

    The features are that number, one that lacks values, a column of only missing values, and the categories.
    """
    rng = np.random.default_rng(seed)
    known, gappy = rng.normal(size=(2, size))
    codes = rng.integers(-1, categories, size)
    chance = 1 / (1 + np.exp(-known - strength * np.where(codes % 4 == 0, 1.0, -0.5)))
    gappy[rng.random(size) < 0.3] = np.nan
    names = tuple(f"c{k:05}" for k in range(categories))
    features = Features(
        np.column_stack((known, gappy, np.full(size, np.nan))),
        codes.astype(np.int32)[:, None],
        (names,),
        ("number", "number", "missing", "category"),
    )
    label = (rng.random(size) < chance).astype(float)
    return Rows(1 / (1 + np.exp(-known)), label, features=features)


@cache
def fixture_columns(name: str) -> dict[str, np.ndarray]:
    with (FIXTURES / name).open() as file:
        lines = list(csv.DictReader(file))
    return {key: np.array([line[key] for line in lines]) for key in lines[0]}


@cache
def known_rows(name: str) -> Rows:
    """The rows of a named world."""
    if name == "ties":
        ties = fixture_columns("ties_edges_n300.csv")
        return Rows(ties["p"].astype(float), ties["y"].astype(int))
    if name == "hand":
        return rows_by_level({0.2: "00100", 0.6: "10", 0.9: "111"})
    binary = fixture_columns("binary_n2000.csv")
    every = Rows(binary["p"].astype(float), binary["y"].astype(int), binary["weight"].astype(float))
    if name == "binary weighted":
        return every
    chosen = {
        "binary": np.full(2000, True),
        "binary, group A": binary["group"] == "A",
        "binary, group B": binary["group"] == "B",
        "binary, split cal": binary["split"] == "cal",
    }[name]
    return replace(every.take(chosen), weight=None)


def value_of(key: str, table: Table, task: BinaryTask | None = None, seed: int = 0) -> float:
    """Of 'ece(bins=10)' and the like."""
    return metrics.value_of(metrics.parse(key), Inputs.of(table, task, seed=seed))


def value_or_none(key: str, inputs: Inputs) -> float | None:
    with contextlib.suppress(Undefined):
        return metrics.value_of(metrics.parse(key), inputs)
    return None


def interval_of(
    key: str, table: Table, task: BinaryTask | None = None, confidence: float = 0.95
) -> tuple[float, float] | None:
    return metrics.interval_of(metrics.parse(key), Inputs.of(table, task), confidence)


def needs_seed(metric: Metric) -> bool:
    """Whether its value depends on the seed."""
    return Seed in metric.needs


TASKS = [
    BinaryTask.of_threshold(0.3),
    BinaryTask.of_threshold(0.05, decision_threshold=0.4),
    BinaryTask.of_utility([[1.0, -3.0], [0.25, 2.0]]),
]

_ON_A_GRID = st.integers(0, 20).map(lambda i: i / 20)
_ANYWHERE = st.integers(0, 10**6).map(lambda i: i / 10**6)
_INNER = st.floats(0.001, 0.999)
_WHOLE = st.integers(1, 5).map(float)
_REAL = st.floats(0.1, 10)


@st.composite
def any_rows(draw: st.DrawFn, least: int = 1, most: int = 40, weights: str = "any", inner: bool = False) -> Rows:
    """Rows with ties (scores on a grid) or without, weighted or not; inner: no score of exactly 0 or 1."""
    size = draw(st.integers(least, most))
    if inner:
        one = draw(st.sampled_from([_INNER, st.integers(1, 19).map(lambda i: i / 20)]))
    else:
        one = draw(st.sampled_from([_ON_A_GRID, _ANYWHERE]))
    score = draw(st.lists(one, min_size=size, max_size=size))
    label = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    kind = {"any": [None, _WHOLE, _REAL], "none": [None], "whole": [_WHOLE], "real": [_REAL]}[weights]
    weight = draw(st.sampled_from(kind))
    if weight is None:
        return Rows(np.array(score, dtype=float), np.array(label))
    weights_of_rows = draw(st.lists(weight, min_size=size, max_size=size))
    return Rows(np.array(score, dtype=float), np.array(label), np.array(weights_of_rows))


any_task = st.sampled_from(TASKS)


def gain_beyond(probed: Probed, threshold: float) -> Estimate:
    """What the probe wins beyond recalibration at a threshold, per unit of u_delta."""
    return Featured.of_scores(probed, BinaryTask.of_threshold(threshold)).gain
