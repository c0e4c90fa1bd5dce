"""`decal online --state`: goes on where the last run ended, and ends as one run does."""

import fcntl
import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.helpers.command import Decal, refusal
from tests.helpers.stream import ON_LINE, stream_columns, write_stream

ROWS = 600
DELAYS = {"none": (), "rows": ("--delay", "40"), "time": ("--delay", "9d"), "column": ("--delay", "came")}


def columns_of(rows: int = ROWS) -> dict[str, list[str]]:
    columns = stream_columns(rows)
    days = np.array(columns["t"], dtype="M8[D]") + np.random.default_rng(2).integers(0, 30, rows)
    groups = [str(each) for each in np.random.default_rng(3).choice(["north", "south"], rows)]
    whole = [f"patient {number // 7}" for number in range(rows)]
    back = [f"patient {number % 11}" for number in range(rows)]
    return {**columns, "came": [str(day) for day in days], "site": groups, "whole": whole, "back": back}


def in_pieces(decal: Decal, folder: Path, columns: dict, cuts: Sequence[int], line: Sequence[str]) -> str:
    """The state after these pieces, apart from what they were."""
    state = folder / f"{len(cuts)}.json"
    for start, end in zip(cuts, [*cuts[1:], None], strict=True):
        piece = write_stream(folder / "piece.csv", columns, start, end)
        # What is written beside the state changes nothing in it.
        beside = ("-o", folder / "predicted.parquet") if start else ()
        done = decal("online", piece, *ON_LINE, *line, *beside, "--state", state)
        assert done.code == 0, done.err
    document = json.loads(state.read_text())
    assert len(document.pop("files")) == len(cuts)
    del document["sha256"]
    return json.dumps(document)


