"""Cells of the score: what their sums give exactly, and bounds that hold for all else."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import decal_cli
import decal_cli as decal
from decal_cli.data import reading
from decal_cli.errors import DecalError
from decal_cli.metrics import METRICS
from decal_cli.metrics.gaps import levels_used
from decal_cli.tables.cells import CellTable
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask
from tests.helpers.cells import cells_of
from tests.helpers.command import FIXTURES, Decal
from tests.helpers.worlds import interval_of, known_rows, rows_by_level, value_of

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
    with pytest.raises(DecalError, match=r"cells \[.*\) overlap"):
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


def test_a_level_counts_its_effective_rows() -> None:
    light = rows_by_level({0.2: "0" * 40, 0.4: "01" * 20})
    assert levels_used(replace(light, weight=np.full(80, 0.01)).table) == "exact"
    assert levels_used(replace(rows_by_level({0.2: "01", 0.4: "01"}), weight=np.full(4, 1e6)).table) == "bins"


def test_auto_is_what_it_says() -> None:
    task = BinaryTask.of_threshold(0.4)
    ties, crowded = known_rows("ties").table, rows_by_level({0.2: "0" * 30, 0.4: "01" * 15, 0.6: "1" * 30}).table
    assert value_of("cfdl", ties, task) == value_of("cfdl(levels=bins)", ties, task)
    assert value_of("cfdl", crowded, task) == value_of("cfdl(levels=exact)", crowded, task)


@pytest.mark.parametrize("name", ["hand", "ties", "binary", "binary weighted"])
@pytest.mark.parametrize("key", ["ece_exact", "k2"])
def test_the_computed_nulls_are_means_over_drawn_tables(key: str, name: str) -> None:
    table, rng = known_rows(name).table, np.random.default_rng(0)
    values = np.array([value_of(key, table.null(rng)) for _ in range(600)])
    assert value_of(f"{key}_null", table) == pytest.approx(values.mean(), abs=5 * values.std() / np.sqrt(600) + 1e-12)
    low, high = interval_of(f"{key}_null", table) or (0.0, 0.0)
    assert high - low == pytest.approx(2 * 1.96 * values.std(), rel=0.25)


def test_the_null_of_crowded_levels_agrees_with_the_normal_law() -> None:
    """E|X - n q| tends to sqrt(2 n q (1 - q) / pi)."""
    table = Table(np.array([0.3]), np.array([10**6]), np.array([3 * 10**5]))
    assert value_of("ece_exact_null", table) == pytest.approx(np.sqrt(2 * 0.21 / np.pi / 10**6), rel=1e-5)


def test_the_ece_null_does_not_depend_on_how_many_levels_it_is_drawn_on() -> None:
    """Above 4096 levels on as many cells; here against the plain parametric bootstrap of every level."""
    rng = np.random.default_rng(0)
    score = rng.beta(1, 3, 9000)
    table = Rows(score, (rng.random(9000) < score).astype(int)).table
    plain = [value_of("ece", table.null(rng)) for _ in range(300)]
    assert value_of("ece_null", table) == pytest.approx(
        float(np.mean(plain)), abs=5 * float(np.std(plain)) / np.sqrt(300)
    )


KEYS = ("ece", "cl", "rmsce", "mce", "ece_debiased", "regret_calibration")
ON_BINS = ("cfdl", "cdl", "v_cdl", "rule_cfdl")
Columns = dict[str, np.ndarray]


def tables() -> Iterator[tuple[Columns, int, float]]:
    """150 tables of 1 to 30 levels, ties at both ends and between; some weighted; how many bins, and the threshold."""
    rng = np.random.default_rng(11)
    for number in range(150):
        levels = np.sort(rng.choice(129, int(rng.integers(1, 31)), replace=False)) / 128  # sums are exact
        mass = rng.exponential(1, len(levels))
        for heavy in rng.choice([0, len(levels) // 2, len(levels) - 1], 2):
            mass[heavy] += rng.choice([0.0, 3.0, 30.0])
        score = rng.choice(levels, int(rng.integers(2, 120)), p=mass / mass.sum())
        data = {"p": score, "y": (rng.random(len(score)) < rng.choice([score.mean(), 0.5])).astype(int)}
        if number % 3 == 0:
            data["w"] = rng.integers(1, 5, len(score)).astype(float)
        yield data, int(rng.choice([15, 15, 2, 4])), float(rng.choice([0.25, 0.5, 0.75]))


def bin_of_row(data: Columns, bins: int) -> np.ndarray:
    """Edges are the i/k quantiles, less the largest score; a score on an edge belongs to the bin below."""
    p = data["p"]
    if "w" in data:  # The least score up to which i/k of the weight lies.
        upto = [(data["w"][p <= score].sum(), score) for score in np.unique(p)]
        edges = [min(s for w, s in upto if w * bins >= i * data["w"].sum()) for i in range(1, bins)]
    else:
        edges = [np.quantile(p, i / bins) for i in range(1, bins)]
    return np.array([sum(score > edge for edge in set(edges)) for score in p])


def by_hand(data: Columns, bins: int, t: float) -> tuple[dict[str, float], np.ndarray]:
    """The metrics of bins, and every row's bin mean."""
    p, y, w = data["p"], data["y"], data.get("w", np.ones(len(data["p"])))
    share, gap, noise, regret, rows, mean_score = [], [], 0.0, 0.0, [], p.copy()
    number = bin_of_row(data, bins)
    for here in (number == one for one in np.unique(number)):
        q, h = np.average(p[here], weights=w[here]), np.average(y[here], weights=w[here])
        share, gap = [*share, w[here].sum() / w.sum()], [*gap, h - q]
        rows.append(w[here].sum() ** 2 / (w[here] ** 2).sum())
        mean_score[here] = q
        regret += abs(h - t) * w[here & ((p >= t) != (h >= t))].sum() / w.sum()
    gaps, shares, counts = np.abs(gap), np.array(share), np.array(rows)
    several = counts > 1 + 1e-9
    rate = np.array([np.average(y[mean_score == q], weights=w[mean_score == q]) for q in np.unique(mean_score)])
    noise = rate * (1 - rate) / np.where(several, counts - 1, 1)
    square = shares @ gaps**2
    debiased = float((shares * (gaps**2 - noise))[several].sum()) if several.any() else np.nan
    found = shares @ gaps, square, square**0.5, gaps.max(), debiased, regret
    return dict(zip(KEYS, map(float, found), strict=True)), mean_score


