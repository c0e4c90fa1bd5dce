"""All units: the same whoever measures them, in their order, with notes on what is dropped."""

import json
import shutil
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from decal_cli.analysis.study import NAME, Setting, Store, Study, Unit, _measure, _units, folder_of, key_of, run
from decal_cli.data import Columns
from decal_cli.errors import DecalError
from tests.helpers.studies import study_predictions, study_setting

SETTING = study_setting("isotonic", "refit")
COLUMNS = Columns(score=("p_*",), features=("x*",))


DROPPING = replace(COLUMNS, missing="drop")
Progress = list[tuple[int, int, int]]


class Measured(NamedTuple):
    files: list[str]
    folder: Path
    study: Study


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Two files of two scores, measured; of the second, one score is of too few rows."""
    folder, paths = tmp_path_factory.mktemp("study"), []
    for k in range(2):
        rows = study_predictions(240, k).rows
        x = rows.matrix
        few = np.where(np.arange(240) < (240 if k == 0 else 60), 1 - rows.score, np.nan)
        columns = {"p_a": rows.score, "p_b": few, "y": rows.label} | {f"x{j}": x[:, j] for j in range(3)}
        paths.append(str(folder / f"{k}.csv"))
        pacsv.write_csv(pa.table(columns), paths[-1])
    return Measured(paths, folder / "out", run(paths, DROPPING, SETTING, range(2), folder / "out", 1))


@pytest.fixture
def kept(measured: Measured, tmp_path: Path) -> Path:
    """A folder with what was measured."""
    return Path(shutil.copytree(measured.folder, tmp_path / "out"))


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch, measured: Measured) -> list[tuple[str, int]]:
    """Score and seed of each unit that is measured from now on; its numbers are those of another one."""
    units: list[tuple[str, int]] = []

    def counted(columns: object, setting: object, digests: object, unit: Unit) -> dict:
        units.append((unit.score, unit.seed))
        return {**measured.study.records[0], "score": unit.score, "seed": unit.seed}

    monkeypatch.setattr(sys.modules["decal_cli.analysis.study"], "_measure", counted)
    return units


def run_again(files: list[str], seeds: int, folder: Path, setting: Setting = SETTING) -> tuple[Study, Progress]:
    progress: Progress = []
    return run(files, DROPPING, setting, range(seeds), folder, 1, lambda *done: progress.append(done)), progress


def without_seconds(records: Iterable[dict]) -> list[dict]:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


@pytest.mark.ci
def test_two_processes_measure_what_one_does_in_the_same_order(measured: Measured, tmp_path: Path) -> None:
    progress: Progress = []
    records = measured.study.records
    two = run(measured.files, DROPPING, SETTING, range(1), tmp_path, 2, lambda *done: progress.append(done))
    assert without_seconds(two.records) == without_seconds([each for each in records if each["seed"] == 0])
    units = [(Path(record["file"]).stem, record["score"], record["seed"]) for record in records]
    assert units == [(k, f"p_{score}", seed) for k, score in ("0a", "0b", "1a") for seed in (0, 1)]
    assert progress == [(k, 3, 0) for k in range(4)]


@pytest.mark.ci
def test_what_is_left_out_is_said(measured: Measured) -> None:
    second, notes = measured.files[1], measured.study.notes
    (dropped,) = (note for note in notes if "dropped, " in note)
    assert dropped.startswith(f"{second}, p_b: dropped, too few rows: 60 rows, ")
    assert any(note == f"{second}: p_b: dropped 180 of 240 rows (missing score)" for note in notes)


@pytest.mark.parametrize(
    ("rows", "positives", "taken"), [(100, 2, 1), (100, 98, 1), (100, 1, 0), (100, 99, 0), (99, 50, 0)]
)
def test_a_hundred_rows_with_two_of_each_label_are_enough(
    tmp_path: Path, rows: int, positives: int, taken: int
) -> None:
    columns = {"p": np.linspace(0, 1, rows), "y": (np.arange(rows) < positives).astype(int)}
    pacsv.write_csv(pa.table(columns), tmp_path / "a.csv")
    with nullcontext() if taken else pytest.raises(DecalError, match="there is nothing to study"):
        assert len(_units([str(tmp_path / "a.csv")], Columns(score=("p",)), SETTING, [0])[0]) == taken


def test_a_list_of_scores_is_looked_up_in_each_file(tmp_path: Path) -> None:
    p, y = np.linspace(0, 1, 200), np.arange(200) % 2
    for name, columns in (("both", ("a", "b")), ("one", ("a",))):
        pacsv.write_csv(pa.table({"y": y} | dict.fromkeys(columns, p)), tmp_path / f"{name}.csv")
    paths = [str(tmp_path / f"{name}.csv") for name in ("both", "one")]
    units, _, notes, _ = _units(paths, Columns(score=("a, b",), label="y"), SETTING, [0])
    assert [(unit.file, unit.score) for unit, _ in units] == [(paths[0], "a"), (paths[0], "b"), (paths[1], "a")]
    assert notes == [f"{paths[1]}: skipped b, which it lacks"]


@pytest.mark.ci
def test_what_is_there_is_not_measured_again(measured: Measured, kept: Path, again: list[tuple[str, int]]) -> None:
    study, progress = run_again(measured.files, 2, kept)
    assert study.records == measured.study.records and not again and progress == [(6, 6, 6)]
    # More seeds and another setting: only what is new.
    _, progress = run_again(measured.files, 3, kept)
    assert again == [("p_a", 2), ("p_b", 2), ("p_a", 2)] and progress == [(k, 9, 6) for k in range(6, 10)]
    run_again(measured.files, 1, kept, study_setting("isotonic"))
    assert len(again) == 3 + 3


def test_a_unit_is_known_by_what_its_file_holds(
    measured: Measured, kept: Path, tmp_path: Path, again: list[tuple[str, int]]
) -> None:
    """A file that moved is not measured again and has its new name; one that changed is another file."""
    for file in measured.files:
        moved = Path(shutil.copyfile(file, tmp_path / "moved.csv"))
        study, _ = run_again([str(moved)], 2, kept)
        before = [record for record in measured.study.records if record["file"] == file]
        assert list(study.records) == [{**record, "file": str(moved)} for record in before] and not again
    moved.write_text(moved.read_text() + moved.read_text().splitlines()[-1] + "\n")
    run_again([str(moved)], 1, kept)
    assert again == [("p_a", 0)]


def test_nothing_to_study_leaves_no_folder(measured: Measured, tmp_path: Path) -> None:
    with pytest.raises(DecalError, match="there is nothing to study; give files of at least 100 rows"):
        run(measured.files[1:], Columns(score=("p_b",), missing="drop"), SETTING, range(1), tmp_path / "out", 1)
    with pytest.raises(DecalError, match="no such file"):
        run([*measured.files, "nowhere.csv"], DROPPING, SETTING, range(1), tmp_path / "out", 1)
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
    measured: Measured, kept: Path, again: list[tuple[str, int]]
) -> None:
    first, *others = [json.loads(line) for line in (kept / NAME).read_text().splitlines()]
    for number, change in enumerate(OTHER_SHAPES, start=1):
        entries = [{**first, "record": {**first["record"], **change} if change else {}}, *others]
        (kept / NAME).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        assert run_again(measured.files, 2, kept)[0].records == measured.study.records
        assert again == [("p_a", 0)] * number, change


def test_a_file_that_changes_between_two_units_is_refused(measured: Measured) -> None:
    (unit, _), *_ = _units(measured.files[:1], DROPPING, SETTING, range(1))[0]
    with pytest.raises(DecalError, match="changed while it was studied"):
        _measure(DROPPING, SETTING, {unit.file: "0" * 64}, unit)


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
    (folder / NAME).write_text("")
    with pytest.raises(DecalError, match="name another folder"):
        Store(folder / NAME / "under a file")
