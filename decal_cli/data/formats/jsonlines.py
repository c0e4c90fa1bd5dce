"""JSON Lines: one object a line; a key that a line lacks is a missing value."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from decal_cli.data.formats.files import Raw, Source, Wanted, no_rows, refuse_other_encodings, translated
from decal_cli.data.words import MISSING, quote, text_of
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_EMPTY_CELLS, MAX_LINE_BYTES, MIB

N_LINES, N_BLOCK_VALUES = 1 << 15, 1 << 21
"""Most lines that are held as objects at once, and most values in them."""


class JsonLinesSource(Source):
    """A JSON Lines file, parsed twice: once for the keys of all lines, once for the columns asked for.

    lists: the keys that hold a list in some line.
    """

    kind = "JSON Lines"

    def __init__(self, raw: Raw, head: bytes) -> None:
        self.raw, self.shown = raw, raw.shown
        refuse_other_encodings(raw, head)
        filled: Counter[str] = Counter()
        self.n_rows, self.lists = 0, set[str]()
        for _, line in self.objects():
            filled.update(line.keys())
            if list in map(type, line.values()):
                self.lists.update(name for name, value in line.items() if isinstance(value, list))
            self.n_rows += 1
        self.filled = dict(filled)
        self.names = list(filled)

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line number and object, one by one."""

        def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            """An object with each key once. Errors: a repeated key; a plain dict would silently keep its last value."""
            if len(line := dict(pairs)) < len(pairs):
                twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
                raise DecalError(
                    f"{self.shown}, line {number}: duplicate column {quote(twice)}", "rename one of the two"
                )
            return line

        decode = json.JSONDecoder(object_pairs_hook=unique).decode
        with translated(self.shown, self.kind), self.raw.open() as stream:
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), 1):
                if len(line) > MAX_LINE_BYTES:
                    raise DecalError(
                        f"{self.shown}, line {number} holds more than {MAX_LINE_BYTES // MIB} MiB",
                        "write one whole object a line",
                    )
                line = line.removeprefix(b"\xef\xbb\xbf")
                if not line.strip():
                    continue
                try:
                    value = decode(line.decode("utf-8", "surrogatepass"))
                except (ValueError, RecursionError) as error:
                    reason = (
                        "nested too deep" if isinstance(error, RecursionError) else "a number of thousands of digits"
                    )
                    if isinstance(error, json.JSONDecodeError):
                        reason = error.msg
                    elif isinstance(error, UnicodeDecodeError):
                        reason = "no UTF-8 text"
                    raise DecalError(
                        f"{self.shown}, line {number} is not JSON ({reason})", "write one whole object a line"
                    ) from None
                if not isinstance(value, dict):
                    raise DecalError(
                        f"{self.shown}, line {number} is not an object", 'write one {"column": value} a line'
                    )
                yield number, value

    def line(self, row: int) -> int | None:
        """Line of data row `row` (0-based)."""
        return next((number for at, (number, _) in enumerate(self.objects()) if at == row), None)

    def load(self, wanted: Wanted) -> Any:
        """The columns as a pyarrow table; a typed one: numbers or lists of numbers where all its values are such."""
        import pyarrow as pa

        self._check_filled(wanted)
        typed = [name for name, way in wanted.items() if way == "typed"]
        try:
            tables = [self._table(rows, start, wanted) for start, rows in self._blocks()]
        except DecalError:
            if not typed:
                raise
            texts = {name for _, line in self.objects() for name in typed if not _is_number(line.get(name))}
            return self.load({**wanted, **{name: "texts" if name in texts else "numbers" for name in typed}})
        if not tables:
            raise no_rows(self.shown)
        return pa.concat_tables(tables)

    def _check_filled(self, names: Wanted) -> None:
        """Raise a DecalError where the rows have so few keys in common that they are no table."""
        empty = sum(self.n_rows - self.filled[name] for name in names)
        if empty > MAX_EMPTY_CELLS:
            raise DecalError(
                f"{self.shown}: its {self.n_rows:,} rows lack {empty:,} values of the {len(names):,} columns to be"
                f" read, more than {MAX_EMPTY_CELLS:,}",
                "write the same keys on every line, or name fewer columns",
            )

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """Small tables of the columns; a typed one keeps the type that all values have in the file, else text."""
        kinds = {}
        if typed := [name for name, way in wanted.items() if way == "typed"]:
            self._check_filled(wanted)
            kinds = self._kinds(typed)
        for start, rows in self._blocks():
            yield self._table(rows, start, wanted, kinds)

    def _blocks(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Blocks of rows, each with the number of its first row."""
        rows: list[dict[str, Any]] = []
        start = n_values = 0
        for _, line in self.objects():
            rows.append(line)
            n_values += len(line)
            if len(rows) == N_LINES or n_values > N_BLOCK_VALUES:
                n_values = 0
                yield start, rows
                start += len(rows)
                rows = []
        if rows:
            yield start, rows

    def _kinds(self, names: Iterable[str]) -> dict[str, Any]:
        """The pyarrow type that holds all values of a column, text where none does."""
        import pyarrow as pa

        kinds: dict[str, Any] = {name: pa.null() for name in names}
        for _, rows in self._blocks():
            for name, before in kinds.items():
                if pa.types.is_string(before):
                    continue
                try:
                    in_block = pa.array([row.get(name) for row in rows]).type
                    both = [pa.schema([(name, kind)]) for kind in (before, in_block)]
                    kinds[name] = pa.unify_schemas(both, promote_options="permissive").field(name).type
                except (pa.ArrowException, OverflowError, ValueError, TypeError):
                    kinds[name] = pa.string()
        # An object without a key in any row has no type that a file could hold.
        keyless = {name for name, kind in kinds.items() if pa.types.is_struct(kind) and not kind.num_fields}
        return {name: pa.string() if name in keyless else kind for name, kind in kinds.items()}

    def _table(
        self, rows: list[dict[str, Any]], start: int, wanted: Wanted, kinds: Mapping[str, Any] | None = None
    ) -> Any:
        """Rows as a table. kinds: the types of typed columns; without one these are numbers or lists of them."""
        import pyarrow as pa

        columns: dict[str, Any] = {}
        with translated(self.shown, self.kind):
            for name, way in wanted.items():
                values = [row.get(name) for row in rows]
                kind = (kinds or {}).get(name)
                if kind is None:
                    read: Callable[[str, Any, int], Any] = self._text
                    kind = pa.string()
                    if way != "texts":
                        of_lists = name in self.lists
                        read, kind = (self._list, pa.list_(pa.float64())) if of_lists else (self._number, pa.float64())
                    values = [read(name, v, start + i) for i, v in enumerate(values)]
                elif pa.types.is_string(kind):
                    nested = (list, dict)
                    values = [json.dumps(v, ensure_ascii=False) if type(v) in nested else text_of(v) for v in values]
                columns[name] = pa.array(values, kind)
            return pa.table(columns)

    def _number(self, name: str, value: Any, row: int) -> float:
        if value is None or (isinstance(value, str) and value.strip() in MISSING):
            return math.nan
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                return math.inf if value > 0 else -math.inf
        raise DecalError(
            f"{self._place(name, row)}: {quote(text_of(value) if isinstance(value, bool) else value)} is not a number",
            "correct it, or name another column",
        )

    def _list(self, name: str, value: Any, row: int) -> list[float] | None:
        if isinstance(value, list):
            return [self._number(name, v, row) for v in value]
        if value is None:
            return None
        raise DecalError(
            f"{self._place(name, row)}: {quote(value)} is not a list as in other rows", "give lists of one length"
        )

    def _text(self, name: str, value: Any, row: int) -> str | None:
        if not isinstance(value, (list, dict)):
            return text_of(value)
        raise DecalError(f"{self._place(name, row)} holds a list or an object", "name a column of plain values")

    def _place(self, name: str, row: int) -> str:
        return f"{self.shown}, column {quote(name)}, row {row + 1}"


def _is_number(value: Any) -> bool:
    """Whether a value can stand in a column of numbers, or of lists of them."""
    if isinstance(value, str):
        return value.strip() in MISSING
    return value is None or (isinstance(value, (int, float, list)) and not isinstance(value, bool))
