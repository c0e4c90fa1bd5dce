"""Few rows of a label: intervals hold the truth, and hold what rows that could have been missed would change."""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from decal_cli.metrics import Inputs, interval_of, parse
from decal_cli.metrics.confidence import wilson
from decal_cli.tables.estimate import MISSED_ROWS
from decal_cli.tables.pairs import pair_up
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask, ClassDecision, RowTask
from simulation.few_positives import PROMISED, WITHOUT_FEATURES, covered, few, intervals
from tests.helpers.command import Decal
from tests.helpers.pairs import difference_of

REPLICATES = 16


@cache
def simulated() -> dict[str, np.ndarray]:
    """Of every metric at once, in a world where 6 of 150 rows are expected to have label 1."""
    return intervals(few(6, 1.0, 150), WITHOUT_FEATURES, REPLICATES, seed=4, rows=150)


@pytest.mark.long
@pytest.mark.parametrize("name", WITHOUT_FEATURES)
def test_every_interval_holds_the_truth_where_few_rows_have_label_1(name: str) -> None:
    """Nominal .95; a share of .9 is below 11 in 16 one time in 50. simulation/few_positives.py counts it closely."""
    share, there = covered(simulated()[name])
    assert there == 0 or share * there * REPLICATES >= there * REPLICATES - 5
    assert there == 1 or name not in PROMISED


def test_from_5_rows_of_a_label_on_what_decisions_rest_on_has_an_interval(decal: Decal, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    label = np.arange(200) < 5
    score = 1 / (1 + np.exp(4 - 1.5 * label - rng.normal(size=200)))
    lines = "\n".join(f"{p:.6f},{int(y)}" for p, y in zip(score, label, strict=True))
    (tmp_path / "few.csv").write_text(f"score,label\n{lines}\n")
    chosen = [part for name in PROMISED for part in ("-m", name)]
    report = decal.json("evaluate", "few.csv", "--threshold", "0.05", *chosen)
    metrics = report["metrics"]
    assert all(len(metrics[name]["interval"]) == 2 for name in PROMISED)
    auc = metrics["auc"]
    assert auc["interval"] == pytest.approx(wilson(auc["value"], 1.0, 5, 0.95), abs=1e-9)


RIGHT = np.arange(100) < 5
"""Of 100 rows, those of label 1, on which alone the score acts: no decision is wrong."""
SCORE = np.where(RIGHT, 0.9, 0.1)
TASK = BinaryTask.of_utility([[0.0, -0.7], [-0.3, 0.0]])


def rows(**more: object) -> Rows:
    return Rows(SCORE, RIGHT.astype(np.int64), **more)  # type: ignore[arg-type]


ROUND = ClassDecision(((0.0, -0.3, -0.1), (-0.3, 0.0, -0.7), (-0.1, -0.2, 0.0)), ("a", "b", "c"))
CERTAIN = np.eye(3)[np.arange(100) % 2] * 0.7 + 0.1
WORLDS = {
    "rows": Inputs(rows(), TASK),
    "weights": Inputs(rows(weight=np.full(100, 3.0)), TASK),
    "clusters": Inputs(rows(cluster=np.arange(100) // 2 * 7), TASK),
    "utilities of each row": Inputs(
        rows(amounts={"amount": np.full(100, 0.7), "cost_fp_column": np.full(100, 0.3)}),
        decision=RowTask(("amount", "cost_fp_column")),
    ),
    "classes": Inputs(Rows(CERTAIN, np.arange(100) % 2, classes=("a", "b", "c")), decision=ROUND),
}


@pytest.mark.parametrize("world", WORLDS)
def test_a_mistake_of_which_none_was_seen_is_in_the_error(world: str) -> None:
    """A missed row of label 1 costs .7, where no row with that action has label 1; so does one of class c."""
    inputs = WORLDS[world]
    assert inputs.rows is not None
    ends = interval_of(parse("expected_utility"), inputs, 0.95)
    effect = inputs.rows.table.design.effect if world == "clusters" else 1.0
    assert ends == pytest.approx((-1.959964 * math.sqrt(MISSED_ROWS) * 0.7 * effect / 100, 0.0), abs=1e-7)


def test_two_models_that_decide_one_row_differently() -> None:
    """The change is worth .3 on that row; on a missed one like it, of label 1, it loses .7."""
    other = SCORE.copy()
    other[50] = 0.9
    pairs = pair_up(other, SCORE, RIGHT.astype(np.int64))
    change = difference_of(parse("expected_utility"), pairs, TASK)
    assert change is not None
    seen = (0.297**2 + 99 * 0.003**2) / 100**2
    assert change.mean == pytest.approx(0.003)
    assert change.error == pytest.approx(math.sqrt(seen + MISSED_ROWS * 0.703**2 / 100**2))
