"""What the tests of `fit` and `apply` share: columns by name, halves of the shipped data, and models fitted to them."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.helpers.command import BINARY, FOX, run_here

P_AND_Y = ("--score", "p", "--label", "y")
PROFANITY = ("--score", "p_profanity", "--label", "y", "--features", "x*", "--threshold", "0.3")


def half(path: Path, part: slice) -> None:
    """One half of the shipped real data, dealt at random."""
    table = pq.read_table(FOX)
    pq.write_table(table.take(np.random.default_rng(2).permutation(len(table))[part]), path)


def run(folder: Path, *arguments: object) -> None:
    done = run_here(folder, arguments)
    assert done.code == 0, done.err


def fit_models(folder: Path) -> None:
    """Write train.parquet and other.parquet, the halves, and isotonic.json and glar.json."""
    middle = len(pq.read_table(FOX)) // 2
    half(folder / "train.parquet", slice(0, middle))
    half(folder / "other.parquet", slice(middle, None))
    run(folder, "fit", "isotonic", BINARY, *P_AND_Y, "-o", "isotonic.json")
    run(folder, "fit", "glar", "train.parquet", *PROFANITY, "-o", "glar.json")
