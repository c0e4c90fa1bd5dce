"""What `decal evaluate` opens with: sentences that follow from the numbers, few lines, and no line that is too long."""

import pytest

from decal_cli.analysis.packs import PACKS
from decal_cli.numbers import decimals_for, fixed
from decal_cli.render.blocks import Bar, Bars
from decal_cli.render.format import Page
from decal_cli.render.formats.text import Text
from tests.helpers.command import BINARY, FIXTURES, Decal
from tests.helpers.evaluate_sentences import (
    gap_contradictions,
    grouped_contradictions,
    several_contradictions,
    summary_contradictions,
)

TWO = (BINARY, "--score", "p", "--label", "y")
THREE_CLASSES = (FIXTURES / "multiclass_n1500_k3.csv", "--proba", "p_*", "--label", "y")
FOX_MODELS = (FIXTURES / "fox_news.parquet", "--label", "y", "--missing", "drop", "--threshold", ".3")
CASES = {
    "no decision": TWO,
    "threshold": (*TWO, "--threshold", ".3"),
    "threshold, no intervals": (*TWO, "--threshold", ".3", "--no-intervals"),
    "worse than a constant decision": (*TWO, "--threshold", ".02"),
    "costs, weights": (*TWO, "--cost-fp", "1", "--cost-fn", "40", "--weight", "weight"),
    "features": (*FOX_MODELS, "--score", "p_hatesonar", "--features", "x0*"),
    "three actions": (*TWO, "--utility", "wait,0,-20;test,-2,-3;treat,-5,-1"),
    "capacity": (*TWO, "--threshold", ".3", "--capacity", "100"),
    "three classes": (*THREE_CLASSES, "--abstain", ".3"),
    "three classes, no decision": THREE_CLASSES,
}


@pytest.mark.parametrize("case", CASES)
def test_every_sentence_follows_from_the_numbers(decal: Decal, case: str) -> None:
    text = decal("evaluate", *CASES[case]).out
    document = decal.json("evaluate", *CASES[case])
    assert not list(summary_contradictions(document, text))


@pytest.mark.parametrize("more", [(), ("--features", "x1")], ids=str)
def test_every_row_of_a_group_follows_from_the_numbers(decal: Decal, more: tuple[str, ...]) -> None:
    asked = ("evaluate", *TWO, "--threshold", ".3", "--group", "group", *more)
    text, document = decal(*asked).out, decal.json(*asked)
    assert not list(grouped_contradictions(document, text))
    assert list(grouped_contradictions(document, text.replace("-132.1 [", "-131.1 [")))


def test_every_gap_between_groups_follows_from_the_numbers(decal: Decal) -> None:
    asked = ("evaluate", *TWO, "--threshold", ".3", "--group", "group", "--pack", "fairness")
    text, document = decal(*asked).out, decal.json(*asked)
    assert not list(gap_contradictions(document, text, PACKS["fairness"].measures))
    assert list(gap_contradictions(document, text.replace(" no\n", " yes\n"), PACKS["fairness"].measures))


@pytest.mark.parametrize("threshold", ["0.3", pytest.param("0.05", marks=pytest.mark.long)])
@pytest.mark.parametrize("more", [("p_*", "--no-intervals"), ("p_hatesonar,p_svm_waseem",)], ids=str)
def test_sentences_on_several_models_follow_from_the_numbers(
    decal: Decal, threshold: str, more: tuple[str, ...]
) -> None:
    asked = ("evaluate", *FOX_MODELS[:-2], "--threshold", threshold, "--score", *more)
    text, document = decal(*asked).out, decal.json(*asked)
    assert not list(several_contradictions(document, text))
    for old, new in ((" models, p_", " models, q_"), ("Recalibration", "Nothing"), ("knowledge 0", "knowledge 1")):
        assert old in text.replace("\n", " ") and list(several_contradictions(document, text.replace(old, new)))


def test_a_wrong_sentence_is_found(decal: Decal) -> None:
    text = decal("evaluate", *CASES["threshold"]).out
    document = decal.json("evaluate", *CASES["threshold"])
    for old, new in (("more than", "less than"), ("may win or lose", "would win"), ("0.743 [", "0.742 [")):
        assert old in text
        assert list(summary_contradictions(document, text.replace(old, new)))


def test_it_opens_with_the_sentence_and_many_models_are_few_lines(decal: Decal) -> None:
    done = decal("evaluate", *FOX_MODELS, "--score", "p_*", "--no-intervals")
    lines = done.out.splitlines()
    assert lines[0].startswith("Of 7 models, p_mlp_hateval is worth most: ")
    assert len(lines) < 30
    table = [line.split() for line in lines if line.startswith("p_") and not {":", ";"} & set(line)]
    worth = [float(row[1]) for row in table]
    assert len(worth) == 7 and worth == sorted(worth, reverse=True)


def test_below_70_columns_no_table_is_wider_than_the_page(decal: Decal) -> None:
    for case in ("threshold", "capacity", "three classes"):
        out = decal("evaluate", *CASES[case], "--no-intervals", COLUMNS="60").out
        assert max(map(len, out.splitlines())) <= 60


def test_an_ascii_page_has_ascii_signs() -> None:
    bars = Bars("worth", "", "", (Bar("better", "5", 0.5), Bar("worse", "-5", -0.5)))
    assert "█" in Text(Page(60)).written([bars])
    text = Text(Page(60, ascii=True)).written([bars])
    assert text.isascii() and "#" in text


def test_bars_below_0_lie_left_of_the_line() -> None:
    bars = Bars("worth", "", "", (Bar("better", "5", 1.0), Bar("worse", "-5", -0.5)))
    _, better, worse = Text(Page(40)).written([bars]).splitlines()
    line = better.index("│")
    assert worse.index("│") == line and worse.rstrip().endswith("█│") and better[line + 1] == "█"
    assert len(better) <= 40


def test_numbers_have_the_digits_that_their_interval_deserves() -> None:
    assert decimals_for([(0.229, 0.238)]) == 4
    assert decimals_for([(-208.2, -176.9)], [-192.6]) == 0
    assert decimals_for([], [0.0123]) == 4
    assert decimals_for([(0.5, 0.5)], []) == 0
    assert [fixed(value, 1) for value in (-0.04, 0.26, -1234.56, 10.0)] == ["0", "0.3", "-1,234.6", "10.0"]
