"""Rows to be scored: batches are the whole in pieces, and a wrong row is named by the file's own number."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.data import Batch, Columns, NewRows, read
from decal_cli.data.formats import jsonlines, sources
from decal_cli.data.words import NUMBER
from decal_cli.errors import DecalError
from tests.helpers.files import ARROW_KINDS, FORMATS, every_format, write_columns, write_text

N_ROWS_HELD = 2_000
ONE = Columns(score=("p",))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "N_BATCH_ROWS", N_ROWS_HELD)
    monkeypatch.setattr(jsonlines, "N_LINES", N_ROWS_HELD)


def batches(path: str, columns: Columns = ONE, width: int = 0, typed: bool = False) -> list[Batch]:
    return list(NewRows(path, columns, ("number",) * width, None, typed).batches())


def batch_error(path: str, columns: Columns = ONE, width: int = 0, typed: bool = False) -> str:
    """The one line that a file is refused with."""
    with pytest.raises(DecalError) as caught:
        batches(path, columns, width, typed)
    line = str(caught.value)
    assert line.isprintable() and caught.value.fix
    return line


def one_table(parts: list[Batch]) -> pa.Table:
    """The tables of all batches, one below the other."""
    return pa.concat_tables([batch.table for batch in parts])


def first_and_more(form: str) -> tuple[int, int]:
    """A number of rows that the first batch of a format does not reach beyond, and one that makes two batches."""
    first = 30_000 if form.startswith("csv") else N_ROWS_HELD
    return first, first + 1000


def many_columns(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {
        "site": rng.choice(["a", "b", "ünder"], rows).tolist(),
        "x2": rng.normal(size=rows).astype(np.float32).astype(float).tolist(),
        "p": rng.random(rows).tolist(),
        "n": list(range(rows)),
        "x1": rng.normal(size=rows).astype(np.float32).astype(float).tolist(),
        "y": rng.integers(0, 2, rows).tolist(),
    }


class TestBatchesAreTheWhole:
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("whole")
        for form in ("csv", "parquet", "feather", "jsonl", "csv.gz"):
            FORMATS[form](pa.table(many_columns(first_and_more(form)[1])), folder / form)
        return folder

    @pytest.mark.parametrize("form", ["csv", "parquet", "feather", "jsonl", "csv.gz"])
    def test_scores_features_and_groups_are_those_of_reading_it_all(self, folder: Path, form: str) -> None:
        columns = Columns(score=("p",), label="y", features=("x1", "x2"), group=("site",))
        given = many_columns(first_and_more(form)[1])
        parts = batches(str(folder / form), columns, width=2, typed=True)
        assert len(parts) > 1
        model = read([str(folder / form)], columns).models[0]
        np.testing.assert_array_equal(np.concatenate([batch.rows.score for batch in parts]), model.rows.score)
        np.testing.assert_array_equal(np.concatenate([batch.rows.matrix for batch in parts]), model.rows.matrix)
        sites = np.concatenate([batch.rows.groups["site"] for batch in parts])
        assert len(sites) == len(given["p"]) and (sites == model.rows.groups["site"]).all()
        assert all(batch.known.all() for batch in parts)
        table = one_table(parts)
        assert table.column_names == list(given)
        assert {name: table[name].to_pylist() for name in ("n", "x1", "p", "y")} == {
            name: given[name] for name in ("n", "x1", "p", "y")
        }

    def test_groups_are_called_what_the_whole_file_calls_them(self, tmp_path: Path) -> None:
        # 2.0 alone would be called 2; a 'none given' in a later batch keeps it 2.0.
        sites = [*["1.0", "2.0"] * 10_000, "none given"]
        lines = "".join(f"0.5,{i % 2},{site},{'x' * 100}\n" for i, site in enumerate(sites))
        path = write_text(tmp_path, f"p,y,site,note\n{lines}")
        columns = Columns(score=("p",), label="y", group=("site",))
        parts = batches(path, columns)
        assert len(parts) > 1
        groups = np.concatenate([batch.rows.groups["site"] for batch in parts])
        np.testing.assert_array_equal(groups, read([path], columns).models[0].rows.groups["site"])
        assert groups[0] == "1.0"

    @pytest.mark.parametrize("form", ["parquet", "feather", "jsonl"])
    def test_a_list_valued_column_is_features(self, tmp_path: Path, form: str) -> None:
        vectors = np.random.default_rng(0).normal(size=(30, 4)).tolist()
        path = write_columns(tmp_path, {"p": [0.5] * 30, "v": vectors}, form)
        (batch,) = batches(path, Columns(score=("p",), features=("v",)), width=4)
        np.testing.assert_array_equal(batch.rows.matrix, vectors)
        assert batch.table["v"].to_pylist() == vectors


class TestOtherColumnsAreKept:
    def test_parquet_as_it_is(self, tmp_path: Path) -> None:
        table = pa.table(ARROW_KINDS | {"p": [0.1, 0.2, 0.3]}).replace_schema_metadata({"origin": "here"})
        pq.write_table(table, tmp_path / "new.parquet")
        (batch,) = batches(str(tmp_path / "new.parquet"), typed=True)
        assert batch.table.column_names == table.column_names
        assert batch.table.to_pydict() == table.to_pydict()
        assert batch.table.schema.metadata[b"origin"] == b"here"

    def test_cells_of_csv_stay_what_they_are_where_they_go_to_csv(self, tmp_path: Path) -> None:
        path = write_text(tmp_path, "zip,p,share,when\n00501,0.1,1.50,2024-01-01\nNA,0.2,,\n")
        (batch,) = batches(path)
        assert batch.table["zip"].to_pylist() == ["00501", "NA"]
        assert batch.table["share"].to_pylist() == ["1.50", ""]

    @pytest.mark.parametrize("typed", [False, True])
    def test_cells_of_features_stay_what_they_are_too(self, tmp_path: Path, typed: bool) -> None:
        cells = {
            "p": ["0.10", "2e-1"],
            "zip": ["00501", "94103"],
            "account": ["309692559938013034", "1"],
            "n": ["7", "NA"],
            "half": [".50", "-1."],
        }
        lines = [",".join(cells), *map(",".join, zip(*cells.values(), strict=True))]
        names = ("zip", "account", "n", "half")
        columns = Columns(score=("p",), features=names)
        path = write_text(tmp_path, "\n".join(lines) + "\n")
        (batch,) = batches(path, columns, width=4, typed=typed)
        assert batch.rows.score.tolist() == [0.1, 0.2]
        numbers = {name: [float(cell) for cell in cells[name]] for name in names if name != "n"}
        expected = np.array([*numbers.values(), [7.0, np.nan]])[[0, 1, 3, 2]].T
        np.testing.assert_array_equal(batch.rows.matrix, expected)
        kept = batch.table.to_pydict()
        if typed:
            whole = {"account": [309692559938013034, 1], "n": [7, None]}
            assert kept == {"p": [0.1, 0.2], **numbers, **whole}
        else:
            assert kept == cells

    def test_features_of_json_lines_keep_their_digits_and_gaps(self, tmp_path: Path) -> None:
        rows = [{"p": 0.1, "account": 3096925599380130343, "n": None}, {"p": 0.2, "account": 1, "n": 7}]
        path = write_text(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "new.jsonl")
        (batch,) = batches(path, Columns(score=("p",), features=("account", "n")), width=2)
        assert batch.table.to_pylist() == rows
        np.testing.assert_array_equal(batch.rows.matrix, [[3096925599380130343.0, np.nan], [1.0, 7.0]])

    def test_a_feature_that_is_no_number_is_named_with_its_row(self, tmp_path: Path) -> None:
        path = write_text(tmp_path, "p,x\n0.1,1\n0.2,one\n")
        assert "column 'x', row 2 (line 3): 'one' is not a number" in batch_error(
            path, Columns(score=("p",), features=("x",)), width=1
        )

    def test_csv_columns_become_numbers_only_where_nothing_is_lost(self, tmp_path: Path) -> None:
        cells = {
            "p": ["0.1", "0.2", "0.3"],
            "count": ["7", "", "-3"],
            "share": ["1.50", "NA", "1e-05"],
            "zip": ["00501", "10001", "94103"],
            "account": ["12345678901234567890", "1", "2"],
            "mixed": ["1", "2", "three"],
            "yes": ["True", "False", "True"],
            "empty": ["", "", ""],
            "half": [".5", "1.", "0"],
        }
        lines = [",".join(cells), *map(",".join, zip(*cells.values(), strict=True))]
        path = write_text(tmp_path, "\n".join(lines) + "\n")
        (batch,) = batches(path, typed=True)
        assert batch.table.to_pydict() == {
            **cells,
            "p": [0.1, 0.2, 0.3],
            "count": [7, None, -3],
            "share": [1.5, None, 1e-05],
            "half": [0.5, 1.0, 0.0],
        }
        assert str(batch.table["count"].type) == "int64"

    @given(st.lists(st.from_regex(NUMBER, fullmatch=True), min_size=1, max_size=4))
    def test_numbers_are_those_that_python_reads(self, cells: list[str]) -> None:
        stdin = io.BytesIO("".join(f"{line}\n" for line in ["p,n", *(f"0.5,{cell}" for cell in cells)]).encode())
        (batch,) = NewRows("-", ONE, (), stdin, typed=True).batches()
        kept = batch.table["n"].to_pylist()
        if isinstance(kept[0], str):
            assert kept == [cell.strip("\ufeff") for cell in cells]
        else:
            for cell, number in zip(cells, kept, strict=True):
                assert number == float(cell)
                if isinstance(number, int):
                    assert str(number) == cell

    def test_a_text_in_the_last_batch_keeps_the_whole_column_text(self, tmp_path: Path) -> None:
        rows = 20_000
        lines = "".join(f"0.5,{i},{'x' * 100}\n" for i in range(rows))
        path = write_text(tmp_path, f"p,n,note\n{lines}0.5,end,\n")
        parts = batches(path, typed=True)
        assert len(parts) > 1
        assert one_table(parts)["n"].to_pylist() == [*map(str, range(rows)), "end"]

    def test_json_lines_keep_the_types_of_json(self, tmp_path: Path) -> None:
        rows = [
            {"p": 0.1, "id": "007", "n": 1, "f": 1, "b": True, "v": [1, 2], "o": {"a": "x"}, "m": 1, "big": 2**70},
            {"p": 0.2, "id": "8", "n": None, "f": 2.5, "b": False, "v": None, "o": None, "m": "one", "big": 1},
            {"p": 0.3, "id": None, "n": 3, "f": 3, "v": [], "o": {"b": 2}, "m": [1], "late": 1, "e": {}},
        ]
        path = write_text(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "new.jsonl")
        (batch,) = batches(path, typed=True)
        kept = batch.table.to_pydict()
        assert kept["id"] == ["007", "8", None]
        assert kept["n"] == [1, None, 3] and kept["f"] == [1.0, 2.5, 3.0] and kept["b"] == [True, False, None]
        assert kept["v"] == [[1, 2], None, []]
        assert kept["o"] == [{"a": "x", "b": None}, None, {"a": None, "b": 2}]
        assert kept["m"] == ["1", "one", "[1]"], "what no type holds becomes text"
        assert kept["big"] == [str(2**70), "1", None]
        assert kept["late"] == [None, None, 1] and kept["e"] == [None, None, "{}"]

    def test_json_types_are_those_of_all_lines(self, tmp_path: Path) -> None:
        rows = N_ROWS_HELD + 500
        lines = [f'{{"p": 0.5, "n": {i}, "v": null}}\n' for i in range(rows)]
        lines[-1] = '{"p": 0.5, "n": 0.5, "v": [1.0]}\n'
        path = write_text(tmp_path, "".join(lines), "new.jsonl")
        parts = batches(path, Columns(score=("p",), features=("v",)), width=1)
        assert len({batch.table.schema for batch in parts}) == 1, "every batch has the same columns"
        assert one_table(parts)["n"].to_pylist()[-2:] == [rows - 2, 0.5]
        assert np.isnan(np.concatenate([batch.rows.matrix for batch in parts])).sum() == rows - 1


class TestMissing:
    COLUMNS: dict[str, Any] = {  # noqa: RUF012
        "p": [0.1, None, 0.3, 0.4],
        "x1": [1.0, 2.0, None, 4.0],
        "x2": [1.0, 2.0, 3.0, 4.0],
    }

    @every_format
    def test_an_error_that_names_the_rows_or_left_out_of_what_is_scored(self, tmp_path: Path, form: str) -> None:
        path = write_columns(tmp_path, self.COLUMNS, form)
        line = batch_error(path)
        assert "column 'p': score missing in 1 of 4 rows (row 2); give --missing drop to leave these rows" in line
        (batch,) = batches(path, Columns(score=("p",), features=("x1", "x2"), missing="drop"), width=2, typed=True)
        assert batch.known.tolist() == [True, False, True, True]
        assert batch.rows.score.tolist() == [0.1, 0.3, 0.4]
        np.testing.assert_array_equal(batch.rows.matrix, [[1.0, 1.0], [np.nan, 3.0], [4.0, 4.0]])
        assert batch.table["x2"].to_pylist() == [1.0, 2.0, 3.0, 4.0], "every row is kept"

    def test_a_whole_batch_without_an_embedding(self, tmp_path: Path) -> None:
        vectors = pa.array([None] * N_ROWS_HELD + [[1.0, 2.0]] * 5, pa.list_(pa.float64()))
        path = write_columns(tmp_path, {"p": np.full(N_ROWS_HELD + 5, 0.5), "v": vectors}, "parquet")
        first, second = batches(path, Columns(score=("p",), features=("v",)), width=2)
        assert first.known.all() and np.isnan(first.rows.matrix).all() and first.rows.matrix.shape == (N_ROWS_HELD, 2)
        assert second.rows.matrix.tolist() == [[1.0, 2.0]] * 5


class TestRefused:
    def test_a_file_without_the_columns(self, tmp_path: Path) -> None:
        path = write_columns(tmp_path, {"p_old": [0.1], "x1": [1.0]})
        line = batch_error(path, Columns(score=("p_odl",)))
        assert "no column 'p_odl', which the model was fitted on" in line and "did you mean 'p_old'?" in line
        assert "no column 'x2'" in batch_error(path, Columns(score=("p_old",), features=("x1", "x2")), width=2)
        assert "no column 'site'" in batch_error(path, Columns(score=("p_old",), group=("site",)))

    def test_an_embedding_of_another_width(self, tmp_path: Path) -> None:
        path = write_columns(tmp_path, {"p": [0.1, 0.2], "v": [[1.0, 2.0, 3.0]] * 2}, "parquet")
        line = batch_error(path, Columns(score=("p",), features=("v",)), width=4)
        assert "the features hold 3 numbers a row; the model was fitted on 4" in line

    def test_embeddings_of_several_widths_in_a_later_batch(self, tmp_path: Path) -> None:
        vectors = [[1.0, 2.0]] * (N_ROWS_HELD + 7) + [[1.0]]
        path = write_columns(tmp_path, {"p": np.full(N_ROWS_HELD + 8, 0.5), "v": vectors}, "parquet")
        line = batch_error(path, Columns(score=("p",), features=("v",)), width=2)
        assert f"column 'v', row {N_ROWS_HELD + 8}: list of 1 values where the first has 2" in line

    @pytest.mark.parametrize("form", ["csv", "parquet", "feather", "jsonl"])
    def test_a_score_far_down_is_named_by_its_own_row(self, tmp_path: Path, form: str) -> None:
        first, rows = first_and_more(form)
        scores = np.full(rows, 0.5)
        scores[first + 99] = 1.5
        columns = {"p": scores, "x": np.arange(rows), "why": ["because it is so, and long enough"] * rows}
        line = batch_error(write_columns(tmp_path, columns, form))
        assert f"column 'p', row {first + 100}" in line
        assert "score 1.5 is outside [0, 1]; give probabilities between 0 and 1, as the model was fitted on" in line
        if form == "csv":
            assert f"(line {first + 101})" in line

    @pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
    def test_so_are_missing_scores_and_infinite_features(self, tmp_path: Path, form: str) -> None:
        first, rows = first_and_more(form)
        values: list[Any] = [0.5] * rows
        values[first + 9] = None
        columns = Columns(score=("p",), features=("x", "z"))
        path = write_columns(tmp_path, {"p": values, "x": values, "z": [0.0] * rows}, form)
        assert f"row {first + 10})" in batch_error(path, columns, width=2)
        if form != "jsonl":
            values[first + 9] = float("inf")
            path = write_columns(tmp_path, {"p": [0.5] * rows, "x": values, "z": [0.0] * rows}, form)
            assert f"row {first + 10}" in batch_error(path, columns, width=2)


def test_a_group_that_is_a_number_is_called_as_its_batches_call_it(tmp_path: Path) -> None:
    path = write_text(tmp_path, "p,site\n0.5,1.0\n0.25,2.0\n", "sites.csv")
    columns = Columns(score=("p",), features=("site",), group=("site",))
    (batch,) = NewRows(path, columns, ("number",), None).batches()
    assert batch.rows.groups["site"].tolist() == ["1", "2"]
