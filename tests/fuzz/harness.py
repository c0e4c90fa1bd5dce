"""Cases in child processes: limits of time and memory, counts of outcomes, and the first failures of each child.

A case is a function of random numbers and an empty folder that returns its outcome in a word. Anything that it raises
is a failure, warnings included: users would see them.
"""

import multiprocessing
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers.command import run_here

MAX_SECONDS = 20
MAX_BYTES = 2 << 30
CASES_PER_CHILD, MAX_PROBLEMS = 5_000, 5

Attempt = Callable[[random.Random, Path], str]


def fuzz(case: Attempt, name: str, seed: int, n_cases: int) -> int:
    """Run so many cases; print what came of them, and return the number of failures."""
    context = multiprocessing.get_context("fork")
    outcomes: Counter[str] = Counter()
    failures, start, peak = 0, time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, n_cases, CASES_PER_CHILD):
            results = context.SimpleQueue()
            size = min(CASES_PER_CHILD, n_cases - first)
            process = context.Process(target=_child, args=(case, seed + first, size, folder, results))
            process.start()
            counts, problems, used = results.get() if _ended(process, results) else (Counter(), [], 0)
            process.join()
            if process.exitcode != 0:
                problems.append(f"the process ended with {process.exitcode}")
            outcomes, peak = outcomes + counts, max(peak, used)
            failures += len(problems)
            for problem in problems:
                print(f"{name}, seeds from {seed + first}: {problem}\n", flush=True)
            if failures >= 10 * MAX_PROBLEMS:
                break
    seconds = time.monotonic() - start
    print(
        f"{name}: {outcomes.total():,} cases from seed {seed} in {seconds:,.0f} s: {dict(outcomes)},"
        f" {failures} failures, at most {peak >> 20} MiB",
        flush=True,
    )
    return failures


def _ended(process: Any, results: Any) -> bool:
    """Whether a child said what came of its cases; False where it ended without a word."""
    while results.empty():
        process.join(0.2)
        if process.exitcode is not None:
            return not results.empty()
    return True


def _child(case: Attempt, seed: int, n_cases: int, folder: str, results: Any) -> None:
    signal.signal(signal.SIGPROF, _too_slow)
    warnings.simplefilter("error")
    outcomes: Counter[str] = Counter()
    problems: list[str] = []
    for number in range(seed, seed + n_cases):
        try:
            outcomes[one(case, number, folder)] += 1
            if used_bytes() > MAX_BYTES:
                raise MemoryError(f"{used_bytes() >> 20} MiB")
        except BaseException as error:
            place = "".join(traceback.format_tb(error.__traceback__)[-3:])
            text = "".join(traceback.format_exception_only(error))
            problems.append(f"case {number}: {text!r:.4000}\n{place}")
            if len(problems) == MAX_PROBLEMS:
                break
    results.put((outcomes, problems, used_bytes()))


def one(case: Attempt, seed: int, parent: str) -> str:
    """One case in a folder of its own, within the limit of processor time; its outcome."""
    signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
    try:
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            return case(random.Random(seed), Path(folder))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def used_bytes() -> int:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _too_slow(*_: Any) -> None:
    raise TimeoutError(f"more than {MAX_SECONDS} s for one small case")


def decal(folder: Path, *arguments: str) -> str:
    """Run the command line in this process, and hold it to what every run must keep to; the exit code as a word."""
    done = run_here(folder, arguments)
    code, written, said = done.code, done.out, done.err
    what = f"{arguments}\n{written[-500:]}\n{said[-2000:]}"
    assert code in (0, 1, 2), what
    assert "Traceback" not in said and "Warning" not in said and "this is a bug" not in said, what
    for text in (written, said):
        assert all(c.isprintable() or c == "\n" for c in text), f"a raw control character: {what!r}"
    if code == 2 and not written:
        assert said.startswith("decal: ") and said.count("\n") == 1, f"not one line: {what}"
    return f"exit {code}"
