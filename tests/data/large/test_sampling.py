"""Samples of rows that are too many to hold: the same rows from any format, order and partition, and what they tell."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import decal_cli as decal
from decal_cli.data import reading
from decal_cli.data.formats import sources
from decal_cli.data.large import sampling
from decal_cli.data.large.engines import counting
from decal_cli.tables.table import Table
from tests.helpers.files import write_columns

ASKED: dict[str, Any] = {"score": "p", "label": "y", "features": ["x", "z", "c"], "threshold": 0.3}
METRICS = ("brier", "auc", "expected_utility", "grouping_loss")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every file count as too large to be held, be read in small batches, and a sample be of 1,000 rows."""
    monkeypatch.setattr(reading, "HELD_SHARE_OF_MEMORY", 0)
    monkeypatch.setattr(reading, "MAX_IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(sources, "N_BATCH_ROWS", 700)
    monkeypatch.setattr(sampling, "N_SAMPLE_ROWS", 1000)


def rows(count: int = 6000, rate: float = 0.4) -> pd.DataFrame:
    """A score that misses a feature, with features of all kinds and missing values."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=count), np.round(rng.normal(size=count), 2)
    logit = np.log(rate / (1 - rate)) + x + z
    label = (rng.random(count) < 1 / (1 + np.exp(-logit))).astype(int)
    z[rng.random(count) < 0.05] = np.nan
    score = 1 / (1 + np.exp(-(logit - 0.5 * x)))
    return pd.DataFrame({"p": score, "y": label, "x": x * 1e6, "z": z, "c": rng.choice(["ä", "b", None], count)})


@pytest.mark.usefixtures("few")
def test_the_same_rows_are_drawn_from_any_format_order_and_partition(tmp_path: Path) -> None:
    data = rows()
    data.sample(frac=1, random_state=1).to_parquet(tmp_path / "whole.parquet")
    data.to_csv(tmp_path / "whole.csv", index=False)
    for day, part in data.groupby(np.arange(len(data)) % 3):
        (tmp_path / "parts" / f"day={day}").mkdir(parents=True)
        part.to_feather(tmp_path / "parts" / f"day={day}" / "a.feather")
    answers = [
        decal.evaluate(tmp_path / name, metrics=METRICS, **ASKED).to_dict()
        for name in ("whole.parquet", "whole.csv", "parts")
    ]
    note = "a sample of 1,000 of 6,000 rows, by a hash of scores and features: intervals allow for it"
    for answer in answers:
        assert any(each.startswith(note) for each in answer["notes"])
        assert sum(each["rows"] for each in answer["inputs"]) == 6000
        for key, result in answers[0]["metrics"].items():
            assert answer["metrics"][key]["value"] == pytest.approx(result["value"], rel=1e-9), key


COSTS: dict[str, Any] = {"score": "p", "label": "y", "cost_fn_column": "miss", "cost_fp": 10}
CLUSTERS: dict[str, Any] = {**COSTS, "cluster": "c"}
CLASSES: dict[str, Any] = {"proba": "p_*", "label": "k", "decision": decal.Decision.abstain(0.3)}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("asked", "of"), [(COSTS, "scores and costs"), (CLUSTERS, "scores and costs"), (CLASSES, "scores")]
)
def test_costs_of_rows_and_several_classes_are_told_by_a_sample(
    asked: dict[str, Any], of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, data = np.random.default_rng(3), rows()[["p", "y"]]
    data["miss"], data["c"] = np.round(rng.lognormal(3, 1, len(data)), 2), np.arange(len(data)) // 20
    data["p_a"], data["p_b"], data["p_c"] = data["p"] / 2, data["p"] / 2, 1 - data["p"]
    data["k"] = np.where(data["y"] == 1, rng.choice(["a", "b"], len(data)), "c")
    data.to_parquet(tmp_path / "rows.parquet")
    metrics = ["expected_utility"]
    whole = decal.evaluate(data, metrics=metrics, **asked).to_dict()["metrics"]["expected_utility"]
    answer = decal.evaluate(tmp_path / "rows.parquet", metrics=metrics, **asked).to_dict()
    drawn = answer["metrics"]["expected_utility"]
    assert any(note.startswith(f"a sample of 1,000 of 6,000 rows, by a hash of {of}:") for note in answer["notes"])
    assert drawn["interval"][0] < whole["value"] < drawn["interval"][1] and drawn["value"] != whole["value"]
    if of != "scores":
        monkeypatch.setattr(counting, "MAX_LEVELS", 2000)
        with duckdb.connect(tmp_path / "file.db") as connection:
            connection.execute("create table preds as select * from data")
        engine = decal.evaluate(f"duckdb:{tmp_path}/file.db?table=preds", metrics=metrics, **asked).to_dict()
        assert engine["metrics"]["expected_utility"]["value"] == pytest.approx(drawn["value"], rel=1e-9)
    # Rows that are not drawn are checked too.
    wrong = {"miss": -1.0} if of != "scores" else {"p_a": 0.9, "p_b": 0.9}
    data.loc[5000, list(wrong)] = list(wrong.values())
    data.to_parquet(tmp_path / "wrong.parquet")
    with pytest.raises(decal.DecalError, match="row 5001"):
        decal.evaluate(tmp_path / "wrong.parquet", metrics=metrics, **asked)


def test_truth_values_of_an_engine_are_those_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(600).assign(t=lambda d: d["x"] > 0, u=lambda d: d["z"] > 0)
    data.to_parquet(tmp_path / "rows.parquet")
    with duckdb.connect(tmp_path / "file.db") as connection:
        connection.execute("create table preds as select * from data")
    asked = {**ASKED, "features": ["x", "u"], "group": "t", "metrics": "grouping_loss"}
    in_file = decal.evaluate(tmp_path / "rows.parquet", **asked).to_dict()
    monkeypatch.setattr(counting, "MAX_LEVELS", 1)
    for most in (200_000, 300):
        monkeypatch.setattr(sampling, "N_SAMPLE_ROWS", most)
        drawn = decal.evaluate(f"duckdb:{tmp_path}/file.db?table=preds", **asked).to_dict()
        assert [each["group"] for each in drawn["reports"]] == [None, "false", "true"]
        assert drawn["notes"][-1] == in_file["notes"][-1] == "features: 1 number, 1 boolean"


@pytest.mark.parametrize("asked", [{}, {"features": ["x"]}])
def test_the_share_of_label_1_is_of_rows_that_have_one(
    asked: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    data = rows(600)[["p", "y", "x"]].assign(y=lambda d: d["y"].astype("Int64").where(d.index % 8 > 0))
    data.to_parquet(tmp_path / "rows.parquet")
    data.to_csv(tmp_path / "rows.csv", index=False)
    with duckdb.connect(tmp_path / "file.db") as connection:
        connection.execute("create table preds as select * from data")
    sources = tmp_path / "rows.parquet", tmp_path / "rows.csv", f"duckdb:{tmp_path}/file.db?table=preds"
    positives = f"600 rows, {data['y'].sum()} positive of 525 with a label"
    for held in (True, False):
        if not held:
            request.getfixturevalue("few")
        for source in sources:
            said = str(decal.evaluate(source, 0.3, metrics="brier", score="p", label="y", missing="drop", **asked))
            assert positives in said.replace("\n", " "), (held, source)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_a_feature_of_drawn_rows_may_be_a_group_and_an_amount_too(tmp_path: Path, form: str) -> None:
    data = {**rows(400).fillna({"c": "c"}).to_dict("list"), "a": [1.5, 2.0] * 200}
    asked = {**ASKED, "threshold": None, "features": ["a", "c"], "group": "c", "amount": "a", "cost_fp": 1}
    answer = decal.evaluate(write_columns(tmp_path, data, form), metrics=["grouping_loss"], **asked).to_dict()
    assert answer["notes"] == ["features: 1 number, 1 category"]
    assert [each["group"] for each in answer["reports"]] == [None, "b", "c", "ä"]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_infinite_feature_of_drawn_rows_is_not_said_to_stand_in_another_row(tmp_path: Path, form: str) -> None:
    path = write_columns(tmp_path, rows().fillna({"c": "c"}).assign(x=np.inf).to_dict("list"), form)
    with pytest.raises(decal.DecalError, match="column 'x': feature is inf"):
        decal.evaluate(path, metrics=["grouping_loss"], **ASKED)


@pytest.mark.usefixtures("few")
def test_of_one_label_all_that_is_drawn_has_it(tmp_path: Path) -> None:
    rows().query("y == 1").to_parquet(tmp_path / "ones.parquet")
    answer = decal.evaluate(tmp_path / "ones.parquet", metrics=["brier"], **ASKED)
    assert answer.reports[0].rows == 1000 and answer.to_dict()["inputs"][0]["positives"] > 1000


@pytest.mark.usefixtures("few")
def test_of_a_rare_label_more_rows_are_drawn_and_weights_undo_it(tmp_path: Path) -> None:
    data = rows(8000, rate=0.01)
    data["w"] = np.where(data["p"] > 0.05, 9, 1)
    data.to_parquet(tmp_path / "rare.parquet")
    answer, weighted = (
        decal.evaluate(tmp_path / "rare.parquet", metrics=("observed_expected", "brier"), **ASKED, **given).to_dict()
        for given in ({}, {"weight": "w"})
    )
    ones = int(data["y"].sum())
    of_ones = min(ones, 250)
    text = (
        f"it has {1000 - of_ones:,} of {8000 - ones:,} rows with label 0 and {of_ones:,} of {ones:,} rows with label 1"
    )
    assert any(text in note for note in answer["notes"])
    for found, weight in ((answer, 1 + 0 * data["w"]), (weighted, data["w"])):
        for key, value in (
            ("observed_expected", weight @ data["y"] / (weight @ data["p"])),
            ("brier", np.average((data["p"] - data["y"]) ** 2, weights=weight)),
        ):
            low, high = found["metrics"][key]["interval"]
            assert low <= value <= high


@pytest.mark.usefixtures("few")
def test_a_method_of_the_score_alone_is_fitted_to_a_sample_of_counts(tmp_path: Path) -> None:
    data = rows().assign(p=lambda d: d["p"].round(2))
    data.to_parquet(tmp_path / "rows.parquet")
    fitted = decal.fit(tmp_path / "rows.parquet", score="p", label="y", method="isotonic", threshold=0.3)
    scored = fitted.apply(pd.DataFrame({"p": [0.2, 0.5, 0.8]})).iloc[:, -1]
    near = [data.loc[(data["p"] - at).abs() <= 0.05, "y"].mean() for at in (0.2, 0.5, 0.8)]
    np.testing.assert_allclose(scored, near, rtol=0, atol=0.1)
    assert any(each.startswith("a sample of") for each in fitted.to_dict()["notes"])


@pytest.mark.usefixtures("few")
def test_of_counts_each_level_is_drawn_at_its_share() -> None:
    """A twelfth of 5,000 scores with a row of each label and of one with 1,000 of each: rounded up by chance."""
    score, each = np.arange(5001) / 5000, np.append(np.ones(5000, int), 1000)
    sample, counts = sampling._of_levels(Table(score, 2 * each, each))
    assert counts == (6000, 6000)
    for label in (0, 1):
        drawn = sample.score[sample.label == label]
        assert np.count_nonzero(drawn == 1) in (83, 84)
        rare = drawn[drawn < 1]
        # Five standard deviations, of how many and of their mean.
        assert len(rare) == len(np.unique(rare)) == pytest.approx(5000 / 12, abs=5 * np.sqrt(5000 * 11 / 144))
        assert rare.mean() == pytest.approx(0.5, abs=5 * np.sqrt(1 / 12 / len(rare)))


@pytest.mark.usefixtures("few")
def test_a_sample_that_is_cut_while_files_are_read_loses_no_row_of_it() -> None:
    """Of more than twice 1,000 rows those of the 1,000 least hashes stay, and later ones of greater hashes go."""
    stratum = sampling._Stratum()
    for keys in (np.arange(2_100)[::-1], np.arange(5_000, 5_100)):
        stratum.add((0, keys, pa.table({"p": keys / 10_000})), np.ones(len(keys), dtype=bool))
    kept = np.concatenate([keys for _, keys, _ in stratum.least(1_000, ["p"])])
    assert sorted(kept) == [*range(1_000)] and stratum.count == 2_200


@pytest.mark.usefixtures("few")
def test_rows_that_hardly_differ_are_named(tmp_path: Path) -> None:
    data = rows().assign(p=lambda d: d["p"].round(1), x=0, z=0)
    data.to_parquet(tmp_path / "rows.parquet")
    notes = decal.evaluate(tmp_path / "rows.parquet", metrics="brier", **ASKED).to_dict()["notes"]
    assert any("of the rows drawn differ" in note for note in notes)


def test_the_hash_spreads_near_and_equal_looking_numbers() -> None:
    for numbers in (np.arange(4096) / 4096, np.arange(4096) * 1.0, 1e-6 * np.arange(4096), -1e9 * np.arange(4096)):
        sums = sum(piece * sampling.factor(0, at) for at, piece in enumerate(sampling.pieces_of(numbers)))
        keys = sampling.mixed(np.asarray(sums))
        assert len(np.unique(keys)) == 4096
        share = np.bincount(keys * 16 // sampling.PRIME, minlength=16) / 4096
        # Twice what chance gives: five standard deviations of a share of 1/16.
        assert np.abs(share - 1 / 16).max() < 5 * np.sqrt(1 / 16 * 15 / 16 / 4096)


def test_the_hash_stays_what_it_is() -> None:
    # Worked out by hand: 0.5 / 2^20 has the pieces 2^30, 2^10 and 0.
    total = (2**30 * sampling.factor(0) + 2**10 * sampling.factor(0, 1)) % sampling.PRIME
    expected = pow(total, 5, sampling.PRIME)
    sums = sum(piece * sampling.factor(0, at) for at, piece in enumerate(sampling.pieces_of(np.array([0.5]))))
    assert sampling.mixed(np.asarray(sums)).tolist() == [expected]
    assert sampling.piece_of_text("a") == 0x0CC175B
    # The factors are the powers of 48271: three for each column, from the first one on, of their low 22 bits.
    assert sampling.factor(0) == 48271 and sampling.factor(1, 2) == 48271**6 % sampling.PRIME % 2**22 | 1


def test_of_all_rows_of_an_engine_there_is_no_note_on_how_they_differ(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "file.db") as connection:
        connection.execute("create table preds as select 0.1 * (i % 3) as p, i % 2 as y, 0 as x from range(600) r(i)")
    asked = {"score": "p", "label": "y", "features": "x", "metrics": ["brier", "grouping_loss"]}
    notes = decal.evaluate(f"duckdb:{tmp_path}/file.db?table=preds", **asked).to_dict()["notes"]
    assert not [note for note in notes if "sample" in note or "drawn" in note]


@pytest.mark.parametrize(
    ("counts", "drawn"),
    [
        *(((60, 40), (60, 40)), ((50, 51), (50, 50)), ((300, 100), (75, 25)), ((900, 100), (90, 10))),
        *(((901, 99), (75, 25)), ((99_990, 10), (90, 10)), ((101, 0), (100, 0)), ((101,), (100,)), ((99,), (99,))),
    ],
)
def test_of_a_rare_label_a_quarter_of_the_sample_is_drawn_whichever_it_is(
    monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...], drawn: tuple[int, ...]
) -> None:
    monkeypatch.setattr(sampling, "N_SAMPLE_ROWS", 100)
    assert sampling.quotas(counts) == drawn
    assert sampling.quotas(counts[::-1]) == drawn[::-1]
