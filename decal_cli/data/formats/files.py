"""Bytes of one input, wherever they come from: a file, an object of a store, a pipe or standard input, gzip or not."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO, Literal, cast
from urllib.parse import urlsplit

from decal_cli.data.large.engines.connections import refuse_as_file
from decal_cli.data.words import file_word, first_line, nearest
from decal_cli.errors import DecalError, masked, out_of_memory
from decal_cli.limits import MAX_STREAM_BYTES, MIB

HEAD_SIZE = 1 << 16
GZIP = b"\x1f\x8b"
BINARY = ("Parquet", "Arrow")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|CONNECTION_STRING", re.IGNORECASE)
_SECONDS = 20.0
"""How many seconds to wait for a store: for a connection, and for an answer."""


Wanted = Mapping[str, Literal["numbers", "texts", "typed"]]
"""Columns to be read, by name: as numbers, as texts, or as what they are."""


class RawData:
    """Where rows come from. path: as the user gave it. digest: gives a hex digest of rows that are in no file."""

    size = 0
    """Bytes of a file."""

    def __init__(self, path: str, digest: Callable[[], str] = str) -> None:
        self.path, self.digest = path, digest

    def sha256(self) -> str:
        """Hex digest of the content."""
        return self.digest()

    def check_unchanged(self) -> None:
        """Raise a DecalError where the content is not what it was at first."""


class Source:
    """One input whose format is known. Where a format has types, all columns are read as what they are."""

    raw: Any
    """Its RawData; a file is a Raw."""
    shown: str
    names: list[str]
    count: int | None = None
    """How many rows there are, where the format says so."""
    numbered = True
    """Whether rows have numbers that a user knows: those of an engine have none."""

    def load(self, wanted: Wanted) -> Any:
        """pyarrow table with these columns, every row. Typed columns of texts are numbers where all values are."""
        raise NotImplementedError

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """The columns in batches of rows, with little memory; a typed column of CSV: texts."""
        yield self.load(wanted)

    def types(self, names: Sequence[str]) -> dict[str, Any]:
        """The pyarrow type of every column of texts whose values are all numbers, as they are usually written."""
        return {}

    def row(self, at: int) -> int:
        """The row of the file, from 0, that a row of the table is."""
        return at

    def line(self, row: int) -> int | None:
        """Line of a data row (0-based) in a text format, None where there is none or finding it is slow."""
        return None


class Held(Source):
    """Columns in memory. raw: where they come from; by default no file, and no digest. of: the source of their rows."""

    def __init__(self, shown: str, table: Any, raw: RawData | None = None, of: Source | None = None) -> None:
        self.shown, self.raw, self.of = shown, raw or RawData(shown), of
        self.table = table
        self.names = list(table.column_names)

    def load(self, wanted: Wanted) -> Any:
        return self.table.select([*wanted])

    def line(self, row: int) -> int | None:
        return self.of.line(row) if self.of else None


class Unzipped(gzip.GzipFile):
    """The decompressed bytes of a file, which is closed with them."""

    def __init__(self, source: BinaryIO) -> None:
        super().__init__(fileobj=source, mode="rb")
        self.source = source

    def close(self) -> None:
        super().close()
        self.source.close()


class Raw(RawData):
    """One file. shown: its name in errors; stream: a pipe, which can be read only once."""

    def __init__(self, shown: str, path: str, stream: BinaryIO | None = None) -> None:
        super().__init__(path)
        self.shown, self.stream = shown, stream
        with translated(shown, "a file"):
            self.identity = () if stream is not None else self._status()
            # The size of a pipe, which is held whole, is not known.
            self.size = self.identity[0] if self.identity else 0
            if stream is None:
                with self._bytes() as file:
                    self.start = file.read(len(GZIP))
            else:
                self.start = stream.read(HEAD_SIZE)
        self.gz = self.start.startswith(GZIP)

    def _bytes(self) -> Any:
        """The bytes as they were given, from the start."""
        return open(self.path, "rb")

    def _status(self) -> tuple[int, ...]:
        """Size of a file, and what else changes where it is replaced or written to."""
        status = os.stat(self.path)
        return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino

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
        if self.stream is not None:
            return hashlib.sha256(self.content).hexdigest()
        with translated(self.shown, "a file"), self._bytes() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


def _bounded(shown: str, stream: BinaryIO, start: bytes = b"") -> bytes:
    """A stream from its start on, held in memory. Errors: DecalError, where it is larger than MAX_STREAM_BYTES."""
    content = io.BytesIO()
    content.write(start)
    while piece := stream.read(MIB):
        content.write(piece)
        if content.tell() > MAX_STREAM_BYTES:
            raise DecalError(
                f"{shown} holds more than {MAX_STREAM_BYTES // MIB:,} MiB, the most that is held in memory",
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
        raise DecalError(f"{source.shown} is empty", "give a file with a header and at least one row")
    return source


def _pipe(path: str) -> BinaryIO | None:
    """A named pipe or a device, which can be read only once; None for an ordinary file."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise DecalError(
                f"{path} is a directory", f"name the files in it, such as {os.path.join(path, '*.parquet')}"
            )
        if stat.S_ISREG(mode):
            with open(path, "rb"):
                return None
        return open(path, "rb")
    except FileNotFoundError:
        refuse_as_file(path)
        folder, name = os.path.split(path)
        try:
            near = nearest(name, os.listdir(folder or "."))
            fix = f"did you mean {file_word(os.path.join(folder, near))}?" if near else "check the name"
        except OSError:
            fix = f"there is no folder {folder} either"
        raise DecalError(f"{path}: no such file", fix) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DecalError(f"{path} cannot be opened ({reason})", "check the name and its permissions") from None


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
        raise DecalError(f"{shown} cannot be read as {kind}: {first_line(error).rstrip('.')}", fix) from None


