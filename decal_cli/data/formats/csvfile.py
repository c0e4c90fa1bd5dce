"""CSV: delimiter and header, the columns asked for, and where exactly a file is at fault.

Quotes may swallow rows of a file: one that is never closed, or two that stand rows apart.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import numpy as np

from decal_cli.data.formats.files import HEAD_SIZE, Raw, Source, Wanted, no_rows, refuse_other_encodings, translated
from decal_cli.data.words import MISSING, NUMBER, file_word, listed, not_a_number, quote
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_HEADER_BYTES, MAX_ROW_BYTES

_TYPES = {
    "int64": r"^(0|-?[1-9][0-9]{0,17})$",
    "float64": r"^-?((0|[1-9][0-9]{0,14})(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$",
}
"""What counts as a number in a column that nobody named as numbers: not '007' or 20 digits, which are names."""


class CsvSource(Source):
    """A CSV file; numbers are parsed to the nearest float64, texts come dictionary-encoded."""

    kind = "CSV"

    def __init__(self, raw: Raw, head: bytes) -> None:
        self.raw, self.shown = raw, raw.shown
        refuse_other_encodings(raw, head)
        text, size = self._decoded(head), HEAD_SIZE
        while len(head) == size < MAX_HEADER_BYTES and not re.search(r"[\n\r]", text.lstrip()):
            size *= 16
            head = raw.head(size)
            text = self._decoded(head)
        # Comma, unless the header has more semicolons or tabs outside quotes.
        unquoted = re.sub(r'"[^"]*"', "", text.lstrip())
        self.delimiter = max(",;\t", key=re.split(r"[\r\n]", unquoted, maxsplit=1)[0].count)
        self.names, self._skip, rest = self._header(text)
        self._header_text = text[: len(text) - len(rest)]
        if not rest.strip(string.whitespace) and len(head) < size:
            raise no_rows(self.shown, "has a header but no rows")
        if all(NUMBER.fullmatch(name) for name in self.names):
            raise DecalError(
                f"{self.shown}: the first line is data ({listed(self.names)})", "add a header line, such as p,y"
            )

    def _decoded(self, head: bytes) -> str:
        try:
            # Not final: the head may end within a character.
            return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
        except UnicodeDecodeError:
            if head[:1].isascii() and b"\n" in head:
                header = re.split(rb"[\r\n]", head.lstrip(b"\r\n"), maxsplit=1)[0]
                try:
                    header.decode("utf-8-sig")
                    return head.decode("utf-8-sig", errors="replace")
                except UnicodeDecodeError:
                    pass
        command = f"iconv -f WINDOWS-1252 -t UTF-8 {file_word(self.raw.path)} > utf8.csv"
        raise DecalError(
            f"{self.shown} is neither UTF-8 text nor a format decal reads",
            f"give CSV, Parquet, Arrow or JSON Lines; text in another encoding can be converted: {command}",
        )

    def _header(self, text: str) -> tuple[list[str], int, str]:
        """Column names, how many rows stand before the first data row, and the text after them."""
        stream = io.StringIO(text, newline="")
        rows = csv.reader(stream, delimiter=self.delimiter)
        skip = 0
        try:
            for row in rows:
                skip += 1
                # Blanks go, and nothing else that Unicode calls space: a name may be U+0085.
                names = [cell.strip(string.whitespace) for cell in row]
                if any(names):
                    return names, skip, stream.read()
        except csv.Error as error:
            raise DecalError(f"{self.shown}: the header is not CSV ({error})", "check the file") from None
        raise DecalError(f"{self.shown} is empty", "give a file with a header and at least one row")

    def load(self, wanted: Wanted) -> Any:
        try:
            table = self._load(wanted)
        except Exception as error:
            typed = [name for name, way in wanted.items() if way == "typed"]
            if not typed:
                with self._worded(wanted):
                    raise error
            texts = {name for name, values in self._texts(typed) if as_numbers(values) is None}
            return self.load({**wanted, **{name: "texts" if name in texts else "numbers" for name in typed}})
        self._check_quotes(table.num_rows)
        return table

    def _check_quotes(self, n_rows: int) -> None:
        """Raise a DecalError where a quote hides rows, which takes a closer look only where there are quotes.

        n_rows: how many the file was read as.
        """
        with translated(self.shown, self.kind):
            with self.raw.open() as stream:
                if not any(b'"' in chunk for chunk in _chunks(stream)):
                    return
            with self.raw.open() as stream:
                n_lines, last = _lines(stream)
            n_header = sum(1 for line in re.split("[\r\n]", self._header_text) if line)
            if n_rows != n_lines - n_header or _ends_open(last, self.delimiter, False):
                with io.TextIOWrapper(self.raw.open(), encoding="latin-1", newline=None) as text:
                    self._check_lines(text)

    def _check_lines(self, text: io.TextIOWrapper) -> None:
        """Line by line: whether quotes are open, where they opened, and whether lines within them look like rows."""
        opened = n_alike = width = 0
        places: list[int] = []
        for number, line in enumerate(text, 1):
            was_open, is_open = opened > 0, _ends_open(line, self.delimiter, opened > 0)
            cells = [cell.strip(' "\n') for cell in line.split(self.delimiter)]
            if was_open or is_open:
                n_alike += bool(places) and len(cells) == width and all(NUMBER.fullmatch(cells[at]) for at in places)
            elif line != "\n":
                width = len(cells)
                places = [at for at, cell in enumerate(cells) if NUMBER.fullmatch(cell)] or places
            if n_alike > 1 and not is_open:
                raise DecalError(
                    f"{self.shown}, line {opened}: a quote opens there and closes on line {number}, around what looks "
                    "like rows",
                    "close or double the quote; a cell that does hold such lines can be given in Parquet",
                )
            if is_open != was_open:
                opened = number if is_open else 0
            if not is_open:
                n_alike = 0
        if opened:
            raise DecalError(
                f"{self.shown}, line {opened}: a quote opens there and is never closed",
                "close it, or copy the file again",
            )

    def _load(self, wanted: Wanted) -> Any:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        def read(**how: Any) -> Any:
            with self.raw.text() as stream:
                return pacsv.read_csv(stream, **self._options(wanted, **how))

        try:
            return read(quoted_newlines=False)
        except pa.ArrowInvalid:
            # Fast parsing in parallel blocks assumes no newline within quotes and no row longer than a block.
            return read(quoted_newlines=True, block=MAX_ROW_BYTES)

    def _texts(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """The different texts of columns, batch by batch."""
        for batch in self.batches(dict.fromkeys(names, "texts")):
            # Where no column is named, a batch has all of them.
            for name, column in zip(names, batch.columns, strict=False):
                yield name, column.dictionary

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """The columns as record batches of about a MiB of text each."""
        import pyarrow.csv as pacsv

        wanted = {name: "numbers" if way == "numbers" else "texts" for name, way in wanted.items()}
        options = self._options(wanted, quoted_newlines=True)
        n_rows = 0
        with self._worded(wanted), self.raw.text() as stream, pacsv.open_csv(stream, **options) as reader:
            for batch in reader:
                n_rows += batch.num_rows
                yield batch
        self._check_quotes(n_rows)

    def types(self, names: Sequence[str]) -> dict[str, Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        # All types are possible at first; a value rules out those that would change it.
        possible = {name: list(_TYPES) for name in names}
        with_values: set[str] = set()
        for name, dictionary in self._texts(names):
            texts = dictionary.filter(pc.invert(pc.is_in(dictionary, value_set=pa.array(MISSING))))
            with_values |= {name} if len(texts) else set()
            for kind in tuple(possible[name]):
                if not pc.all(pc.match_substring_regex(texts, _TYPES[kind]), min_count=0).as_py():
                    possible[name].remove(kind)
        return {name: pa.type_for_alias(possible[name][0]) for name in with_values if possible[name]}

    def _options(self, wanted: Wanted, quoted_newlines: bool, block: int = 1 << 20) -> dict[str, Any]:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        of_texts = pa.dictionary(pa.int32(), pa.string())
        return {
            "read_options": pacsv.ReadOptions(
                column_names=self.names, skip_rows_after_names=self._skip, block_size=block
            ),
            "parse_options": pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=quoted_newlines),
            "convert_options": pacsv.ConvertOptions(
                include_columns=[*wanted],
                column_types={name: of_texts if way == "texts" else pa.float64() for name, way in wanted.items()},
                null_values=list(MISSING),
                strings_can_be_null=False,
            ),
        }

    def _rows(self) -> Iterator[tuple[int, int, list[str]]]:
        """Data row, line and cells, one by one: slow, for finding faults only."""
        with self.raw.open() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
            reader = csv.reader(text, delimiter=self.delimiter)
            row = 1 - self._skip
            for cells in reader:
                if row < 1:
                    row += 1
                elif cells:
                    yield row, reader.line_num, cells
                    row += 1

    def line(self, row: int) -> int | None:
        """Line on which data row `row` (0-based) ends, where that is cheap to know."""
        if row > 200_000:
            return None
        try:
            return next((line for at, line, _ in self._rows() if at == row + 1), None)
        except Exception:
            return None

    @contextmanager
    def _worded(self, wanted: Wanted) -> Iterator[None]:
        """Raise the error of the first row that made pyarrow stop, or what pyarrow said."""
        with translated(self.shown, self.kind):
            try:
                yield
            except Exception:
                with suppress(csv.Error):
                    self._find_fault(wanted)
                raise

    def _find_fault(self, wanted: Wanted) -> None:
        """Raise a DecalError for the first row at fault, if there is one."""
        at_name = {name: at for at, name in enumerate(self.names)}
        width = len(self.names)
        for row, line, cells in self._rows():
            at_row = f"row {row} (line {line})"
            if len(cells) != width:
                cells_word = "cell" if len(cells) == 1 else "cells"
                raise DecalError(
                    f"{self.shown}, {at_row}: {len(cells)} {cells_word} where the header has {width}",
                    "quote cells that contain the delimiter, or correct the row",
                )
            for name, way in wanted.items():
                cell, place = cells[at_name[name]], f"{self.shown}, column {quote(name)}, {at_row}"
                if way == "numbers" and cell.strip() not in MISSING and not NUMBER.fullmatch(cell):
                    raise not_a_number(place, cell)
                if way == "texts" and not cell.isprintable() and any("\udc80" <= c <= "\udcff" for c in cell):
                    raise DecalError(
                        f"{place}: not UTF-8 text",
                        f"convert the file: iconv -f WINDOWS-1252 -t UTF-8 {file_word(self.raw.path)} > utf8.csv",
                    )


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(1 << 20), b"")


def as_numbers(texts: Any, kind: Any = None) -> Any:
    """A pyarrow column of texts as numbers, null where one stands for a missing value; None where one is no number.

    kind: the type of the numbers, by default float64.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_in(texts, value_set=pa.array(MISSING))
    known = pc.if_else(missing, pa.scalar(None, pa.string()), texts)
    try:
        return pc.utf8_trim(known, " \t").cast(pa.float64() if kind is None else kind)
    except pa.ArrowInvalid:
        return None


def _lines(stream: BinaryIO) -> tuple[int, str]:
    """How many lines are not empty, and the last of them."""
    count, last, ended = 0, b"", True
    for chunk in _chunks(stream):
        values = np.frombuffer(chunk, dtype=np.uint8)
        ends = (values == ord("\n")) | (values == ord("\r"))
        starts = ~ends
        starts[1:] &= ends[:-1]
        starts[0] &= ended
        ended = bool(ends[-1])
        at = np.flatnonzero(starts)
        count += len(at)
        last = chunk[int(at[-1]) :] if len(at) else last + chunk
    return count, last.decode("latin-1")


def _ends_open(line: str, delimiter: str, is_open: bool) -> bool:
    """Whether a line ends within quotes; is_open: whether it begins within some."""
    at = 0
    if not is_open and line.startswith('"'):
        is_open, at = True, 1
    while True:
        if is_open:
            at = line.find('"', at)
            if at < 0:
                return True
            is_open = line.startswith('"', at + 1)
            at += 2 if is_open else 1
        else:
            at = line.find(f'{delimiter}"', at) + 2
            if at < 2:
                return False
            is_open = True