def measured(data: Columns, keys: list[str], threshold: float) -> dict[str, float]:
    answer = decal_cli.evaluate(
        data, score="p", label="y", weight="w" if "w" in data else None, metrics=keys, threshold=threshold,
        intervals=False,
    )  # fmt: skip
    found = answer.to_dict()["metrics"]
    return {key: np.nan if found[key]["value"] is None else found[key]["value"] for key in keys}


def test_every_metric_of_bins_is_that_of_brute_force() -> None:
    for number, (data, bins, threshold) in enumerate(tables()):
        expected, mean_score = by_hand(data, bins, threshold)
        named = {key: f"{key}(bins={bins})" if bins != 15 else key for key in KEYS}
        got = measured(data, list(named.values()), threshold)
        for key, name in named.items():
            assert got[name] == pytest.approx(expected[key], abs=1e-9, nan_ok=True), (number, key)
        if bins == 15:
            binned = measured({**data, "p": mean_score}, [f"{key}(levels=exact)" for key in ON_BINS], threshold)
            got = measured(data, [f"{key}(levels=bins)" for key in ON_BINS], threshold)
            for key in ON_BINS:
                a, b = got[f"{key}(levels=bins)"], binned[f"{key}(levels=exact)"]
                assert a == pytest.approx(b, abs=1e-9, nan_ok=True), (number, key)


