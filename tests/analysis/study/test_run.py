"""All units: the same whoever measures them, in their order, with notes on what is dropped."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from decal_cli.analysis.study import NAME, Store, Unit, _measure, _units, folder_of, key_of, run
from decal_cli.data import Columns
from decal_cli.errors import DecalError
from tests.helpers.studies import study_predictions, study_setting

SETTING = study_setting("isotonic", "refit")
COLUMNS = Columns(score=("p_*",), features=("x*",))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two files of two scores; of the second, one score is of too few rows."""
    paths = []
    for k in range(2):
        rows = study_predictions(240, k).rows
        x = rows.matrix
        few = np.where(np.arange(240) < (240 if k == 0 else 60), 1 - rows.score, np.nan)
        columns = {"p_a": rows.score, "p_b": few, "y": rows.label} | {f"x{j}": x[:, j] for j in range(3)}
        paths.append(str(tmp_path / f"{k}.csv"))
        pacsv.write_csv(pa.table(columns), paths[-1])
    return paths


def dropping() -> Columns:
    return Columns(score=COLUMNS.score, features=COLUMNS.features, missing="drop")


def without_seconds(records: tuple) -> list[dict]:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def test_two_processes_measure_what_one_does_in_the_same_order(files: list[str], tmp_path: Path) -> None:
    progress: list[tuple[int, int, int]] = []
    one = run(files, dropping(), SETTING, range(2), tmp_path / "one", 1)
    two = run(files, dropping(), SETTING, range(2), tmp_path / "two", 2, lambda *done: progress.append(done))
    assert without_seconds(one.records) == without_seconds(two.records)
    assert [(Path(r["file"]).stem, r["score"], r["seed"]) for r in two.records] == [
        ("0", "p_a", 0),
        ("0", "p_a", 1),
        ("0", "p_b", 0),
        ("0", "p_b", 1),
        ("1", "p_a", 0),
        ("1", "p_a", 1),
    ]
    assert progress == [(k, 6, 0) for k in range(7)]


def test_what_is_left_out_is_said(files: list[str], tmp_path: Path) -> None:
    notes = run(files, dropping(), SETTING, range(1), tmp_path / "out", 1).notes
    (dropped,) = (note for note in notes if "dropped, " in note)
    assert dropped.startswith(f"{files[1]}, p_b: dropped, too few rows: 60, ")
    assert any(note == f"{files[1]}: p_b: dropped 180 of 240 rows (missing score)" for note in notes)


def test_what_is_there_is_not_measured_again(files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[str, int]] = []
    whole = run(files, dropping(), SETTING, range(2), tmp_path / "out", 1)

    def counted(columns: object, setting: object, digests: object, unit: object) -> dict:
        measured.append((unit.score, unit.seed))
        return {**whole.records[0], "score": unit.score, "seed": unit.seed}

    monkeypatch.setattr(sys.modules["decal_cli.analysis.study"], "_measure", counted)
    progress: list[tuple[int, int, int]] = []
    again = run(files, dropping(), SETTING, range(2), tmp_path / "out", 1, lambda *done: progress.append(done))
    assert again.records == whole.records and not measured and progress == [(6, 6, 6)]
    # More seeds and another setting: only what is new.
    run(files, dropping(), SETTING, range(3), tmp_path / "out", 1, lambda *done: progress.append(done))
    assert measured == [("p_a", 2), ("p_b", 2), ("p_a", 2)] and progress[1:] == [(k, 9, 6) for k in range(6, 10)]
    run(files, dropping(), study_setting("isotonic"), range(1), tmp_path / "out", 1)
    assert len(measured) == 3 + 3


def test_a_unit_cut_off_is_measured_again(files: list[str], tmp_path: Path) -> None:
    whole = run(files[:1], dropping(), SETTING, range(1), tmp_path / "out", 1)
    path = tmp_path / "out" / NAME
    path.write_bytes(path.read_bytes()[:-9])
    progress: list[tuple[int, int, int]] = []
    again = run(files[:1], dropping(), SETTING, range(1), tmp_path / "out", 1, lambda *done: progress.append(done))
    assert without_seconds(again.records) == without_seconds(whole.records)
    assert progress == [(1, 2, 1), (2, 2, 1)]


def test_a_file_that_moved_is_not_measured_again_and_has_its_new_name(files: list[str], tmp_path: Path) -> None:
    run(files[:1], dropping(), SETTING, range(1), tmp_path / "out", 1)
    moved = Path(files[0]).rename(tmp_path / "moved.csv")
    progress: list[tuple[int, int, int]] = []
    again = run([str(moved)], dropping(), SETTING, range(1), tmp_path / "out", 1, lambda *done: progress.append(done))
    assert progress == [(2, 2, 2)] and {record["file"] for record in again.records} == {str(moved)}


def test_a_file_that_changed_is_measured_anew(files: list[str], tmp_path: Path) -> None:
    other = run(files[1:], dropping(), SETTING, range(1), tmp_path / "other", 1).records
    before = run(files[:1], dropping(), SETTING, range(1), tmp_path / "out", 1).records
    Path(files[0]).write_bytes(Path(files[1]).read_bytes())
    after = run(files[:1], dropping(), SETTING, range(1), tmp_path / "out", 1).records
    assert [record["points"] for record in after] == [record["points"] for record in other]
    assert after[0]["points"] != before[0]["points"]


