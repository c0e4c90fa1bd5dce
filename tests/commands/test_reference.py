"""`decal evaluate --reference` and packs: what is printed follows from its numbers."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.command import BINARY, Decal

NAMED = ("--score", "p", "--label", "y", "--metric", "brier")


def test_fewer_labels_1_are_told_from_the_scores(decal: Decal, tmp_path: Path) -> None:
    """Three in ten of the shipped rows of label 1."""
    rng = np.random.default_rng(1)
    head, *rows = BINARY.read_text().splitlines(keepends=True)
    kept = [row for row in rows if row.endswith(",0\n") or rng.uniform() < 0.3]
    (tmp_path / "fewer.csv").write_text(head + "".join(kept))
    done, document = decal.text_and_json("evaluate", "fewer.csv", *NAMED, "--reference", BINARY)
    assert "no more than the share of labels 1 differs" in done.out
    (shift,) = document["reference"]["models"]
    assert shift["interval"][0] <= shift["share"] <= shift["interval"][1]
    assert shift["reference_share"] == pytest.approx(0.3165)
    assert shift["alike"] is True


def test_scores_that_mean_something_else_are_noticed(decal: Decal, tmp_path: Path) -> None:
    with BINARY.open() as file:
        rows = [f"{0.5 + (float(row['p']) - 0.5) / 4},{row['y']}\n" for row in csv.DictReader(file)]
    (tmp_path / "other.csv").write_text("p,y\n" + "".join(rows))
    assert "are not those of the reference" in decal("evaluate", "other.csv", *NAMED, "--reference", BINARY).out