@pytest.fixture
def without_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What predictions lose is printed and is no part of a state; it takes most of a short run."""
    monkeypatch.setattr(
        importlib.import_module("decal_cli.analysis.online.judged"), "value_of", lambda loss, inputs: 0.0
    )


@pytest.mark.usefixtures("without_losses")
@pytest.mark.parametrize("delay", DELAYS)
def test_any_cutting_into_days_gives_the_same_bytes(decal: Decal, tmp_path: Path, delay: str) -> None:
    columns = columns_of()
    for line in ((*DELAYS[delay], "--horizon", "600"), (*DELAYS[delay], "--group", "site", "--every", "70")):
        folder = tmp_path / str(len(line))
        folder.mkdir()
        once = in_pieces(decal, folder, columns, [0], line)
        cuts = [0, *sorted(np.random.default_rng(7).choice(np.arange(1, ROWS), 5, replace=False).tolist())]
        assert in_pieces(decal, folder, columns, cuts, line) == once


@pytest.mark.usefixtures("without_losses")
@pytest.mark.parametrize("cluster", ["whole", "back"])
def test_any_cutting_of_clusters_gives_the_same_bytes(decal: Decal, tmp_path: Path, cluster: str) -> None:
    columns, line = columns_of(), ("--cluster", cluster, "--method", "online-platt", "--method", "running-mean")
    once = in_pieces(decal, tmp_path, columns, [0], line)
    cuts = [0, 70, 73, 300]
    assert in_pieces(decal, tmp_path, columns, cuts, line) == once
    done = decal("online", "piece.csv", "-y", "y", "--state", "4.json", "--cluster", "site")
    assert f"cluster {cluster}, not site" in refusal(done)
    new = {name: values for name, values in columns.items() if name != "y"}
    ahead = write_stream(tmp_path / "new.csv", {**new, "t": [columns["t"][-1]] * ROWS})
    assert decal("apply", "4.json", ahead, "-o", "scored.parquet").code == 0


def test_the_report_is_of_all_rows_whatever_the_cut(decal: Decal, tmp_path: Path) -> None:
    columns = stream_columns()
    documents = []
    for name, cuts in (("one", [0]), ("two", [0, 733])):
        for start, end in zip(cuts, [*cuts[1:], None], strict=True):
            piece = write_stream(tmp_path / "piece.csv", columns, start, end)
            done = decal("online", piece, *ON_LINE, "--state", f"{name}.json", "-f", "json")
        documents.append({**json.loads(done.out), "inputs": 0, "notes": 0, "signature": 0})
    assert documents[0] == documents[1]


def test_rows_without_labels_are_scored_as_the_replay_later_does(decal: Decal, tmp_path: Path) -> None:
    columns = columns_of()
    first = write_stream(tmp_path / "first.csv", columns, 0, 400)
    later = write_stream(tmp_path / "later.csv", columns, 400)
    new = {name: values for name, values in columns.items() if name != "y"}
    line = (*ON_LINE, "--delay", "60d")
    assert decal("online", first, *line, "--state", "state.json").code == 0
    before = (tmp_path / "state.json").read_bytes()
    done = decal("apply", "state.json", write_stream(tmp_path / "new.csv", new, 400), "-o", "scored.parquet")
    assert done.code == 0, done.err
    assert "after 400 rows" in done.err
    assert (tmp_path / "state.json").read_bytes() == before
    assert decal("online", later, "-y", "y", "--state", "state.json", "-o", "replayed.parquet").code == 0
    scored, replayed = pq.read_table(tmp_path / "scored.parquet"), pq.read_table(tmp_path / "replayed.parquet")
    assert scored.column_names == [*new, *(name for name in replayed.column_names if name.startswith("p_"))]
    for name in scored.column_names[len(new) :]:
        # All labels are known 60 days later, which is after the last row: none of the new rows' labels was.
        assert scored[name].to_pylist() == replayed[name].to_pylist(), name


def test_a_state_is_refused_where_it_does_not_fit(decal: Decal, tmp_path: Path) -> None:
    columns = columns_of()
    first = write_stream(tmp_path / "first.csv", columns, 0, 400)
    later = write_stream(tmp_path / "later.csv", columns, 400)
    assert decal("online", first, *ON_LINE, "--state", "state.json").code == 0
    whole = (tmp_path / "state.json").read_text()
    on_state = ("online", later, "-y", "y", "--state", "state.json")
    early = write_stream(tmp_path / "early.csv", {**columns, "p": columns["p"][::-1]}, 0, 300)
    assert "time goes back" in refusal(decal("online", early, "-y", "y", "--state", "state.json"))
    for line, words in (
        (("--threshold", "0.3"), "another decision"),
        (("--score", "came"), "score p, not came"),
        (("--delay", "7d"), "delay 0, not 7d"),
        (("--horizon", "5000"), "horizon None, not 5000"),
        (("--method", "hedge"), "other forecasters"),
        (("--group", "site"), "group None, not site"),
        (("--seed", "4"), "seed 0, not 4"),
    ):
        assert words in refusal(decal(*on_state, *line))
    for text, words in (
        (whole.replace('"decal_state": 2', '"decal_state": 1'), "is a state of version 1"),
        (whole.replace('"positives": ', '"positives": 1', 1), "was changed after it was written"),
        ("{}", "is not a state"),
        ("", "is not JSON"),
    ):
        (tmp_path / "state.json").write_text(text)
        assert words in refusal(decal(*on_state))
        assert (tmp_path / "state.json").read_text() == text


def test_two_runs_on_one_state_are_refused(decal: Decal, tmp_path: Path) -> None:
    first = write_stream(tmp_path / "first.csv", columns_of(), 0, 300)
    with (tmp_path / ".state.json.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another run is using it" in refusal(decal("online", first, *ON_LINE, "--state", "state.json"))
        assert not (tmp_path / "state.json").exists()
    # What a killed run leaves behind is locked by nobody.
    assert decal("online", first, *ON_LINE, "--state", "state.json").code == 0
    assert not os.path.exists(tmp_path / ".state.json.lock")
