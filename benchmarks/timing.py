"""How the benchmark times calls and processes, and the lines of its table."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    ours: str
    against: str
    ratio: float
    goal: str


def paired(ours: Callable[[], object], theirs: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median seconds of each, taken in turn after one warm-up of both; a single run is taken as it is."""
    if runs > 1:
        ours(), theirs()
    a, b = [], []
    for _ in range(runs):
        a.append(clock(ours))
        b.append(clock(theirs))
    return statistics.median(a), statistics.median(b)


def clock(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def process(command: list[str]) -> None:
    """Run a process to its end."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


MEASURE = (
    "import resource, subprocess, sys\n"
    "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)\n"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


def peak(command: list[str]) -> int:
    """Peak resident bytes of a process, started by a small one: a child begins with its parent's peak."""
    done = subprocess.run([sys.executable, "-c", MEASURE, *command], check=True, capture_output=True, text=True)
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024)


def seconds(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g} s"


def mebibytes(value: float) -> str:
    """Whole MiB."""
    return f"{value / 2**20:.0f} MiB"
