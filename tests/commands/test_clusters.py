"""`--cluster` as a user meets it; answers.txt has what every verb says."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import decal_cli as decal_api
from tests.helpers.command import Decal, refusal
from tests.helpers.seeded import write_visits

COLUMNS = ("-s", "p", "-y", "y", "-t", "0.3")
CLUSTERED = ("--cluster", "patient")


@pytest.fixture(autouse=True)
def visits(tmp_path: Path) -> Path:
    """60 patients of six visits each."""
    write_visits(tmp_path / "visits.csv", 60, 6)
    return tmp_path / "visits.csv"


def test_an_interval_is_wider_by_the_effect_of_the_design(decal: Decal, visits: Path) -> None:
    plain = decal.json("evaluate", visits, *COLUMNS, "-m", "brier")
    document = decal.json("evaluate", visits, *COLUMNS, "--cluster", "patient", "-m", "brier")
    assert document["clusters"]["count"] == 60 and document["clusters"]["effective"] == pytest.approx(60)
    wide, narrow = (d["metrics"]["brier"]["interval"] for d in (document, plain))
    # Rows that could have been missed are in both: 1.5 of them, as far off as those of one label are on average. They
    # come in clusters as what is left of the labels does.
    with visits.open() as file:
        rows = np.array([(row["p"], row["y"]) for row in csv.DictReader(file)], dtype=float)
    left = rows[:, 1] - rows[:, 0]
    off = (left**2 - (left**2).mean()) ** 2
    missed = 1.5 * max(off[rows[:, 1] == label].mean() for label in (0, 1)) / len(rows)
    together = left.reshape(60, 6).sum(axis=1).var() / 6 / left.var()
    effect = document["clusters"]["design_effect"]
    wider = (effect * off.mean() + missed * together**2) / (off.mean() + missed)
    assert (wide[1] - wide[0]) / (narrow[1] - narrow[0]) == pytest.approx(wider**0.5 * 2.001 / 1.96, rel=1e-3)
    whole = decal_api.evaluate(visits, score="p", label="y", cluster="patient", metrics="brier")
    assert whole["brier"].interval == pytest.approx(wide)


def test_the_note_on_few_clusters_compares_standard_errors(decal: Decal, tmp_path: Path) -> None:
    """The t quantiles of few clusters make an interval wider than the design effect says."""
    write_visits(tmp_path / "few.csv", 6, 60)
    alone, together = (decal.json("evaluate", "few.csv", *COLUMNS, "-m", "brier", *more) for more in ((), CLUSTERED))
    wide, narrow = (float(np.ptp(each["metrics"]["brier"]["interval"])) for each in (together, alone))
    times = together["clusters"]["design_effect"] ** 0.5
    assert wide / narrow > 1.2 * times
    compared = f"{times:.1f} times larger" if times >= 1 else f"{1 / times:.1f} times smaller"
    assert f"the standard error of the Brier score is {compared} than" in together["notes"][0]


def test_fit_keeps_clusters_apart_as_settings_name_them(decal: Decal, visits: Path, tmp_path: Path) -> None:
    lines = visits.read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join(lines[:200]) + "\n")
    (tmp_path / "two.csv").write_text("\n".join([lines[0], *lines[200:]]) + "\n")
    (tmp_path / "decal.toml").write_text('cluster = "patient"\n')
    line = refusal(decal("fit", "platt", "one.csv", *COLUMNS, "--test", "two.csv", "-o", "m"))
    assert "--test two.csv: cluster 'a33' is in the training file as well (1 such cluster)" in line


def test_four_clusters_are_asked_for_clusters_and_tell_no_lead_from_noise(decal: Decal, tmp_path: Path) -> None:
    write_visits(tmp_path / "four.csv", 4, 90)
    line = ("four.csv", "-y", "y", "-t", "0.3", "--cluster", "patient")
    document = decal.json("evaluate", *line, "-s", "p", "--features", "q", "-m", "gain_beyond", "-m", "kendall")
    reasons = {each["reason"] for each in document["metrics"].values()}
    assert reasons == {"needs at least 5 clusters to learn from some and judge on others"}
    advised = decal("recommend", *line, "-s", "p").out
    assert "Add clusters: recalibration needs at least 5 clusters" in advised
    for more in (), ("--vary", "prevalence=0.1:0.5:0.2"):
        swept = decal("sweep", *line, "-s", "p", *more)
        assert swept.code == 0 and "[" not in swept.out
    compared = decal("compare", *line, "-s", "p", "-s", "q").out
    assert "B - A with no intervals" in compared
    assert "Thresholds: where one model is clearly ahead is unknown, since there are no intervals." in compared
    assert "Splice: none: there are no intervals" in compared and "noise" not in compared.split("Splice")[0]


def test_groups_of_clusters_say_that_their_rows_are_effective_ones(decal: Decal, visits: Path) -> None:
    lines = visits.read_text().splitlines()
    grouped = [f"{row},{'uv'[k // 6 % 2]}" for k, row in enumerate(lines[1:])]
    visits.write_text("\n".join([f"{lines[0]},g", *grouped]) + "\n")
    line = ("evaluate", visits, *COLUMNS, "--group", "g", "--pack", "fairness")
    said = "rows: those of the denominator, of rates and rankings the effective ones"
    assert said in " ".join(decal(*line, "--cluster", "patient").out.split())
    assert "rows: those of the denominator\n" in decal(*line).out


@pytest.mark.ci
def test_rows_to_collect_come_in_more_clusters(decal: Decal, visits: Path, tmp_path: Path) -> None:
    """Six visits of each patient: more visits of the same patients would say little more."""
    named, patients = ("--features", "q"), ("--cluster", "patient")
    assert decal("report", "--card", visits, *COLUMNS, *named, *patients, "-o", "card.md").code == 0
    plan = decal("plan", "--pilot", visits, *COLUMNS[:4], *patients, "--rule", "auc>=.65").out
    for text in (
        decal("recommend", visits, *COLUMNS, *named, *patients).out,
        (tmp_path / "card.md").read_text(),
        decal("gate", visits, *COLUMNS, *patients, "--rule", "auc>=.65").out,
        plan,
    ):
        found = re.search(r"([0-9,]+)( rows)?( like these)? in about ([0-9,]+) clusters", " ".join(text.split()))
        assert found is not None, text
        rows, clusters = (int(found[at].replace(",", "")) for at in (1, 4))
        # Both are rounded up to two digits.
        assert clusters == pytest.approx(rows / 6, rel=0.1) and clusters >= rows / 6
    assert "those, and to come in more clusters of about as many rows." in " ".join(plan.split())
    alone = decal("gate", visits, *COLUMNS, "--rule", "auc>=.65").out
    assert "would" in alone and "clusters" not in alone


def test_a_gate_names_the_rows_that_a_plan_names(decal: Decal, visits: Path) -> None:
    """Of more clusters the t quantile is smaller, which counts where there are few of them today."""
    few = visits.with_name("few.csv")
    few.write_text("".join(visits.read_text().splitlines(keepends=True)[:181]))
    asked = (*COLUMNS[:4], "--cluster", "patient", "--rule", "brier<=.27", "--rule", "auc>=.6")
    plans = decal.json("plan", "--pilot", few, *asked)["plans"]
    rules = decal.json("gate", few, *asked)["gates"]
    assert [each["rows_needed"] for each in rules] == [each["rows"][0] for each in plans]
