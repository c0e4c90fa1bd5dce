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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from decal_cli.data.words import file_word, first_line, nearest
from decal_cli.errors import DecalError

HEAD_SIZE = 1 << 16
GZIP = b"\x1f\x8b"
BINARY = ("Parquet", "Arrow")


@dataclass
class Raw:
    """One input. shown: its name in errors; path: as the user gave it; data: its bytes where it cannot be reopened."""

    shown: str
    path: str
    data: bytes | None
    gz: bool = False
    _plain: bytes | None = field(default=None, repr=False)

    def open(self) -> BinaryIO:
        """A fresh stream of the decompressed bytes."""
        source = self.path if self.data is None else io.BytesIO(self.data)
        if self.gz:
            return cast(BinaryIO, gzip.open(source, "rb"))
        return open(source, "rb") if isinstance(source, str) else source

    def head(self, size: int = HEAD_SIZE) -> bytes:
        """The first decompressed bytes."""
        with translated(self.shown, "gzip" if self.gz else "a file"), self.open() as stream:
            return stream.read(size)

    def arrow(self, mapped: bool = True) -> Any:
        """A pyarrow file to read from at any position; mapped: through the page cache, without a copy."""
        import pyarrow as pa

        if self.data is not None or self.gz:
            if self._plain is None:
                with self.open() as stream:
                    self._plain = stream.read() if self.gz else self.data
            return pa.BufferReader(self._plain)
        # As bytes: a file's name need not be UTF-8.
        path = os.fsencode(self.path)
        return pa.memory_map(path) if mapped else pa.OSFile(path)

    def text(self) -> Any:
        """A pyarrow file to read from front to back."""
        import pyarrow as pa

        return pa.PythonFile(self.open(), mode="r") if self.gz else self.arrow(mapped=False)

    def sha256(self) -> str:
        """Hex digest of the bytes as they were given (compressed, if they were)."""
        import hashlib

        if self.data is not None:
            return hashlib.sha256(self.data).hexdigest()
        with translated(self.shown, "a file"), open(self.path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


def raw(path: str, stdin: BinaryIO | None) -> Raw:
    """Look at an input without reading it: it exists, is a file, is not empty, is gzip or not."""
    if path == "-":
        if stdin is None:
            raise DecalError("nothing to read: no file named and nothing piped in", "name a file, or pipe one in")
        with translated("standard input", "a stream"):
            source = Raw("standard input", path, stdin.read())
    else:
        source = Raw(path, path, _pipe(path))
    start = source.data[:2] if source.data is not None else source.head(2)
    if not start:
        raise DecalError(f"{source.shown}: is empty", "give a file with a header and at least one row")
    source.gz = start == GZIP
    return source


def _pipe(path: str) -> bytes | None:
    """The bytes of a named pipe, which can be read only once; None for an ordinary file."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise DecalError(
                f"{path}: is a directory", f"name the files in it, such as {os.path.join(path, '*.parquet')}"
            )
        if stat.S_ISREG(mode):
            return None
        return Path(path).read_bytes()
    except FileNotFoundError:
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
    except MemoryError:
        raise DecalError(f"{shown}: does not fit in memory as {kind}", "it may be corrupt; write it again") from None
    except Exception as error:
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
