"""Errors of differences of two models of several classes, against rows that are drawn again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from decal_cli.metrics import Inputs, parse
from decal_cli.metrics.confidence import quantile
from decal_cli.metrics.families import classes
from decal_cli.metrics.paired import intervals
from decal_cli.tables.classes import ClassTable

T, N_DRAWS = 400, 200


@pytest.mark.parametrize(
    ("name", "value_of"),
    [
        ("auc", classes.auc),
        ("auc_weighted", classes.auc_weighted),
        ("aurc", classes.aurc),
        ("ece_top_debiased", classes.ece_top_debiased),
        ("rps", classes.rps),
    ],
)
def test_the_error_of_a_difference_is_that_of_redrawn_rows(name: str, value_of: Callable[[ClassTable], float]) -> None:
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(T, 3))
    first = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    raised = np.exp(1.3 * logits + 0.4 * rng.normal(size=(T, 3)))
    second = raised / raised.sum(axis=1, keepdims=True)
    label = np.array([rng.choice(3, p=each) for each in first])

    def pair(which: np.ndarray) -> tuple[ClassTable, ClassTable]:
        a, b = (ClassTable(score[which], label[which], None, ("a", "b", "c")) for score in (first, second))
        return a, b

    a, b = pair(np.arange(T))
    difference = float(value_of(b)) - float(value_of(a))
    low, high = intervals({parse(name): difference}, Inputs.of(a), Inputs.of(b), 0.9)[parse(name)]
    drawn = [
        float(value_of(two)) - float(value_of(one))
        for one, two in (pair(rng.integers(0, T, T)) for _ in range(N_DRAWS))
    ]
    assert (low + high) / 2 == pytest.approx(difference, abs=1e-12)
    assert (high - low) / 2 / quantile(0.9) == pytest.approx(np.std(drawn), rel=0.2)
