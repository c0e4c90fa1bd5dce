"""Text for people and machines: golden files of hand-made reports, and the rules of rounding.

After a wanted change: GOLDEN=write python -m pytest tests/render/test_formats.py, then read the difference.
"""

import math
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest

import decal_cli
from decal_cli.analysis.compare import compare
from decal_cli.analysis.described import ActionCounts, Reference, Shift
from decal_cli.analysis.evidence import Item
from decal_cli.analysis.gate import GateOutcome, judge, with_verdicts
from decal_cli.analysis.recommend import Ranked
from decal_cli.analysis.rules import parse_rule
from decal_cli.analysis.splice import Cut, HeldOut, Splice
from decal_cli.metrics import Result
from decal_cli.numbers import (
    alike,
    around,
    bracketed,
    chance_words,
    counts,
    decimals_for,
    decimals_of,
    fixed,
    p_value,
    percent,
    plain,
    rounded,
    short,
    sized,
    times,
    within,
)
from decal_cli.render.blocks import Cell, Column, Row, Signature, TextTable
from decal_cli.render.format import Page
from decal_cli.render.formats.text import Text
from decal_cli.render.results.advised import LimitedModel
from decal_cli.render.results.comparison import Compared, signed
from decal_cli.render.results.evaluation import Evaluated
from decal_cli.render.results.gates import Gated
from decal_cli.render.results.online import Replayed
from decal_cli.render.results.page import ReportPage, scale_of
from decal_cli.render.results.recommendation import Recommended
from decal_cli.render.results.sections import _costliest, reference_blocks
from decal_cli.render.results.sweep import sparkline
from decal_cli.render.results.ways import ladder
from decal_cli.render.terms import StatedTerms
from decal_cli.sequential.anytime import MAX_LOG_E
from tests.helpers.command import FIXTURES, GOLDEN
from tests.helpers.every_result import RESULT_NAMES, SMALL_PLAN, crossing_models, result_of
from tests.helpers.results import (
    ONE_REPORT,
    RESULTS,
    SIX_REPORTS,
    as_text,
    made_up_evaluation,
    two_rounds,
    with_advice,
)

JUDGED_RULES = ("brier<=0.2", "upper(ece)<=0.1", "log_loss<=1", "lower(auc)>=0.7", "auc>=0.75", "auc>=0.8")
RULES = [parse_rule(text) for text in JUDGED_RULES]
GATED = Gated(GateOutcome(SIX_REPORTS, with_verdicts(judge(RULES, SIX_REPORTS.reports[:2]), "fail")))
WIDTHS = (60, 80, 100, 140)
GOLDEN_FILES = {
    **{
        f"evaluate_{name}_{width}.txt": (Evaluated(reports), "table", width)
        for name, reports in (("one", ONE_REPORT), ("many", SIX_REPORTS))
        for width in WIDTHS
    },
    **{
        f"{name}_{width}.txt": (result, "table", width)
        for name, result in (
            ("recommend_one", Recommended(with_advice(ONE_REPORT, costs={"post-train": 0.001}))),
            ("recommend_many", Recommended(with_advice(SIX_REPORTS))),
        )
        for width in WIDTHS
    },
    "evaluate_listed.txt": (Evaluated(SIX_REPORTS, listed=True), "table", 100),
    "evaluate_one.md": (Evaluated(ONE_REPORT), "markdown", 100),
    "evaluate_many.md": (Evaluated(SIX_REPORTS), "markdown", 100),
    "evaluate_one.json": (Evaluated(ONE_REPORT), "json", 100),
    "evaluate_many.csv": (Evaluated(SIX_REPORTS), "csv", 100),
    "recommend_one.md": (Recommended(with_advice(ONE_REPORT)), "markdown", 100),
    "recommend_many.csv": (Recommended(with_advice(SIX_REPORTS)), "csv", 100),
    "recommend_one.json": (Recommended(with_advice(ONE_REPORT)), "json", 100),
    "tried.txt": (Recommended(two_rounds()), "table", 100),
    "tried.md": (Recommended(two_rounds()), "markdown", 100),
    "tried.json": (Recommended(two_rounds()), "json", 100),
    "tried.csv": (Recommended(two_rounds()), "csv", 100),
    "gate.txt": (GATED, "table", 100),
    "gate.md": (GATED, "markdown", 100),
    "gate.csv": (GATED, "csv", 100),
    "gate_github.txt": (GATED, "github", 100),
    "gate_junit.xml": (GATED, "junit", 100),
    "gate.sarif": (GATED, "sarif", 100),
}


