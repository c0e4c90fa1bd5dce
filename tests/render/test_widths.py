"""Tables on narrow pages: no line is longer than the page, and no word is cut."""

from pathlib import Path
from unittest.mock import patch

import pytest
from rich.cells import cell_len

from decal_cli.commands import writing
from decal_cli.render.format import Page
from decal_cli.render.formats import write
from tests.helpers.command import BINARY, FOX, Decal, few_rows

P = ("rows.csv", "-s", "p", "-y", "y")
TABLES = {
    "every metric": (("evaluate", *P, "-t", "0.3", "--all", "--no-intervals"), "\nmetric ", "\nworst agent"),
    "regimes": (("evaluate", *P, "-t", "0.3", "--features", "x*", "--regimes"), "from, to ", "\nc: the"),
    "range": (("recommend", *P, "--cost-fp", "3:8", "--cost-fn", "5"), "\nfalse alarm", "\nActing pays"),
    "plan": (
        ("plan", "--auc", "0.8", "--prevalence", "0.3", "-t", "0.3", "-r", "expected_utility>=-0.15"),
        "\nto ",
        "\nHow often",
    ),
    "fit": (("fit", "isotonic", *P, "-t", "0.3", "-o", "m.json"), "\nmetric ", "\nNext"),
    "comparison": (
        ("compare", FOX, "-s", "p_profanity", "-s", "p_hatesonar", "-y", "y", "-t", "0.3"),
        "\nmetric ",
        "\ndecal:",
    ),
    "comparison of every metric": (
        ("compare", "rows.csv", "-s", "p", "-s", "q", "-y", "y", "-t", "0.3", "--all"),
        "\nmetric ",
        "\ndecal:",
    ),
    "few places": (
        ("recommend", FOX, "-s", "p_hatesonar", "-y", "y", "-t", "0.3", "--capacity", "50"),
        "\nwith",
        "\n1.",
    ),
}


@pytest.mark.ci
@pytest.mark.usefixtures("few_samples", "one_deal")
@pytest.mark.parametrize("name", TABLES)
def test_no_word_is_cut_and_no_line_too_long(decal: Decal, name: str) -> None:
    line, begins, ends = TABLES[name]
    few_rows(decal.folder, 300)
    with patch.object(writing, "write", wraps=write) as written:
        widest = decal(*line, COLUMNS="80").out
    for width in (60, 80):
        text = str(write(written.call_args.args[0], "table", Page(width)))
        assert width < 80 or text.strip() in widest
        table = text[text.index(begins) : text.index(ends)]
        assert "…" not in table and max(map(cell_len, table.splitlines())) <= width


def test_gaps_of_two_columns_fit_a_narrow_page(decal: Decal, tmp_path: Path) -> None:
    header, rows = BINARY.read_text().split("\n", 1)
    renamed = header.replace("split", "split_of_rows").replace("group", "group_of_rows")
    (tmp_path / "rows.csv").write_text(f"{renamed}\n{rows}")
    groups = ("--group", "split_of_rows", "--group", "group_of_rows", "--pack", "fairness")
    text = decal("evaluate", tmp_path / "rows.csv", *P[1:], "-t", "0.3", *groups, COLUMNS="60").out
    table = text[text.index("\nGroups that") : text.index("\ngap:")]
    assert "\nsplit_of_rows\n" in table and "\ngroup_of_rows\n" in table
    assert max(map(cell_len, table.splitlines())) <= 60
