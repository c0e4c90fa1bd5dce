"""The command line as a user meets it."""

import gzip
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.helpers.command import BINARY, FIXTURES, Decal, refusal, valid_json

NAMED = (BINARY, "--score", "p", "--label", "y")
TINY = b"p,y\n0.1,0\n0.9,1\n0.4,0\n0.6,1\n0.3,1\n0.2,0\n"


class TestEvaluate:
    def test_the_table_names_files_columns_task_and_values(self, decal: Decal) -> None:
        done = decal("evaluate", *NAMED, "--threshold", "0.3")
        assert done.code == 0
        for words in (
            "2,000 rows",
            "score p; label y",
            "t* = 0.3",
            "Brier score",
            ".1970",
            "Calibration regret",
            "decal:0.1",
        ):
            assert words in done.out
        assert "needs features" in done.out
        assert "worst case, not an estimate" in done.out
        assert max(map(len, done.out.splitlines())) <= 100

    @pytest.mark.parametrize("width", [60, 100, 200])
    def test_many_models_fit_the_width(self, decal: Decal, width: int) -> None:
        done = decal(
            "evaluate", FIXTURES / "fox_news.parquet", "--score", "p_*", "--label", "y", "--missing", "drop",
            "--no-intervals", COLUMNS=str(width),
        )  # fmt: skip
        assert done.code == 0
        table = [line for line in done.out.splitlines() if not line.startswith(("decal:", "fixtures", "/"))]
        assert max(map(len, table)) <= width
        assert "p_svm_waseem: 10 of 1519 rows left out: score missing" in done.out

    def test_json_is_valid_and_holds_every_metric(self, decal: Decal) -> None:
        from decal_cli.metrics import METRICS

        document = valid_json(decal("evaluate", *NAMED, "--threshold", "0.3", "--format", "json").out)
        assert set(document["metrics"]) == set(METRICS)
        assert document["metrics"]["grouping_loss"] == {
            "value": None, "interval": None, "reason": "needs features: name the columns with --features",
        }  # fmt: skip
        assert document["inputs"][0]["rows"] == 2000

    def test_json_of_groups_holds_whole_reports(self, decal: Decal) -> None:
        document = valid_json(decal("evaluate", *NAMED, "--group", "group", "--no-intervals", "--format", "json").out)
        assert [entry["group"] for entry in document["reports"]] == [None, "A", "B"]
        for entry in document["reports"]:
            valid_json(json.dumps(entry))
        values = {entry["group"]: entry["metrics"]["brier"]["value"] for entry in document["reports"]}
        assert values["A"] == pytest.approx(0.1953246209, abs=1e-9)
        assert values["B"] == pytest.approx(0.2001500155, abs=1e-9)

    def test_a_metric_can_be_picked_and_parametrised(self, decal: Decal) -> None:
        done = decal("evaluate", *NAMED, "--metric", "ece(bins=10)", "-m", "brier", "--no-intervals", "-f", "csv")
        lines = done.out.splitlines()
        assert lines[0] == "model,group,metric,value,low,high,reason"
        assert lines[1].startswith("p,,ece(bins=10),0.09378221")
        assert lines[2].startswith("p,,brier,0.19695801")

    def test_markdown_is_a_table(self, decal: Decal) -> None:
        out = decal("evaluate", *NAMED, "--format", "markdown").out
        assert "| Brier score (`brier`) | ↓ | .1970 [.1854, .2085] |" in out

    def test_the_format_does_not_change_when_piped_and_has_no_colour(self, decal: Decal) -> None:
        assert "\x1b[" not in decal("evaluate", *NAMED).out