@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_golden(name: str) -> None:
    text = as_text(*GOLDEN_FILES[name])
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (short(0.19698, 4), "0.1970"),
        (short(-0.00331, 4), "-0.0033"),
        (short(-0.00001, 4), "0.0000"),
        (short(1.0, 4), "1.0000"),
        (short(14.6168, 4), "14.62"),
        (short(123456.7, 4), "123,457"),
        (short(-0.99999, 3), "-1.000"),
        (short(0.0, 3), "0.000"),
        (short(10.0, 4), "10.00"),
        (short(1000.0, 4), "1,000"),
        (rounded(7.3733, (-0.0491, 14.8), 4), "7.37 [-0.05, 14.80]"),
        (rounded(15.9, (8.662, 1230.0), 3, "at least"), "15.9 [at least 8.7]"),
        (rounded(0.1, (0.01, math.inf), 3), "0.100 [0.010, inf]"),
        (rounded(0.1, None, 3), "0.100"),
        ([plain(value) for value in (0.0, 0.034761, 12345.6, -0.5, 4.6049e299)],
         ["0", "0.03476", "12,346", "-0.5", "4.605e+299"]),
        ([plain(value) for value in (9_999.4, 9_999.5, 1e15)], ["9,999", "10,000", "1e+15"]),
        ([p_value(chance, "= ") for chance in (0.0, 0.00009, 0.0001, 0.77894, 1.0)],
         ["< 0.0001", "< 0.0001", "= 0.0001", "= 0.7789", "= 1"]),
        ([chance_words(chance) for chance in (0.0049, 0.005, 0.5, 0.994, 0.995)],
         ["under 1 %", "under 1 %", "50 %", "99 %", "over 99 %"]),
        ([decimals_of(size) for size in (0.0, 0.00123, 1.0, 99.0, 100.0)], [0, 5, 2, 1, 0]),
        (counts((9.5, 20.0)) + counts((9.4, 20.0)) + counts((1.0, 0.5)) + counts((0.9,)) + counts((1e-9,)),
         ["10", "20", "9.4", "20.0", "1.0", "0.5", "0.900", "0.000"]),
        (decimals_for([(0.1, 0.1), (0.0, 0.2)]), 2),
        (within(40.0, (0.5, 80.5)), "40.0 [0.5, 80.5]"),
        (within(40.0, (0.0, 80.5)), "40 [0, 80]"),
        ([decimals_for([(0.229, 0.238)]), decimals_for([(-208.2, -176.9)], [-192.6])], [4, 0]),
        (decimals_for([], [0.0123]), 4),
        (decimals_for([(0.5, 0.5)]), 0),
        (alike((0.012, -12.34)) + alike((1234.5,)) + alike((0,)), ["0.0", "-12.3", "1,234", "0"]),
        (counts((0, 9.5)) + counts((17, 1)) + counts((0.25, 0.5)), ["0", "10", "17", "1", "0.250", "0.500"]),
        ([fixed(value, 1) for value in (-0.04, 0.26, -1234.56, 10.0)], ["0", "0.3", "-1,234.6", "10.0"]),
        ([bracketed(texts) for texts in (["7"], ["7", "6", "8"])], ["7", "7 [6, 8]"]),
        (around("0.048145", (0.0422, 0.0512)), "about 0.0481 [0.0422, 0.0512]"),
        (around("0.25", (0.2, 0.3)), "0.25 [0.200, 0.300]"),
        (around("0.0628", (0.07, 0.28)), "about 0.06 [0.06, 0.28]"),
        (around("0.05", (0.01, 0.07)), "0.05 [0.010, 0.070]"),
        (around("0.29", (0.29, 0.57)), "0.29 [0.29, 0.57]"),
        (around("0.29123", (0.2, 0.57)), "about 0.29 [0.20, 0.57]"),
        (sized(0.0, (-1.0, 2.0)), (0.0, (-1.0, 2.0))),
        (sized(-1.0, (-2.0, 0.5)), (1.0, (-0.5, 2.0))),
    ],
)  # fmt: skip
def test_numbers_as_they_are_written_where_the_way_changes(written: object, text: object) -> None:
    assert written == text


