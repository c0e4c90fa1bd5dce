"""Hostile names in every place that others can name, through every command and format.

    python -m tests.fuzz.names --seconds 300 --seed 1

A run ends with 0, 1 or 2, never with a bug, a traceback or a warning. An error is one line. Nothing that is written
holds what a terminal, a CI system, a browser, a Markdown page or a spreadsheet would act on.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.helpers.hostile_runs import OFTEN, SELDOM, run_cases


def main() -> int:
    parser = argparse.ArgumentParser(description="Hostile names through every command and format.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="*", default=[*OFTEN * 5, *SELDOM])
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    outcomes, failures = run_cases(options.seed, options.commands, lambda number: time.monotonic() < end)
    print(*(each.encode("ascii", "backslashreplace").decode() for each in failures), sep="\n")
    print(f"{outcomes.total()} cases: {dict(sorted(outcomes.items()))}, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
