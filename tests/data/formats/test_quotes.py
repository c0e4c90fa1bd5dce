"""Quotes in CSV files: those that hide rows are refused with their line, and all others are read."""

import gzip
from pathlib import Path

import pytest

from decal_cli.data import Columns, read
from tests.helpers.files import reading_error, write_text

N_ROWS = 5000
PATHS = {"batches": Columns(), "whole": Columns(group=("g",)), "features": Columns(features=("g",))}


def rows(quoted: tuple[int, ...] = (), column: int = 2) -> str:
    """A file whose given data rows, counted from 1, have a stray quote at the start of a cell."""
    lines = ["p,y,g"]
    for row in range(1, N_ROWS + 1):
        cells = [f"0.{row % 9}", str(row % 2), "abc"[row % 3]]
        if row in quoted:
            cells[column] = '"' + cells[column]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("columns", PATHS.values(), ids=PATHS)
class TestRefused:
    @pytest.mark.parametrize("row", [1, 101, N_ROWS])
    def test_a_quote_that_is_never_closed(self, tmp_path: Path, columns: Columns, row: int) -> None:
        path = write_text(tmp_path, rows((row,)))
        assert f"line {row + 1}: a quote opens there and is never closed" in reading_error(path, columns=columns)

    @pytest.mark.parametrize("other", [102, 103, 4000])
    def test_two_quotes_rows_apart(self, tmp_path: Path, columns: Columns, other: int) -> None:
        path = write_text(tmp_path, rows((101, other)))
        words = f"line 102: a quote opens there and closes on line {other + 1}, around what looks like rows"
        assert words in reading_error(path, columns=columns)

    def test_other_line_ends_and_gzip(self, tmp_path: Path, columns: Columns) -> None:
        for end in ("\r\n", "\r"):
            path = tmp_path / "rows.csv.gz"
            path.write_bytes(gzip.compress(rows((101,)).replace("\n", end).encode()))
            assert "line 102" in reading_error(str(path), columns=columns)


@pytest.mark.parametrize("columns", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize(
    "cell",
    [
        '"two\nlines"',
        '"a ""word""\nand, and\n\n1, 2, 3"',
        '"1, 2, 3, 4\n5, 6, 7"',
        '5" pipe',
        '"quoted" then not',
        '""',
    ],
)
def test_cells_of_several_lines_and_other_quotes_are_read(tmp_path: Path, columns: Columns, cell: str) -> None:
    text = "\n\np,y,g\n" + f"0.5,1,{cell}\n0.25,0,{cell}\n\n" * 50
    assert len(read([write_text(tmp_path, text)], columns).models[0].rows) == 100


def test_a_header_of_two_lines(tmp_path: Path) -> None:
    text = 'p,y,"the\ngroup"\n0.5,1,"a"\n0.25,0,b\n'
    assert len(read([write_text(tmp_path, text)], Columns()).models[0].rows) == 2