def test_nothing_to_study_leaves_no_folder(files: list[str], tmp_path: Path) -> None:
    with pytest.raises(DecalError, match="there is nothing to study; give files of at least 100 rows"):
        run(files[1:], Columns(score=("p_b",), missing="drop"), SETTING, range(1), tmp_path / "out", 1)
    with pytest.raises(DecalError, match="no such file"):
        run([*files, "nowhere.csv"], dropping(), SETTING, range(1), tmp_path / "out", 1)
    assert not (tmp_path / "out").exists()


OTHER_SHAPES: list[dict[str, Any]] = [
    {},
    {"rows": "many"},
    {"rows": True},
    {"seconds": [1]},
    {"reasons": {"isotonic": 5}},
    {"points": 3},
    {"points": [{}]},
    {"score": "another"},
]


def test_a_record_of_another_shape_is_measured_again(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = study_setting("isotonic")
    whole = run(files[:1], dropping(), setting, range(1), tmp_path / "out", 1)
    path = tmp_path / "out" / NAME
    first, *others = [json.loads(line) for line in path.read_text().splitlines()]
    measured: list[str] = []

    def counted(columns: object, setting: object, digests: object, unit: object) -> dict:
        measured.append(unit.score)
        return whole.records[0]

    monkeypatch.setattr(sys.modules["decal_cli.analysis.study"], "_measure", counted)
    for number, change in enumerate(OTHER_SHAPES, start=1):
        entries = [{**first, "record": {**first["record"], **change} if change else {}}, *others]
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        assert run(files[:1], dropping(), setting, range(1), tmp_path / "out", 1).records == whole.records
        assert measured == [whole.records[0]["score"]] * number, change


def test_a_file_that_changes_between_two_units_is_refused(files: list[str], tmp_path: Path) -> None:
    (unit, _), *_ = _units(files[:1], dropping(), SETTING, range(1))[0]
    with pytest.raises(DecalError, match="changed while it was studied"):
        _measure(dropping(), SETTING, {unit.file: "0" * 64}, unit)


UNIT, STORED_COLUMNS = Unit("a.csv", "p", 0), Columns(score=("p",))
STORED_SETTING = study_setting("isotonic", "refit")
RECORD = {"file": "a.csv", "points": []}


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_that_was_cut_off_is_dropped_and_the_next_begins_where_it_did(tmp_path: Path, cut: int) -> None:
    store = Store(tmp_path)
    store.add("one", RECORD)
    whole = (tmp_path / NAME).read_bytes()
    store.add("two", RECORD)
    both = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(both[:-cut])
    again = Store(tmp_path)
    assert list(again.records) == ["one"] and (tmp_path / NAME).read_bytes() == whole
    again.add("two", RECORD)
    assert (tmp_path / NAME).read_bytes() == both


@pytest.mark.parametrize("line", [b"[1]\n", b"nonsense\n", b'{"key": "x"}\n', b"\xff\n"])
def test_a_line_that_is_no_unit_ends_what_is_trusted(tmp_path: Path, line: bytes) -> None:
    Store(tmp_path).add("one", RECORD)
    with (tmp_path / NAME).open("ab") as file:
        file.write(line)
    assert list(Store(tmp_path).records) == ["one"]


def test_a_unit_is_known_by_everything_that_it_depends_on() -> None:
    keys = [
        key_of(UNIT, "digest", STORED_COLUMNS, STORED_SETTING),
        key_of(UNIT, "another file", STORED_COLUMNS, STORED_SETTING),
        key_of(replace(UNIT, seed=1), "digest", STORED_COLUMNS, STORED_SETTING),
        key_of(replace(UNIT, score="q"), "digest", STORED_COLUMNS, STORED_SETTING),
        key_of(UNIT, "digest", replace(STORED_COLUMNS, features=("x*",)), STORED_SETTING),
        key_of(UNIT, "digest", STORED_COLUMNS, study_setting("isotonic")),
        key_of(UNIT, "digest", STORED_COLUMNS, study_setting("isotonic", "refit(penalty=2)")),
        key_of(UNIT, "digest", STORED_COLUMNS, study_setting("isotonic", "refit", thresholds=(0.3,))),
        key_of(UNIT, "digest", STORED_COLUMNS, replace(STORED_SETTING, confidence=0.9)),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0] == key_of(replace(UNIT, file="elsewhere/a.csv"), "digest", STORED_COLUMNS, STORED_SETTING)


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(DecalError, match=r"holds files, and no study \(thesis.tex, ...\)"):
        folder_of(str(tmp_path))
    with pytest.raises(DecalError, match="is a file"):
        folder_of(str(tmp_path / "thesis.tex"))
    (tmp_path / NAME).write_text("")
    assert folder_of(str(tmp_path)) == tmp_path


def test_a_new_folder_is_made_when_there_is_something_to_keep(tmp_path: Path) -> None:
    folder = folder_of(str(tmp_path / "new"))
    assert not folder.exists()
    Store(folder)
    assert folder.is_dir()
    with pytest.raises(DecalError, match="name another folder"):
        Store(tmp_path / "new" / NAME / "under a file") if (folder / NAME).write_text("") == 0 else None
