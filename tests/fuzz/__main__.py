"""Hostile input in great numbers.

python -m tests.fuzz --cases 10000 --seed 1 readers specs
"""

import argparse
import sys

from tests.fuzz import classes, files, names, numbers, readers, settings, specs, states
from tests.fuzz.harness import fuzz

FUZZERS = {
    each.__name__.rpartition(".")[2]: each.case
    for each in (readers, specs, settings, numbers, files, names, classes, states)
}
SIZES = {
    "readers": 54_000,
    "specs": 60_000,
    "settings": 30_000,
    "numbers": 21_000,
    "files": 21_000,
    "names": 8_000,
    "classes": 6_000,
    "states": 6_000,
}


def main() -> int:
    """Run the fuzzers that are named, or all; 1 where one of them failed."""
    parser = argparse.ArgumentParser(description="Hostile, broken and extreme input in great numbers.")
    parser.add_argument("names", nargs="*", default=list(FUZZERS), help=", ".join(FUZZERS))
    parser.add_argument("--cases", type=int, help="of each, instead of 200,000 in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    return int(any([fuzz(FUZZERS[name], name, options.seed, options.cases or SIZES[name]) for name in options.names]))


if __name__ == "__main__":
    sys.exit(main())
