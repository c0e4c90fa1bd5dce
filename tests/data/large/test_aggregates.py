"""Counts in place of rows: the same numbers, and one line for counts that cannot be."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli
from decal_cli.data.large import aggregates
from decal_cli.errors import DecalError
from decal_cli.limits import HELD_BYTES_OF_ROW
from tests.helpers.cells import cells_of
from tests.helpers.command import Decal, refusal
from tests.helpers.counted_rows import export_counts


def rows(seed: int = 0, count: int = 400) -> pd.DataFrame:
    """Scores with ties, 0, -0 and 1, labels, weights, a group and two models."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(1, 3, count), 2)
    label = (rng.random(count) < score).astype(int)
    score[:3], label[:3] = (-0.0, 0.0, 1.0), (0, 0, 1)
    weight = np.round(rng.exponential(3, count) + 0.1, 3)
    return pd.DataFrame(
        {"p": score, "q": np.sqrt(np.abs(score)), "y": label, "w": weight, "site": rng.choice(["a", "b"], count)}
    )


def levels(data: pd.DataFrame, score: str = "p", weighted: bool = False) -> pd.DataFrame:
    """What a GROUP BY of site and score gives."""
    w = data["w"] if weighted else 1
    columns = {"n": w, "pos": w * data["y"]}
    if weighted:
        columns |= {"n2": w**2, "pos2": w**2 * data["y"], "rows": 1, "rows_pos": data["y"]}
    counted = data.assign(score=data[score] + 0.0, **columns)
    return counted.groupby(["site", "score"], as_index=False)[list(columns)].sum()


def test_scores_by_outcome_are_those_of_the_rows() -> None:
    asked = {"metrics": "clinical", "threshold": 0.3}
    counted = decal_cli.evaluate(levels(rows()), aggregated=True, **asked).to_dict()
    assert counted["by_outcome"] == decal_cli.evaluate(rows(), label="y", score="p", **asked).to_dict()["by_outcome"]


def test_verbs_that_need_rows_say_so() -> None:
    counts = levels(rows())
    # An engine, whose rows are counted too, is told the same, and has the columns.
    named = "Name the feature columns of rows, in files or in an engine"
    assert named in " ".join(str(decal_cli.recommend(counts, aggregated=True, threshold=0.3)).split())
    with pytest.raises(DecalError, match=r"needs the rows themselves|both scores of a row at once"):
        decal_cli.compare(counts, aggregated=True)
    answer = decal_cli.evaluate(counts, aggregated=True, metrics="grouping_loss")
    assert answer.to_dict()["metrics"]["grouping_loss"]["reason"].startswith("needs features, and counts have none")
    with pytest.raises(DecalError, match="speaks of rows"):
        decal_cli.evaluate(counts, aggregated=True, features="site")


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.7, 1.1])
def test_sums_of_equal_weights_are_taken_however_they_are_rounded(weight: float) -> None:
    """Then n2 times the rows is the square of n: the least that it can be, but for the rounding of each sum."""
    rows = np.arange(1, 41)
    n, n2 = (np.array([sum([each] * count) for count in rows]) for each in (weight, weight**2))
    assert (n2 * rows < n**2).any() and (n2 * rows > n**2).any()
    columns = {"score": rows / 50, "n": n, "pos": 0.0, "n2": n2, "pos2": 0.0, "rows": rows, "rows_pos": 0}
    answer = decal_cli.evaluate(pd.DataFrame(columns), aggregated=True, metrics="brier")
    assert answer["brier"].value == pytest.approx((rows @ (rows / 50) ** 2) / rows.sum())
    columns["n2"] = n2 * np.where(rows == 7, 1 - 1e-6, 1)
    with pytest.raises(DecalError, match=r"row 7: .* cannot be the sum of squared weights"):
        decal_cli.evaluate(pd.DataFrame(columns), aggregated=True, metrics="brier")


@pytest.mark.parametrize("of_cells", [False, True])
def test_equal_weights_are_no_weights(of_cells: bool) -> None:
    data = rows().assign(w=2.7)

    def numbers(weighted: bool) -> dict[str, Any]:
        weight = data["w"] if weighted else None
        counts = cells_of(data["p"], data["y"], weight) if of_cells else levels(data, weighted=weighted)
        answer = decal_cli.evaluate(counts, aggregated=True, threshold=0.3, metrics=("ece", "ece_null", "brier"))
        return {name: (answer[name].value, answer[name].interval) for name in ("ece", "ece_null", "brier")}

    for name, (value, ends) in numbers(True).items():
        plain = numbers(False)[name]
        assert (value, *ends) == pytest.approx((plain[0], *plain[1]), rel=1e-12), name


def test_so_many_rows_are_held_and_fewer_with_more_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregates, "MAX_IN_MEMORY_BYTES", 100 * HELD_BYTES_OF_ROW)
    assert aggregates.can_hold(100, 1) and not aggregates.can_hold(101, 1) and not aggregates.can_hold(100, 2)


def test_files_of_different_kinds_are_not_added(tmp_path: Path) -> None:
    levels(rows()).to_csv(tmp_path / "plain.csv", index=False)
    levels(rows(), weighted=True).to_csv(tmp_path / "weighted.csv", index=False)
    for first, second in (("plain", "weighted"), ("weighted", "plain")):
        with pytest.raises(DecalError, match=r"weighted|no column 'n2'"):
            decal_cli.evaluate([tmp_path / f"{first}.csv", tmp_path / f"{second}.csv"], aggregated=True)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_the_engine_found_wrong_is_told_by_the_reader(decal: Decal, tmp_path: Path, form: str) -> None:
    def export(query: str) -> Path:
        export_counts(decal, tmp_path, ("--query", query, "-s", "p", "-y", "y"), {f"counts.{form}": "true"})
        return tmp_path / f"counts.{form}"

    rows = "(values (0.2, 0), (0.7, 1), (0.7, 1), (null, 0), (null, 1)) as preds (p, y)"
    path = export(f"select * from {rows}")
    assert "score missing in 2 rows" in refusal(decal("evaluate", path, "--aggregated"))
    out = decal("evaluate", path, "--aggregated", "--missing", "drop", "-m", "brier").out
    assert "5 rows" in out and "score: dropped 2 of 5 rows (missing score)" in out
    path = export("select 1.5 as p, 1 as y")
    assert "score 1.5 is outside [0, 1]" in refusal(decal("evaluate", path, "--aggregated", "--missing", "drop"))
