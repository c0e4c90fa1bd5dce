"""Options of the commands that act: fit, apply, study, online."""

from __future__ import annotations

from typing import Any

from decal_cli.api.nouns import Data, OverTime, same
from decal_cli.commands.options.choices import DIALECTS, MISSING, method_names, method_names_or_auto, online_names
from decal_cli.commands.options.common import INPUT, INPUT_FORMATS, OUTPUT, InputOptions
from decal_cli.commands.options.formats import format_option
from decal_cli.declarations.option import argument, option, options
from decal_cli.roles import DECLARATIONS


@options("Method")
class FitOptions:
    """Which method is fitted, how the model is evaluated and where it is saved."""

    method: str = argument(
        "Method to fit, such as isotonic or 'platt(on=p)'; `decal methods` lists them. "
        "auto fits what `decal recommend` advises.",
        "METHOD",
        required=True,
        complete=method_names_or_auto,
    )
    test: list[str] = same(Data, "test", [])
    model: str = option(
        "Model file to write, as readable JSON.",
        None,
        "-o",
        key="output",
        required=True,
        metavar="MODEL",
        panel=OUTPUT,
        brief=True,
    )
    force: bool = option("Overwrite the model file if it exists.", False, panel=OUTPUT)
    format: str = format_option("blocks", "data", text="Format of the evaluation.", by_suffix=False)


@options(OUTPUT)
class ApplyOptions:
    """A model file, the rows to be scored, and where they go."""

    model: str = argument(
        "Model file that `decal fit` wrote, or state that `decal online` wrote.", "MODEL", required=True, panel=INPUT
    )
    file: str = argument(
        "Rows to score, in any input format; - reads standard input.", "FILE", required=True, panel=INPUT
    )
    missing: str | None = option(
        "Missing scores: report an error, or keep the rows without a new score (drop).",
        choices=MISSING,
        shown="error",
        panel=INPUT,
    )
    output: str = option(
        "File for the rows with the new score (.csv or .parquet); - writes CSV to standard output.",
        None,
        "-o",
        required=True,
        metavar="OUT",
    )
    name: str | None = option(
        "Name of the new column.", metavar="COLUMN", shown="the old score's name and the method's, such as p_isotonic"
    )
    force: bool = option("Overwrite the output file if it exists.", False)


OF_STATEMENT = ("score", "label", "weight", "group", "cluster", "positive", "logit")
"""What a statement can say of the columns."""


@options("Statement")
class SqlOptions:
    """Which rows a database counts or scores, and how."""

    dialect: str = option("Dialect of SQL.", "duckdb", choices=DIALECTS)
    table: str | None = option("Table that holds the rows: table, schema.table or '\"my.table\"'.", metavar="TABLE")
    query: str | None = option("Query that gives the rows, in place of a table.", metavar="SQL")
    model: str | None = option(
        "Score the rows with this model file in place of counting them: isotonic, histogram, platt, temperature, beta, "
        "quadratic and threshold can be written as SQL.",
        metavar="MODEL",
    )
    cells: bool = option(
        "Count by cell of the score, 65,536 of equal width, with the sums in each: the result stays small whatever "
        "the rows.",
        False,
    )
    pairs: bool = option(
        "Count rows by two scores at once, for `decal compare FILE --aggregated`; with --cells, 256 on each side.",
        False,
    )
    threshold: list[float] = option(
        "With --cells: a threshold at which decisions are to be exact. Repeatable.",
        [],
        "-t",
        metavar="T",
    )
    named: dict[str, Any] = option("", each={name: DECLARATIONS[name] for name in OF_STATEMENT}, panel=INPUT)


@options("Study")
class StudyOptions:
    """What is studied, and where points, tables and pictures go."""

    method: list[str] = option(
        "Study only this method. Repeatable.", [], metavar="METHOD", complete=method_names, shown="all", brief=True
    )
    figures: bool = option(
        "Also draw every figure of Perez-Lebel et al. 2025, in both units, on a page of its own: figures.md.",
        False,
        panel=OUTPUT,
    )
    format: str = format_option("blocks", "data", "rows", text="Format of the summary.", by_suffix=False)


OF_STREAM = ("score", "label", "group", "cluster", "positive", "logit", "missing")
"""What can be said of the columns of rows over time."""


@options(INPUT)
class StreamOptions(InputOptions):
    """Files of rows in the order of time, and what is said about their columns."""

    files: list[str] = argument(f"{INPUT_FORMATS} Several files are one stream, in this order.", "FILE", [])
    named: dict[str, Any] = option("", each={name: DECLARATIONS[name] for name in OF_STREAM})


@options("Over time")
class OnlineOptions:
    """How time passes, which forecasters are replayed, and how the result is written."""

    time: str | None = same(OverTime, "time")
    delay: str | None = same(OverTime, "delay")
    warm_up: int | None = same(OverTime, "warm_up")
    every: str | None = same(OverTime, "every")
    horizon: int | None = same(OverTime, "horizon")
    method: list[str] = option(
        "Replay only this forecaster, such as online-platt or 'rolling-isotonic(window=500)'. Repeatable.",
        [],
        metavar="METHOD",
        complete=online_names,
        shown="all; without a score, those that need none",
        brief="Replay only this forecaster, such as online-platt. Repeatable.",
    )
    state: str | None = option(
        "Go on from this file where an earlier run ended, and write it anew; it is begun where there is none.",
        metavar="STATE",
        brief=True,
    )
    skip_known: bool = option(
        "Leave out rows that the state has already. Without this a file that begins with such rows is refused; a file "
        "that was taken whole is skipped in any case.",
        False,
    )
    plot: str | None = option(
        "Draw the utility won, the evidence against the score and its reliability by period into this .png, .svg or "
        ".pdf file. The HTML page has them too.",
        metavar="FILE",
    )
    rule: list[str] = option(
        "Rule that must hold, such as 'e_calibration<20' or 'lower(gain)<0.01': the exit code is 1 where one fails. "
        "It may be checked every day. Repeatable.",
        [],
        "-r",
        metavar="RULE",
        brief="Rule that must hold, such as 'e_calibration<20'. Repeatable.",
    )
    format: str | None = format_option("blocks", "data", "rows", "checks")
