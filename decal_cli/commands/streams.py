"""Standard output and error where they are closed, full, gone or not UTF-8: no traceback, and the right exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from decal_cli.errors import Exit, masked, printable

_GONE = (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT)


@contextmanager
def checked() -> Iterator[None]:
    """Within it, the standard streams exist; output and error escape what their encoding lacks, and outlive readers."""
    before = sys.stdout, sys.stderr
    # Python has None for a stream that was closed before it started. From such an input, there is nothing to read;
    # results that cannot be written are an error.
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(io.FileIO(os.devnull)))
    ours = _stream(sys.stdout, os.O_RDONLY), _stream(sys.stderr, os.O_WRONLY)
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        # Whatever libraries put in their place meanwhile, these are the streams that were written to.
        for stream in ours:
            _emptied(stream)
        sys.stdout, sys.stderr = before


class _Outlet(io.FileIO):
    """A stream whose reader may go before all is written, as `head -1` does: the rest then goes nowhere.

    The run ends with the code of its verdict, since nothing fails that is written later: neither here nor by the
    interpreter at its end.
    """

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except BrokenPipeError:
            _to_nowhere(self.fileno())
            return len(content)


def say(text: str) -> None:
    """A line on standard error, where it can be written; names in it are escaped, and secrets of addresses masked."""
    with suppress(OSError, ValueError):
        print(masked(printable(text)), file=sys.stderr, flush=True)


def lost(error: OSError) -> Exit:
    """What the environment refused, in a line: nobody can judge what was not read or written."""
    what = "" if error.filename is None else f"{error.filename}: "
    where = "standard output: " if not what and error.errno in _GONE else what
    say(f"decal: {where}{error.strerror or error}")
    return Exit.CANNOT_JUDGE


def _stream(given: Any, mode: int) -> Any:
    """A stream in place of the one that is given, or of a closed one; opened for reading, every write to it fails."""
    if given is None:
        return io.TextIOWrapper(open(os.open(os.devnull, mode), "wb"), encoding="utf-8")
    try:
        outlet = io.BufferedWriter(_Outlet(given.fileno(), "w", closefd=False))
    except (AttributeError, OSError, ValueError):
        # It is no file: whoever called has put something of his own there.
        if isinstance(given, io.TextIOWrapper):
            given.reconfigure(errors="backslashreplace")
        return given
    at_once = given.line_buffering or given.write_through
    return io.TextIOWrapper(outlet, given.encoding, "backslashreplace", line_buffering=at_once)


def _emptied(stream: Any) -> None:
    """Nothing is left in a stream that the interpreter would fail to flush at its end, with another exit code."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            _to_nowhere(stream.fileno())
            stream.flush()


def _to_nowhere(number: int) -> None:
    """From now on, what is written to this file descriptor is dropped."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)
