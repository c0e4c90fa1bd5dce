"""What format an input has, seen from its bytes, and columns out of each; and folders of files as one input."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np

from decal_cli.data.formats.csvfile import CsvSource
from decal_cli.data.formats.files import Held, Raw, RemoteRaw, Source, Wanted, objects_in, raw, translated
from decal_cli.data.formats.jsonlines import JsonLinesSource
from decal_cli.data.large.engines.address import is_remote
from decal_cli.data.large.engines.connections import ENGINES
from decal_cli.data.words import quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_HELD_BYTES
from decal_cli.tables.table import Ints

ZIP = b"PK\x03\x04"
FOREIGN = {
    ZIP: "a zip archive (a spreadsheet or .npz?)",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\x93NUMPY": "a .npy file",
    b"\x89HDF": "an HDF5 file",
    b"ORC": "an ORC file",
    b"FEA1": "a Feather file of version 1",
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
    b"BZh": "bzip2-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"\x80\x04\x95": "a Python pickle",
    b"\x80\x05\x95": "a Python pickle",
}
NAMED = dict.fromkeys((".parquet", ".pq"), "a Parquet file") | dict.fromkeys((".arrow", ".feather"), "an Arrow file")
NAMED |= dict.fromkeys((".json", ".jsonl", ".ndjson"), "JSON Lines")
"""What a file is by the end of its name."""
_INSPECT = re.compile(rb'\{\s*"version":\s*\d+,\s*"status":')
N_BATCH_ROWS = 1 << 16
PIECE_BYTES = 1 << 20
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class Repeated(Held):
    """The rows that a source counts, one by one: each of its lines, as often as the line says.

    lines: the line of the source that each row is, shape (T,). numbered: whether lines have numbers that a user knows.
    """

    def __init__(self, source: Source, table: Any, times: Ints, numbered: bool = True) -> None:
        self.lines = np.repeat(np.arange(len(times)), times)
        super().__init__(source.shown, table.take(self.lines), source.raw)
        self.numbered = numbered

    def row(self, at: int) -> int:
        return int(self.lines[at])


def open_source(path: str, stdin: BinaryIO | None) -> Source:
    """Recognise an input: Parquet, Arrow file or stream, JSON Lines, else CSV; each also gzipped, from any place."""
    source = RemoteRaw(path) if is_remote(path) else raw(path, stdin)
    try:
        return _recognised(source)
    except DecalError:
        source.close()
        raise


def opened(path: str, stdin: BinaryIO | None) -> list[Source]:
    """The file of this path, or all files of a folder, in order of their paths. Errors: DecalError."""
    found = objects_in(path) if is_remote(path) else _files(path) if os.path.isdir(path) else None
    if path == "-" or found is None:
        return [open_source(path, stdin)]
    files = sorted(file for file in found if not _hidden(os.path.relpath(file, path)))
    below = [os.path.relpath(file, path) for file in files]
    if not files and is_remote(path):
        raise DecalError(f"{path}: there is no such object, and none below it", "check its name, and who may read it")
    if not files:
        raise DecalError(f"{path} is a directory without files", "name another folder, or files")
    # What the folders 'column=value' of each path say.
    named = [[part.split("=", 1) for part in file.split(os.sep)[:-1] if "=" in part] for file in below]
    partitions = [
        {unquote(name): None if value == _NO_VALUE else unquote(value) for name, value in of_file} for of_file in named
    ]
    first = partitions[0].keys()
    for file, values in zip(files, partitions, strict=True):
        if values.keys() != first:
            listed, first_listed = (", ".join(each) or "no column" for each in (values, first))
            raise DecalError(
                f"{file}: its path names {listed}, and that of {files[0]} names {first_listed}",
                "partition all files of a folder by the same columns",
            )
    return [_Partition.of(open_source(file, None), values) for file, values in zip(files, partitions, strict=True)]


def named_once(paths: Sequence[str]) -> Sequence[str]:
    """The paths, by default that of standard input. Errors: DecalError, where a file is named twice."""
    files = files_of(paths)
    times = Counter(map(os.path.abspath, files))
    if twice := [file for file in files if times[os.path.abspath(file)] > 1]:
        problem = f"{quote(twice[-1])} is named twice, alone or with a folder that holds it"
        raise DecalError(problem, "name it once: its rows would count twice")
    return paths or ["-"]


def files_of(paths: Sequence[str]) -> list[str]:
    """The files that are read where these are named; of a folder all that it holds but what is hidden."""
    return [file for path in paths for file in (_files(path) if os.path.isdir(path) else [path])]


def columns_in(path: str) -> list[str]:
    """The names of a file's columns, from its beginning alone. Errors: DecalError, where it cannot be read."""
    return open_source(path, None).names


def _files(folder: str) -> Iterator[str]:
    """The files of a folder and those below it; none that is hidden."""

    def stop(error: OSError) -> None:
        raise DecalError(f"{error.filename} cannot be opened ({error.strerror})", "check its permissions") from None

    for place, folders, names in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if not _hidden(name)]
        yield from (os.path.join(place, name) for name in names if not _hidden(name))


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split(os.sep))