def no_rows(shown: str, has: str = "has no rows") -> DecalError:
    """The error for a file without rows."""
    return DecalError(f"{shown} {has}", "give at least one row")


def refuse_other_encodings(raw: Raw, head: bytes) -> None:
    """Raise a DecalError for UTF-16, UTF-32 and binary bytes, which are not guessed at."""
    marks = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32"}
    marks |= {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
    name = next((n for mark, n in marks.items() if head.startswith(mark)), "")
    if not name and b"\0" in head:
        for zeros, kept, guess in ((head[1::2], head[::2], "UTF-16LE"), (head[::2], head[1::2], "UTF-16BE")):
            if zeros.count(0) > 0.9 * len(zeros) and kept.count(0) == 0:
                name = guess
        if not name:
            raise DecalError(
                f"{raw.shown} is binary, and not a format decal reads",
                "give CSV, Parquet, Arrow or JSON Lines (each also gzipped)",
            )
    if name:
        raise DecalError(
            f"{raw.shown} is {name} text, not UTF-8",
            f"convert it: iconv -f {name} -t UTF-8 {file_word(raw.path)} > utf8.csv",
        )


class RemoteRaw(Raw):
    """One object of a store, read by pyarrow, with the credentials of the environment."""

    def __init__(self, path: str) -> None:
        self.store, self.place = _store_of(path)
        super().__init__(path, path)

    def _bytes(self) -> Any:
        with _reached(self.path):
            return self.store.open_input_file(self.place)

    def _status(self) -> tuple[int, ...]:
        with _reached(self.path):
            info = self.store.get_file_info(self.place)
        if not info.is_file:
            raise DecalError(f"{self.path}: no such object", "check its name, and who may read it")
        return info.size, info.mtime_ns or 0

    def arrow(self) -> Any:
        return super().arrow() if self.gz else self._bytes()

    def sha256(self) -> str:
        """Hex digest of the store's own tag of the content; of the content, where the store has none."""
        with _reached(self.path), self.store.open_input_stream(self.place) as stream:
            tags = {str(key).lower(): value for key, value in (stream.metadata() or {}).items()}
            tag = next((value for key, value in tags.items() if "etag" in key), None)
            if tag:
                return hashlib.sha256(tag if isinstance(tag, bytes) else str(tag).encode()).hexdigest()
        return super().sha256()


def objects_in(path: str) -> list[str] | None:
    """The objects below a path, None where it is an object itself. Errors: DecalError."""
    from pyarrow.fs import FileSelector

    store, place = _store_of(path)
    with _reached(path):
        if store.get_file_info(place).is_file:
            return None
        found = store.get_file_info(FileSelector(place, recursive=True, allow_not_found=True))
    start = path.rstrip("/")
    return [start + each.path.removeprefix(place.rstrip("/")) for each in found if each.is_file]


def _store_of(path: str) -> tuple[Any, str]:
    """The store of a path, and the place in it. Errors: DecalError."""
    try:
        parts = urlsplit(path)
    except ValueError as error:
        raise DecalError(f"{path} is not an address ({error})", "name bucket and object") from None
    scheme = parts.scheme.lower()
    if (scheme == "s3" and "@" in parts.netloc) or ":" in parts.netloc or parts.query:
        raise DecalError(
            f"{masked(path).partition('?')[0]} holds credentials or options",
            "name bucket and object alone, and put credentials in the environment",
        )
    with _reached(path):
        if scheme == "s3":
            return _s3(parts.netloc), f"{parts.netloc}{parts.path}"
        from pyarrow.fs import FileSystem

        # Without a limit, pyarrow asks Google for credentials for a quarter of an hour.
        limit = f"?retry_limit_seconds={_SECONDS:g}" if scheme in ("gs", "gcs") else ""
        store, place = FileSystem.from_uri(path + limit)
        return store, place


def _s3(bucket: str) -> Any:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    options: dict[str, Any] = {"connect_timeout": _SECONDS, "request_timeout": _SECONDS}
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    elif not region:
        region = resolve_s3_region(bucket)
    return S3FileSystem(region=region, retry_strategy=AwsStandardS3RetryStrategy(max_attempts=3), **options)


@contextmanager
def _reached(path: str) -> Iterator[None]:
    """Turn any error of a store into one line about this object, without what is secret."""
    try:
        yield
    except DecalError:
        raise
    except Exception as error:
        text = first_line(error)
        for name, value in os.environ.items():
            if len(value) > 3 and _SECRET.search(name):
                text = text.replace(value, "***")
        raise DecalError(
            f"{path} cannot be read ({text})", "check its name, the network, and the credentials in the environment"
        ) from None