@pytest.mark.parametrize("command", ["evaluate one", *RESULT_NAMES])
def test_every_format_has_the_same_numbers(command: str) -> None:
    """Text where nothing has to be left out, Markdown and HTML of one result; and CSV has none that JSON has not."""
    result = Evaluated(ONE_REPORT) if command == "evaluate one" else result_of(command)
    pages = {
        "text": re.sub(r"(?m)^\d\. ", "", as_text(result, width=2000)),
        "markdown": re.sub(r"(?m)^\*\*\d\. |\\", "", as_text(result, "markdown")),
        "html": unescape(re.sub(r"(?s)<(style|script|title)>.*?</\1>|<[^>]*>", " ", as_text(result, "html"))),
    }
    numbers = {name: sorted(re.findall(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?", page)) for name, page in pages.items()}
    assert len(numbers["text"]) > 20 and numbers["text"] == numbers["markdown"] == numbers["html"]
    if command not in ("fit", "card", "study"):  # A study's CSV is of its points.
        known = re.findall(r"(?m)(?<= )-?\d[\d.e+-]*(?=,?$)", as_text(result, "json"))
        cells = re.findall(r"(?m)(?<=,)-?\d[\d.e+-]*(?=,|$)", as_text(result, "csv"))
        assert cells and {*map(float, cells)} <= {*map(float, known)}


def decimals_by_column(answer: object, *headings: str) -> Iterator[set[int]]:
    """Decimals of the numbers in each column with such a heading."""
    for block in answer.result.blocks():
        for k, column in enumerate(block.columns if isinstance(block, TextTable) else ()):
            if column.heading.startswith(headings):
                numbers = re.findall(r"\d[\d,]*(?:\.(\d+))?", " ".join(row.cells[k].text for row in block.rows))
                yield {len(each) for each in numbers}


@pytest.mark.ci
def test_amounts_of_one_column_have_the_same_decimals() -> None:
    """Among them are gains of 0, of one digit and of three, amounts of 4 to 22,000, and sums of 6 and of 1.5."""
    replayed = decal_cli.online(FIXTURES / "bike_stream.parquet", score="p", label="y", time="t", threshold=0.3)
    assert list(decimals_by_column(replayed, "as it is", "online Platt", "gain")) == [{1}] * 4
    terms = {"unit": "EUR", "decisions": 100000}
    swept = decal_cli.sweep(FIXTURES / "fox_news.parquet", score="p_hatesonar", label="y", threshold=0.3, **terms)
    assert list(decimals_by_column(swept, "as it is", "calibration regret", "gain of")) == [{0}] * 3
    ranged = decal_cli.recommend(FIXTURES / "binary_n2000.csv", score="p", label="y", decisions=1500)
    (decimals,) = decimals_by_column(ranged, "wins")
    assert len(decimals) == 1
    rows = np.random.default_rng(0).dirichlet((1, 1, 1), 200)
    columns = {f"{name}:{k}": each[:, k] for name, each in (("a", rows), ("b", rows[::-1])) for k in range(3)}
    columns["y"] = rows.argmax(axis=1)
    apart = decal_cli.compare(columns, proba=["a:*", "b:*"], label="y", abstain=0.25, metrics="accuracy")
    assert list(decimals_by_column(apart, "B wins")) == [{2}]


def test_a_gain_over_time_is_clear_where_its_interval_is_above_0() -> None:
    replayed = decal_cli.online(np.tile([0.2, 0.7], 30), np.tile([0, 1, 1], 20), threshold=0.3).result
    methods = replayed.judged.methods
    for low, clear in ((0.0, False), (0.01, True)):
        replayed.judged.methods = tuple(replace(each, since=777_777, interval=(low, 0.1)) for each in methods)
        assert ("row 777,777" in as_text(replayed, width=140)) == clear


def test_colour_only_where_it_is_wanted() -> None:
    assert "\x1b[" not in as_text(Evaluated(ONE_REPORT))
    assert "\x1b[" in as_text(Evaluated(ONE_REPORT), color=True)


def lines_of(table: TextTable, width: int) -> list[str]:
    return Text(Page(width)).written([table]).splitlines()


def row(name: str, *cells: Cell, section: str = "", **more: bool) -> Row:
    return Row((Cell((name,)), *cells), section, **more)


WIDE = Cell((".12345", "[.1, .2]"), fewer=(".123", "[.1, .2]"))
NAMED = (Column("metric", words=True), Column("a_long_name", short="A"), Column("another_name", short="B"))


def test_short_headings_come_before_intervals_step_below() -> None:
    table = TextTable(NAMED, (row("brier", WIDE, WIDE),))
    assert lines_of(table, 60) == [
        "metric      a_long_name     another_name",
        "brier   .12345 [.1, .2]  .12345 [.1, .2]",
    ]
    narrow = lines_of(TextTable(NAMED, (row("brier", Cell((".12345",)), Cell((".12345",))),)), 30)
    assert narrow == ["metric       A       B", "brier   .12345  .12345"]
    assert lines_of(table, 38) == [
        "metric  a_long_name  another_name",
        "brier        .12345        .12345",
        "           [.1, .2]      [.1, .2]",
    ]


def test_fewer_decimals_are_the_last_resort_against_a_cut() -> None:
    cell = Cell(("1234567.12345",), fewer=("1234567.1",))
    columns = (Column("metric", words=True), *(Column(name) for name in "abc"))
    table = TextTable(columns, (row("brier", cell, cell, cell),), keys=1)
    assert lines_of(table, 60)[1].count("1234567.12345") == 3
    assert lines_of(table, 45)[1].count("1234567.1 ") + 1 == 3
    banks = lines_of(table, 38)
    assert banks[0].split() == ["metric", "a", "b"] and banks[3].split() == ["metric", "c"]
    assert banks[1].count("1234567.12345") == 2, "beside a cut there is room again"


def test_where_texts_go_on_in_the_next_line_no_word_is_cut() -> None:
    heads = ("metric", "higher", "lower")
    columns = (*(Column(head, words=True, wraps=True) for head in heads), Column("gap"))
    gap, lower = Cell(("0.1055", "[-0.0157,", "0.2356]")), Cell(("Other (343)",))
    table = TextTable(columns, (row("Positive predictive value", Cell(("Afro-American (1,506)",)), lower, gap),))
    assert lines_of(table, 49) == [
        "metric      higher         lower              gap",
        "Positive    Afro-American  Other (343)     0.1055",
        "predictive  (1,506)                     [-0.0157,",
        "value                                     0.2356]",
    ]
    assert max(map(len, lines_of(table, 30))) == 43


def test_an_interval_goes_below_its_number_before_a_text_goes_on_in_the_next_line() -> None:
    columns = (Column("metric", words=True, wraps=True), Column("p"))
    table = TextTable(columns, (row("Positive predictive value", Cell((".12345", "[.1, .2]"))),))
    assert [len(lines_of(table, width)[1]) for width in (42, 41, 35)] == [42, 35, 35]


BESIDE = ["one    second", "ab 1   c    2"]


@pytest.mark.parametrize(("width", "lines"), [(13, BESIDE), (12, ["one", "ab 1", "", "second", "c    2"])])
def test_sections_stand_beside_each_other_where_the_page_has_the_width_of_both(width: int, lines: list[str]) -> None:
    """Four columns, a gap of three, and six."""
    rows = (row("ab", Cell(("1",)), section="one"), row("c", Cell(("2",)), section="second"))
    assert lines_of(TextTable(NAMED[:2], rows, beside=True), width) == lines


def test_columns_go_in_their_order() -> None:
    columns = (Column("method", words=True), Column("kind", words=True, drops=2), Column("seconds", drops=1))
    table = TextTable(columns, (row("isotonic", Cell(("recalibration",)), Cell(("0.1",))),))
    assert [lines_of(table, width)[0].split() for width in (40, 30, 20)] == [
        ["method", "kind", "seconds"],
        ["method", "kind"],
        ["method"],
    ]


def test_a_table_that_cannot_be_cut_is_wider_than_the_page_rather_than_cut_off() -> None:
    table = TextTable((Column("method", words=True), Column("gain")), (row("a" * 40, Cell(("1" * 30,))),))
    assert lines_of(table, 50)[1] == "a" * 40 + "  " + "1" * 30


def test_a_table_is_cut_where_the_page_ends_into_as_few_parts_as_do() -> None:
    columns = (Column("metric", words=True), *(Column(name) for name in "abcdef"))
    table = TextTable(columns, (row("brier", *[Cell((".12345",))] * 6),), keys=1)
    whole = max(map(len, lines_of(table, 200)))
    shown = [lines_of(table, width) for width in range(16, whole + 1)]
    assert all(max(map(len, lines)) <= width for width, lines in enumerate(shown, 16))
    # Names and k columns are 6 + 8 k wide; a part has two lines, and an empty one before the next.
    expected = [3 * math.ceil(6 / ((width - 6) // 8)) - 1 for width in range(16, whole + 1)]
    assert [len(lines) for lines in shown] == expected and expected[-2:] == [5, 2]


def test_headings_break_and_an_arrow_stays_with_what_it_points_to() -> None:
    columns = (Column("t*", words=True), Column("gain of → isotonic", "▁▂▃", breaks=(20, 8)))
    table = TextTable(columns, (row(".1", Cell((".5",))),))
    assert [line.split() for line in lines_of(table, 22)[:2]] == [["gain", "of", "→", "isotonic"], ["t*", "▁▂▃"]]
    assert [line.strip() for line in lines_of(table, 16)[:3]] == ["gain of", "→ isotonic", "t*         ▁▂▃"]


def test_sections_chosen_and_empty_rows() -> None:
    rows = (
        row("brier", WIDE, section="loss"),
        row("odd", Cell(("–",)), section="loss", empty=True),
        row("auc", WIDE, section="ranking"),
        row("prior", WIDE, section="ranking", apart=True),
    )
    lines = lines_of(TextTable((Column("metric", words=True), Column("p")), rows), 60)
    assert [line.split()[0] if line else "" for line in lines] == [
        "metric",
        "loss",
        "brier",
        "",
        "ranking",
        "auc",
        "",
        "prior",
    ]
    picked = TextTable((Column("method", words=True),), (row("a", chosen=True), row("b")), picks=True)
    assert lines_of(picked, 20) == ["method", "→ a", "  b"]


@pytest.mark.parametrize(
    ("values", "course"),
    [
        (np.arange(9.0), "▁▂▃▄▅▅▆▇█"),
        (np.arange(5.0, -3, -1), "█▇▆▅▄▃▂▁"),
        (np.array([1.0, np.nan, 0]), "█ ▁"),
        (np.ones(2), "▁▁"),
        (np.arange(100.0), "▁▂▃▃▄▅▆▆▇█"),
        (np.full(3, np.nan), ""),
    ],
)
def test_the_course_of_a_curve_goes_from_its_first_value_to_its_last(values: np.ndarray, course: str) -> None:
    assert sparkline(values, 10) == course


@pytest.mark.parametrize(
    ("gain", "ends", "says"),
    [
        (0.0, (0.0, 0.0), "its gain is 0 [0, 0], which chance could explain"),
        (0.01, (0.0, 0.02), "its gain is 10 [0, 20], which chance could explain"),
        (-0.01, (-0.02, 0.0), "its gain is -10 [-20, 0], which chance could explain"),
        (0.02, (0.01, 0.03), "it wins 20 [10, 30]"),
        (-0.02, (-0.03, -0.01), "it loses 20 [10, 30]"),
        (0.0, None, "it wins 0"),
    ],
)
def test_what_a_score_wins_with_few_places_is_said(gain: float, ends: tuple[float, float] | None, says: str) -> None:
    page = SimpleNamespace(say=lambda gain, ends: within(1000 * gain, times(ends, 1000)))
    assert LimitedModel._won(page, Ranked("isotonic", gain=gain, interval=ends)) == says


@pytest.mark.parametrize(
    ("share", "interval", "says"),
    [
        (0.29, (0.3, 0.4), "the scores look like those of the reference with another share of labels 1, but not with"),
        (0.3, (0.3, 0.4), "no more than the share of labels 1 differs"),
        (0.4, (0.3, 0.4), "no more than the share of labels 1 differs"),
        (0.3, (0.2, 0.4), "nothing differs from the reference"),
        (0.1, (0.1, 0.2), "nothing differs from the reference"),
    ],
)
def test_what_differs_from_the_reference_is_said(share: float, interval: tuple[float, float], says: str) -> None:
    """It has 20 % of labels 1."""
    shift = Shift("p", 0.0, share, 0.2, sum(interval) / 2, interval, 0.5, alike=True)
    text = Text(Page(100)).written([*reference_blocks(Reference((), {}, (shift,)))])
    assert f"p: {says}" in " ".join(text.split())


@pytest.mark.parametrize(
    ("share", "scores", "says"),
    [(0.002, 0.03, "--prevalence 0.03 "), (0.002, 0.0, "--prevalence 0.002 "), (0.0, 0.0, "beyond noise PSI")],
)
def test_the_share_that_is_advised_is_one_that_the_option_takes(share: float, scores: float, says: str) -> None:
    shift = Shift("p", 0.0, share, 0.2, scores, (0.0, 0.1), 0.5, alike=True)
    text = Text(Page(100)).written([*reference_blocks(Reference((), {}, (shift,)))])
    assert says in " ".join(text.split())


@pytest.mark.parametrize(
    ("interval", "says"),
    [
        ((0.01, 0.02), "wins"),
        ((0.0, 0.02), "may win or lose"),
        ((0.0, 0.0), "wins nothing"),
        ((-0.02, 0.0), "may win or lose"),
        ((-0.02, -0.01), "loses"),
    ],
)
def test_what_recalibration_wins_or_loses_is_said_where_it_is_clear(interval: tuple[float, float], says: str) -> None:
    results = {**RESULTS, "gain_recalibration": Result(sum(interval) / 2, interval)}
    measured = replace(ONE_REPORT, reports=(replace(ONE_REPORT.reports[0], results=results),))
    would = says if " " in says else f"would {says[:-1]}"
    assert f" Recalibration {would}" in " ".join(as_text(Evaluated(measured)).split())
    whole = with_advice(ONE_REPORT)
    (advice,) = whole.advice
    items = {**advice.evidence.items, "gain_recalibration": Item("gain_recalibration", interval[0], interval)}
    advice = replace(advice, evidence=replace(advice.evidence, items=items))
    text = " ".join(as_text(Recommended(replace(whole, advice=(advice,)))).split())
    assert f"for this one, recalibration {says}." in text


@pytest.mark.parametrize(("high", "says"), [(-0.001, "worth it if"), (0.0, "not worth it")])
def test_a_splice_is_worth_it_where_it_clearly_wins(high: float, says: str) -> None:
    held_out, alike = HeldOut(0.2, "p_a", -0.01, (-0.02, high)), HeldOut(-0.1, "p_a", 0.0, (-0.02, 0.02))
    spliced = Splice(0.5, "p_a", "p_b", held_out, alike, 5, Cut(0.5, "a"))
    whole = compare(crossing_models("p_a", "p_b"), SMALL_PLAN, splicing=False)
    text = " ".join(as_text(Compared(replace(whole, splice=spliced))).split())
    assert f"Splice: {says}" in text and ", 0.0 [-20.0, 20.0] compared with p_a alone" in text


def test_an_end_of_a_difference_is_written_as_zero_only_where_it_is_zero() -> None:
    """Else "not by chance" stands beside an interval that ends at 0.0000."""
    assert signed(-0.0028, (-0.0056, -0.00001)) == ("-0.002800", "[-0.005600, -0.000010]")
    assert signed(0.0028, (0.0, 0.0056)) == ("+0.0028", "[0.0000, 0.0056]")
    assert signed(4.36e-8, (3.91e-8, 4.82e-8)) == ("+4.4e-08", "[3.9e-08, 4.8e-08]")
    assert signed(-3e-5, None) == ("-0.000030",) and signed(0.0, (0.0, 0.0)) == ("0.0000", "[0.0000, 0.0000]")


def test_the_cells_that_lose_most_come_first() -> None:
    done = ActionCounts(("x", "y", "z"), ("keep", "drop"), ((0, 2, 1), (3, 0, 9)), ((0, -1, -4), (-2, 0, -1)))
    lines = lines_of(_costliest(done, "", ""), 60)
    assert [line.split() for line in lines if line.startswith(("keep", "drop"))] == [
        ["drop", "x", "3", "400"],
        ["keep", "z", "1", "200"],
        ["keep", "y", "2", "133.3"],
    ]


def test_columns_that_do_not_fit_stand_in_banks_each_with_the_names_of_its_rows() -> None:
    """Of a table that has nothing to drop or to break: all columns once, in order, as many beside each other as fit."""
    heads = [f"column{k}" for k in range(12)]
    columns = (Column("name", words=True), *map(Column, heads))
    table = TextTable(columns, [row(name, *(Cell((f"{name}{k}",)) for k in range(12))) for name in "ab"], keys=1)
    shown = [line.split() for line in lines_of(table, 50) if line]
    assert [line[0] for line in shown] == ["name", "a", "b"] * 3
    for at, name in enumerate(("column", "a", "b")):
        assert [each for line in shown[at::3] for each in line[1:]] == [f"{name}{k}" for k in range(12)]


@pytest.mark.parametrize(
    ("late", "log_e", "says"),
    [
        (False, math.log(148), "148"),
        (False, math.log(10**4), "10^4"),
        (False, 12 * math.log(10), "10^12"),
        (False, MAX_LOG_E - 0.3, "10^300"),
        (False, MAX_LOG_E, "over 10^299"),
        (True, math.log(20), "0.05"),
        (True, math.log(10**4), "10^-4"),
        (True, 12 * math.log(10), "10^-12"),
        (True, MAX_LOG_E - math.log(2) - 0.3, "10^-299"),
        (True, MAX_LOG_E - math.log(2), "under 10^-299"),
    ],
)
def test_evidence_that_is_capped_is_said_to_be_more(late: bool, log_e: float, says: str) -> None:
    """An e-value is known up to its cap, and the p-value of late labels is 2 over the greater of two e-values."""
    page = SimpleNamespace(plan=SimpleNamespace(delay=SimpleNamespace(late=late)))
    assert Replayed._evidence(page, log_e) == says


def test_a_signature_goes_on_in_the_next_line_where_the_page_ends() -> None:
    for width, lines in ((13, ["decal:1|n:200"]), (12, ["decal:1|", "n:200"])):
        assert Text(Page(width)).written([Signature("decal:1|n:200")]).splitlines() == lines


def test_of_models_without_groups_each_bank_has_their_names_alone() -> None:
    two = Evaluated(made_up_evaluation([("p_a", None), ("p_b", None)]))
    heads = [line.split()[1:] for line in as_text(two, width=50).splitlines() if line.startswith("model ")]
    assert heads == [["worth", "per", "1,000", "constant"], ["wins", "features", "win"]]


def test_amounts_of_a_page_have_three_digits_of_what_sets_them_apart() -> None:
    results = {"expected_utility": Result(-100.001), "eu_never": Result(-100.002), "eu_always": Result(-100.003)}
    assert scale_of([replace(ONE_REPORT.reports[0], results=results)], StatedTerms()).decimals == 2


def test_amounts_of_a_page_have_the_digits_of_the_advice() -> None:
    answer = decal_cli.recommend(str(FIXTURES / "binary_n2000.csv"), 0.3, score="p", label="y")
    (worth,) = re.findall(r"^score as it is +(\S+)", str(answer), re.MULTILINE)
    reports = answer.result.evaluation.reports
    assert scale_of(reports, StatedTerms())(reports[0].value("expected_utility")) == worth


def test_a_page_of_one_model_names_its_groups_and_counts_of_a_thousand_rows_have_two_digits() -> None:
    """Of 1,997 rows 8 have label 1, 4.0 of 1,000; of the group none. The score acts on 500 + 418."""
    whole = made_up_evaluation([("p_a", None), ("p_a", "north")])
    reports = tuple(replace(each, positives=n) for each, n in zip(whole.reports, (8, 0), strict=True))
    page = ReportPage(with_advice(replace(whole, reports=reports)), (), None, (), StatedTerms(), {})
    advised, ways, *_ = (block for block in page.blocks() if isinstance(block, TextTable))
    assert advised.columns[0].heading == "group"
    assert [cell.text for cell in ways.rows[2].cells[3:]] == ["459.69", "209.31", "66.10"]


def test_names_in_brackets_and_colons_are_no_markup() -> None:
    table = TextTable((Column("[bold]", words=True), Column(":smile:")), (row("[red]x", Cell(("[/]",))),))
    assert lines_of(table, 40) == ["[bold]  :smile:", "[red]x      [/]"]


@pytest.mark.parametrize(
    ("worths", "texts", "measured_in", "shares"),
    [
        ((-2.596, -0.676), ["-2,596", "-676"], "per 1,000 decisions", [0, 1]),
        ((-2596, -676), ["-2.60", "-0.68"], "in million per 1,000 decisions", [0, 1]),
        ((-1000, -100), ["-1.00", "-0.10"], "in million per 1,000 decisions", [0, 1]),
        ((-0.5, -0.5), ["-500", "-500"], "per 1,000 decisions", [0, 0]),
    ],
)
def test_the_heading_names_the_size_of_the_numbers_and_bars_go_from_the_lowest_to_the_highest(
    worths: tuple[float, float], texts: list[str], measured_in: str, shares: list[float]
) -> None:
    never, always = (Result(worth, None, None) for worth in worths)
    bars = ladder({"eu_never": never, "eu_always": always}, StatedTerms())
    assert bars.title == f"Expected utility {measured_in}"
    assert [bar.text for bar in bars.items] == texts
    assert [bar.share for bar in bars.items] == pytest.approx(shares)


@pytest.mark.parametrize("value", [18.55, 0.125, 2.675, 1000.5, 0.00015])
def test_no_printed_digit_hangs_on_the_last_bit(value: float) -> None:
    near = [value, math.nextafter(value, 0), math.nextafter(value, 2 * value)]
    for write in (partial(short, decimals=2), partial(fixed, decimals=1), plain, percent, within):
        assert len({write(each) for each in near}) == 1
