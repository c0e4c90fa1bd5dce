"""What `decal evaluate` opens with: sentences that follow from the numbers, few lines, and no line that is too long."""

import csv
import dataclasses
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from decal_cli.analysis.packs import PACKS
from decal_cli.errors import inert, printable
from decal_cli.metrics import METRICS
from decal_cli.render import blocks
from decal_cli.render.blocks import Bar, Bars, Cell, Column, Facts, Paragraph, Row, TextTable
from decal_cli.render.format import Page
from decal_cli.render.formats import FORMATS, faces_of, write
from decal_cli.render.formats.text import Text
from decal_cli.render.results import sections
from tests.helpers.command import BINARY, FIXTURES, Decal
from tests.helpers.evaluate_sentences import (
    gap_contradictions,
    grouped_contradictions,
    several_contradictions,
    summary_contradictions,
)
from tests.helpers.every_result import RESULT_NAMES, result_of
from tests.helpers.hostile import PAYLOADS, check_text

pytestmark = pytest.mark.usefixtures("one_deal")
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


SAID = (
    *("expected_utility", "external_regret", "utility_at_stake", "utility_share", "utility_at_capacity", "accuracy"),
    *("gain_recalibration", "gain_beyond", "gain_post_training", "regret_grouping_worst", "auc", "brier", "corp_mcb"),
    *("log_loss", "ece"),
)
"""Metrics that the sentences and columns are held against."""


def told(decal: Decal, *asked: Any) -> tuple[str, dict[str, Any]]:
    """What `evaluate` prints, and the JSON of what is said there."""
    of_classes = "--proba" in asked
    chosen = [word for name in SAID if METRICS[name].takes(of_classes) for word in ("-m", name)]
    return decal("evaluate", *asked).out, decal.json("evaluate", *asked, *chosen)


@pytest.mark.parametrize("case", CASES)
def test_every_sentence_follows_from_the_numbers(decal: Decal, case: str) -> None:
    text, document = told(decal, *CASES[case])
    assert not list(summary_contradictions(document, text))
    if case == "threshold":  # a wrong sentence is found
        for old, new in (("more than", "less than"), ("may win or lose", "would win"), ("0.743 [", "0.742 [")):
            assert old in text and list(summary_contradictions(document, text.replace(old, new)))


def test_where_every_label_adds_nothing_features_have_nothing_to_win(decal: Decal) -> None:
    (decal.folder / "pure.csv").write_text("p,q,r,s,y\n" + "0.1,0.8,0.9,0.2,0\n0.8,0.1,0.2,0.9,1\n" * 30)
    asked = ("evaluate", "pure.csv", "--label", "y", "--threshold", ".3", "--score", "p")
    text, document = told(decal, *asked[1:])
    assert not list(summary_contradictions(document, text))
    assert "anything beyond recalibration: knowing every label would then add nothing" in text.replace("\n", " ")
    for scores, wins in (("ps", "none of them."), ("pq", "q:"), ("qr", "all of them, most for q:")):
        named = (word for score in scores for word in ("--score", score))
        assert f"Recalibration wins for {wins}" in decal(*asked[:-2], *named, "--no-intervals").text
    assert "between 0 and 0 per decision" not in decal(*asked, "--all").text


@pytest.mark.parametrize("more", [(), pytest.param(("--features", "x1"), marks=pytest.mark.ci)], ids=str)
def test_every_row_of_a_group_follows_from_the_numbers(decal: Decal, more: tuple[str, ...]) -> None:
    text, document = told(decal, *TWO, "--threshold", ".3", "--group", "group", *more)
    assert not list(grouped_contradictions(document, text))
    assert list(grouped_contradictions(document, text.replace("-132.1 [", "-131.1 [")))


