"""Bad input gets one line and exit code 2; input at the edge is judged as far as it goes."""

import os
import re
import stat
from pathlib import Path

import pytest

from tests.helpers.command import BINARY, Decal, refusal

NAMED = (BINARY, "--score", "p", "--label", "y")
TINY = b"p,y\n0.1,0\n0.9,1\n0.4,0\n0.6,1\n0.3,1\n0.2,0\n"


class TestBadInput:
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
            document = decal.json(command, "-t", "0.3", stdin=content)
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
