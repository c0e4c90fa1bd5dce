"""Tables on narrow pages: headings get short, columns go, intervals step below, and then the table is cut in banks."""

from decal_cli.render.blocks import Cell, Column, Row, TextTable
from decal_cli.render.format import Page
from decal_cli.render.formats.text import Text


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


def test_names_in_brackets_and_colons_are_no_markup() -> None:
    table = TextTable((Column("[bold]", words=True), Column(":smile:")), (row("[red]x", Cell(("[/]",))),))
    assert lines_of(table, 40) == ["[bold]  :smile:", "[red]x      [/]"]
