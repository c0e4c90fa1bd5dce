"""`--cluster` as a user meets it."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import decal_cli as decal_api
from tests.helpers.command import Decal, refusal

COLUMNS = ("-s", "p", "-y", "y", "-t", "0.3")


@pytest.fixture
def visits(tmp_path: Path) -> str:
    """A file of 60 patients of six visits each that go right or wrong together."""
    return visits_file(tmp_path / "visits.csv", 60, "a")


def visits_file(path: Path, patients: int, prefix: str, visits: int = 6) -> str:
    rng = np.random.default_rng(patients)
    unit = np.repeat(np.arange(patients), visits)
    p = np.round(expit(rng.normal(size=len(unit))), 3)
    y = (rng.random(len(unit)) < expit(3 * p - 1.5 + 2 * rng.normal(size=patients)[unit])).astype(int)
    q = np.round(np.clip(p + rng.normal(size=len(unit)) / 10, 0, 1), 3)
    rows = [f"{prefix}{g},{a},{b},{label}" for g, a, b, label in zip(unit, p, q, y, strict=True)]
    path.write_text("\n".join(["patient,p,q,y", *rows]) + "\n")
    return str(path)


def test_every_verb_takes_it(decal: Decal, visits: str, tmp_path: Path) -> None:
    plain = decal.json("evaluate", visits, *COLUMNS, "-m", "brier")
    document = decal.json("evaluate", visits, *COLUMNS, "--cluster", "patient", "-m", "brier")
    assert document["clusters"]["count"] == 60 and document["clusters"]["effective"] == pytest.approx(60)
    assert document["signature"].endswith("|cluster:patient")
    wide, narrow = (d["metrics"]["brier"]["interval"] for d in (document, plain))
    # Rows that could have been missed are in both: 1.5 of them, as far off as those of one label are on average. They
    # come in clusters as what is left of the labels does.
    with Path(visits).open() as file:
        rows = np.array([(row["p"], row["y"]) for row in csv.DictReader(file)], dtype=float)
    left = rows[:, 1] - rows[:, 0]
    off = (left**2 - (left**2).mean()) ** 2
    missed = 1.5 * max(off[rows[:, 1] == label].mean() for label in (0, 1)) / len(rows)
    together = left.reshape(60, 6).sum(axis=1).var() / 6 / left.var()
    effect = document["clusters"]["design_effect"]
    wider = (effect * off.mean() + missed * together**2) / (off.mean() + missed)
    assert (wide[1] - wide[0]) / (narrow[1] - narrow[0]) == pytest.approx(wider**0.5 * 2.001 / 1.96, rel=1e-3)
    assert "in 60 clusters: the interval of the Brier score is" in " ".join(document["notes"])
    (tmp_path / "decal.toml").write_text('cluster = "patient"\n')
    assert "60 clusters" in decal("recommend", visits, *COLUMNS).out
    assert "60 clusters" in decal("sweep", visits, *COLUMNS, "--thresholds", ".2,.4").out
    compared = decal("compare", visits, *COLUMNS, "-s", "q", "-m", "brier").text
    assert "60 clusters" in compared and "McNemar's p, over clusters" in compared
    assert "60 clusters" in decal("fit", "platt", visits, *COLUMNS, "-o", "m.json").out
    assert decal("gate", visits, *COLUMNS, "--rule", f"upper(brier)<={wide[1] - 1e-6}").code == 1
    whole = decal_api.evaluate(visits, score="p", label="y", cluster="patient", metrics="brier")
    assert whole["brier"].interval == pytest.approx(wide)


def test_a_column_that_looks_like_one_is_named(decal: Decal, visits: str) -> None:
    assert "within the 60 values of column 'patient'" in decal("evaluate", visits, *COLUMNS, "-m", "brier").text
    assert "within the" not in decal("evaluate", visits, *COLUMNS, "--cluster", "patient", "-m", "brier").out


def test_few_clusters(decal: Decal, tmp_path: Path) -> None:
    options = (*COLUMNS, "--cluster", "patient")
    few = decal("evaluate", visits_file(tmp_path / "few.csv", 12, "a"), *options, "-m", "brier").text
    assert "intervals use t quantiles and are rough: there are only 12 clusters" in few
    fewer = visits_file(tmp_path / "fewer.csv", 4, "a", 30)
    document = decal.json("evaluate", fewer, *options, "-m", "brier")
    assert document["metrics"]["brier"]["interval"] is None
    assert any("no intervals: they need 5 clusters" in note for note in document["notes"])
    for line in (("recommend",), ("sweep", "--thresholds", ".2,.4")):
        assert decal(*line, fewer, *options).code == 0


def test_fit_keeps_clusters_apart(decal: Decal, visits: str, tmp_path: Path) -> None:
    lines = Path(visits).read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join(lines[:200]) + "\n")
    (tmp_path / "two.csv").write_text("\n".join([lines[0], *lines[200:]]) + "\n")
    line = refusal(decal("fit", "platt", "one.csv", *COLUMNS, "--cluster", "patient", "--test", "two.csv", "-o", "m"))
    assert "--test two.csv: cluster 'a33' is in the training file as well (1 such cluster)" in line
