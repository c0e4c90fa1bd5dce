"""Cells of the score: what their sums give exactly, and bounds that hold for all else."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from decal_cli.errors import DecalError
from decal_cli.metrics import METRICS
from decal_cli.metrics.gaps import cells, levels_used, most_cells
from decal_cli.metrics.within_cells import of_curves
from decal_cli.tables.cells import CellTable
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask
from tests.helpers.cells import cells_of
from tests.helpers.worlds import known_rows, rows_by_level, value_of

BOUNDED = [name for name, metric in METRICS.items() if metric.within_cells is not None]


def hard_rows(seed: int, count: int = 600, tied: bool = True) -> dict[str, Any]:
    """Scores within few cells, so that bounds are put to the test, with ties, 0, -0 and 1; labels and weights."""
    rng = np.random.default_rng(seed)
    width = 10.0 ** -rng.integers(1, 6)
    score = rng.random() * (1 - width) + width * rng.random(count)
    if tied:
        score = np.where(rng.random(count) < 0.5, np.round(score, rng.integers(1, 5)), score)
        score[:4] = -0.0, 0.0, 1.0, 1.0
    label = (rng.random(count) < rng.choice([0.05, 0.5, 0.9])).astype(int)
    label[:6] = 0, 0, 1, 1, 0, 1
    return {"score": score, "label": label, "weight": rng.exponential(2, count) + 0.1}


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(8))
def test_values_from_cells_are_within_their_bounds(seed: int) -> None:
    rows = hard_rows(seed)
    threshold = float(np.quantile(rows["score"], 0.6))
    threshold = min(max(threshold, 1e-6), 1 - 1e-6)
    weight = rows["weight"] if seed % 2 else None
    asked = {"metrics": BOUNDED, "threshold": threshold, "intervals": False}
    whole = decal.evaluate(rows["score"], rows["label"], weight=weight, **asked)
    counts = [cells_of(rows["score"], rows["label"], weight, edges) for edges in ((), (threshold,))]
    # Aggregates of before cells told the ends of their scores stay valid.
    for each in (*counts, counts[0].drop(columns=["min_score", "max_score"])):
        metrics = decal.evaluate(each, aggregated=True, **asked).to_dict()["metrics"]
        for key in BOUNDED:
            value, result = whole[key].value, metrics[key]
            if value is None or result["value"] is None or result["within"]["drawn"]:
                continue
            assert abs(result["value"] - value) <= result["within"]["bound"] + 1e-11 * max(abs(value), 1e-3), key


def test_sums_give_values_and_intervals_exactly() -> None:
    rows = hard_rows(3, 500)
    exact = ("brier", "log_loss", "observed_expected", "expected_utility", "net_benefit", "ppv", "accuracy", "corp_unc")
    for weight in (None, rows["weight"]):
        asked = {"metrics": exact, "threshold": 0.3}
        whole = decal.evaluate(rows["score"], rows["label"], weight=weight, **asked)
        counts = cells_of(rows["score"], rows["label"], weight, (0.3,))
        of_cells = decal.evaluate(counts, aggregated=True, **asked)
        for key in exact:
            assert of_cells[key].value == pytest.approx(whole[key].value, rel=1e-12), key
            assert of_cells[key].interval == pytest.approx(whole[key].interval, rel=1e-12), key
            assert of_cells.to_dict()["metrics"][key]["within"] == {"bound": 0.0, "drawn": False}


def test_rows_that_tie_in_a_cell_widen_no_bound() -> None:
    score, label = np.array([0.2] * 50 + [0.5000010, 0.5000011] + [0.7] * 48), np.tile([0, 1], 50)
    counts = cells_of(score, label)
    within = {
        known: decal.evaluate(each, aggregated=True, metrics=("auc", "ks")).to_dict()["metrics"]
        for known, each in ((True, counts), (False, counts.drop(columns=["min_score", "max_score"])))
    }
    # The one negative and the one positive near .5: half a pair of 50 x 50, and a step of 1 in 50.
    assert within[True]["auc"]["within"]["bound"] == pytest.approx(0.5 / 2500)
    assert within[True]["ks"]["within"]["bound"] == pytest.approx(1 / 50)
    assert within[False]["auc"]["within"]["bound"] == pytest.approx((25**2 + 1 + 24**2) / 2 / 2500)


@pytest.mark.parametrize(
    ("zeros", "ones", "n", "pos"),
    [
        (False, False, [1, 5, 4], [0, 3, 4]),
        (False, True, [1, 2, 3, 4], [0, 0, 3, 4]),
        (True, False, [1, 3, 2, 4], [0, 3, 0, 4]),
        (True, True, [1, 5, 4], [0, 3, 4]),
    ],
)
def test_rows_of_a_cut_cell_are_moved_to_one_side_by_hand(
    zeros: bool, ones: bool, n: list[int], pos: list[int]
) -> None:
    least, greatest, rows = np.array([0.2, 0.5, 0.7]), np.array([0.2, 0.6, 0.7]), np.array([[1.0, 2, 0], [0, 3, 4]])
    sums = rows[:, None] * np.array([0.2, 0.57, 0.7]) ** np.arange(7)[:, None]
    for squares in (None, 2 * sums):
        table = CellTable.of_sums(least, greatest, sums, squares)
        cut = [table.straddled(at).tolist() for at in (0.1, 0.2, 0.5, 0.55, 0.6, 0.61)]
        assert cut == [[], [], [], [1], [1], []]
        moved = table.moved(1, zeros, ones, 0.55)
        below = float(np.nextafter(0.55, 0))
        between = [below, 0.55] if zeros != ones else [0.55 if ones else below]
        assert moved.score.tolist() == [0.2, *between, 0.7]
        assert (moved.n.tolist(), moved.pos.tolist()) == (n, pos)
        times = 1 if squares is None else 2
        assert (moved.n2 / times).tolist() == n and (moved.pos2 / times).tolist() == pos


def test_how_far_curves_may_be_off_by_hand() -> None:
    """Of ten rows, two negatives and three positives lie in [.5, .6]: at t* = .55 they are worth .11 and .135.

    Thresholds outside cut nothing, but one of the cell could still win the lesser of both: most of it at .58."""
    least, greatest, rows = np.array([0.2, 0.5, 0.7]), np.array([0.2, 0.6, 0.7]), np.array([[1.0, 2, 0], [0, 3, 4]])
    table = CellTable.of_sums(least, greatest, rows[:, None] * np.array([0.2, 0.57, 0.7]) ** np.arange(7)[:, None])
    assert of_curves(table, (0.1, 0.55, 0.58)) == pytest.approx((0.11 + 0.135, 0.116))
    assert of_curves(table, (0.1, 0.65)) == pytest.approx((0, 0.105))


def test_a_metric_without_a_bound_is_not_shown() -> None:
    rows = hard_rows(1)
    answer = decal.evaluate(
        cells_of(rows["score"], rows["label"]), aggregated=True, metrics=("cdl", "log_loss(eps=0.01)")
    )
    for result in answer.to_dict()["metrics"].values():
        assert result["value"] is None
        assert "no bound is known" in result["reason"]


def test_cells_of_several_files_add_up_by_their_edges() -> None:
    rows = hard_rows(5, 400)
    halves = [
        cells_of(rows["score"][part], rows["label"][part], None, (0.3,)) for part in (slice(150), slice(150, None))
    ]
    together = decal.evaluate(pd.concat(halves), aggregated=True, metrics=("brier", "auc"))
    whole = decal.evaluate(
        cells_of(rows["score"], rows["label"], None, (0.3,)), aggregated=True, metrics=("brier", "auc")
    )
    for key in ("brier", "auc"):
        assert together[key].value == pytest.approx(whole[key].value, rel=1e-13)
    other = cells_of([0.3], [1], None, (0.300001,))
    with pytest.raises(DecalError, match=r"cells \[0\.299988, 0\.300001\) and \[0\.3, 0\.300003\) overlap"):
        decal.evaluate(pd.concat([cells_of([0.3], [0], None, (0.3,)), other]), aggregated=True)


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("label", 2, "2 is not 0 or 1"),
        ("rows", 0, "0 is not positive"),
        ("n", 2.5, "2.5 is not rows"),
        ("low", -0.1, "-0.1 is outside"),
        ("high", 0.1, "0.1 is not between low and 1"),
        ("s1", 9.0, "9 cannot be the sum over n of scores in the cell"),
        ("min_score", 0.5, "0.5 is not between low and high"),
        ("max_score", 0.39999, "0.39999 is not between min_score and high"),
        ("s3", float("nan"), "nan is missing or not finite"),
        ("l1", -1.0, "-1 is negative"),
        ("l2", 0.0, "0 does not agree with l1"),
    ],
)
def test_cells_that_cannot_be_are_named(column: str, value: float, problem: str) -> None:
    counts = cells_of([0.2, 0.4, 0.4, 0.9], [0, 1, 0, 1])
    counts[column] = counts[column].astype(float)
    counts.loc[1, column] = value
    with pytest.raises(DecalError) as error:
        decal.evaluate(counts, aggregated=True)
    assert f"column '{column}', row 2: {problem}" in str(error.value)


def test_levels_are_exact_where_the_median_one_holds_thirty_rows() -> None:
    assert levels_used(rows_by_level({0.2: "0" * 30, 0.4: "01" * 15, 0.6: "1"}).table) == "exact"
    assert levels_used(rows_by_level({0.2: "0" * 30, 0.4: "01" * 14, 0.6: "1" * 29}).table) == "bins"
    assert levels_used(known_rows("binary").table) == "bins"
    assert levels_used(known_rows("ties").table) == "bins", "the median level of the twelve holds 24.5 rows"


def test_calibrated_labels_are_drawn_on_all_levels_or_on_sixteen_cells_for_each_bin() -> None:
    t = Table(np.arange(1, 50) / 50, np.arange(1, 50), np.arange(1, 50) // 2)
    assert cells(t, most_cells(t, 1, 49)) is t and cells(t, most_cells(t, 4, 10)) is t
    assert len(cells(t, most_cells(t, 3, 10))) <= 48 and len(cells(t, most_cells(t, 1, 40))) <= 40


def test_a_level_counts_its_effective_rows() -> None:
    light = rows_by_level({0.2: "0" * 40, 0.4: "01" * 20})
    assert levels_used(replace(light, weight=np.full(80, 0.01)).table) == "exact"
    assert levels_used(replace(rows_by_level({0.2: "01", 0.4: "01"}), weight=np.full(4, 1e6)).table) == "bins"


def test_auto_is_what_it_says() -> None:
    task = BinaryTask.of_threshold(0.4)
    ties, crowded = known_rows("ties").table, rows_by_level({0.2: "0" * 30, 0.4: "01" * 15, 0.6: "1" * 30}).table
    for key in ("cfdl", "cdl"):
        assert value_of(key, ties, task) == value_of(f"{key}(levels=bins)", ties, task)
        assert value_of(key, crowded, task) == value_of(f"{key}(levels=exact)", crowded, task)
    assert value_of("cdl(levels=bins)", ties) == value_of("cdl(levels=exact)", ties.bins())


def test_the_null_of_crowded_levels_agrees_with_the_normal_law() -> None:
    """E|X - n q| tends to sqrt(2 n q (1 - q) / pi)."""
    table = Table(np.array([0.3]), np.array([10**6]), np.array([3 * 10**5]))
    assert value_of("ece_exact_null", table) == pytest.approx(np.sqrt(2 * 0.21 / np.pi / 10**6), rel=1e-5)


def test_the_ece_null_does_not_depend_on_how_many_levels_it_is_drawn_on() -> None:
    """Above 4096 levels on as many cells; here against the plain parametric bootstrap of every level."""
    rng = np.random.default_rng(0)
    score = rng.beta(1, 3, 9000)
    table = Rows(score, (rng.random(9000) < score).astype(int)).table
    plain = [value_of("ece", drawn) for drawn in table.null(rng, 300)]
    assert value_of("ece_null", table) == pytest.approx(
        float(np.mean(plain)), abs=5 * float(np.std(plain)) / np.sqrt(300)
    )
