"""Hostile names in every place that others can name, through every command and format.

A run ends with 0, 1 or 2, never with a bug, a traceback or a warning. An error is one line. Nothing that is written
holds what a terminal, a CI system, a browser, a Markdown page or a spreadsheet would act on.
"""

import random
from pathlib import Path

from tests.helpers.hostile_runs import WRITES, run_case

_SLOW = ("recommend", "report", "study")
_SLOW_SHARE = 0.04
_FAST_LINES, _SLOW_LINES = (
    [(command, form) for command, forms in WRITES.items() for form in forms if (command in _SLOW) == slow]
    for slow in (False, True)
)


def case(rng: random.Random, folder: Path) -> str:
    """One run of one command; of those that take a second, few."""
    lines = _SLOW_LINES if rng.random() < _SLOW_SHARE else _FAST_LINES
    return run_case(rng, *rng.choice(lines), folder)
