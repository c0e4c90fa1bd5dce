"""Bytes of one input, wherever they come from: a file, a pipe or standard input, gzip or not."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO, cast

from decal_cli.data.large.engines.address import refuse_as_file
from decal_cli.data.words import file_word, first_line, nearest
from decal_cli.errors import DecalError, out_of_memory
from decal_cli.limits import MAX_STREAM_BYTES, MIB

HEAD_SIZE = 1 << 16
GZIP = b"\x1f\x8b"
BINARY = ("Parquet", "Arrow")


Status = tuple[int, ...]
"""Size of a file, and what else changes where it is replaced or written to."""


class Unzipped(gzip.GzipFile):
    """The decompressed bytes of a file, which is closed with them."""

    def __init__(self, source: BinaryIO) -> None:
        super().__init__(fileobj=source, mode="rb")
        self.source = source

    def close(self) -> None:
        super().close()
        self.source.close()


class Raw:
    """One input. shown: its name in errors; path: as the user gave it; stream: a pipe, which can be read only once."""

    def __init__(self, shown: str, path: str, stream: BinaryIO | None = None) -> None:
        self.shown = shown
        self.path = path
        self.stream = stream
        with translated(shown, "a file"):
            self.identity = None if stream is not None else self._status()
            self.start = self._read_start() if stream is None else stream.read(HEAD_SIZE)
        self.gz = self.start.startswith(GZIP)

    def _read_start(self) -> bytes:
        with self._bytes() as file:
            return file.read(len(GZIP))

    def _bytes(self) -> Any:
        """The bytes as they were given, from the start."""
        return open(self.path, "rb")

    def _status(self) -> Status:
        """What changes where a file is replaced or written to."""
        status = os.stat(self.path)
        return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino

    @property
    def size(self) -> int:
        """Bytes of the file; 0 of a pipe, which is held whole."""
        return 0 if self.identity is None else self.identity[0]

    @cached_property
    def content(self) -> bytes:
        """All bytes of a pipe."""
        assert self.stream is not None
        with translated(self.shown, "a stream"):
            content = _bounded(self.shown, self.stream, self.start)
        self.close()
        return content

    def close(self) -> None:
        """Close a named pipe; standard input stays open."""
        if self.stream is not None and self.path != "-":
            self.stream.close()

    def check_unchanged(self) -> None:
        """Raise a DecalError where the file is not the one that was opened: rows would be mixed from two versions."""
        try:
            unchanged = self.stream is not None or self._status() == self.identity
        except (OSError, DecalError):
            unchanged = False
        if not unchanged:
            raise DecalError(f"{self.shown}: changed while it was read", "run again when nothing writes to it")

    def open(self) -> BinaryIO:
        """A fresh stream of the decompressed bytes."""
        source = self._bytes() if self.stream is None else io.BytesIO(self.content)
        return cast(BinaryIO, Unzipped(source)) if self.gz else source

    def head(self, size: int = HEAD_SIZE) -> bytes:
        """The first decompressed bytes."""
        if self.stream is not None and not self.gz and size <= HEAD_SIZE:
            return self.start[:size]
        with translated(self.shown, "gzip" if self.gz else "a file"), self.open() as stream:
            return stream.read(size)

    @cached_property
    def _plain(self) -> bytes:
        """The decompressed bytes, where they cannot be read from the file itself."""
        if not self.gz:
            return self.content
        with self.open() as stream:
            return _bounded(self.shown, stream)

    def arrow(self) -> Any:
        """A pyarrow file to read from at any position; never mapped: a file that is cut then would end the process."""
        import pyarrow as pa

        if self.stream is not None or self.gz:
            return pa.BufferReader(self._plain)
        # As bytes: a file's name need not be UTF-8.
        return pa.OSFile(os.fsencode(self.path))

    def text(self) -> Any:
        """A pyarrow file to read from front to back."""
        import pyarrow as pa

        return pa.PythonFile(self.open(), mode="r") if self.gz else self.arrow()

    def sha256(self) -> str:
        """Hex digest of the bytes as they were given (compressed, if they were)."""
        import hashlib

        if self.stream is not None:
            return hashlib.sha256(self.content).hexdigest()
        with translated(self.shown, "a file"), self._bytes() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


def _bounded(shown: str, stream: BinaryIO, start: bytes = b"") -> bytes:
    """What is left of a stream, after its start."""
    content = io.BytesIO()
    content.write(start)
    while piece := stream.read(MIB):
        content.write(piece)
        if content.tell() > MAX_STREAM_BYTES:
            raise DecalError(
                f"{shown}: holds more than {MAX_STREAM_BYTES // MIB:,} MiB, the most that is held in memory",
                "write it to a file that is not compressed, and name that",
            )
    return content.getvalue()


def raw(path: str, stdin: BinaryIO | None) -> Raw:
    """Look at an input without reading it: it exists, is a file, is not empty, is gzip or not."""
    if path == "-":
        if stdin is None:
            raise DecalError("nothing to read: no file named and nothing piped in", "name a file, or pipe one in")
        source = Raw("standard input", path, stdin)
    else:
        source = Raw(path, path, _pipe(path))
    if not source.start:
        raise DecalError(f"{source.shown}: is empty", "give a file with a header and at least one row")
    return source


def _pipe(path: str) -> BinaryIO | None:
    """A named pipe or a device, which can be read only once; None for an ordinary file."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise DecalError(
                f"{path}: is a directory", f"name the files in it, such as {os.path.join(path, '*.parquet')}"
            )
        if stat.S_ISREG(mode):
            with open(path, "rb"):
                return None
        return open(path, "rb")
    except FileNotFoundError:
        refuse_as_file(path)
        raise DecalError(f"{path}: no such file", _near_file(path)) from None
    except (OSError, ValueError) as error:
        raise DecalError(f"{path}: cannot be opened ({_reason(error)})", "check the name and its permissions") from None


