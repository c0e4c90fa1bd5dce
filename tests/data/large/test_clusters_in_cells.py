"""Rows in clusters that are too many to hold: counted by cluster and cell of the score."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import decal_cli
from decal_cli.data import reading
from decal_cli.data.formats import sources
from decal_cli.data.large.engines import DIALECTS, counting
from decal_cli.data.large.engines.statement import CountRequest, statement
from decal_cli.errors import DecalError
from decal_cli.tables.cells import GRID, MAX_SPLITS, n_coarse_cells
from tests.helpers.command import Decal, refusal
from tests.helpers.counted_rows import export_counts, with_database

OF_DECISIONS = ("expected_utility", "net_benefit", "accuracy", "ppv", "selection_rate", "eu_always")
OF_SUMS = ("brier", "log_loss", "observed_expected", "auc", "ece_debiased", "corp_unc")
METRICS = (*OF_DECISIONS, *OF_SUMS)


def visits(rows: int = 3000, clusters: int = 150, digits: int = 17) -> pd.DataFrame:
    """Visits of patients whose scores and labels are alike, with weights, two models and groups."""
    rng = np.random.default_rng(7)
    patient = rng.integers(0, clusters, rows)
    score = rng.normal(-1, 1, rows) + rng.normal(0, 0.7, clusters)[patient]
    p = np.round(1 / (1 + np.exp(-score)), digits)
    y = rng.random(rows) < 1 / (1 + np.exp(-score - rng.normal(0, 0.8, clusters)[patient]))
    w = rng.exponential(1, rows) + 0.1
    return pd.DataFrame({"p": p, "q": p**2, "y": y.astype(int), "w": w, "c": patient, "site": patient % 3})


@pytest.fixture
def few_counts(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let every file count as too large to be held, and be read in small batches."""
    monkeypatch.setattr(reading, "MAX_IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(sources, "N_BATCH_ROWS", 64)
    return monkeypatch


def ask(path: Any, **more: Any) -> dict[str, Any]:
    asked = {"score": ["p", "q"], "label": "y", "cluster": "c", "threshold": 0.3, "metrics": METRICS}
    return decal_cli.evaluate(path, **{**asked, **more}).to_dict()


def pairs_of_reports(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    both = list(zip(one["reports"], other["reports"], strict=True))
    for a, b in both:
        assert (a["model"], a["group"], a["rows"]) == (b["model"], b["group"], b["rows"])
    return both


# How many rows say as much as one by itself, which a row that could have been missed counts by, is known only nearly.
@pytest.mark.usefixtures("seen_rows_only")
@pytest.mark.parametrize("most", [1200, 1 << 20])
def test_coarse_cells_are_exact_for_decisions_and_near_for_others(
    tmp_path: Path, few_counts: pytest.MonkeyPatch, most: int
) -> None:
    path = tmp_path / "rows.parquet"
    visits().to_parquet(path)
    few_counts.setattr(reading, "MAX_IN_MEMORY_BYTES", 1 << 30)
    held = ask(path)
    few_counts.setattr(reading, "MAX_IN_MEMORY_BYTES", 0)
    few_counts.setattr(counting, "MAX_LEVELS", 500)
    few_counts.setattr(counting, "MAX_CLUSTER_COUNTS", most)
    streamed = ask(path)
    assert any("coarse cells" in note for note in streamed["notes"]) == (most == 1200)
    for one, other in pairs_of_reports(held, streamed):
        for key in METRICS:
            a, b = (report["metrics"][key] for report in (one, other))
            width = a["interval"][1] - a["interval"][0]
            off = np.abs(np.subtract(b["interval"], a["interval"])).max() / width
            near = 2e-3 if most > 1200 else 0.1 if key == "ece_debiased" else 5e-3
            assert off < (1e-9 if key in OF_DECISIONS else near), key
            if key != "ece_debiased":
                assert b["value"] == pytest.approx(a["value"], rel=1e-12 if key != "auc" else 1e-4), key
    naive = ask(path, cluster=None)["reports"][0]["metrics"]["brier"]["interval"]
    widths = [ends[1] - ends[0] for ends in (naive, streamed["reports"][0]["metrics"]["brier"]["interval"])]
    assert widths[1] > 1.3 * widths[0]


def of_counts(**columns: Any) -> pa.Table:
    """Two cells of one label each, and their rows by cluster."""
    low = [0.0, 0.5, 0.0, 0.0, 0.5, 0.5]
    counts: dict[str, Any] = {"c": [None, None, "x", "y", "x", "y"], "cell": [0, 1, 0, 0, 1, 1], "low": low}
    counts |= {"high": [each + 0.5 for each in low], "label": [0, 1, 0, 0, 1, 1], "rows": [4, 4, 3, 1, 1, 3]}
    score = np.array([0.2, 0.6, 0.2, 0.2, 0.6, 0.6])
    rows = np.array(counts["rows"])
    loss = -np.log(np.where(np.array(counts["label"]) == 1, score, 1 - score))
    counts |= (
        {"n": counts["rows"]}
        | {f"s{k}": rows * score**k for k in range(1, 5)}
        | {f"l{k}": rows * loss**k for k in (1, 2)}
    )
    return pa.table({**counts, "by_cluster": [0, 0, 1, 1, 1, 1], **columns})


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"by_cluster": [0, 0, 1, 1, 1, 0], "c": [None, None, "x", "y", "x", None]}, "as many rows as cells"),
        ({"high": [0.5, 1.0, 0.5, 0.4, 1.0, 1.0]}, "cells of clusters overlap"),
        ({"c": [None, None, "x", "x", "x", "x"]}, "the cluster of every row is 'x'"),
    ],
)
def test_counts_of_clusters_that_cannot_be_are_one_line(changed: dict[str, Any], problem: str) -> None:
    asked: dict[str, Any] = {"aggregated": True, "cluster": "c", "metrics": "brier"}
    assert decal_cli.evaluate(of_counts(), **asked)["brier"].value == pytest.approx((4 * 0.04 + 4 * 0.16) / 8)
    independent = decal_cli.evaluate(of_counts(), **asked | {"cluster": None}).to_dict()
    assert independent["rows"] == 8 and "clusters" not in independent
    with pytest.raises(DecalError, match=problem) as error:
        decal_cli.evaluate(of_counts(**changed), **asked)
    assert "\n" not in str(error.value)


