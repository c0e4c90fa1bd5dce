"""Files that a run writes: checked before any work is done, written in one step; and columns as CSV or Parquet."""

from __future__ import annotations

import csv
import fcntl
import io
import os
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from decal_cli.data.formats.sources import files_of
from decal_cli.data.words import encodable, first_line, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint

UNFINISHED: set[str] = set()
"""The paths of files that are being written: a request to end removes them.

A path is added before its file is made. Between any two instructions the file is thus known to whoever removes it.
"""
LEFTOVER = (".decal-", ".part")
"""How the name of a file that is being written begins and ends."""
STANDARD_OUTPUT = "-"
SUFFIXES = (".csv", ".parquet")


def check_writable(path: str, what: str) -> None:
    """Raise a DecalError where a file cannot be written."""
    if path in ("", "-"):
        example = f", such as {Hint('output', 'result.txt')}, or leave it out and print" if what == "output" else ""
        raise DecalError(f"{what} {path!r} is not the name of a file", f"name one{example}")
    target = Path(path)
    if target.is_dir():
        raise DecalError(f"{what} {path} is a directory", "name a file")
    if target.exists() and not os.access(path, os.W_OK):
        raise DecalError(f"{what} {path} is not writable", "write elsewhere")
    try:
        if _is_written_through(path):
            return
    except OSError as error:
        gone = f"{what} {path}: the working directory: {error.strerror}"
        raise DecalError(gone, "change to one that is there") from None
    folder = Path(os.path.realpath(path)).parent if target.is_symlink() else target.parent
    if not folder.is_dir():
        raise DecalError(f"{what} {path}: there is no folder {folder}", "create it, or write elsewhere")
    if not os.access(folder, os.W_OK):
        raise DecalError(f"{what} {path}: folder {folder} is not writable", "write elsewhere")


def check_not_read(output: str | None, paths: Sequence[str], what: str = "output") -> None:
    """Raise a DecalError where a result would take the place of what it is made from: a file, or one of a folder."""
    if not (output and os.path.exists(output)):
        return
    for file in files_of(paths):
        if os.path.exists(file) and os.path.samefile(file, output):
            raise DecalError(f"{what} {output} is one of the files to be read", "write elsewhere")


def check_new(path: str, what: str, force: bool) -> None:
    """Before any work is done: the file can be written, and is not there yet unless it may be written over."""
    check_writable(path, what)
    if os.path.lexists(path) and not _is_written_through(path) and not force:
        raise DecalError(
            f"{what} {path} is there already", f"add {Hint('force')} to write over it, or name another file"
        )


def write_whole(path: str, content: bytes, what: str) -> None:
    """A file in one step: a reader never sees half of it."""
    check_writable(path, what)
    with whole_file(path, what) as file:
        file.write(content)


def write_all(contents: Mapping[str, bytes]) -> None:
    """Outputs that are all written, or none: each takes its place once all of them are on the disk."""
    with ExitStack() as stack:
        for path, content in contents.items():
            file = stack.enter_context(whole_file(path, "output"))
            file.write(content)
            file.flush()


@contextmanager
def only_run(path: str, what: str) -> Iterator[None]:
    """Work on a file that no other run works on. Errors: DecalError, where one does.

    The lock is a file beside it, since the file itself is replaced. It goes with the process, however that ends.
    """
    name = os.path.join(os.path.dirname(os.path.realpath(path)), f".{os.path.basename(os.path.realpath(path))}.lock")
    try:
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise DecalError(f"{what} {path}: {error.strerror or error}", "write elsewhere") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who had it before may just have removed it.
            ours = os.path.samestat(os.fstat(handle), os.stat(name))
        except OSError:
            ours = False
        if not ours:
            raise DecalError(f"{what} {path}: another run is using it", "wait until that run ends")
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(name)
    finally:
        os.close(handle)


@contextmanager
def ending_as_interrupt() -> Iterator[None]:
    """Within it, a request to end (Ctrl-C, SIGTERM, a closed terminal) raises KeyboardInterrupt: work is undone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        for path in tuple(UNFINISHED):
            with suppress(OSError):
                os.unlink(path)
        raise KeyboardInterrupt

    requests = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [each for each in requests if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, interrupt) for each in heeded}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def whole_file(path: str, what: str) -> Iterator[BinaryIO]:
    """A file to write into, which takes its place in one step at the end, and is gone where something fails.

    A link stays, and what it points to is written; so do devices and pipes, which get everything at the end.
    """
    try:
        with ending_as_interrupt(), (_through if _is_written_through(path) else _replacing)(path) as file:
            yield file
    except OSError as error:
        raise DecalError(f"{what} {path}: {error.strerror or error}", "write elsewhere") from None


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """A file whose content goes to standard output at the end, and nowhere where something fails."""
    with tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _is_written_through(path: str) -> bool:
    """Whether the path is no regular file that another could replace: a device, a pipe, an open file's number."""
    folder = os.path.realpath(os.path.dirname(path) or ".")
    numbered = folder == "/dev" or folder.startswith("/proc/")
    try:
        return numbered or not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return numbered


