"""Times as `decal online` reads them: exact to the nanosecond, or one line that names the row."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.command import Decal, refusal, valid_json

NEVER, START, ROWS = 2**63 - 1, 1_700_000_000, 1500
"""What Spark has for never; a second; rows."""
LINE = ("online", "times.parquet", "-s", "p", "-y", "y", "-t", ".5", "--time", "t", "--method", "running-mean")


def write(folder: Path, time: pa.Array, **more: pa.Array) -> None:
    rng = np.random.default_rng(1)
    score = rng.random(len(time))
    label = (rng.random(len(time)) < score).astype(int)
    pq.write_table(pa.table({"t": time, **more, "p": score, "y": label}), folder / "times.parquet")


def seconds(unit: str, *last: int, rows: int = ROWS) -> pa.Array:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    first = [(START + row) * per_second for row in range(rows - len(last))]
    return pa.array([*first, *last], pa.timestamp(unit))


FAR = {
    "never in microseconds": (seconds("us", NEVER), 1500, "in the year 294247"),
    "never in milliseconds": (seconds("ms", NEVER), 1500, "in the year 292278994"),
    "the last day that is written with four digits": (seconds("s", 253_402_300_799), 1500, "in the year 9999"),
    "never in all rows": (pa.array(range(NEVER - ROWS, NEVER), pa.timestamp("us")), 1, "in the year 294247"),
    "the least of all": (pa.array([-NEVER, *range(ROWS)], pa.timestamp("us")), 1, "in the year -290308"),
    "a number for never": (pa.array([*range(ROWS - 1), NEVER]), 1500, "beyond 2^53"),
    "nanoseconds as numbers": (pa.array(range(START * 10**9, START * 10**9 + 50)), 1, "beyond 2^53"),
}


@pytest.mark.parametrize("case", FAR)
def test_a_time_that_stands_for_never_is_named_with_its_row(decal: Decal, tmp_path: Path, case: str) -> None:
    time, row, words = FAR[case]
    write(tmp_path, time)
    error = refusal(decal(*LINE, "--state", "s.json"))
    assert words in error and f"column 't', row {row}:" in error
    assert not (tmp_path / "s.json").exists()


def test_labels_that_never_come_are_named_too(decal: Decal, tmp_path: Path) -> None:
    write(tmp_path, seconds("us"), came=seconds("us", NEVER))
    assert "column 'came', row 1500: the time lies in the year 294247" in refusal(decal(*LINE, "--delay", "came"))


@pytest.mark.parametrize("written", ["timestamps", "texts"])
def test_times_a_nanosecond_apart_are_not_one_instant(decal: Decal, tmp_path: Path, written: str) -> None:
    first = np.datetime64("2024-01-01T00:00:00", "ns") + np.arange(ROWS)
    write(tmp_path, pa.array(first if written == "timestamps" else [str(each) for each in first]))
    by_time = valid_json(decal(*LINE, "-f", "json", "--every", "500").out)
    assert by_time["last_time"] == "2024-01-01 00:00:00.000001499"
    by_row = valid_json(decal(*LINE[:8], *LINE[10:], "-f", "json", "--every", "500").out)
    assert [each["utility"] for each in by_time["methods"]] == [each["utility"] for each in by_row["methods"]]
    late = valid_json(decal(*LINE, "-f", "json", "--delay", "0.0000001s").out)
    in_rows = valid_json(decal(*LINE[:8], *LINE[10:], "-f", "json", "--delay", "99").out)
    assert [each["utility"] for each in late["methods"]] == [each["utility"] for each in in_rows["methods"]]


def test_a_delay_of_more_time_than_there_is_learns_nothing(decal: Decal, tmp_path: Path) -> None:
    write(tmp_path, seconds("us"))
    document = valid_json(decal(*LINE, "-f", "json", "--delay", "99999999999w").out)
    assert document["p_value"] == 1
