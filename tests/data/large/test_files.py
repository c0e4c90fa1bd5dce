"""Files that are counted batch by batch: the numbers of rows in memory, folders, and the same one-line errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from decal_cli.data import reading
from decal_cli.data.formats import sources
from decal_cli.data.large.engines import counting
from decal_cli.errors import DecalError
from tests.helpers.cells import worded_rows as rows

METRICS = ("brier", "log_loss", "observed_expected", "auc", "ece", "expected_utility", "gain_recalibration", "c_emp")


def counted(monkeypatch: pytest.MonkeyPatch, levels: int | None = None) -> None:
    """Let every file count as too large to be held, be read in small batches, and keep so many levels."""
    monkeypatch.setattr(reading, "MAX_IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(sources, "N_BATCH_ROWS", 64)
    if levels is not None:
        monkeypatch.setattr(counting, "MAX_LEVELS", levels)


def ask(path: Any, **more: Any) -> dict[str, Any]:
    """What evaluate says of both models and every site."""
    asked = {"score": ["p", "q"], "label": "y", "positive": "bad", "group": "site", "threshold": 0.3}
    return decal.evaluate(path, **{**asked, "metrics": METRICS, **more}).to_dict()


@pytest.mark.parametrize("ending", ["feather", "parquet", "csv"])
def test_a_file_that_is_counted_is_the_input_that_it_is_where_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path, data = tmp_path / f"rows.{ending}", rows()
    data.loc[5:40:7, "p"] = None
    data.loc[100:300:50, "y"] = None
    {"parquet": data.to_parquet, "feather": data.to_feather, "csv": lambda p: data.to_csv(p, index=False)}[ending](path)
    whole = ask(path, missing="drop", metrics="brier")
    counted(monkeypatch)
    streamed = ask(path, missing="drop", metrics="brier")
    assert any("were counted" in note for note in streamed["notes"])
    assert streamed["inputs"] == whole["inputs"]
    shown = ("model", "group", "rows", "positives", "dropped")
    assert [[each[key] for key in shown] for each in streamed["reports"]] == [
        [each[key] for key in shown] for each in whole["reports"]
    ]


@pytest.mark.usefixtures("one_deal")
@pytest.mark.parametrize("write", ["to_csv", "to_parquet", "to_feather"])
@pytest.mark.parametrize("features", [None, "x"])
def test_percentages_are_read_where_rows_are_counted_or_sampled_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str, features: str | None
) -> None:
    rng = np.random.default_rng(0)
    score, path = rng.integers(0, 101, 300), tmp_path / "rows"
    # Percentages begin after the first batch.
    data = pd.DataFrame({"p": [f"{each}%" if at > 99 else f"{each / 100}" for at, each in enumerate(score)]})
    data = data.assign(y=(rng.integers(0, 101, 300) < score).astype(int), x=rng.normal(size=300))
    getattr(data, write)(path, **({"index": False} if write == "to_csv" else {}))
    asked = {"score": "p", "label": "y", "features": features, "metrics": ("brier", "regret_grouping")}
    held = decal.evaluate(path, threshold=0.3, **asked).to_dict()
    counted(monkeypatch)
    monkeypatch.setattr(reading, "HELD_SHARE_OF_MEMORY", 0)
    large = decal.evaluate(path, threshold=0.3, **asked).to_dict()
    assert large["metrics"]["brier"]["value"] == pytest.approx(held["metrics"]["brier"]["value"], rel=1e-12)
    note = "p: read 200 of 300 values as percentages, such as 90% as 0.9"
    assert [each["notes"].count(note) for each in (held, large)] == [1, 1]
    data.assign(p=data.p.replace("0.5", "150%").replace("50%", "150%")).to_csv(path, index=False)
    with pytest.raises(DecalError, match=r"column 'p', row \d+ \(line \d+\): score 1.5 is outside"):
        decal.evaluate(path, threshold=0.3, **asked)


def test_progress_counts_the_rows_of_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch)
    for name in ("a", "b"):
        rows().to_feather(tmp_path / f"{name}.feather")
    told: list[tuple[int, int]] = []
    counting = reading.Counting((0.3,), lambda *done: told.append(done))
    columns = decal.data.Columns(score=("p",), label="y", positive="bad")
    reading.read([str(tmp_path / f"{name}.feather") for name in "ab"], columns, counting=counting)
    assert len(rows()) == 700 and {done for done, _ in told} == {*range(64, 700, 64), 700, *range(764, 1400, 64), 1400}


def test_many_rows_in_a_small_file_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, most = tmp_path / "rows.parquet", 100_000
    pd.DataFrame({"p": np.tile([0.25, 0.5], 5000), "y": np.tile([0, 1, 1, 1], 2500)}).to_parquet(path)
    assert path.stat().st_size < most
    for limit, is_counted in ((most, True), (2 * most, False)):
        monkeypatch.setattr(reading, "MAX_IN_MEMORY_BYTES", limit)
        evaluation = decal.evaluate(path, score="p", label="y", metrics="brier")
        assert any("were counted" in note for note in evaluation.to_dict()["notes"]) == is_counted
        assert evaluation["brier"].value == pytest.approx((0.25**2 + 0.5**2 + 0.75**2 + 0.5**2) / 4, rel=1e-12)


@pytest.mark.ci
def test_a_folder_is_one_input_and_its_paths_name_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(2).assign(site=lambda d: d["site"].fillna("c d"))
    folder = tmp_path / "scores"
    for number, (site, part) in enumerate(data.groupby("site")):
        place = folder / f"site={str(site).replace(' ', '%20')}"
        place.mkdir(parents=True)
        part.drop(columns="site").to_parquet(place / f"part-{number}.parquet")
        (place / "_SUCCESS").touch()
    data.to_parquet(tmp_path / "whole.parquet")
    whole, of_folder = ask(tmp_path / "whole.parquet"), ask(folder)
    counted(monkeypatch)
    for answer in (of_folder, ask(folder)):
        assert [report["group"] for report in answer["reports"]] == [report["group"] for report in whole["reports"]]
        for expected, got in zip(whole["reports"], answer["reports"], strict=True):
            assert got["metrics"]["auc"]["value"] == pytest.approx(expected["metrics"]["auc"]["value"], rel=1e-12)
        (named,) = answer["inputs"]
        assert named["path"] == str(folder)
        assert named == of_folder["inputs"][0]
        assert named["rows"] == len(data)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d.assign(p=d["p"].where(d.index != 130, 1.5)), "row 131: score 1.5 is outside [0, 1]"),
        (lambda d: d.assign(p=d["p"].where(d.index != 130, np.inf)), "row 131: score is inf"),
        (lambda d: d.assign(p=d["p"].where(d.index != 130)), "score missing in 1 of"),
        (lambda d: d.assign(y=d["y"].where(d.index != 130, "ugly")), "and the column has 3 values: bad, good, ugly"),
        (lambda d: d.assign(w=d["w"].where(d.index != 130, -1.0)), "row 131: weight -1 is not positive"),
        (lambda d: d.assign(w=d["w"].astype(str)), "is a number stored as text"),
        (lambda d: d.drop(columns="p"), "no column 'p'"),
        (lambda d: d[:0], "has no rows"),
    ],
)
def test_one_bad_file_among_many_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, problem: str
) -> None:
    folder = tmp_path / "scores"
    folder.mkdir()
    for number in range(5):
        data = rows(number, 200)
        (change(data) if number == 3 else data).to_parquet(folder / f"part-{number}.parquet")
    counted(monkeypatch)
    with pytest.raises(DecalError) as error:
        ask(folder, weight="w", group=())
    assert "part-3.parquet" in str(error.value)
    assert problem in str(error.value)


def test_a_corrupt_file_among_many_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        rows(number, 200).to_parquet(tmp_path / f"part-{number}.parquet")
    path = tmp_path / "part-2.parquet"
    content = bytearray(path.read_bytes())
    content[40:400] = b"\xff" * 360
    path.write_bytes(bytes(content))
    counted(monkeypatch)
    with pytest.raises(DecalError, match=r"part-2\.parquet cannot be read as Parquet"):
        ask(tmp_path, group=())


def test_an_empty_folder_and_mixed_partitions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DecalError, match="directory without files"):
        ask(tmp_path)
    for place in ("site=a", "day=1"):
        (tmp_path / place).mkdir()
        rows().drop(columns="site").to_parquet(tmp_path / place / "part.parquet")
    with pytest.raises(DecalError, match="partition all files"):
        ask(tmp_path)


def test_names_that_mean_something_to_sql_are_names_of_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows().rename(columns={"site": "rows", "p": 'the "p"', "y": "label"})
    data["ROWS"] = data["w"]
    asked = {"score": 'the "p"', "label": "label", "positive": "bad", "group": "rows", "weight": "ROWS"}
    paths = [tmp_path / "a?b.csv", tmp_path / "it's.parquet"]
    data.to_csv(paths[0], index=False)
    data.to_parquet(paths[1])
    held = decal.evaluate(paths[0], **asked, metrics="brier").to_dict()["reports"]
    counted(monkeypatch)
    for path in paths:
        got = decal.evaluate(path, **asked, metrics="brier").to_dict()["reports"]
        assert [each["group"] for each in got] == [each["group"] for each in held]
        for one, other in zip(held, got, strict=True):
            assert other["metrics"]["brier"]["value"] == pytest.approx(one["metrics"]["brier"]["value"], rel=1e-12)