@contextmanager
def _through(path: str) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        with open(os.open(path, os.O_WRONLY | os.O_TRUNC), "wb") as out:
            shutil.copyfileobj(file, out)


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    with suppress(OSError):
        _remove_leftovers(folder)
    name = os.path.join(folder, os.urandom(8).hex().join(LEFTOVER))
    UNFINISHED.add(name)
    try:
        with os.fdopen(_locked(name), "wb") as file:
            yield file
            file.flush()
            try:
                mode = stat.S_IMODE(os.stat(target).st_mode)
            except FileNotFoundError:
                # Those of any new file.
                mask = os.umask(0)
                os.umask(mask)
                mode = 0o666 & ~mask
            os.fchmod(file.fileno(), mode)
            os.replace(name, target)
    finally:
        # A file that has taken its place no longer has this name.
        with suppress(OSError):
            os.unlink(name)
        UNFINISHED.discard(name)


def _locked(name: str) -> int:
    """The handle of a new file, locked for as long as it is open."""
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_nlink:
            return handle
        # Another run took it for a leftover before it was locked.
        os.close(handle)


def _remove_leftovers(folder: str) -> None:
    """Remove what killed runs left in a folder: files of that name that no run has locked."""
    for entry in os.scandir(folder):
        if not (entry.name.startswith(LEFTOVER[0]) and entry.name.endswith(LEFTOVER[1])):
            continue
        # Another user's file, or one that another run just removed, is none of ours.
        with suppress(OSError):
            handle = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)
            finally:
                os.close(handle)


def format_of(path: str) -> str:
    """The format that a file's name says: '.csv' or '.parquet'; a DecalError for any other. '-' stands for CSV."""
    if path == STANDARD_OUTPUT:
        return ".csv"
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise DecalError(f"{path}: unknown kind of file", f"end the name with {' or '.join(SUFFIXES)}")
    return suffix


def as_file(path: str, columns: Mapping[str, np.ndarray]) -> bytes:
    """What a file of this name holds: columns of equal length; CSV numbers read back to the last bit."""
    if format_of(path) == ".parquet":
        return as_parquet(columns)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    return out.getvalue().encode(errors="backslashreplace")


def as_parquet(columns: Mapping[str, np.ndarray]) -> bytes:
    """A Parquet file of columns of equal length; what is masked in a masked array is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(as_table(columns), sink)
    return bytes(sink.getvalue())


def as_table(columns: Mapping[str, np.ndarray]) -> Any:
    """A table of pyarrow, of columns of equal length; what is masked in a masked array is null."""
    import pyarrow as pa

    arrays = {}
    for name, values in columns.items():
        if values.dtype.kind in "UO":
            arrays[encodable(name)] = pa.array(map(encodable, values.tolist()), pa.string())
            continue
        known = ~np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.ones(len(values), bool)
        arrays[encodable(name)] = _column(np.asarray(values)[known], known)
    return pa.table(arrays)


class Writer:
    """Batches of rows, one after the other, into an open file whose name says its format."""

    def __init__(self, path: str, file: Any) -> None:
        """path: for its format; file: open for writing bytes."""
        self.path = path
        self.format = format_of(path)
        self.file = file
        self.inner: Any = None
        self.begun = False

    def write(self, table: Any, added: Mapping[str, np.ndarray], known: np.ndarray) -> None:
        """A batch with further columns; added: name -> values of the rows in `known`, null in the others."""
        import pyarrow as pa

        for name, values in added.items():
            table = table.append_column(encodable(name), _column(values, known))
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        table = self._plain(table)
        try:
            if self.format == ".csv":
                self.file.write(_as_csv(table, header=not self.begun))
            else:
                import pyarrow.parquet as pq

                self.inner = self.inner or pq.ParquetWriter(self.file, table.schema)
                self.inner.write_table(table)
        except pa.ArrowException as error:
            reason = first_line(error).rstrip(".")
            raise DecalError(
                f"{self.path} cannot hold all of the columns ({reason})", "leave one out, or convert it"
            ) from None
        self.begun = True

    def close(self) -> None:
        """Write what is left."""
        if self.inner is not None:
            self.inner.close()

    def _plain(self, table: Any) -> Any:
        """The values of a dictionary in its place, but for texts in Parquet, which stores these."""
        import pyarrow as pa

        for at, column in enumerate(table.schema):
            if pa.types.is_dictionary(column.type) and (
                self.format == ".csv" or not pa.types.is_string(column.type.value_type)
            ):
                table = table.set_column(at, column.name, table.column(at).cast(column.type.value_type))
            elif self.format == ".csv" and pa.types.is_nested(column.type):
                raise DecalError(
                    f"{self.path}: column {quote(column.name)} holds lists or objects, which CSV cannot",
                    "write Parquet: end the name with .parquet",
                )
        return table


def _column(values: np.ndarray, known: np.ndarray) -> Any:
    """Numbers of the rows in `known` as a pyarrow array, null in the others.

    pa.array() does the same, and imports pandas for it where that is installed.
    """
    import pyarrow as pa

    column = np.zeros(len(known), dtype=values.dtype)
    column[known] = values
    mask = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(known), [mask, pa.py_buffer(column)])


def _as_csv(table: Any, header: bool) -> bytes:
    """A batch as CSV text; quoted only where a value needs it."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    head = ",".join(map(_cell, table.column_names)) + "\n" if header else ""
    sink = pa.BufferOutputStream()
    try:
        pacsv.write_csv(table, sink, pacsv.WriteOptions(include_header=False, quoting_style="none"))
    except pa.ArrowInvalid:
        sink = pa.BufferOutputStream()
        pacsv.write_csv(table, sink, pacsv.WriteOptions(include_header=False, quoting_style="needed"))
    return head.encode() + bytes(sink.getvalue())


def _cell(text: str) -> str:
    """A name as CSV has it; Python's own writer leaves a lone carriage return bare."""
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text