def _recognised(source: Raw) -> Source:
    head = source.head()
    if head[:4] in (b"PAR1", b"PARE"):
        return ParquetSource(source)
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return ArrowSource(source, head)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _INSPECT.match(start) or (head.startswith(ZIP) and source.path.endswith(".eval")):
        raise DecalError(f"{source.shown} is a log of Inspect", f"add {Hint('from', 'inspect')}")
    for engine in ENGINES.values():
        if engine.magic is None:
            continue
        name, at, magic = engine.magic
        if head[at:].startswith(magic) and b"\0" in head:
            fix = f"name a table of it: {Hint('engine', repr(f'{engine.name}:{source.shown}?table=NAME'))}"
            raise DecalError(f"{source.shown} is a {name} database", fix)
    for magic, kind in FOREIGN.items():
        if head.startswith(magic) and (b"\0" in head or not head.isascii()):
            raise DecalError(f"{source.shown} is {kind}", "give CSV, Parquet, Arrow or JSON Lines (each also gzipped)")
    if not start:
        raise DecalError(f"{source.shown} is empty", "give a file with a header and at least one row")
    if start.startswith((b"[{", b"[[", b"[]", b"[\n", b"[\r", b"[ ")):
        raise DecalError(f"{source.shown} is a JSON array", "write one object a line: jq -c '.[]' in.json > out.jsonl")
    if start.startswith(b"{"):
        return JsonLinesSource(source, head)
    promised = NAMED.get(os.path.splitext(source.path.lower().removesuffix(".gz"))[1])
    first, *others = start.splitlines()
    # CSV with rows is read whatever its name.
    if promised and b"\0" not in head and not (others and set(first) & set(b",;\t")):
        begins = quote(first.decode(errors="replace"))
        raise DecalError(f"{source.shown} is not {promised}: it is text that begins {begins}", "write or copy it again")
    return CsvSource(source, head)


class ParquetSource(Source):
    """A Parquet file; only the columns asked for are decoded."""

    kind = "Parquet"
    count: int

    def __init__(self, source: Raw) -> None:
        self.raw, self.shown = source, source.shown
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

    def load(self, wanted: Wanted) -> Any:
        with translated(self.shown, self.kind):
            return self._file().read(columns=[*wanted]).select([*wanted])

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        with translated(self.shown, self.kind):
            # Memory does not grow with the row group.
            file = self._file(PIECE_BYTES)
            for batch in file.iter_batches(batch_size=N_BATCH_ROWS, columns=[*wanted], use_threads=False):
                yield batch.select([*wanted])


class ArrowSource(Source):
    """An Arrow file (Feather) or stream; values are validated, since a damaged one may point anywhere."""

    kind = "Arrow"

    def __init__(self, source: Raw, head: bytes) -> None:
        self.raw, self.shown = source, source.shown
        self.is_file = head.startswith(b"ARROW1")
        with translated(self.shown, self.kind):
            self.names = list(self._reader().schema.names)

    def _reader(self, wanted: Wanted | None = None) -> Any:
        import pyarrow as pa

        fields = None if wanted is None else sorted(map(self.names.index, wanted))
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        opened = pa.ipc.open_file if self.is_file else pa.ipc.open_stream
        return opened(self.raw.arrow(), options=options)

    def _batches(self, wanted: Wanted) -> Iterator[Any]:
        reader = self._reader(wanted)
        read = (reader.get_batch(i) for i in range(reader.num_record_batches)) if self.is_file else iter(reader)
        for batch in read:
            batch = batch.select([*wanted])
            batch.validate(full=True)
            yield batch

    def load(self, wanted: Wanted) -> Any:
        import pyarrow as pa

        with translated(self.shown, self.kind):
            schema = self._reader(wanted).schema
            fields = [schema.field(name) for name in wanted]
            return pa.Table.from_batches(list(self._batches(wanted)), pa.schema(fields))

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        with translated(self.shown, self.kind):
            for batch in self._batches(wanted):
                for start in range(0, batch.num_rows, N_BATCH_ROWS):
                    yield batch.slice(start, N_BATCH_ROWS)


class _Partition(Source):
    """A file with columns of one value each, which its path names."""

    @classmethod
    def of(cls, source: Source, values: dict[str, str | None]) -> Source:
        """The source with the columns that it does not hold itself."""
        values = {name: value for name, value in values.items() if name not in source.names}
        return cls(source, values) if values else source

    def __init__(self, source: Source, values: dict[str, str | None]) -> None:
        self.source, self.values = source, values
        self.shown, self.raw, self.count = source.shown, source.raw, source.count
        self.names = [*source.names, *values]

    def _added(self, table: Any, wanted: Wanted) -> Any:
        import pyarrow as pa

        for name in wanted:
            if name in self.values:
                indices = pa.repeat(pa.scalar(0, pa.int32()), table.num_rows)
                column = pa.DictionaryArray.from_arrays(indices, pa.array([self.values[name]], pa.string()))
                field = pa.field(name, column.type)
                table = table.append_column(field, [column] if isinstance(table, pa.Table) else column)
        return table.select([*wanted])

    def _own(self, wanted: Wanted) -> Wanted:
        return {name: way for name, way in wanted.items() if name not in self.values}

    def load(self, wanted: Wanted) -> Any:
        return self._added(self.source.load(self._own(wanted)), wanted)

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        for batch in self.source.batches(self._own(wanted)):
            yield self._added(batch, wanted)

    def line(self, row: int) -> int | None:
        return self.source.line(row)


def parquet_schema(source: Source, names: Iterable[str]) -> Any:
    """The schema of a file here that is Parquet, has rows and holds these columns; None of any other.

    Its path is no pattern, and its columns differ by more than capitals.
    """
    if isinstance(source, _Partition) and not set(names) & source.values.keys():
        source = source.source
    raw = source.raw
    if not isinstance(source, ParquetSource) or type(raw) is not Raw or raw.gz or not raw.size or not source.count:
        return None
    plain = not set(raw.path) & set("*?[{") and raw.path.isprintable() and raw.path.isascii()
    return source.schema if plain and len({name.lower() for name in source.names}) == len(source.names) else None
