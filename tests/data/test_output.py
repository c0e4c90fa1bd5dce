"""Files written in one step, in every format, and what is left of them when a run is stopped."""

import csv
import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.data import Writer, format_of
from decal_cli.data.output import as_file, whole_file
from decal_cli.errors import DecalError
from tests.helpers.files import ARROW_KINDS

WATCHED = ("output.py", "signals.py", "contextlib.py")
"""The modules that are at work while a file is written."""


class Stopper:
    """Sends this process Ctrl-C before the given instruction of the watched modules, counted from 0."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.endswith(WATCHED):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == -1:
                signal.raise_signal(signal.SIGINT)
        return self


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, however the tests were started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def stopped_at(instruction: int, path: Path) -> bool:
    """Write a file and stop at this instruction; whether it came to that."""
    stopper, before = Stopper(instruction), sys.gettrace()
    try:
        sys.settrace(stopper)
        with whole_file(str(path), "output") as file:
            file.write(b"new")
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return stopper.left < 0


# A run that is stopped ends; it need not close the file first.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_ctrl_c")
def test_a_stop_at_any_instruction_leaves_the_old_file_or_the_new_one_and_nothing_else(tmp_path: Path) -> None:
    path, instruction, seen = tmp_path / "out.txt", 0, set()
    while True:
        path.write_text("old")
        stopped = stopped_at(instruction, path)
        assert os.listdir(tmp_path) == ["out.txt"], f"stopped at instruction {instruction}"
        seen.add((stopped, path.read_text()))
        if not stopped:
            break
        instruction += 1
    assert seen == {(True, "old"), (True, "new"), (False, "new")}


SCORES = np.array([0.1, 1 / 3, 5e-324])


def out(path: str, *tables: pa.Table, known: list[bool] | None = None) -> bytes:
    """What a file of this name holds of these batches, each with a new column of numbers."""
    file = io.BytesIO()
    writer = Writer(path, file)
    for table in tables:
        mask = np.array(known or [True] * table.num_rows)
        writer.write(table, {"new": np.linspace(0, 1, int(mask.sum()))}, mask)
    writer.close()
    return file.getvalue()


def parquet(content: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(content))


def rows_of(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


class TestParquet:
    @pytest.mark.parametrize("kind", ARROW_KINDS)
    def test_every_kind_of_column_keeps_its_values(self, kind: str) -> None:
        table = pa.table({"before": [1, 2, 3], kind: ARROW_KINDS[kind], "after": [4, 5, 6]})
        back = parquet(out("out.parquet", table, table))
        assert back.column_names == ["before", kind, "after", "new"]
        assert back[kind].to_pylist() == 2 * table[kind].to_pylist()
        assert back["before"].to_pylist() == [1, 2, 3] * 2 and back["after"].to_pylist() == [4, 5, 6] * 2

    def test_batches_whose_categories_differ_are_one_column(self) -> None:
        first, second = (pa.table({"c": pa.array(words).dictionary_encode()}) for words in (["a", "b"], ["c", "a"]))
        back = parquet(out("out.parquet", first, second))["c"]
        assert back.to_pylist() == ["a", "b", "c", "a"] and back.type == first["c"].type

    def test_rows_without_a_score_have_null(self) -> None:
        back = parquet(out("out.parquet", pa.table({"a": [1, 2, 3]}), known=[True, False, True]))
        assert back["new"].to_pylist() == [0.0, None, 1.0]
        assert back["a"].to_pylist() == [1, 2, 3]

    def test_the_notes_of_the_file_stay(self) -> None:
        table = pa.table({"a": [1]}).replace_schema_metadata({"origin": "here"})
        assert parquet(out("out.parquet", table)).schema.metadata[b"origin"] == b"here"


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
cells = st.one_of(texts, st.sampled_from(['"', ",", "\n", "\r", '""', "a,b", 'he said "no"', "NA", "", " x "]))


class TestCsv:
    @given(st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=3), texts)
    def test_texts_come_back_whatever_they_hold(self, batches: list[list[str]], name: str) -> None:
        tables = [pa.table({name + "t": batch, "k": list(range(len(batch)))}) for batch in batches]
        header, *rows = rows_of(out("out.csv", *tables))
        assert header == [name + "t", "k", "new"]
        assert [row[0] for row in rows] == [cell for batch in batches for cell in batch]
        assert [row[1] for row in rows] == [str(k) for batch in batches for k in range(len(batch))]

    @given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
    def test_numbers_come_back_to_the_last_bit(self, values: list[float]) -> None:
        _, *rows = rows_of(out("out.csv", pa.table({"x": values})))
        assert [float(row[0]) for row in rows] == values

    def test_quotes_stand_only_where_a_batch_needs_them(self) -> None:
        plain, odd = pa.table({"a": ["x", "y"]}), pa.table({"a": ["x,y"]})
        assert out("out.csv", plain) == b"a,new\nx,0\ny,1\n"
        assert out("out.csv", plain, odd) == b'a,new\nx,0\ny,1\n"x,y",0\n'

    def test_the_header_is_written_once_and_quoted_where_needed(self) -> None:
        content = out("out.csv", *[pa.table({'a,"b"': [1], "c\nd": [2]})] * 3)
        assert rows_of(content) == [['a,"b"', "c\nd", "new"], *[["1", "2", "0"]] * 3]

    def test_rows_without_a_score_have_an_empty_cell(self) -> None:
        content = out("out.csv", pa.table({"a": ["x", "y", "z"]}), known=[False, True, True])
        assert content == b"a,new\nx,\ny,0\nz,1\n"
        back = pacsv.read_csv(io.BytesIO(content))
        assert back["new"].to_pylist() == [None, 0, 1]

    @pytest.mark.parametrize("kind", ["category", "at", "price", "yes", "none", "small", "big", "half"])
    def test_other_kinds_are_written_as_text(self, kind: str) -> None:
        rows = rows_of(out("out.csv", pa.table({kind: ARROW_KINDS[kind], "k": [1, 2, 3]})))
        assert len(rows) == 4 and all(len(row) == 3 for row in rows)
        assert rows[2][0] == "", "a null is an empty cell"
        expected = {"category": "u", "at": "1970-01-01 00:00:00.000001Z", "price": "1.10", "yes": "true", "none": ""}
        assert rows[1][0] == expected.get(kind, rows[1][0])

    @pytest.mark.parametrize("kind", ["lists", "vectors", "record"])
    def test_lists_and_objects_are_refused_with_the_way_out(self, kind: str) -> None:
        with pytest.raises(DecalError) as caught:
            out("out.csv", pa.table({kind: ARROW_KINDS[kind]}))
        assert f"column '{kind}' holds lists or objects, which CSV cannot" in str(caught.value)
        assert ".parquet" in caught.value.fix

    @pytest.mark.parametrize(
        "column",
        [
            pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
            pa.array([b"\xff\xfe"]),
            pa.array(["text"], pa.string_view()),
        ],
        ids=lambda column: str(column.type),
    )
    def test_what_csv_cannot_hold_is_one_line_or_text(self, column: pa.Array) -> None:
        try:
            content = out("out.csv", pa.table({"odd": column}))
        except DecalError as error:
            assert str(error).startswith("out.csv cannot hold") and str(error).isprintable()
        else:
            assert rows_of(content)[1][0] == "text"


@pytest.mark.parametrize(("path", "form"), [("a.csv", ".csv"), ("b.PARQUET", ".parquet"), ("x/y.z.csv", ".csv")])
def test_the_name_says_the_format(path: str, form: str) -> None:
    assert format_of(path) == form


@pytest.mark.parametrize("path", ["out", "out.json", "out.csv.gz", ".csv", "out.feather"])
def test_other_names_are_refused(path: str) -> None:
    with pytest.raises(DecalError, match="unknown kind of file"):
        format_of(path)


@pytest.mark.parametrize("path", ["out.csv", "out.parquet"])
def test_whole_columns_come_back(path: str) -> None:
    columns = {"p": SCORES, "name": np.array(['a"b', "c,d", "e\nf"])}
    content = as_file(path, columns)
    if path.endswith("csv"):
        assert rows_of(content)[1:] == [
            [repr(p), name] for p, name in zip(SCORES.tolist(), columns["name"], strict=True)
        ]
    else:
        assert parquet(content).to_pydict() == {name: values.tolist() for name, values in columns.items()}