@pytest.mark.ci
def test_every_gap_between_groups_follows_from_the_numbers(decal: Decal, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("evaluate", *TWO, "--threshold", ".3", "--group", "group", "--pack", "fairness")
    text, document = decal(*asked).out, decal.json(*asked)
    assert not list(gap_contradictions(document, text, PACKS["fairness"].measures))
    assert list(gap_contradictions(document, text.replace(" no\n", " yes\n"), PACKS["fairness"].measures))
    # Two groups are one pair: all are listed where one may be, and none where none may.
    for most, cut in ((1, False), (0, True)):
        monkeypatch.setattr(sections, "MAX_PAIRS", most)
        assert (f"the {most} most certain pairs of each metric are listed" in decal(*asked).text) == cut


@pytest.mark.parametrize("threshold", ["0.3", pytest.param("0.05", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "more", [("p_*", "--no-intervals"), pytest.param(("p_hatesonar,p_svm_waseem",), marks=pytest.mark.ci)], ids=str
)
def test_sentences_on_several_models_follow_from_the_numbers(
    decal: Decal, threshold: str, more: tuple[str, ...]
) -> None:
    text, document = told(decal, *FOX_MODELS[:-2], "--threshold", threshold, "--score", *more)
    assert not list(several_contradictions(document, text))
    for old, new in ((" models, p_", " models, q_"), ("Recalibration", "Nothing"), ("knowledge 0", "knowledge 1")):
        assert old in text.replace("\n", " ") and list(several_contradictions(document, text.replace(old, new)))


def test_it_opens_with_the_sentence_and_many_models_are_few_lines(decal: Decal) -> None:
    done = decal("evaluate", *FOX_MODELS, "--score", "p_*", "--no-intervals")
    lines = done.out.splitlines()
    assert lines[0].startswith("Of 7 models, p_mlp_hateval is worth most: ")
    assert len(lines) < 30
    table = [line.split() for line in lines if line.startswith("p_") and not {":", ";"} & set(line)]
    worth = [float(row[1]) for row in table]
    assert len(worth) == 7 and worth == sorted(worth, reverse=True)


def test_amounts_have_the_decimals_of_the_widest_interval(decal: Decal) -> None:
    """One false alarm in 400 rows costs 0.75 per 1,000; what b is worth is known to tens."""
    lines = (f"{max(k % 2, int(k == 0))},{k % 5 / 5},{k % 2}" for k in range(400))
    done = decal("evaluate", "-s", "a", "-s", "b", "-t", "0.3", stdin="\n".join(["a,b,y", *lines, ""]).encode())
    assert "a is worth most: -1 [-5, 0] per 1,000" in done.text and "b     -230 [-256, -204]" in done.out


def test_an_ascii_page_has_ascii_signs() -> None:
    bars = Bars("worth", "", "", (Bar("better", "5", 0.5), Bar("worse", "-5", -0.5)))
    assert "█" in Text(Page(60)).written([bars])
    text = Text(Page(60, ascii=True)).written([bars])
    assert text.isascii() and "#" in text


def test_bars_below_0_lie_left_of_the_line() -> None:
    bars = Bars("worth", "", "", (Bar("better", "5", 1.0), Bar("worse", "-5", -0.5)))
    _, better, worse = Text(Page(40)).written([bars]).splitlines()
    assert better == f"   better   5  {' ' * 8}│{'█' * 16}" and len(better) == 40
    assert worse == f"   worse   -5  {'█' * 8}│"


_EVERYTHING = "".join(PAYLOADS)
_SLICE = random.Random(0).sample(PAYLOADS, 3)


def renamed(value: Any, names: dict[str, str], depth: int = 0) -> Any:
    """A result in which whole texts are replaced, however deep they stand."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return type(value)(renamed(part, names, depth + 1) for part in value)
    if isinstance(value, dict):
        return {renamed(key, names, depth + 1): renamed(part, names, depth + 1) for key, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if each.init}
        changed = {name: renamed(part, names, depth + 1) for name, part in parts.items()}
        return dataclasses.replace(value, **{name: part for name, part in changed.items() if part is not parts[name]})
    if type(value).__module__.startswith("decal_cli.render.results"):
        copy = object.__new__(type(value))
        vars(copy).update({name: renamed(part, names, depth + 1) for name, part in vars(value).items()})
        return copy
    return value


_NAMES = (
    *("p", "p_a", "p_longer_name", "p_b", "north", "n", "s", "y", "x0", "x1", "a", "b"),
    *("preds.parquet", "arrays", "file_0", "file_5"),
)
"""Names of files, columns and groups in the made-up results."""


@pytest.mark.parametrize(
    "name",
    [_EVERYTHING, _SLICE[0], *(pytest.param(each, marks=pytest.mark.long) for each in _SLICE[1:])],
    ids=lambda name: ascii(name)[:20],
)
@pytest.mark.parametrize("command", RESULT_NAMES)
def test_a_hostile_name_in_every_format(command: str, name: str) -> None:
    result = renamed(result_of(command), {old: f"{name}{k}" for k, old in enumerate(_NAMES)})
    for form in FORMATS:
        if FORMATS[form].reads in faces_of(result):
            content = write(result, form, Page())
            if isinstance(content, str):
                check_text(content, form)


def test_the_names_are_in_what_is_written() -> None:
    """Else the test above would pass whatever is done."""
    for command in RESULT_NAMES:
        text = write(
            renamed(result_of(command), {old: f"\x1bNAME{k}" for k, old in enumerate(_NAMES)}), "table", Page()
        )
        assert "\\x1bNAME" in text, command


def test_every_block_escapes_its_texts() -> None:
    kinds = [each for each in vars(blocks).values() if isinstance(each, type) and dataclasses.is_dataclass(each)]
    assert len(kinds) > 15
    assert all(issubclass(each, blocks.Shown) for each in kinds)
    table = TextTable((Column("a\nb"),), (Row((Cell(("\x1b",), code="\x9b", reason="\u202e"),), section="\ufffe"),))
    texts = [table.columns[0].heading, *table.rows[0].cells[0].parts, table.rows[0].section]
    assert texts == [r"a\nb", r"\x1b", r"\ufffe"]
    assert (table.rows[0].cells[0].code, table.rows[0].cells[0].reason) == (r"\x9b", r"\u202e")
    assert Facts((("\r", (("\t", "\ud800"),)),)).groups == ((r"\r", ((r"\t", r"\ud800"),)),)
    assert Paragraph("plain → t* ≥ 0,3").text == "plain → t* ≥ 0,3"


def test_what_ci_systems_act_on_is_escaped() -> None:
    assert printable("::error::x") == r":\x3aerror::x"
    assert printable("a ##[error]x ##vso[x]") == r"a #\x23[error]x #\x23vso[x]"
    assert inert("a::b, ## x [y]") == "a::b, ## x [y]"
    wrapped = TextTable(
        (Column("a", words=True, wraps=True, most=20),), (Row((Cell(("word " * 3 + "::error::" * 2,)),)),)
    )
    assert not [line for line in shown([wrapped]).splitlines() if line.lstrip().startswith("::")]


def shown(parts: list[Any], form: str = "table") -> str:
    class Made:
        title = "\x1b*title*"

        def blocks(self) -> Any:
            return iter(parts)

    return str(write(Made(), form, Page()))


def test_json_holds_the_exact_name() -> None:
    class Made:
        def data(self) -> Any:
            return {_EVERYTHING: "ü\U0001f600"}

    text = str(write(Made(), "json", Page()))
    halves = (c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in _EVERYTHING)
    assert json.loads(text) == {"".join(halves): "ü\U0001f600"} and "ü\U0001f600" in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_csv_quotes_what_a_spreadsheet_would_compute() -> None:
    class Made:
        def rows(self) -> Any:
            return iter([["a", "b"], ["=1+1", -1.5], ["@x", "\n=1"], ["-1", "＝1"], ["plain", "a=b"]])

    rows = list(csv.reader(io.StringIO(str(write(Made(), "csv", Page())))))
    assert rows[1:] == [["'=1+1", "-1.5"], ["'@x", r"\n=1"], ["'-1", "'＝1"], ["plain", "a=b"]]


def test_markdown_reads_as_the_text_it_shows() -> None:
    from markdown_it import MarkdownIt

    names = [printable(name).strip() for name in PAYLOADS if printable(name).strip()]
    rows = tuple(Row((Cell((name,)), Cell(("1",), code=name))) for name in names)
    text = shown([TextTable((Column("name"), Column("value")), rows)], "markdown")
    tokens = [each for each in MarkdownIt("commonmark").enable("table").parse(text) if each.type == "inline"]
    read = ["".join(part.content for part in each.children or ()) for each in tokens]
    assert [each for each in read[2:]][::2] == names
    assert [each.removeprefix("1 (").removesuffix(")") for each in read[3:]][::2] == names


def test_a_heading_of_markdown_ends_where_its_name_does() -> None:
    for name in PAYLOADS:
        check_text(shown([blocks.Heading(f"p, {name}")], "markdown"), "markdown")


def test_only_one_place_writes_to_standard_error() -> None:
    package = Path(blocks.__file__).parents[1]
    allowed = {"streams.py", "__main__.py"}
    writing = [
        path.name
        for path in package.rglob("*.py")
        if path.name not in allowed and ("file=sys.stderr" in (text := path.read_text()) or "stderr.write" in text)
    ]
    assert not writing, "say it with streams.say, which escapes"
