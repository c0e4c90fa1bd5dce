"""What `decal evaluate` prints, and one number whatever file the rows come from."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.helpers.command import BINARY, FIXTURES, Decal, valid_json

NAMED = (BINARY, "--score", "p", "--label", "y")
OF_FEATURES = ("-m", "grouping_loss", "-m", "gain_beyond", "-m", "gain_recalibration")


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


class TestOneNumberWhateverTheFile:
    """The same rows give byte-identical metrics, intervals and cross-fitted figures however they come."""

    @pytest.fixture(scope="class")
    @classmethod
    def same_rows(cls, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
        import numpy as np

        folder = tmp_path_factory.mktemp("same")
        table = pyarrow.csv.read_csv(BINARY)
        columns = ["p", "y", "weight", "group", "x1", "x2", "x3"]
        table = table.select(columns).slice(0, 200)
        for name in ("p", "weight", "x1", "x2", "x3"):  # exactly representable in both widths
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.float32()))
        shuffled = table.take(pa.array(np.random.default_rng(1).permutation(len(table))))
        wide = shuffled.cast(
            pa.schema([(f.name, pa.float64() if f.type == pa.float32() else f.type) for f in table.schema])
        )
        pq.write_table(table, folder / "narrow.parquet")
        pq.write_table(wide.slice(0, 100), folder / "part1.parquet")
        pyarrow.csv.write_csv(wide.slice(100), folder / "part2.csv")
        (folder / "all.csv.gz").write_bytes(gzip.compress(_csv(wide)))
        names = (["narrow.parquet"], ["part1.parquet", "part2.csv"], ["all.csv.gz"])
        return {"+".join(files): [folder / name for name in files] for files in names}

    @pytest.mark.parametrize("more", [("--weight", "weight"), ("--features", "x*", *OF_FEATURES)], ids=str)
    def test_metrics_are_byte_identical(self, decal: Decal, same_rows: dict, more: tuple[str, ...]) -> None:
        distinct = set()
        for files in same_rows.values():
            done = decal("evaluate", *files, "-s", "p", "-y", "y", "--threshold", "0.3", "--format", "json", *more)
            document = valid_json(done.out)
            entries = document.get("reports", [document])
            distinct.add(json.dumps([entry["metrics"] for entry in entries]))
        assert len(distinct) == 1


def _csv(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


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