@pytest.mark.parametrize(("file", "error"), [("hu_wu_1_1", 0.2), ("hu_wu_4_3b", 0.49)])
def test_two_levels_are_two_bins(decal: Decal, file: str, error: float) -> None:
    done = decal("evaluate", FIXTURES / "papers" / f"{file}.csv", "-m", "ece", "-m", "ece_exact", "-f", "json")
    metrics = json.loads(done.out)["reports"][0]["metrics"]
    assert [metrics[key]["value"] for key in ("ece", "ece_exact")] == pytest.approx([error] * 2, abs=1e-12)


def heavy_below() -> Columns:
    """Half of the rows at the lowest of eight levels, none of them calibrated."""
    score = np.repeat(np.arange(1, 9) / 16, [70, 10, 10, 10, 10, 10, 10, 10])
    return {"p": score, "y": (np.arange(len(score)) % 3 == 0).astype(int)}


def test_every_road_has_the_bins_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, path = pd.DataFrame(heavy_below()), tmp_path / "rows.parquet"
    data.to_parquet(path)
    expected, _ = by_hand(heavy_below(), 15, 0.3)
    counts = data.groupby("p")["y"].agg(n="size", pos="sum").reset_index().rename(columns={"p": "score"})
    ask: dict[str, Any] = {"metrics": list(KEYS), "threshold": 0.3, "intervals": False}
    named = {"score": "p", "label": "y", **ask}
    with duckdb.connect(str(tmp_path / "rows.db")) as connection:
        connection.execute("create table preds as select * from data")
    answers = {
        "rows": decal_cli.evaluate(path, **named),
        "counts": decal_cli.evaluate(counts, aggregated=True, **ask),
        "engine": decal_cli.evaluate(f"duckdb:{tmp_path}/rows.db?table=preds", **named),
    }
    monkeypatch.setattr(reading, "MAX_IN_MEMORY_BYTES", 0)
    answers["stream"] = decal_cli.evaluate(path, **named)
    for road, answer in answers.items():
        found = {key: answer.to_dict()["metrics"][key]["value"] for key in KEYS}
        assert found == pytest.approx(expected, abs=1e-12), road


def test_regimes_and_histogram_have_the_bins_of_the_metrics() -> None:
    data = heavy_below()
    regimes = decal_cli.evaluate(data, score="p", label="y", threshold=0.3, regimes=True, metrics="ece").to_dict()
    expected = {score: data["y"][data["p"] == score].mean() for score in np.unique(data["p"])}
    (report,) = regimes["reports"]
    assert {each["low"]: each["rate"] for each in report["regimes"]} == pytest.approx(expected)
    model = decal_cli.fit(data, score="p", label="y", method="histogram")
    new = model.apply({"p": np.array([*expected, 0.07])})["p_histogram"]
    assert list(new) == pytest.approx([*expected.values(), expected[0.125]]), "a score above an edge has the next bin's"


def test_psi_has_the_bins_of_the_metrics_and_scores_above_an_edge_lie_above_it() -> None:
    """Bins end at .1 and .5; half, a fourth and a fourth of the reference, a tenth, .4 and .5 of the rows."""
    reference = {"p": np.repeat([0.1, 0.5, 0.9], [20, 10, 10]), "y": np.tile([0, 1], 20)}
    rows = {"p": np.repeat([0.1, 0.2, 0.5, 0.51], [2, 4, 4, 10]), "y": np.tile([0, 1], 10)}
    answer = decal_cli.evaluate(rows, score="p", label="y", reference=reference, metrics="psi")
    expected = 0.4 * np.log(0.5 / 0.1) + 0.15 * np.log(0.4 / 0.25) + 0.25 * np.log(0.5 / 0.25)
    assert answer["psi"].value == pytest.approx(expected, abs=1e-12)
