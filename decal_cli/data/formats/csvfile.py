"""CSV: delimiter and header, the columns asked for, and where exactly a file is at fault."""

from __future__ import annotations

import codecs
import csv
import io
import re
import string
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from decal_cli.data.formats.files import HEAD_SIZE, Raw, no_rows, refuse_other_encodings, translated
from decal_cli.data.formats.quotes import check_quotes
from decal_cli.data.words import MISSING, NUMBER, file_word, listed, not_a_number, quote
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_HEADER_BYTES, MAX_ROW_BYTES

_TYPES = {
    "int64": re.compile(r"0|-?[1-9][0-9]{0,17}"),
    "float64": re.compile(r"-?((0|[1-9][0-9]{0,14})(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"),
}
"""What is a number in a column that nobody called one: neither '007' nor 20 digits, which are names."""


class CsvSource:
    """A CSV file; numbers are parsed to the nearest float64, texts come dictionary-encoded."""

    kind = "CSV"

    def __init__(self, raw: Raw, head: bytes) -> None:
        self.raw = raw
        self.shown = raw.shown
        refuse_other_encodings(raw, head)
        text, size = self._decoded(head), HEAD_SIZE
        while len(head) == size < MAX_HEADER_BYTES and not re.search(r"[\n\r]", text.lstrip()):
            size *= 16
            head = raw.head(size)
            text = self._decoded(head)
        self.delimiter = _delimiter(text)
        self.names, self._skip, rest = self._header(text)
        self._header_text = text[: len(text) - len(rest)]
        if not rest.strip(string.whitespace) and len(head) < size:
            raise no_rows(self.shown)
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
            f"{self.shown}: is neither UTF-8 text nor a format decal reads",
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
        raise DecalError(f"{self.shown}: is empty", "give a file with a header and at least one row")

    def load(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        """The named columns as a pyarrow table."""
        try:
            table = self._load(numbers, texts)
        except Exception as error:
            raise self._fault(error, numbers, texts) from None
        self._check_quotes(table.num_rows)
        return table

    def load_typed(self, names: Sequence[str]) -> Any:
        """The named columns, each as numbers where all its values are numbers, else as texts."""
        try:
            table = self._load(names, ())
        except Exception:
            numbers = self._number_columns(names)
            texts = [name for name in names if name not in numbers]
            return self.load([name for name in names if name in numbers], texts).select(list(names))
        self._check_quotes(table.num_rows)
        return table

    def _check_quotes(self, n_rows: int) -> None:
        with translated(self.shown, self.kind):
            check_quotes(self.shown, self.raw.open, self.delimiter, self._header_text, n_rows)

    def _load(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        try:
            options = self._options(numbers, texts, quoted_newlines=False)
            with self.raw.text() as stream:
                return pacsv.read_csv(stream, **options)
        except pa.ArrowInvalid:
            # Fast parsing in parallel blocks assumes no newline within quotes and no row longer than a block.
            options = self._options(numbers, texts, quoted_newlines=True, block=MAX_ROW_BYTES)
            with self.raw.text() as stream:
                return pacsv.read_csv(stream, **options)

    def _number_columns(self, names: Sequence[str]) -> set[str]:
        """Which columns hold numbers only, and missing values."""
        possible = set(names)
        for batch in self.batches((), list(names)):
            dictionaries = {name: batch.column(batch.schema.get_field_index(name)).dictionary for name in possible}
            possible -= {name for name, texts in dictionaries.items() if not _all_numbers(texts)}
        return possible

    def batches(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
        """The named columns as record batches of about a MiB of text each."""
        import pyarrow.csv as pacsv

        options = self._options(numbers, texts, quoted_newlines=True)
        n_rows = 0
        try:
            with self.raw.text() as stream, pacsv.open_csv(stream, **options) as reader:
                for batch in reader:
                    n_rows += batch.num_rows
                    yield batch
        except GeneratorExit:
            raise
        except Exception as error:
            raise self._fault(error, numbers, texts) from None
        self._check_quotes(n_rows)

    rows = batches

    def types(self, names: Sequence[str]) -> dict[str, Any]:
        """The pyarrow type of every column whose values are all numbers, as they are usually written."""
        import pyarrow as pa

        # All types are possible at first; a value rules out those that would change it.
        possible = {name: list(_TYPES) for name in names}
        with_values: set[str] = set()
        for batch in self.batches((), names):
            for name in names:
                texts = set(batch.column(batch.schema.get_field_index(name)).dictionary.to_pylist()) - set(MISSING)
                with_values |= {name} if texts else set()
                possible[name] = [kind for kind in possible[name] if all(map(_TYPES[kind].fullmatch, texts))]
        return {name: pa.type_for_alias(possible[name][0]) for name in with_values if possible[name]}

    def _options(
        self, numbers: Sequence[str], texts: Sequence[str], quoted_newlines: bool, block: int = 1 << 20
    ) -> dict[str, Any]:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        types = {name: pa.float64() for name in numbers}
        types |= {name: pa.dictionary(pa.int32(), pa.string()) for name in texts}
        return {
            "read_options": pacsv.ReadOptions(
                column_names=self.names, skip_rows_after_names=self._skip, block_size=block
            ),
            "parse_options": pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=quoted_newlines),
            "convert_options": pacsv.ConvertOptions(
                include_columns=[*numbers, *texts],
                column_types=types,
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

    def _fault(self, error: Exception, numbers: Sequence[str], texts: Sequence[str]) -> DecalError:
        """The error of the first row that made pyarrow stop, or what pyarrow said."""
        try:
            with translated(self.shown, self.kind):
                with suppress(csv.Error):
                    if fault := self._find_fault(numbers, texts):
                        return fault
                raise error
        except DecalError as worded:
            return worded

    def _find_fault(self, numbers: Sequence[str], texts: Sequence[str]) -> DecalError | None:
        at_name = {name: at for at, name in enumerate(self.names)}
        places = [(name, at_name[name]) for name in numbers]
        words = [(name, at_name[name]) for name in texts]
        width = len(self.names)
        for row, line, cells in self._rows():
            if len(cells) != width:
                cells_word = "cell" if len(cells) == 1 else "cells"
                return DecalError(
                    f"{self.shown}, row {row} (line {line}): {len(cells)} {cells_word} where the header has {width}",
                    "quote cells that contain the delimiter, or correct the row",
                )
            for name, at in places:
                cell = cells[at]
                if cell.strip() not in MISSING and not NUMBER.fullmatch(cell):
                    return not_a_number(f"{self.shown}, column {quote(name)}, row {row} (line {line})", cell)
            for name, at in words:
                if not cells[at].isprintable() and any("\udc80" <= c <= "\udcff" for c in cells[at]):
                    return DecalError(
                        f"{self.shown}, column {quote(name)}, row {row} (line {line}): not UTF-8 text",
                        f"convert the file: iconv -f WINDOWS-1252 -t UTF-8 {file_word(self.raw.path)} > utf8.csv",
                    )
        return None


def _all_numbers(texts: Any) -> bool:
    """Whether each text of a pyarrow array is a number or stands for a missing value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = texts.filter(pc.invert(pc.is_in(texts, value_set=pa.array(MISSING))))
    try:
        pc.utf8_trim(known, " \t").cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _delimiter(text: str) -> str:
    """Comma, unless the header has more semicolons or tabs outside quotes."""
    header = re.sub(r'"[^"]*"', "", text.lstrip())
    header = re.split(r"[\r\n]", header, maxsplit=1)[0]
    return max(",;\t", key=header.count)
