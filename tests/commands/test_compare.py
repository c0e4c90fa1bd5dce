"""`decal compare` as a user meets it: files that are joined, and splices; answers.txt has what the lines say."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from decal_cli.data import Columns, join_files
from decal_cli.errors import DecalError
from tests.helpers.command import FOX, Decal, refusal

PAIR = (FOX, "--score", "p_profanity", "--score", "p_hatesonar", "--label", "y")
QUICK = ("--metric", "brier")
A = "id,p,y\n1,0.2,0\n2,0.9,1\n3,0.4,0\n4,0.6,1\n5,0.3,1\n6,0.1,0\n"
B = "id,p,y\n6,0.2,0\n5,0.4,1\n4,0.7,1\n3,0.5,0\n2,0.8,1\n1,0.1,0\n"


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Two files to join."""

    def write(a: str = A, b: str = B) -> tuple[Path, Path]:
        (tmp_path / "old.csv").write_text(a)
        (tmp_path / "new.csv").write_text(b)
        return Path("old.csv"), Path("new.csv")

    return write


class TestTwoFiles:
    def test_files_are_joined_on_their_ids(self, decal: Decal, files: Callable) -> None:
        done = decal("compare", *files(), "--id", "id", *QUICK, "-f", "csv")
        (row,) = csv.DictReader(io.StringIO(done.out))
        assert (row["model_a"], row["model_b"]) == ("old", "new")
        a, b, y = (0.2, 0.9, 0.4, 0.6, 0.3, 0.1), (0.1, 0.8, 0.5, 0.7, 0.4, 0.2), (0, 1, 0, 1, 1, 0)
        for name, score in (("a", a), ("b", b)):
            assert float(row[name]) == pytest.approx(sum((p - t) ** 2 for p, t in zip(score, y, strict=True)) / 6)
        both = files(A.replace("p,", "p_old,", 1), B.replace("p,", "p_new,", 1))
        done = decal("compare", *both, "--score", "p_old", "--score", "p_new", "--id", "id", *QUICK)
        assert "A = p_old, B = p_new, 6 rows" in done.out and "|n:6|" in done.out

    @pytest.mark.parametrize(
        ("a", "b", "says", "left"),
        [
            (A, B.replace("6,0.2,0\n", ""), "id '6' has no row to join in new.csv", 5),
            (A.replace("1,0.2,0\n", ""), B, "id '1' has no row to join in old.csv", 5),
            (A + "6,0.5,0\n", B, "id '6' is named more than once", 5),
            (A, B.replace("5,0.4,1", "5,0.4,0"), "id '5' has another label in each file", 5),
            (A.replace("\n2,", "\n,"), B, "id is missing", 5),
        ],
    )
    def test_rows_that_do_not_join_are_an_error_or_left_out_and_said(
        self, tmp_path: Path, files: Callable, a: str, b: str, says: str, left: int
    ) -> None:
        paths = [str(tmp_path / path) for path in files(a, b)]
        with pytest.raises(DecalError, match=says.split(" in ")[0]):
            join_files(paths, Columns(), "id")
        paired = join_files(paths, Columns(missing="drop"), "id")
        assert any(says.split(" in ")[0] in note and "dropped" in note for note in paired.dataset.notes)
        assert len(paired.ids) == left
        for model in paired.dataset.models:
            assert len(model.rows) == left

    def test_files_without_a_common_id_are_an_error(self, decal: Decal, files: Callable) -> None:
        both = files(A, "id,p,y\n" + "".join(f"{k},0.5,{k % 2}\n" for k in range(10, 16)))
        assert "share no id" in refusal(decal("compare", *both, "--id", "id", "--missing", "drop"))
        assert "no column 'key'" in refusal(decal("compare", *both, "--id", "key"))


class TestSplice:
    def test_scores_are_written_row_by_row(self, decal: Decal, tmp_path: Path) -> None:
        done = decal("compare", *PAIR, *QUICK, "--write-splice", "out.parquet")
        assert done.code == 0, done.err
        written = pq.read_table(tmp_path / "out.parquet").to_pydict()
        whole = pq.read_table(FOX, columns=["p_profanity", "p_hatesonar", "y"]).to_pydict()
        assert written["row"] == list(range(1, 1520))
        assert written["y"] == whole["y"]
        document = decal.json("compare", *PAIR, *QUICK)
        cut = document["comparison"]["splice"]
        z, first, second = cut["threshold"], whole[cut["below"]], whole[cut["above"]]
        expected = [min(z, p) + max(q - z, 0) for p, q in zip(first, second, strict=True)]
        assert written["p_splice"] == pytest.approx(expected, abs=1e-12)
        done = decal("evaluate", "out.parquet", *QUICK)
        assert done.code == 0, done.err

    def test_ids_and_their_order_are_kept(self, decal: Decal, files: Callable, tmp_path: Path) -> None:
        # A is right wherever the truth is above one half, B wherever it is below.
        rows = [(f"r{k * 7 % 400}", k % 4 / 4 + 0.125, k // 4 % 8 < 2 * (k % 4) + 1) for k in range(400)]
        a = "id,p,y\n" + "".join(f"{name},{p if p > 0.5 else 0.25},{int(y)}\n" for name, p, y in rows)
        b = "id,p,y\n" + "".join(f"{name},{p if p < 0.5 else 0.75},{int(y)}\n" for name, p, y in reversed(rows))
        done = decal("compare", *files(a, b), "--id", "id", *QUICK, "--write-splice", "out.csv")
        assert done.code == 0, done.err
        written = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
        assert [row["id"] for row in written] == [name for name, _, _ in rows]

    def test_nothing_is_overwritten_unless_forced(self, decal: Decal, tmp_path: Path) -> None:
        (tmp_path / "out.csv").write_text("mine")
        assert "is there already" in refusal(decal("compare", *PAIR, *QUICK, "--write-splice", "out.csv"))
        assert (tmp_path / "out.csv").read_text() == "mine"
        assert decal("compare", *PAIR, *QUICK, "--write-splice", "out.csv", "--force").code == 0
        assert (tmp_path / "out.csv").read_text().startswith("row,y,p_splice\n1,")
        assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize(
    ("negative", "of_a", "of_b", "said", "never"),
    [
        ("0.01", "0.038", "0.0380001", "b is clearly ahead at t = 0.038; a nowhere", "0.038 – 0.038"),
        ("0.000001", "0.00002", "0.0004", "b is clearly ahead for t from 0.00002 to 0.0004; a nowhere", "0.000 "),
    ],
    ids=["two that read the same are one", "one near zero is told from it"],
)
def test_thresholds_are_written_as_they_differ(
    decal: Decal, tmp_path: Path, negative: str, of_a: str, of_b: str, said: str, never: str
) -> None:
    """Of 200 rows of label 1, b gives a little more than a: it alone acts between the two."""
    rows = f"0.9,0.9,1\n{negative},{negative},0\n" * 200 + f"{of_a},{of_b},1\n" * 200
    (tmp_path / "near.csv").write_text(f"a,b,y\n{rows}")
    text = decal("compare", "near.csv", "-s", "a", "-s", "b", "-y", "y").out
    assert said in text and never not in text


def test_both_models_say_why_they_have_no_number(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "both.csv").write_text("a,b,y\n" + "1,0.4,0\n0.5,0,1\n0.5,0.4,0\n0.5,0.4,1\n" * 20)
    text = decal("compare", "both.csv", "-s", "a", "-s", "b", "-y", "y", "-m", "log_loss").text
    assert "20 with score 1 and label 0" in text and "b: infinite: rows that are certain and wrong: 20" in text
