"""Bad input gets one line and exit code 2; input at the edge is judged as far as it goes."""

import os
import re
import stat
from pathlib import Path

import pytest

from tests.helpers.command import BINARY, FIXTURES, Decal, refusal, valid_json

NAMED = (BINARY, "--score", "p", "--label", "y")
TINY = b"p,y\n0.1,0\n0.9,1\n0.4,0\n0.6,1\n0.3,1\n0.2,0\n"


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
            ([*NAMED, "--utility", "0,-1e200;-1e200,0"], "beyond 1e+15"),
            ([*NAMED, "--cost-fp", "1e-300", "--cost-fn", "1e-300"], "below 1e-15"),
            ([*NAMED, "--confidence", "0.9999999999999999"], "too near 0 or 1"),
        ],
        ids=str,
    )
    def test_a_bad_call_is_one_line(self, decal: Decal, arguments: list, says: str) -> None:
        assert says in refusal(decal("evaluate", *arguments))

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["sweep", *NAMED, "--thresholds", "0.1:0.9:1e-320"], "more than 1000"),
            (["sweep", *NAMED, "--thresholds", "5e-324,0.3"], "must be 1e-30 or more, and 4.94066e-324 is less"),
            (["sweep", *NAMED, "-t", "5e-324"], "t* = 4.94066e-324, below 1e-30"),
            (["evaluate", *NAMED, "--cost-fp", "1e-320", "--cost-fn", "1"], "below 1e-30"),
            (["gate", *NAMED, "-r", "brier<=1e999"], "bound 1e999 is infinite"),
            (["gate", *NAMED, "-r", "brier<=1e300"], "brier lies from 0 to 1, so no value can fail it"),
            (["gate", *NAMED, "-r", "brier>=-0.1"], "brier lies from 0 to 1, so no value can fail it"),
            (["gate", *NAMED, "-r", "upper(ece)<=-0.1"], "upper(ece) lies from 0 to 1, so no value can pass it"),
            (["gate", *NAMED, "-r", "log_loss<=1e300"], "log_loss lies from 0 to 1e+15, so no value can fail it"),
            (["gate", *NAMED, "-r", "delta(brier)<=1.5"], "delta(brier) lies from -1 to 1"),
            (["gate", *NAMED, "-r", "gap(brier)>=1.5"], "gap(brier) lies from 0 to 1, so no value can pass it"),
            (["gate", *NAMED, "-r", "brier<=baseline+2"], "the difference from the baseline lies from -1 to 1"),
            (["gate", *NAMED, "-t", "0.3", "-r", "regret_calibration<=1.1"], "regret_calibration lies from 0 to 1, so"),
            (["evaluate", *NAMED, "--seed", str(2**32)], "seed 4294967296 is beyond 4294967295"),
            (["recommend", *NAMED, "-t", "0.3", "--cost", "1e300"], "number from 0 to 1e+15"),
            (["recommend", *NAMED, "-t", "0.3", "--tolerance", "inf"], "--tolerance inf"),
            (["recommend", *NAMED, "-t", "0.3", "--satisfied-at", "nan"], "--satisfied-at nan"),
            (["recommend", *NAMED, "-t", "0.3", "--cost", "1", "--decisions", "inf"], "--decisions inf"),
        ],
        ids=str,
    )
    def test_numbers_at_the_edge_of_floats(self, decal: Decal, arguments: list, says: str) -> None:
        assert says in refusal(decal(*arguments))

    def test_thresholds_and_seeds_at_the_edge_are_judged(self, decal: Decal) -> None:
        for line in (("-t", "1e-30"), ("-t", "0.9999999999999999", "--seed", str(2**32 - 1))):
            done = decal("recommend", *NAMED, *line)
            assert (done.code, done.err) == (0, "")

    @pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", '"text"', "{}", "[1]", "true"])
    def test_a_baseline_that_is_no_number_cannot_be_judged_by(self, decal: Decal, tmp_path: Path, value: str) -> None:
        assert decal("evaluate", *NAMED, "-m", "brier", "--no-intervals", "-o", "base.json").code == 0
        path = tmp_path / "base.json"
        path.write_text(re.sub(r'("brier": \{\s*"value": )[^,]+', lambda match: match[1] + value, path.read_text()))
        done = decal("gate", *NAMED, "-r", "brier<=baseline", "--baseline", "base.json")
        assert done.code == 2 and "brier is not a number in the baseline" in done.out

    def test_a_truncated_parquet_file(self, decal: Decal, tmp_path: Path) -> None:
        whole = (FIXTURES / "fox_news.parquet").read_bytes()
        (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
        assert "cut.parquet" in refusal(decal("evaluate", "cut.parquet", "-s", "p_hatesonar", "-y", "y"))

    @pytest.mark.parametrize("weight", ["-1", "0", "nan"])
    def test_weights_must_be_positive(self, decal: Decal, weight: str) -> None:
        content = f"p,y,w\n0.7,1,{weight}\n0.2,0,1\n".encode()
        assert "weight" in refusal(decal("evaluate", "--weight", "w", stdin=content))

    @pytest.mark.parametrize("more", [(), ("--group", "g"), ("--weight", "w"), ("--missing", "drop")], ids=str)
    def test_a_positive_value_that_no_row_has_is_refused_on_every_path(self, decal: Decal, more: tuple) -> None:
        content = b"p,y,g,w\n0.1,0,a,1\n0.9,1,b,1\n"
        line = refusal(decal("gate", "--positive", "yes", "-r", "brier<=0.9", *more, stdin=content))
        assert "label is never 'yes', it is 0, 1" in line

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
