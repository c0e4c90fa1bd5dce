"""`decal evaluate --pack`: usual names, what stands below the measures, and one line for what cannot be done."""

from pathlib import Path

import pytest

from tests.helpers.command import BINARY, Decal

NAMED = ("evaluate", BINARY, "--score", "p", "--label", "y", "--threshold", "0.3")


def test_clinical_has_its_usual_names_and_scores_by_outcome(decal: Decal) -> None:
    done = decal(*NAMED, "--pack", "clinical")
    assert done.code == 0
    for words in ("C-statistic", "O/E ratio", "Standardised net benefit", "Scores by outcome", "TRIPOD+AI", "23a"):
        assert words in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    document = decal.json(*NAMED, "--pack", "clinical")
    assert document["pack"] == {"name": "clinical"}
    assert sum(each["rows"] for each in document["by_outcome"]) == document["rows"]


def test_credit_measures_are_those_of_the_ranking(decal: Decal) -> None:
    document = decal.json(*NAMED, "--pack", "credit")
    values = {key: result["value"] for key, result in document["metrics"].items()}
    assert values["gini"] == pytest.approx(2 * values["auc"] - 1, abs=1e-12)
    assert values["ks"] == pytest.approx(0.3733, abs=1e-4)


def test_credit_has_psi_in_its_table_and_says_what_it_needs(decal: Decal, tmp_path: Path) -> None:
    without = decal(*NAMED, "--pack", "credit")
    assert "– psi: needs a reference: evaluate --reference" in without.out
    train = tmp_path / "train.csv"
    train.write_text("".join(BINARY.read_text().splitlines(keepends=True)[:901]))
    against = (*NAMED, "--pack", "credit", "--reference", train)
    done = decal(*against)
    assert done.code == 0
    table = done.out.split("Against the reference")[0]
    document = decal.json(*against)
    (shift,) = document["reference"]["models"]
    assert document["metrics"]["psi"]["value"] == shift["psi"] > 0
    assert any(
        line.startswith("PSI against the reference") and f"{shift['psi']:.4f}"[1:] in line
        for line in table.splitlines()
    )
    assert "above 0.25 as another one" in " ".join(table.split())


def test_fairness_compares_groups_and_draws_them(decal: Decal, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "groups.svg"
    done = decal(*NAMED, "--group", "group", "--pack", "fairness", "--plot", picture)
    assert done.code == 0
    assert "Groups that are apart" in done.out
    assert picture.read_bytes().startswith(b"<?xml")
    document = decal.json(*NAMED, "--group", "group", "--pack", "fairness")
    reports = {report["group"]: report["metrics"] for report in document["reports"]}
    for gap in document["pack"]["gaps"]:
        between = reports[gap["high"]][gap["metric"]]["value"] - reports[gap["low"]][gap["metric"]]["value"]
        assert gap["difference"] == pytest.approx(between, abs=1e-12)
        assert gap["clear"] == (gap["interval"][0] > 0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--pack", "clinic"), "clinical, credit, fairness"),
        (("--pack", "fairness"), "--group"),
        (("--pack", "credit", "--metric", "brier"), "--metric"),
        (("--pack", "credit", "--all"), "--all"),
        (("--pack", "credit", "--plot", "x.png"), "--pack fairness"),
        (("--plot", "x.png"), "--pack fairness"),
    ],
)
def test_what_cannot_be_done_is_one_line(decal: Decal, more: tuple[str, ...], words: str) -> None:
    done = decal(*NAMED, *more)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1
