"""`decal sweep` as a user meets it; answers.txt has what the lines say."""

import re
from pathlib import Path

import pytest

from tests.helpers.command import BINARY, FIXTURES, Decal


@pytest.mark.ci
def test_a_plot_is_written_beside_the_table(decal: Decal, tmp_path: Path) -> None:
    named = (BINARY, "--score", "p", "--label", "y", "--thresholds", "0.1,0.3,0.5", "--threshold", "0.3")
    done = decal("sweep", *named, "--plot", "out.png", "--picture", "all")
    assert (done.code, done.err) == (0, "") and "Brier curves" in done.out
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["out.png"]


def test_the_lowest_curve_is_the_lowest_of_all(decal: Decal) -> None:
    tasche = (FIXTURES / "papers" / "tasche.csv", "--weight", "weight", "-s", "optimal", "-s", "naive")
    document = decal.json("sweep", *tasche, "--no-intervals")
    lowest = document["lowest"]
    assert lowest["sufficient"] == ["optimal"] and [each["model"] for each in lowest["models"]] == ["optimal", "naive"]
    curves = [report["sweep"]["curves"]["brier_calibrated"]["value"] for report in document["reports"]]
    assert lowest["value"] == pytest.approx([min(each) for each in zip(*curves, strict=True)], abs=1e-12)


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        # Nine and more round numbers lie between the ends at steps of .05, five at steps of .1.
        ("--thresholds .05:.65:.01", "0.050 0.100 0.200 0.3 0.400 0.500 0.600 0.650"),
        # Beside the user's own, ten from 10 to 30, which are 20/9 apart.
        ("--vary capacity=10:30:1 --capacity 13", "10 12 13 14 17 19 21 23 26 28 30"),
    ],
)
def test_of_many_values_the_ends_the_users_own_and_some_between_are_shown(decal: Decal, more: str, shown: str) -> None:
    done = decal("sweep", BINARY, "--score", "p", "--label", "y", "-t", "0.3", "--no-intervals", *more.split())
    assert " ".join(dict.fromkeys(re.findall(r"(?m)^(?:  |→ )([\d.]+)  ", done.out))) == shown
