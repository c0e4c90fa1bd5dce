"""`decal sweep` as a user meets it."""

from pathlib import Path

import pytest

from tests.helpers.command import FIXTURES, Decal

NAMED = (FIXTURES / "binary_n2000.csv", "--score", "p", "--label", "y")
GRID = ("--thresholds", "0.1,0.3,0.5")


def test_the_table_is_readable(decal: Decal) -> None:
    done = decal("sweep", *NAMED, "--features", "x*", "--prior", "beta:2,8")
    assert done.code == 0, done.err
    for words in ("u_delta = 1", "Brier score: 0.1970 as it is, 0.1799 calibrated", "miscalibration, 0.0170",
                  "held-out", "prior",
                  "▁", "true positives per row", "sweep:0.01..0.99x99|prior:beta:2,8"):  # fmt: skip
        assert words in done.out.replace("|\n", "|"), words
    assert max(len(line) for line in done.out.splitlines() if not line.startswith("/")) <= 100
    assert sum(line.startswith(("0.500", "0.010", "0.990", "0.510")) for line in done.out.splitlines()) == 3 * 6


def test_a_plot_is_written_beside_the_table(decal: Decal, tmp_path: Path) -> None:
    done = decal("sweep", *NAMED, *GRID, "--plot", "out.png", "--picture", "all", "--threshold", "0.3")
    assert done.code == 0 and "Brier curves" in done.out
    assert done.err == ""
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["out.png"]


def test_a_picture_in_the_terminal(decal: Decal) -> None:
    done = decal("sweep", *NAMED, "--plot", "-", "--picture", "brier", "--picture", "waterfall", "-t", "0.3")
    assert "o as it is" in done.out and "score as it is  -134.3  ███" in done.out and "└──" in done.out


TASCHE = (FIXTURES / "papers" / "tasche.csv", "--weight", "weight", "-s", "optimal", "-s", "naive", "--no-intervals")


def test_models_are_held_against_the_lowest_curve_of_all(decal: Decal) -> None:
    done = decal("sweep", *TASCHE, "--thresholds", "0.02:0.98:0.02")
    assert "Calibrated Brier curves against the lowest of them" in done.out
    assert "optimal is not beaten and may be sufficient; the other is not." in done.out.replace("\n", " ")
    document = decal.json("sweep", *TASCHE)
    lowest = document["lowest"]
    assert lowest["sufficient"] == ["optimal"] and [each["model"] for each in lowest["models"]] == ["optimal", "naive"]
    curves = [report["sweep"]["curves"]["brier_calibrated"]["value"] for report in document["reports"]]
    assert lowest["value"] == pytest.approx([min(each) for each in zip(*curves, strict=True)], abs=1e-12)


def test_models_of_different_rows_have_no_lowest_curve(decal: Decal, tmp_path: Path) -> None:
    rows = ["p,q,y", *(f"{k / 60},{'' if k == 7 else k / 70},{k % 3 > 0:d}" for k in range(60))]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(rows))
    line = ("sweep", path, "-s", "p", "-s", "q", "--missing", "drop", "--no-intervals")
    assert "The lowest curve of all models is not shown: the models do not have the same rows." in decal(*line).out
    assert decal.json(*line)["lowest"] is None
