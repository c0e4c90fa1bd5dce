"""`decal evaluate --reference`: what it prints follows from its numbers, and bad input is one line."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.command import BINARY, Decal

NAMED = ("--score", "p", "--label", "y", "--metric", "brier")


def rewritten(path: Path, keep: float, seed: int = 1) -> Path:
    """The shipped rows with so much of those of label 1."""
    rng = np.random.default_rng(seed)
    with BINARY.open() as file:
        rows = list(csv.reader(file))
    kept = [row for row in rows[1:] if row[-1] == "0" or rng.uniform() < keep]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], *kept])
    return path


def test_fewer_labels_1_are_told_from_the_scores(decal: Decal, tmp_path: Path) -> None:
    fewer = rewritten(tmp_path / "fewer.csv", 0.3)
    done = decal("evaluate", fewer, *NAMED, "--reference", BINARY)
    assert done.code == 0
    assert "no more than the share of labels 1 differs" in done.out
    document = decal.json("evaluate", fewer, *NAMED, "--reference", BINARY)
    (shift,) = document["reference"]["models"]
    assert shift["interval"][0] <= shift["share"] <= shift["interval"][1]
    assert shift["reference_share"] == pytest.approx(0.3165)
    assert shift["alike"] is True


def test_scores_that_mean_something_else_are_noticed(decal: Decal, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    with BINARY.open() as file:
        rows = list(csv.DictReader(file))
    lines = ["p,y"] + [f"{0.5 + (float(row['p']) - 0.5) / 4},{row['y']}" for row in rows]
    other.write_text("\n".join(lines) + "\n")
    done = decal("evaluate", other, *NAMED, "--reference", BINARY)
    assert "are not those of the reference" in done.out
