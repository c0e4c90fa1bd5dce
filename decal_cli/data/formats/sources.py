"""What format an input has, seen from its bytes, and one way to get columns out of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from decal_cli.data.formats.csvfile import CsvSource
from decal_cli.data.formats.files import Raw, raw, translated
from decal_cli.data.formats.jsonlines import JsonLinesSource
from decal_cli.data.formats.remote import RemoteRaw, is_remote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_HELD_BYTES

ZIP = b"PK\x03\x04"
FOREIGN = {
    ZIP: "a zip archive (a spreadsheet or .npz?)",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\x93NUMPY": "a .npy file",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"ORC": "an ORC file",
    b"FEA1": "a Feather file of version 1",
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
    b"BZh": "bzip2-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"\x80\x04\x95": "a Python pickle",
    b"\x80\x05\x95": "a Python pickle",
}
N_BATCH_ROWS = 1 << 16
PIECE_BYTES = 1 << 20


class RawFile(Protocol):
    """Where rows come from, for provenance."""

    path: str

    @property
    def size(self) -> int:
        """Bytes of a file; 0 of what is in memory."""

    def sha256(self) -> str:
        """Hex digest of the content."""

    def check_unchanged(self) -> None:
        """Raise a DecalError where the content is not what it was at first."""


class Source(Protocol):
    """One input whose format is known."""

    shown: str
    names: list[str]

    @property
    def raw(self) -> RawFile:
        """Its origin."""

    def load(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        """pyarrow table with these columns, every row."""

    def load_typed(self, names: Sequence[str]) -> Any:
        """pyarrow table with these columns as what they are; text formats: as numbers where all values are numbers."""

    def batches(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
        """The columns of `load` in batches of rows, with little memory."""

    def line(self, row: int) -> int | None:
        """Line of a data row (0-based) in a text format, None where there is none or finding it is slow."""


class Typed:
    """A source whose format has types: columns are read as what they are, and rows have no lines."""

    def load_typed(self, names: Sequence[str]) -> Any:
        return self.load(names, ())

    def rows(self, numbers: Sequence[str], others: Sequence[str]) -> Iterator[Any]:
        return self.batches(numbers, others)

    def line(self, row: int) -> int | None:
        return None

    def load(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        raise NotImplementedError

    def batches(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
        yield self.load(numbers, texts)


class InMemory(Typed):
    """The columns of a source whose rows are a pyarrow table already."""

    table: Any

    def load(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        return self.table.select([*numbers, *texts])


class OwnOrigin(InMemory):
    """Columns in memory that stand in no file: the source is its own origin, and has no digest unless it says so."""

    size = 0

    def __init__(self, shown: str, table: Any, path: str | None = None) -> None:
        self.shown, self.path = shown, shown if path is None else path
        self.names: list[str] = list(table.column_names)
        self.table = table

    @property
    def raw(self) -> Self:
        return self

    def check_unchanged(self) -> None: ...

    def sha256(self) -> str:
        return ""


class Repeated(InMemory):
    """Rows that a source counts, as the rows themselves: each line of it, as often as it says.

    lines: the line of the source that each row is, shape (T,). numbered: whether lines have numbers that a user knows.
    """

    def __init__(self, source: Source, table: Any, times: NDArray[np.int64], numbered: bool = True) -> None:
        self.source, self.shown, self.names = source, source.shown, list(table.column_names)
        self.numbered = numbered
        self.lines = np.repeat(np.arange(len(times)), times)
        self.table = table.take(self.lines)

    @property
    def raw(self) -> RawFile:
        return self.source.raw


class FileSource(Source, Protocol):
    """A file of any format."""

    def rows(self, numbers: Sequence[str], others: Sequence[str]) -> Iterator[Any]:
        """Batches in which the other columns are what they are in the file, where its format has types."""


def open_source(path: str, stdin: BinaryIO | None) -> FileSource:
    """Recognise an input: Parquet, Arrow file or stream, JSON Lines, else CSV; each also gzipped, from any place."""
    source = RemoteRaw(path) if is_remote(path) else raw(path, stdin)
    try:
        return _recognised(source)
    except DecalError:
        source.close()
        raise


def columns_in(path: str) -> list[str]:
    """The names of a file's columns, from its beginning alone. Errors: DecalError, where it cannot be read."""
    return open_source(path, None).names


