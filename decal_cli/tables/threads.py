"""How many threads: one for linear algebra and trees, two where long work has two parts."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
MANY = 1 << 20
"""Numbers from which on sorting them, or putting them in order, in two threads saves time."""

_WORTH_THREADS = 50_000
"""Rows from which on trees are grown in several threads."""


def one_thread() -> AbstractContextManager[Any]:
    """One thread for linear algebra: callers fit many models at a time, and sums are the same on any machine."""
    # Libraries are loaded with modules: to look for them takes longer than many of the fits.
    limits: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limits


@lru_cache(1)
def _libraries(modules: int) -> Any:
    """What has threads of its own, as long as no more modules are imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread_for(rows: int) -> AbstractContextManager[Any]:
    """One thread where there are few rows: trees grown in several wait for each other on a busy machine, where they
    take ten times as long, and save little on an idle one.
    """
    return one_thread() if rows < _WORTH_THREADS else nullcontext()


def beside(work: Callable[[], T]) -> Callable[[], T]:
    """Start work in a second thread, for which no process waits; what is returned waits for its result."""
    done: list[T] = []
    failed: list[BaseException] = []
    context = copy_context()  # in which errors are worded, for a shell or for Python

    def run() -> None:
        try:
            done.append(context.run(work))
        except BaseException as error:
            failed.append(error)

    def result() -> T:
        thread.join()
        for error in failed:
            raise error
        return done[0]

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return result


def meanwhile(work: Callable[[], T], worth: bool) -> Callable[[], T]:
    """Start work in a second thread where that is worth it; else do it when its result is asked for."""
    return beside(work) if worth else work


def from_both_ends(work: Iterable[Callable[[], T]], worth: bool) -> list[T]:
    """The results of all of this work, done in order; where that is worth it, a second thread takes from the end."""
    left, done = deque(enumerate(work)), dict[int, T]()

    def take(next_one: Callable[[], tuple[int, Callable[[], T]]]) -> None:
        while True:
            try:
                number, each = next_one()
            except IndexError:  # the other thread has taken the last one
                return
            done[number] = each()

    second = meanwhile(partial(take, left.pop), worth)
    take(left.popleft)
    second()
    return [done[number] for number in sorted(done)]


def sort(values: NDArray[np.uint64]) -> None:
    """Sort in place. Of many, the halves are sorted at once, and a sort that knows runs merges them."""
    if len(values) < MANY:
        values.sort()
        return
    half = len(values) // 2
    second = beside(values[half:].sort)
    values[:half].sort()
    second()
    values.sort(kind="stable")
