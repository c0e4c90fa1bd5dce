"""Folders of files as one input: which files are in one, and what their paths say of their rows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO
from urllib.parse import unquote

from decal_cli.data.dataset import Dataset, Input
from decal_cli.data.formats.files import Raw
from decal_cli.data.formats.remote import is_remote, objects_in
from decal_cli.data.formats.sources import FileSource, ParquetSource, open_source
from decal_cli.errors import DecalError

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def opened(path: str, stdin: BinaryIO | None) -> list[FileSource]:
    """The file of this path, or all files of a folder, in order of their paths. Errors: DecalError."""
    found = objects_in(path) if is_remote(path) else sorted(_files(path)) if os.path.isdir(path) else None
    if path == "-" or found is None:
        return [open_source(path, stdin)]
    files = sorted(file for file in found if not _hidden(os.path.relpath(file, path)))
    if not files and is_remote(path):
        raise DecalError(f"{path}: there is no such object, and none below it", "check its name, and who may read it")
    if not files:
        raise DecalError(f"{path}: is a directory without files", "name another folder, or files")
    partitions = [_partitions(os.path.relpath(file, path)) for file in files]
    first = partitions[0].keys()
    for file, values in zip(files, partitions, strict=True):
        if values.keys() != first:
            raise DecalError(
                f"{file}: its path names {_listed(values)}, and that of {files[0]} names {_listed(partitions[0])}",
                "partition all files of a folder by the same columns",
            )
    sources = (open_source(file, None) for file in files)
    return [_with(source, values) for source, values in zip(sources, partitions, strict=True)]


def as_named(data: Dataset, counts: Sequence[tuple[str, int]]) -> Dataset:
    """The data set with one input for each folder. counts: of each path that was given, how many files it has."""
    inputs, at = [], 0
    for path, files in counts:
        of_path = data.inputs[at : at + files]
        at += files
        inputs.append(of_path[0] if of_path[0].path == path else _together(path, of_path))
    return replace(data, inputs=tuple(inputs))


def _together(path: str, files: Sequence[Input]) -> Input:
    """A folder as one input: its digest is of the names in it and the digests of their files."""
    lines = "".join(f"{os.path.relpath(each.path, path)}\0{each.sha256}\n" for each in files)
    digest = hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
    known = [each.positives for each in files if each.positives is not None]
    positives = sum(known) if len(known) == len(files) else None
    return Input(path, sum(each.rows for each in files), positives, digest)


def _files(folder: str) -> Iterator[str]:
    def stop(error: OSError) -> None:
        raise DecalError(f"{error.filename}: cannot be opened ({error.strerror})", "check its permissions") from None

    for place, folders, names in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if not _hidden(name)]
        yield from (os.path.join(place, name) for name in names)


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split(os.sep))


def _partitions(path: str) -> dict[str, str | None]:
    """What the folders 'column=value' of a path say."""
    named = (part.split("=", 1) for part in path.split(os.sep)[:-1] if "=" in part)
    return {unquote(name): None if value == _NO_VALUE else unquote(value) for name, value in named}


def _listed(values: dict[str, str | None]) -> str:
    return ", ".join(values) or "no column"


def _with(source: FileSource, values: dict[str, str | None]) -> FileSource:
    values = {name: value for name, value in values.items() if name not in source.names}
    return _Partition(source, values) if values else source


def parquet_schema(source: FileSource, names: Sequence[str]) -> Any:
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


class _Partition:
    """A file with columns of one value each, which its path names."""

    def __init__(self, source: FileSource, values: dict[str, str | None]) -> None:
        self.source = source
        self.values = values
        self.shown = source.shown
        self.raw = source.raw
        self.names = [*source.names, *values]
        self.count = getattr(source, "count", None)

    def _added(self, table: Any, wanted: Sequence[str]) -> Any:
        import pyarrow as pa

        for name in wanted:
            if name in self.values:
                indices = pa.repeat(pa.scalar(0, pa.int32()), table.num_rows)
                column = pa.DictionaryArray.from_arrays(indices, pa.array([self.values[name]], pa.string()))
                field = pa.field(name, column.type)
                table = table.append_column(field, [column] if isinstance(table, pa.Table) else column)
        return table.select(list(wanted))

    def _own(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in self.values]

    def load(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        return self._added(self.source.load(self._own(numbers), self._own(texts)), [*numbers, *texts])

    def load_typed(self, names: Sequence[str]) -> Any:
        return self._added(self.source.load_typed(self._own(names)), names)

    def batches(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
        for batch in self.source.batches(self._own(numbers), self._own(texts)):
            yield self._added(batch, [*numbers, *texts])

    def rows(self, numbers: Sequence[str], others: Sequence[str]) -> Iterator[Any]:
        for batch in self.source.rows(self._own(numbers), self._own(others)):
            yield self._added(batch, [*numbers, *others])

    def line(self, row: int) -> int | None:
        return self.source.line(row)