def _recognised(source: Raw) -> FileSource:
    head = source.head()
    if head[:4] in (b"PAR1", b"PARE"):
        return ParquetSource(source)
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return ArrowSource(source, head)
    for magic, kind in FOREIGN.items():
        if head.startswith(magic) and (b"\0" in head or not head.isascii()):
            if magic == ZIP and source.path.endswith(".eval"):
                raise DecalError(f"{source.shown}: is a log of Inspect", f"add {Hint('from')} inspect")
            raise DecalError(f"{source.shown}: is {kind}", "give CSV, Parquet, Arrow or JSON Lines (each also gzipped)")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        raise DecalError(f"{source.shown}: is empty", "give a file with a header and at least one row")
    if start.startswith((b"[{", b"[\n", b"[\r", b"[ ")):
        raise DecalError(f"{source.shown}: is a JSON array", "write one object a line: jq -c '.[]' in.json > out.jsonl")
    return JsonLinesSource(source, head) if start.startswith(b"{") else CsvSource(source, head)


class ParquetSource(Typed):
    """A Parquet file; only the columns asked for are decoded."""

    kind = "Parquet"

    def __init__(self, source: Raw) -> None:
        self.raw = source
        self.shown = source.shown
        with translated(self.shown, self.kind):
            file = self._file()
            self.schema = file.schema_arrow
            self.names = list(self.schema.names)
            self.count = file.metadata.num_rows

    def _file(self, piece: int = 0) -> Any:
        """A small file is held in memory: from another, the reader sets aside what a damaged page says is its size.

        piece: bytes of a column of a large file that are read at once; 0: all of a row group. Sizes are not taken from
        the metadata of columns: where those are damaged, asking pyarrow for them ends the process.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = self.raw.arrow()
        if file.size() > MAX_HELD_BYTES:
            return pq.ParquetFile(file, buffer_size=piece, pre_buffer=not piece)
        return pq.ParquetFile(pa.BufferReader(file.read_buffer()), pre_buffer=False)

    def load(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        with translated(self.shown, self.kind):
            wanted = [*numbers, *texts]
            return self._file().read(columns=wanted).select(wanted)

    def batches(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
        with translated(self.shown, self.kind):
            wanted = [*numbers, *texts]
            # Memory does not grow with the row group.
            for batch in self._file(PIECE_BYTES).iter_batches(
                batch_size=N_BATCH_ROWS, columns=wanted, use_threads=False
            ):
                yield batch.select(wanted)


class ArrowSource(Typed):
    """An Arrow file (Feather) or stream; values are validated, since a damaged one may point anywhere."""

    kind = "Arrow"

    def __init__(self, source: Raw, head: bytes) -> None:
        self.raw = source
        self.shown = source.shown
        self.is_file = head.startswith(b"ARROW1")
        with translated(self.shown, self.kind):
            self.names = list(self._reader().schema.names)

    def _reader(self, wanted: Sequence[str] | None = None) -> Any:
        import pyarrow as pa

        fields = None if wanted is None else sorted({self.names.index(name) for name in wanted})
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        opened = pa.ipc.open_file if self.is_file else pa.ipc.open_stream
        return opened(self.raw.arrow(), options=options)

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        reader = self._reader(wanted)
        read = (reader.get_batch(i) for i in range(reader.num_record_batches)) if self.is_file else iter(reader)
        for batch in read:
            batch = batch.select(wanted)
            batch.validate(full=True)
            yield batch

    def load(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        import pyarrow as pa

        with translated(self.shown, self.kind):
            wanted = [*numbers, *texts]
            schema = self._reader(wanted).schema
            fields = [schema.field(name) for name in wanted]
            return pa.Table.from_batches(list(self._batches(wanted)), pa.schema(fields))

    def batches(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
        with translated(self.shown, self.kind):
            for batch in self._batches([*numbers, *texts]):
                for start in range(0, batch.num_rows, N_BATCH_ROWS):
                    yield batch.slice(start, N_BATCH_ROWS)