class TestOneNumberWhateverTheFile:
    """The same rows give byte-identical metrics, intervals and cross-fitted figures however they come."""

    @pytest.fixture(scope="class")
    @classmethod
    def same_rows(cls, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
        import numpy as np

        folder = tmp_path_factory.mktemp("same")
        table = pyarrow.csv.read_csv(BINARY)
        columns = ["p", "y", "weight", "group", "x1", "x2", "x3"]
        table = table.select(columns).slice(0, 800)
        for name in ("p", "weight", "x1", "x2", "x3"):  # exactly representable in both widths
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.float32()))
        shuffled = table.take(pa.array(np.random.default_rng(1).permutation(len(table))))
        wide = shuffled.cast(
            pa.schema([(f.name, pa.float64() if f.type == pa.float32() else f.type) for f in table.schema])
        )
        pq.write_table(table, folder / "narrow.parquet")
        pq.write_table(wide, folder / "wide.parquet")
        pq.write_table(wide.slice(0, 300), folder / "part1.parquet")
        pyarrow.csv.write_csv(wide.slice(300), folder / "part2.csv")
        (folder / "all.csv.gz").write_bytes(gzip.compress(_csv(wide)))
        names = (["narrow.parquet"], ["wide.parquet"], ["part1.parquet", "part2.csv"], ["all.csv.gz"])
        return {"+".join(files): [folder / name for name in files] for files in names}

    @pytest.mark.parametrize("more", [("--weight", "weight"), ("--group", "group", "--features", "x*")], ids=str)
    def test_metrics_are_byte_identical(self, decal: Decal, same_rows: dict, more: tuple[str, ...]) -> None:
        found = set()
        for files in same_rows.values():
            done = decal("evaluate", *files, "-s", "p", "-y", "y", "--threshold", "0.3", "--format", "json", *more)
            document = valid_json(done.out)
            entries = document.get("reports", [document])
            found.add(json.dumps([entry["metrics"] for entry in entries]))
        assert len(found) == 1


