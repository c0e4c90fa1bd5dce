"""Standard output and error where they are closed, full, gone or not UTF-8: no traceback, and the right exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from decal_cli.errors import Exit, printable

_GONE = (errno.EPIPE, errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT)


@contextmanager
def checked() -> Iterator[None]:
    """Within it, standard output and error exist, and escape what their encoding lacks."""
    before = sys.stdout, sys.stderr
    # Python has None for a stream that was closed before it started. Results that cannot be written are an error.
    sys.stdout = sys.stdout or _stream(os.O_RDONLY)
    sys.stderr = sys.stderr or _stream(os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            _emptied(stream)
        sys.stdout, sys.stderr = before


def say(text: str) -> None:
    """A line on standard error, where it can be written; names in it are escaped."""
    with suppress(OSError, ValueError):
        print(printable(text), file=sys.stderr, flush=True)


def lost(error: OSError) -> Exit:
    """What the environment refused, in a line: nobody can judge what was not read or written."""
    if not isinstance(error, BrokenPipeError):
        what = "" if error.filename is None else f"{error.filename}: "
        where = "standard output: " if not what and error.errno in _GONE else what
        say(f"decal: {where}{error.strerror or error}")
    return Exit.CANNOT_JUDGE


def _stream(mode: int) -> Any:
    """A stream in place of a closed one; opened for reading, every write to it fails."""
    return io.TextIOWrapper(open(os.open(os.devnull, mode), "wb"), encoding="utf-8")


def _emptied(stream: Any) -> None:
    """Nothing is left in a stream that the interpreter would fail to flush at its end, with another exit code."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
            stream.flush()
