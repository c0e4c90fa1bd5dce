"""Finished units on disk: what belongs to them, what is left of a line that was cut off, whose folder it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from decal_cli.analysis.study import Unit
from decal_cli.analysis.study.store import NAME, Store, folder_of, key_of
from decal_cli.data import Columns
from decal_cli.errors import DecalError
from tests.helpers.studies import study_setting

UNIT, COLUMNS = Unit("a.csv", "p", 0), Columns(score=("p",))
SETTING = study_setting("isotonic", "refit")
RECORD = {"file": "a.csv", "points": []}


def test_what_is_added_is_there_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    Store(folder).add("one", RECORD)
    Store(folder).add("two", {**RECORD, "file": "b.csv"})
    assert Store(folder).records == {"one": RECORD, "two": {**RECORD, "file": "b.csv"}}


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
        key_of(UNIT, "digest", COLUMNS, SETTING),
        key_of(UNIT, "another file", COLUMNS, SETTING),
        key_of(replace(UNIT, seed=1), "digest", COLUMNS, SETTING),
        key_of(replace(UNIT, score="q"), "digest", COLUMNS, SETTING),
        key_of(UNIT, "digest", replace(COLUMNS, features=("x*",)), SETTING),
        key_of(UNIT, "digest", COLUMNS, study_setting("isotonic")),
        key_of(UNIT, "digest", COLUMNS, study_setting("isotonic", "refit(penalty=2)")),
        key_of(UNIT, "digest", COLUMNS, study_setting("isotonic", "refit", thresholds=(0.3,))),
        key_of(UNIT, "digest", COLUMNS, replace(SETTING, confidence=0.9)),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0] == key_of(replace(UNIT, file="elsewhere/a.csv"), "digest", COLUMNS, SETTING)


def test_no_nan_is_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        Store(tmp_path).add("one", {"value": float("nan")})


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


def test_a_line_is_one_unit(tmp_path: Path) -> None:
    Store(tmp_path).add("one", RECORD)
    (line,) = (tmp_path / NAME).read_text().splitlines()
    assert json.loads(line) == {"key": "one", "record": RECORD}