def test_what_is_wrong_with_clusters_is_the_same_line(tmp_path: Path, few_counts: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    rows = visits(400)
    rows.assign(c=rows["c"].where(rows.index != 70)).to_parquet(path)
    with pytest.raises(DecalError, match=r"column 'c': cluster missing in 1 of 64 rows \(row 71\)"):
        ask(path)
    dropped = ask(path, missing="drop")
    assert dropped["reports"][0]["rows"] == 399
    rows.assign(c="same").to_parquet(path)
    with pytest.raises(DecalError, match="the cluster of every row is 'same'"):
        ask(path)
    rows.assign(c=range(400)).to_parquet(path)
    alone = ask(path)
    assert any("every cluster has one row" in note for note in alone["notes"])
    independent = ask(path, cluster=None)
    for one, other in pairs_of_reports(alone, independent):
        assert one["metrics"] == other["metrics"] and "clusters" not in one


@pytest.mark.parametrize("splits", [0, 3, MAX_SPLITS])
@pytest.mark.parametrize("thresholds", [(), (0.0, 0.25, 0.2500001, 0.9, 1.0)])
def test_coarse_cells_do_not_overlap_and_are_cut_at_thresholds(thresholds: tuple[float, ...], splits: int) -> None:
    place = np.append((np.arange(GRID) + 0.5) / GRID, [1.0, *thresholds])
    rows = pa.table({"p": place, "y": np.zeros(len(place), int), "c": np.arange(len(place)) % 2})
    request = CountRequest(("p",), "y", "rows", cells=True, thresholds=thresholds, cluster="c", splits=splits)
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        columns = connection.sql(statement(request, DIALECTS["duckdb"])).fetchnumpy()
    clustered = columns["by_cluster"] == 1
    low, high, least, most = (columns[name][clustered] for name in ("low", "high", "min_score", "max_score"))
    low, first = np.unique(low, return_index=True)
    high = high[first]
    assert (high[:-1] <= low[1:]).all() and columns["rows"][clustered].sum() == len(place)
    assert ((columns["low"][clustered] <= least) & (most <= columns["high"][clustered])).all()
    for threshold in thresholds:
        assert ((high <= threshold) | (low >= threshold)).all()
    if not thresholds:
        assert len(low) == n_coarse_cells(splits) == {0: 33, 3: 209, MAX_SPLITS: GRID + 1}[splits]


@pytest.mark.parametrize("weight", [None, "w"])
def test_exported_counts_by_cluster_and_score_add_up(decal: Decal, tmp_path: Path, weight: str | None) -> None:
    path = with_database(pa.Table.from_pandas(visits(800, digits=2)), tmp_path) / "preds.parquet"
    expected = ask(path, score="p", weight=weight, group="site")
    weighing = () if weight is None else ("--weight", weight)
    words = ("--table", "preds", "-s", "p", "-y", "y", "--group", "site", "--cluster", "c", *weighing)
    parts = {"counts.csv": "true", "low.parquet": "score < 0.2", "high.parquet": "score >= 0.2"}
    export_counts(decal, tmp_path, words, parts)
    one, *added = (tmp_path / file for file in parts)
    for files in ([one], added):
        got = ask(files, label=None, score="score", weight=None, group="site", aggregated=True)
        for a, b in zip(expected["reports"], got["reports"], strict=True):
            assert list(b["clusters"].values()) == pytest.approx(list(a["clusters"].values()))
            for key in METRICS:
                ends = [[of["metrics"][key]["value"], *of["metrics"][key]["interval"]] for of in (a, b)]
                assert ends[1] == pytest.approx(ends[0], rel=1e-12, abs=1e-14), key


def test_what_is_wrong_with_clusters_of_an_engine_is_one_line(decal: Decal, tmp_path: Path) -> None:
    engine = ("--engine", f"duckdb:{tmp_path}/file.db", "-s", "p", "-y", "y", "--cluster", "c")
    few = "select p, y, case when p < 0.1 then null else 'a' || (p > 0.3) end as c from preds"
    rows = visits(800)
    with_database(pa.Table.from_pandas(rows), tmp_path)
    lacking = int((rows["p"] < 0.1).sum())
    line = refusal(decal("evaluate", *engine, "--query", few))
    assert f"column 'c': cluster missing in {lacking} rows" in line
    out = decal("evaluate", *engine, "--query", few, "--missing", "drop", "-m", "brier").out
    assert f"dropped {lacking} of 800 rows (missing cluster)" in " ".join(out.split())
    one = "select p, y, 'a' as c from preds"
    assert "the cluster of every row is 'a'" in refusal(decal("evaluate", *engine, "--query", one))
