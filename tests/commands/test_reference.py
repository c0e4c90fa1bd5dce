"""`decal evaluate --reference`: what it prints follows from its numbers, and bad input is one line."""

import csv
from pathlib import Path

import numpy as np
import pytest

import decal_cli
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


def test_the_same_rows_do_not_differ(decal: Decal) -> None:
    document = decal.json("evaluate", BINARY, *NAMED, "--reference", BINARY)
    (shift,) = document["reference"]["models"]
    assert shift["psi"] == 0
    assert shift["by_scores"] == pytest.approx(shift["share"], abs=0.01)


def test_scores_that_mean_something_else_are_noticed(decal: Decal, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    with BINARY.open() as file:
        rows = list(csv.DictReader(file))
    lines = ["p,y"] + [f"{0.5 + (float(row['p']) - 0.5) / 4},{row['y']}" for row in rows]
    other.write_text("\n".join(lines) + "\n")
    done = decal("evaluate", other, *NAMED, "--reference", BINARY)
    assert "are not those of the reference" in done.out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--reference", "nowhere.csv"), "no such file"),
        (("--reference", str(BINARY), "--prevalence", "0.1"), "--prevalence"),
    ],
)
def test_what_cannot_be_compared_is_one_line(decal: Decal, more: tuple[str, ...], words: str) -> None:
    done = decal("evaluate", BINARY, *NAMED, *more)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_python_holds_frames_against_frames(tmp_path: Path) -> None:
    import pandas as pd

    known = pd.read_csv(BINARY)
    answer = decal_cli.evaluate(known[known["y"] == 0].iloc[:300], "y", score="p", metrics="brier", reference=known)
    (shift,) = answer.to_dict()["reference"]["models"]
    assert shift["share"] == 0
    assert shift["by_scores"] < 0.1
    with pytest.raises(decal_cli.DecalError, match="reference="):
        decal_cli.evaluate([0.2, 0.8], [0, 1], reference=known)