def _near_file(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return f"there is no folder {folder} either"
    near = nearest(name, names)
    return f"did you mean {file_word(os.path.join(folder, near))}?" if near else "check the name"


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


@contextmanager
def translated(shown: str, kind: str) -> Iterator[None]:
    """Turn any error of a reading library into one line about this file."""
    try:
        yield
    except DecalError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DecalError(
            f"{shown}: corrupt or truncated gzip ({first_line(error)})", "write or download it again"
        ) from None
    except Exception as error:
        if out_of_memory(error):
            raise DecalError(
                f"{shown}: does not fit in memory as {kind}", "give fewer rows; it may also be corrupt"
            ) from None
        fix = "it may be truncated or corrupt: write or copy it again" if kind in BINARY else "correct it there"
        raise DecalError(f"{shown}: cannot be read as {kind}: {first_line(error).rstrip('.')}", fix) from None


def no_rows(shown: str) -> DecalError:
    """What a file says that has columns and nothing in them."""
    return DecalError(f"{shown}: has a header but no rows", "give at least one row")


def refuse_other_encodings(raw: Raw, head: bytes) -> None:
    """UTF-16, UTF-32 and binary bytes are not guessed at."""
    marks = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32"}
    marks |= {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
    name = next((n for mark, n in marks.items() if head.startswith(mark)), None)
    if name is None and b"\0" in head:
        for zeros, kept, guess in ((head[1::2], head[::2], "UTF-16LE"), (head[::2], head[1::2], "UTF-16BE")):
            if zeros.count(0) > 0.9 * len(zeros) and kept.count(0) == 0:
                name = guess
        if name is None:
            raise DecalError(
                f"{raw.shown}: is binary, and not a format decal reads",
                "give CSV, Parquet, Arrow or JSON Lines (each also gzipped)",
            )
    if name is not None:
        raise DecalError(
            f"{raw.shown}: is {name} text, not UTF-8",
            f"convert it: iconv -f {name} -t UTF-8 {file_word(raw.path)} > utf8.csv",
        )
