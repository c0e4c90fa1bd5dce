"""Hostile input in great numbers.

python -m tests.fuzz --cases 10000 --seed 1 readers specs
"""

import argparse
import sys

from tests.fuzz import classes, files, names, numbers, readers, settings, specs, states
from tests.fuzz.harness import fuzz

SIZES = {
    readers: 54_000,
    specs: 60_000,
    settings: 30_000,
    numbers: 21_000,
    files: 21_000,
    names: 8_000,
    classes: 6_000,
    states: 6_000,
}
"""How many cases of 200,000 in all."""
FUZZERS = {module.__name__.rpartition(".")[2]: module for module in SIZES}


def main() -> int:
    """Run the fuzzers that are named, or all; 1 where one of them failed."""
    parser = argparse.ArgumentParser(description="Hostile, broken and extreme input in great numbers.")
    parser.add_argument("names", nargs="*", default=list(FUZZERS), help=", ".join(FUZZERS))
    parser.add_argument("--cases", type=int, help="of each, instead of 200,000 in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = [(name, FUZZERS[name]) for name in options.names]
    return int(any([fuzz(each.case, name, options.seed, options.cases or SIZES[each]) for name, each in chosen]))


if __name__ == "__main__":
    sys.exit(main())
