"""`decal online` as a user meets it."""

import csv
import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.helpers.command import Decal, refusal, valid_json
from tests.helpers.stream import ON_LINE, stream_columns, write_stream


@pytest.fixture
def drifting(tmp_path: Path) -> Path:
    return write_stream(tmp_path / "stream.csv", stream_columns())


def test_the_table_says_what_happened_and_what_to_do(decal: Decal, drifting: Path) -> None:
    done = decal("online", drifting, *ON_LINE)
    assert done.code == 0, done.err
    for words in (
        "1,500 rows from 2024-01-01 to 2024-10-26", "labels are known at any later time", "2024-06", "ForecastHedge *",
        "alarm. At 2024-0", "Recalibrate online with", "decisions a day",
    ):  # fmt: skip
        assert words in done.out, words


def test_json_agrees_with_evaluate_and_with_itself(decal: Decal, drifting: Path) -> None:
    document = valid_json(decal("online", drifting, *ON_LINE, "-f", "json").out)
    single = valid_json(
        decal("evaluate", drifting, "-s", "p", "-y", "y", "-t", ".5", "-f", "json", "--no-intervals", "--metric",
              "expected_utility", "--metric", "u_cal", "--metric", "cdl").out
    )["metrics"]  # fmt: skip
    methods = {each["method"]: each for each in document["methods"]}
    score = methods["as-it-is"]
    assert score["utility"] == pytest.approx(single["expected_utility"]["value"], abs=1e-12)
    # Predictions are counted in 2,000 cells.
    assert score["u_cal"] == pytest.approx(single["u_cal"]["value"], abs=1e-3)
    assert score["cdl"] == pytest.approx(single["cdl"]["value"], abs=1e-3)
    assert sum(window["rows"] for window in document["windows"]) == document["rows"] == 1500
    for name, each in methods.items():
        of_windows = sum(window["rows"] * window["utility"][name] for window in document["windows"])
        assert of_windows / 1500 == pytest.approx(each["utility"], abs=1e-12)
        if each["gain"] is not None:
            assert each["gain"] == pytest.approx(each["utility"] - score["utility"], abs=1e-12)
            assert each["interval"][0] <= each["gain"] <= each["interval"][1]
    assert document["alarm"]["row"] > document["alarm"]["likely_since_row"] >= 600
    assert document["advice"]["action"] == "recalibrate-online"


def test_a_score_that_stays_calibrated_is_kept(decal: Decal, tmp_path: Path) -> None:
    calm = write_stream(tmp_path / "calm.csv", stream_columns(shift=0.0))
    document = valid_json(decal("online", calm, *ON_LINE, "-f", "json").out)
    assert document["alarm"] is None
    assert document["advice"] | {"action": "keep", "method": None} == document["advice"]


def test_without_a_score_the_base_rate_is_forecast(decal: Decal, drifting: Path) -> None:
    line = ("-y", "y", "--time", "t", "--threshold", "0.5", "-f", "json", "--method", "hedge")
    document = valid_json(decal("online", drifting, *line).out)
    assert "score" not in document["columns"]
    assert [each["method"] for each in document["methods"]] == ["running-mean", "hedge"]
    refusal(decal("online", drifting, "--method", "nosuch", "-t", ".5"))


def test_csv_has_a_line_for_each_window_and_method(decal: Decal, drifting: Path) -> None:
    out = decal("online", drifting, *ON_LINE, "-f", "csv", "--every", "500", "--method", "online-platt").out
    lines = list(csv.DictReader(io.StringIO(out)))
    assert [(line["window"], line["method"]) for line in lines] == [
        (window, method) for window in ("1–500", "501–1,000", "1,001–1,500") for method in ("as-it-is", "online-platt")
    ]


def test_predictions_are_written_for_every_row(decal: Decal, tmp_path: Path) -> None:
    columns = stream_columns(300)
    columns["y"][-20:] = [""] * 20
    path = write_stream(tmp_path / "new.csv", columns)
    done = decal("online", path, *ON_LINE, "--method", "online-platt", "-o", "scored.parquet")
    assert done.code == 0, done.err
    assert "the labels of the last 20 rows are not known yet" in done.out
    table = pq.read_table(tmp_path / "scored.parquet")
    assert table.column_names == ["row", "t", "p", "y", "p_online_platt"]
    assert table["y"].null_count == 20
    assert table["p_online_platt"].null_count == 0


def test_rules_over_time_set_the_exit_code(decal: Decal, drifting: Path) -> None:
    line = ("online", drifting, *ON_LINE, "--method", "online-platt", "--method", "running-mean")
    done = decal(*line, "--rule", "e_calibration<20", "--rule", "lower(gain)<0.01", "-r", "rows>=100", "-f", "json")
    document = valid_json(done.out)
    by_rule = {each["rule"]: each for each in document["gates"]}
    assert done.code == 1
    assert by_rule["e_calibration<20"]["passed"] is False
    assert by_rule["e_calibration<20"]["value"] == pytest.approx(10 ** document["log10_e"])
    platt = next(each for each in document["methods"] if each["method"] == "online-platt")
    assert by_rule["lower(gain)<0.01"]["value"] == pytest.approx(platt["interval"][0], abs=1e-12)
    assert by_rule["lower(gain)<0.01"]["passed"] is (platt["interval"][0] < 0.01)
    assert by_rule["rows>=100"]["passed"] is True
    assert decal(*line, "--rule", "gain@method=running-mean<0").code == 0
    assert "rows" in decal(*line, "-f", "junit", "-r", "rows>=1").out
    for rule, words in (
        ("e_calibrated<20", "there is no e_calibrated"),
        ("lower(rows)<3", "rows goes without lower"),
        ("gain@method=hedge<0", "hedge is not among the forecasters"),
        ("lower(gain<3", "does not parse"),
    ):
        assert words in refusal(decal(*line, "--rule", rule))
    assert "decal online --rule" in refusal(decal("gate", drifting, "-s", "p", "-y", "y", "--rule", "e_calibration<20"))
