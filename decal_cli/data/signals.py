"""One way to end early where something would be left behind: every request to stop a run raises KeyboardInterrupt."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

UNFINISHED: set[str] = set()
"""The paths of files that are being written: a request to end removes them.

A path is added before its file is made. Between any two instructions the file is thus known to whoever removes it.
"""


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
