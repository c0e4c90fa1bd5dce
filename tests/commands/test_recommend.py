"""What `decal recommend` prints, asks for and writes."""

from pathlib import Path

import pytest

from tests.helpers.command import BINARY, Decal, refusal, valid_json

NAMED = (BINARY, "--score", "p", "--label", "y")
TINY = b"p,y\n0.1,0\n0.9,1\n0.4,0\n0.6,1\n0.3,1\n0.2,0\n"


class TestRecommend:
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

    @pytest.mark.parametrize("given", [[], ["--threshold", "0.1:0.4"], ["--cost-fp", "1", "--cost-fn", "3:8"]])
    def test_where_costs_are_not_known_it_says_which_advice_holds_where(self, decal: Decal, given: list[str]) -> None:
        asked = decal.json("recommend", *NAMED, *given)["range"]
        assert (asked["low"], asked["high"]) == {"0": (0.01, 0.99), "2": (0.1, 0.4), "4": (3, 8)}[str(len(given))]
        ends = [(stretch["low"], stretch["high"]) for stretch in asked["stretches"]]
        assert ends[0][0] == asked["low"] and ends[-1][1] == asked["high"] and ends == sorted(ends)
