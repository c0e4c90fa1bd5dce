"""Options that most commands share: what is read, for which decision, and where results go."""

from __future__ import annotations

from typing import Any

from decal_cli.declarations.option import argument, option, options
from decal_cli.roles import DECLARATIONS

INPUT, DECISION, STATISTICS, OUTPUT = "Input", "Decision", "Statistics", "Output"
INPUT_FORMATS = "CSV, Parquet, Arrow/Feather or JSON Lines, each also gzipped; - reads standard input."


@options(INPUT)
class InputOptions:
    """Files, and what the command line says about their columns: name -> value of each declaration that it names."""

    files: list[str] = argument(
        f"{INPUT_FORMATS} Several files are one data set, and so are those of a folder.", "FILE", []
    )
    named: dict[str, Any] = option("", each=DECLARATIONS)


@options(INPUT)
class EngineOptions(InputOptions):
    """The same, or an engine that holds the rows."""

    engine: str | None = option(
        "Engine that holds the rows, in place of files: 'duckdb:FILE?table=NAME', "
        "'postgresql://USER@HOST/DB?table=NAME' or 'spark:?table=NAME'. It counts them, and hands over a "
        "sample of rows for --features, --try and fit.",
        metavar="ENGINE",
    )
    query: str | None = option("With --engine: the query that gives the rows, in place of a table.", metavar="SQL")


@options(OUTPUT)
class OutputOptions:
    """Where results go."""

    output: str | None = option(
        "Write the result to this file instead of standard output.", None, "-o", metavar="FILE", brief=True
    )
