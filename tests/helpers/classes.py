"""Rows of several classes for tests."""

import csv

import numpy as np

from decal_cli.tables.rows import Rows
from tests.helpers.command import FIXTURES

THREE = ("0", "1", "2")


def known() -> Rows:
    """The rows of three classes whose numbers are published."""
    with (FIXTURES / "multiclass_n1500_k3.csv").open() as file:
        lines = list(csv.DictReader(file))
    score = np.array([[float(line[f"p_{k}"]) for k in range(3)] for line in lines])
    return Rows(score / score.sum(axis=1, keepdims=True), np.array([int(line["y"]) for line in lines]), classes=THREE)


def as_two(rows: Rows) -> Rows:
    """Scores as the probabilities of two classes."""
    score = np.column_stack((1 - rows.score, rows.score))
    return Rows(score, rows.label.astype(np.int64), rows.weight, classes=("0", "1"))
