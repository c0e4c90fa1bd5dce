"""Memory and the standard streams of a run, which may be closed, full, gone, not UTF-8 or a terminal."""

from __future__ import annotations

import errno
import io
import logging
import mmap
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from typing import Any

from decal_cli.api.words import Count, Progress, RowsRead
from decal_cli.errors import DecalError, Exit, masked, printable
from decal_cli.numbers import many

_GONE = (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT)
N_BYTES = 1 << 30
"""Bytes of address space that the libraries need to load, to start threads and to multiply their first matrices."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that limit libraries to one thread: each further thread would take address space of its own."""
SIDE = 128
"""Rows and columns of matrices whose product makes OpenBLAS take its memory."""
FOLDER = "MPLCONFIGDIR"
"""The variable that names the folder where matplotlib keeps its settings and its list of fonts."""


@contextmanager
def checked() -> Iterator[None]:
    """Within it, standard streams exist: output and error escape what their encoding lacks, and readers may leave."""
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
    """Say in one line what the environment refused, and return the exit code for what cannot be judged."""
    what = f"{error.filename}: " if error.filename else ""
    where = "standard output: " if not what and error.errno in _GONE else what
    say(f"decal: {where}{error.strerror or error}")
    return Exit.CANNOT_JUDGE


def _stream(given: Any, mode: int) -> Any:
    """A stream in place of a given one, or of a closed one; if its mode is for reading, every write to it fails."""
    if given is None:
        return io.TextIOWrapper(open(os.open(os.devnull, mode), "wb"), encoding="utf-8")
    try:
        outlet = io.BufferedWriter(_Outlet(given.fileno(), "w", closefd=False))
    except (AttributeError, OSError, ValueError):
        # This is no file: the caller has put an object of its own there.
        if isinstance(given, io.TextIOWrapper):
            given.reconfigure(errors="backslashreplace")
        return given
    at_once = given.line_buffering or given.write_through
    return io.TextIOWrapper(outlet, given.encoding, "backslashreplace", line_buffering=at_once)


def _emptied(stream: Any) -> None:
    """Flush a stream, or drop what it holds: else the interpreter fails to flush it and changes the exit code."""
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


@contextmanager
def spinner() -> Iterator[Progress]:
    """A spinner beside the words for what is being computed."""
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("evaluating") as status:
        yield lambda text: status.update(Text(printable(f"evaluating {text}")))


def announce(finished: int, total: int, before: int) -> None:
    """One line for the log when a run of units begins."""
    if finished == before:
        say(f"decal: {many(total, 'unit')} to measure, {before} of them measured before")


@contextmanager
def _bar(what: str, *counted: Any, transient: bool = False) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar with these columns of counts and the time that is left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (TextColumn(what), BarColumn(), *counted, TimeRemainingColumn())
    with Progress(*parts, console=Console(stderr=True), transient=transient) as shown:
        task = shown.add_task(what, total=None)
        yield lambda finished, total: shown.update(task, completed=finished, total=total)


@contextmanager
def counting_bar() -> Iterator[Count]:
    """A bar of the units that are finished."""
    from rich.progress import MofNCompleteColumn

    with _bar("measuring", MofNCompleteColumn()) as show:
        yield lambda finished, total, before: show(finished, total)


@contextmanager
def reading_bar() -> Iterator[RowsRead]:
    """A bar of the rows that are read, once there is something to tell."""
    with ExitStack() as stack:
        bar = cache(lambda: stack.enter_context(_rows_bar()))
        yield lambda rows, total: bar()(rows, total)


def _rows_bar() -> AbstractContextManager[RowsRead]:
    """A progress bar of rows, with their rate and the time that is left."""
    from rich.progress import ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            rate = task.finished_speed or task.speed
            return Text("" if rate is None else f"{rate / 1e6:.1f} million rows/s")

    return _bar("reading", TextColumn("{task.completed:,.0f} rows"), Rate(), transient=True)


@contextmanager
def prepared() -> Iterator[None]:
    """Within it, matplotlib leaves the user's home and standard error alone."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if FOLDER in os.environ:
        yield
        return
    # Matplotlib makes it where something is drawn: other runs leave nothing behind, however they end.
    folder = os.path.join(tempfile.gettempdir(), f"decal-{os.urandom(8).hex()}")
    os.environ[FOLDER] = folder
    try:
        yield
    finally:
        del os.environ[FOLDER]
        shutil.rmtree(folder, ignore_errors=True)


def reserve() -> None:
    """Where memory is limited, make numpy's OpenBLAS and scipy's take their part, before anything else does.

    If OpenBLAS finds no memory later, it ends the process with code 1, that of a failed gate, or as Ctrl-C does; and
    what reads the options of a command aborts the process.

    Errors: DecalError where there is too little.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    try:
        mmap.mmap(-1, N_BYTES).close()
    except OSError:
        raise DecalError(
            f"there is not enough memory: the limit is {limit >> 20:,} MiB (ulimit -v)",
            f"give it {(N_BYTES >> 20) + 128:,} MiB, most of which is never filled",
        ) from None
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    # Late: OpenBLAS counts its threads when it is loaded, and most machines need none of this.
    import numpy as np
    from scipy.linalg.blas import dgemm

    ones = np.ones((SIDE, SIDE))
    np.matmul(ones, ones)
    dgemm(1.0, ones, ones)
