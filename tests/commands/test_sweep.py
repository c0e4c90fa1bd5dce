"""`decal sweep` as a user meets it; answers.txt has what the lines say."""

from pathlib import Path

import pytest

from tests.helpers.command import BINARY, FIXTURES, Decal


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
