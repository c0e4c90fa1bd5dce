"""What `decal evaluate` prints, its packs, and what it can say of few rows."""

from pathlib import Path

import pytest

from tests.helpers.command import BINARY, FIXTURES, Decal

NAMED = (BINARY, "--score", "p", "--label", "y")


class TestEvaluate:
    def test_the_table_names_files_columns_task_and_values(self, decal: Decal) -> None:
        done = decal("evaluate", *NAMED, "--threshold", "0.3")
        assert done.code == 0
        for words in (
            "2,000 rows",
            "score p; label y",
            "act when score >= 0.3 (t*)",
            "Brier score",
            ".197",
            "a false alarm costs 0.3, a miss 0.7",
            "decal:0.1",
        ):
            assert words in done.out
        assert done.out.startswith("Acting on p is worth -134.3 [-144.1, -124.5] per 1,000 decisions")
        text = done.text
        assert "is unknown without --features: at most 132.7, which is an upper limit and not an estimate" in text
        listed = decal("evaluate", *NAMED, "--threshold", "0.3", "--all", "--no-intervals").out
        assert "Calibration regret" in listed and "needs features" in listed
        assert max(map(len, done.out.splitlines())) <= 100

    def test_many_models_fit_the_width(self, decal: Decal) -> None:
        done = decal(
            "evaluate", FIXTURES / "fox_news.parquet", "--score", "p_*", "--label", "y", "--missing", "drop",
            "--no-intervals", COLUMNS="60",
        )  # fmt: skip
        assert done.code == 0
        table = [line for line in done.out.splitlines() if not line.startswith(("decal:", "fixtures", "/"))]
        assert max(map(len, table)) <= 60
        assert "p_svm_waseem: dropped 10 of 1,519 rows (missing score)" in done.out


PACKED = ("evaluate", BINARY, "--score", "p", "--label", "y", "--threshold", "0.3")


def test_clinical_has_its_usual_names_and_scores_by_outcome(decal: Decal) -> None:
    done = decal(*PACKED, "--pack", "clinical")
    assert done.code == 0
    for words in ("C-statistic", "O/E ratio", "Standardised net benefit", "Scores by outcome", "TRIPOD+AI", "23a"):
        assert words in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    document = decal.json(*PACKED, "--pack", "clinical")
    assert document["pack"] == {"name": "clinical"}
    assert sum(each["rows"] for each in document["by_outcome"]) == document["rows"]


def test_credit_measures_are_those_of_the_ranking(decal: Decal) -> None:
    document = decal.json(*PACKED, "--pack", "credit")
    values = {key: result["value"] for key, result in document["metrics"].items()}
    assert values["gini"] == pytest.approx(2 * values["auc"] - 1, abs=1e-12)
    assert values["ks"] == pytest.approx(0.3733, abs=1e-4)


def test_credit_has_psi_in_its_table_and_says_what_it_needs(decal: Decal, tmp_path: Path) -> None:
    without = decal(*PACKED, "--pack", "credit")
    assert "– psi: needs a reference: evaluate --reference" in without.out
    train = tmp_path / "train.csv"
    train.write_text("".join(BINARY.read_text().splitlines(keepends=True)[:901]))
    against = (*PACKED, "--pack", "credit", "--reference", train)
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
    done = decal(*PACKED, "--group", "group", "--pack", "fairness", "--plot", picture)
    assert done.code == 0
    assert "Groups that are apart" in done.out
    assert picture.read_bytes().startswith(b"<?xml")
    document = decal.json(*PACKED, "--group", "group", "--pack", "fairness")
    reports = {report["group"]: report["metrics"] for report in document["reports"]}
    for gap in document["pack"]["gaps"]:
        between = reports[gap["high"]][gap["metric"]]["value"] - reports[gap["low"]][gap["metric"]]["value"]
        assert gap["difference"] == pytest.approx(between, abs=1e-12)
        assert gap["clear"] == (gap["interval"][0] > 0)


@pytest.mark.parametrize("content", [b"p,y\n0.3,1\n", b"p,y\n0.3,1\n0.2,1\n0.2,1\n", b"p,y\n0.5,0\n0.5,0\n"], ids=str)
def test_one_row_or_one_class_prints_what_it_can(decal: Decal, content: bytes) -> None:
    for command in ("evaluate", "recommend"):
        document = decal.json(command, "-t", "0.3", stdin=content)
        assert document["metrics"]["brier"]["value"] is not None
        assert "both classes" in document["metrics"]["auc"]["reason"]
        assert decal(command, "-t", "0.3", stdin=content).code == 0
