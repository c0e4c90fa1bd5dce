"""One way to end early where something would be left behind: every request to stop a run raises KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ending_as_interrupt() -> Iterator[None]:
    """Within it, a request to end (Ctrl-C, SIGTERM, a closed terminal) raises KeyboardInterrupt: work is undone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    requests = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [each for each in requests if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, interrupt) for each in heeded}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