def _csv(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


class TestRecommend:
    def test_the_walk_is_told_with_numbers_and_ends_in_an_action(self, decal: Decal) -> None:
        done = decal("recommend", *NAMED, "--features", "x*", "--threshold", "0.3")
        assert done.code == 0
        for words in (
            "1. ",
            "2. ",
            "per 1,000 decisions",
            "gain of recalibration",
            "→ Post-train",
            "ECE is .0982 whatever t* is",
        ):
            assert words in done.out, words

    def test_json_holds_the_path_and_every_metric(self, decal: Decal) -> None:
        document = valid_json(decal("recommend", *NAMED, "--features", "x*", "-t", "0.3", "-f", "json").out)
        advice = document["recommendation"]
        assert advice["action"] == "post-train"
        assert [step["answer"] for step in advice["path"]] == ["yes", "no", "unknown"]
        assert advice["ece_advice"] == "recalibrate"
        assert "spiegelhalter_z" in document["metrics"]

    def test_a_cost_above_the_gain_advises_against(self, decal: Decal) -> None:
        costly = decal("recommend", *NAMED, "--features", "x*", "-t", "0.3", "--cost", "0.5", "-f", "json")
        assert valid_json(costly.out)["recommendation"]["action"] == "do-not-post-train"
        total = decal(
            "recommend", *NAMED, "--features", "x*", "-t", "0.3", "--cost", "1", "--decisions", "1e6", "-f", "json"
        )
        assert valid_json(total.out)["recommendation"]["action"] == "post-train"

    def test_it_works_from_a_pipe_and_says_which_columns_it_took(self, decal: Decal) -> None:
        done = decal("recommend", "--threshold", "0.3", stdin=TINY)
        assert done.code == 0
        assert "score p (found by its usual name); label y (found by its usual name)" in done.out

    def test_it_works_bare_in_a_folder_with_settings(self, decal: Decal, tmp_path: Path) -> None:
        (tmp_path / "preds.csv").write_bytes(TINY)
        (tmp_path / "decal.toml").write_text('input = "preds.csv"\n')
        assert decal("recommend", "--threshold", "0.3").code == 0
        inside = tmp_path / "deeper"
        inside.mkdir()
        assert decal("recommend", "--threshold", "0.3", cwd=inside).code == 0

    def test_it_explains_itself_when_it_has_nothing_to_read(self, decal: Decal) -> None:
        line = refusal(decal("recommend", "--threshold", "0.3"))
        assert "cat preds.csv | decal" in line

    def test_it_asks_for_the_decision(self, decal: Decal) -> None:
        assert "--threshold" in refusal(decal("recommend", *NAMED))

    @pytest.mark.parametrize(
        "wish", [("--cost", "x"), ("--cost", "-1"), ("--cost", "magic=1"), ("--tolerance", "-1"), ("--decisions", "5")]
    )
    def test_a_wish_that_makes_no_sense_is_one_line(self, decal: Decal, wish: tuple[str, str]) -> None:
        refusal(decal("recommend", *NAMED, "-t", "0.3", *wish))


class TestGate:
    @pytest.mark.parametrize(
        ("rules", "code"),
        [
            (["brier<=0.2"], 0),
            (["brier<=0.2", "auc>=0.9"], 1),
            (["regret<=0.02"], 2),
            (["regret<=0.02", "auc>=0.9"], 2),
            (["log_loss<=0.7", "upper(regret_calibration)<=0.02", "ece(bins=20)<=0.2"], 0),
        ],
    )
    def test_exit_codes(self, decal: Decal, rules: list[str], code: int) -> None:
        arguments = [part for rule in rules for part in ("--rule", rule)]
        assert decal("gate", *NAMED, "--threshold", "0.3", *arguments).code == code

    def test_rules_from_the_settings_and_a_baseline(self, decal: Decal, tmp_path: Path) -> None:
        assert decal("evaluate", *NAMED, "-f", "json", "-o", "report.json").code == 0
        valid_json((tmp_path / "report.json").read_text())
        (tmp_path / "decal.toml").write_text(
            'gates = ["brier<=baseline+0.001"]\nbaseline = "report.json"\nscore = "p"\nlabel = "y"\n'
        )
        assert decal("gate", BINARY).code == 0
        assert decal("gate", BINARY, "--rule", "brier<baseline").code == 1

    def test_github_junit_and_json(self, decal: Decal) -> None:
        rules = ("--rule", "brier<=0.1", "--rule", "auc>=0.5", "--rule", "regret<=1")
        github = decal("gate", *NAMED, *rules, "--format", "github").out.splitlines()
        assert github[0].startswith("::error title=decal gate brier<=0.1::")
        assert github[1].startswith("::notice ")
        assert "cannot judge" in github[2]
        suite = ElementTree.fromstring(decal("gate", *NAMED, *rules, "--format", "junit").out.encode())[0]
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
        gates = valid_json(decal("gate", *NAMED, *rules, "--format", "json").out)["gates"]
        assert [gate["passed"] for gate in gates] == [False, True, None]

    def test_groups(self, decal: Decal) -> None:
        rules = ("--rule", "gap(brier)<=0.01", "--rule", "brier@group=B<=0.2002")
        assert decal("gate", *NAMED, "--group", "group", *rules).code == 0

    @pytest.mark.parametrize("rule", ["brier", "brier<=", "brrier<=1", "brier<=baseline"])
    def test_a_rule_that_does_not_parse_is_one_line(self, decal: Decal, rule: str) -> None:
        refusal(decal("gate", *NAMED, "--rule", rule))

    def test_no_rule_at_all(self, decal: Decal) -> None:
        assert "--rule" in refusal(decal("gate", *NAMED))

    def test_a_bug_exits_3_and_never_1(self, decal: Decal) -> None:
        code = (
            "import sys, decal_cli.commands.judge as judge\nfrom decal_cli.commands.app import run\n"
            "def broken(*_):\n    raise KeyError('surprise')\n"
            "judge.gate = broken\nsys.exit(run(['gate', 'x.csv', '--rule', 'brier<=1']))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert "a bug in decal" in done.stderr


class TestBadInput:
    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"", "empty"),
            (b"p,y\n", "no rows"),
            (b"p,y\n1.7,1\n0.2,0\n", "--logit"),
            (b"p,y\n70,1\n20,0\n", "100"),
            (b"p,y\n-0.1,1\n0.2,0\n", "-0.1"),
            (b"p,y\nNaN,1\n0.2,0\n", "missing"),
            (b"p,y\ninf,1\n0.2,0\n", "inf"),
            (b"p,y\nhigh,1\n0.2,0\n", "high"),
            (b"p,y\n0.7,1\n0.2,2\n", "--positive"),
            (b"p,y\n0.7,a\n0.2,b\n0.2,c\n", "label"),
            (b"p,y,p\n0.7,1,1\n0.2,0,1\n", "p"),
            (b"p,y\n0.7,1\n0.2\n", "row"),
            ("p,y\n0.7,1\n0.2,0\n".encode("utf-16"), "UTF-16"),
            (b"\x00\x01\x02\xff\xfe" * 100, "CSV"),
            (b"PAR1 and then nothing", "Parquet"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_bad_file_is_one_line(self, decal: Decal, tmp_path: Path, content: bytes, says: str) -> None:
        (tmp_path / "bad.csv").write_bytes(content)
        line = refusal(decal("evaluate", "bad.csv"))
        assert "bad.csv" in line
        assert says in line

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["nowhere.csv"], "nowhere.csv"),
            (["."], "directory"),
            ([BINARY, "-s", "pp", "-y", "y"], "did you mean"),
            ([*NAMED, "--threshold", "1.5"], "(0, 1)"),
            ([*NAMED, "--threshold", "30"], "0.3"),
            ([*NAMED, "--utility", "0,1;1,0"], "swapped"),
            ([*NAMED, "--utility", "1,1;1,1"], "u_delta = 0"),
            ([*NAMED, "--utility", "1,2"], "2 x 2"),
            ([*NAMED, "--utility", "2,0;0,-1"], "never worse"),
            ([*NAMED, "--odds", "1-19"], "a:b"),
            ([*NAMED, "--cost-fp", "1"], "--cost-fn"),
            ([*NAMED, "--threshold", ".3", "--odds", "1:2"], "more than once"),
            ([*NAMED, "--confidence", "95"], "0.95"),
            ([*NAMED, "--metric", "brierr"], "brier"),
            ([*NAMED, "--output", "/proc/nowhere/x.json"], "output"),
            ([*NAMED, "--output", "."], "directory"),
        ],
        ids=str,
    )
    def test_a_bad_call_is_one_line(self, decal: Decal, arguments: list, says: str) -> None:
        assert says in refusal(decal("evaluate", *arguments))

    def test_a_truncated_parquet_file(self, decal: Decal, tmp_path: Path) -> None:
        whole = (FIXTURES / "fox_news.parquet").read_bytes()
        (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
        assert "cut.parquet" in refusal(decal("evaluate", "cut.parquet", "-s", "p_hatesonar", "-y", "y"))

    @pytest.mark.parametrize("weight", ["-1", "0", "nan"])
    def test_weights_must_be_positive(self, decal: Decal, weight: str) -> None:
        content = f"p,y,w\n0.7,1,{weight}\n0.2,0,1\n".encode()
        assert "weight" in refusal(decal("evaluate", "--weight", "w", stdin=content))

    def test_a_usage_error_exits_2(self, decal: Decal) -> None:
        assert decal("evaluate", "--no-such-option").code == 2
        assert decal("no-such-command").code == 2

    def test_an_unwritable_output_loses_nothing(self, decal: Decal, tmp_path: Path) -> None:
        target = tmp_path / "kept.json"
        target.write_text("before")
        refusal(decal("evaluate", "nowhere.csv", "-o", "kept.json"))
        assert target.read_text() == "before"
        assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


class TestEdges:
    @pytest.mark.parametrize(
        "content", [b"p,y\n0.3,1\n", b"p,y\n0.3,1\n0.2,1\n0.2,1\n", b"p,y\n0.5,0\n0.5,0\n"], ids=str
    )
    def test_one_row_or_one_class_prints_what_it_can(self, decal: Decal, content: bytes) -> None:
        for command in ("evaluate", "recommend"):
            document = valid_json(decal(command, "-t", "0.3", "-f", "json", stdin=content).out)
            assert document["metrics"]["brier"]["value"] is not None
            assert "both classes" in document["metrics"]["auc"]["reason"]
            assert decal(command, "-t", "0.3", stdin=content).code == 0

    def test_a_byte_order_mark_is_read_quietly(self, decal: Decal) -> None:
        done = decal("evaluate", stdin=b"\xef\xbb\xbf" + TINY)
        assert (done.code, done.err) == (0, "")

    def test_output_files_get_the_usual_permissions(self, decal: Decal, tmp_path: Path) -> None:
        assert decal("evaluate", *NAMED, "-o", "out.txt", "--no-intervals").code == 0
        mask = os.umask(0)
        os.umask(mask)
        assert stat.S_IMODE((tmp_path / "out.txt").stat().st_mode) == 0o666 & ~mask


class TestAround:
    def test_metrics_are_listed_and_explained(self, decal: Decal) -> None:
        listed = decal("metrics").out
        assert "regret_calibration" in listed
        explained = decal("metrics", "regret_calibration").out
        for words in ("Perez-Lebel et al. 2025", "range", "needs", "interval"):
            assert words in explained
        assert "did you mean" in refusal(decal("metrics", "regret_calibratoin"))

    def test_the_version(self, decal: Decal) -> None:
        assert decal("--version").out.startswith("decal 0.")
