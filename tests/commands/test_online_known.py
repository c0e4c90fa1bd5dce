"""`decal online --state` counts no row twice: files that it took are skipped, rows that it has are refused."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.command import Decal, refusal
from tests.helpers.stream import write_stream

ROWS, PER_DAY = 900, 300
LINE = ("-s", "p", "-y", "y", "-t", ".5", "--method", "online-platt")


def games(rows: int = ROWS, seed: int = 1) -> dict[str, list[str]]:
    """Scores of two digits, three hundred of them a day: many rows are alike."""
    rng = np.random.default_rng(seed)
    score = rng.random(rows).round(2)
    days = np.datetime64("2024-01-01") + np.arange(rows) // PER_DAY
    label = (rng.random(rows) < score).astype(int)
    return {"t": [str(day) for day in days], "p": [str(p) for p in score], "y": [str(y) for y in label]}


def rows_of(folder: Path) -> int:
    return json.loads((folder / "s.json").read_text())["state"]["rows"]


@pytest.mark.parametrize("time", [("--time", "t"), ()])
def test_rows_that_come_again_count_once(decal: Decal, tmp_path: Path, time: Sequence[str]) -> None:
    columns = games()

    def sent(start: int, end: int, *more: str, name: str = "games.csv") -> tuple[int, str]:
        done = decal(
            "online", write_stream(tmp_path / name, columns, start, end), *LINE, *time, "--state", "s.json", *more
        )
        return done.code, refusal(done) if done.code else " ".join(done.out.split())

    for start, end in ((0, 450), (450, 600)):
        assert sent(start, end)[0] == 0
    before = (tmp_path / "s.json").read_bytes()
    for start, end in ((0, 450), (450, 600)):
        code, text = sent(start, end, name="again.csv")
        assert (
            code == 0 and "again.csv: was taken before, and is skipped" in text and "had 600 rows, and has 600" in text
        )
        assert (tmp_path / "s.json").read_bytes() == before
    for start, end, words in (
        (300, 600, "has these 300 rows already"),
        (480, 580, "has these 100 rows already"),
        (400, 700, "has the first 200 of these 300 rows already"),
        (596, 700, "has the first 4 of these 104 rows already"),
        (0, 900, "has the first 600 of these 900 rows already"),
    ):
        code, text = sent(start, end)
        assert code == 2 and words in text and "--skip-known takes the rest" in text, text
        assert (tmp_path / "s.json").read_bytes() == before
    code, text = sent(480, 580, "--skip-known")
    assert code == 0 and rows_of(tmp_path) == 600
    code, text = sent(400, 900, "--skip-known")
    assert code == 0 and "skipped the first 200 of 500 rows, which the state has" in text
    whole = write_stream(tmp_path / "whole.csv", columns)
    assert decal("online", whole, whole, *LINE, *time, "--state", "whole.json").code == (2 if time else 0)
    assert decal("online", whole, *LINE, *time, "--state", "once.json").code == 0
    states = [json.loads((tmp_path / name).read_text())["state"] for name in ("s.json", "once.json")]
    assert states[0] == states[1]


def test_new_rows_that_look_like_old_ones_are_taken(decal: Decal, tmp_path: Path) -> None:
    """Some of them begin as the rows before them ended, by chance: of scores of one digit on one day, many do."""
    rng, rows, alike = np.random.default_rng(2), 0, 0
    last: tuple[str, str] = ("", "")
    for night in range(12):
        score = rng.integers(1, 4, 40) / 10
        columns = {
            "t": ["2024-01-01"] * 40,
            "p": [str(p) for p in score],
            "y": [str(y) for y in rng.integers(0, 2, 40)],
        }
        alike += (columns["p"][0], columns["y"][0]) == last
        last = columns["p"][-1], columns["y"][-1]
        path = write_stream(tmp_path / f"{night}.csv", columns)
        done = decal("online", path, *LINE, "--time", "t", "--state", "s.json")
        assert done.code == 0, done.err
        rows += 40
        assert rows_of(tmp_path) == rows
    assert alike


def test_labels_that_come_later_are_taken_then(decal: Decal, tmp_path: Path) -> None:
    columns = games(400)
    first = write_stream(tmp_path / "first.csv", {**columns, "y": [*columns["y"][:300], *[""] * 100]})
    line = (*LINE, "--time", "t", "--state", "s.json")
    assert decal("online", first, *line).code == 0
    assert rows_of(tmp_path) == 300
    filled = write_stream(tmp_path / "filled.csv", columns)
    assert "has the first 300 of these 400 rows already" in refusal(decal("online", filled, *line))
    assert decal("online", filled, *line, "--skip-known").code == 0
    assert rows_of(tmp_path) == 400
    assert decal("online", filled, *line, "-o", "none.parquet").code == 0


def test_what_is_known_needs_a_state(decal: Decal, tmp_path: Path) -> None:
    path = write_stream(tmp_path / "games.csv", games())
    assert "give --state too" in refusal(decal("online", path, *LINE, "--skip-known"))
