"""Options that most commands share: what is read, for which decision, and where results go."""

from __future__ import annotations

from typing import Any

from decal_cli.commands.options.declare import argument, option, options
from decal_cli.declarations.defaults import CONFIDENCE, SEED
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


@options(DECISION)
class TaskOptions:
    """The decision and what it is worth."""

    threshold: float | None = option(
        "Act when the score is T or more (t*). A false positive then costs T, a false negative 1 - T.",
        None,
        "--threshold",
        "-t",
        metavar="T",
    )
    utility: str | None = option(
        "Utilities 'u00,u01;u10,u11', a row for each decision and a column for each label, "
        "or with more rows and names: 'wait,0,-20;test,-2,-3;treat,-5,-1'; or a .json, .toml or .csv file of them.",
        metavar="MATRIX",
    )
    cost_matrix: str | None = option(
        "Costs in place of utilities, spelled as --utility: a row for each decision and a column for each label.",
        metavar="MATRIX",
    )
    cost_fp: float | None = option("Cost of a false positive; give --cost-fn too.", metavar="COST")
    cost_fn: float | None = option("Cost of a false negative; give --cost-fp too.", metavar="COST")
    odds: str | None = option(
        "Cost of a false positive to that of a false negative: 1:19 means t* = 0.05.", metavar="A:B"
    )
    abstain: float | None = option(
        "With --proba: name the class, which is worth 1 where right, or abstain, which is worth 1 less this price.",
        metavar="PRICE",
    )
    decision_threshold: float | None = option(
        "Threshold at which the model is used today, where that is not t*.", metavar="T"
    )


@options(DECISION)
class AmountOptions:
    """In which unit and for how many decisions amounts are printed."""

    unit: str | None = option("Unit of the utilities, such as EUR.", metavar="UNIT")
    decisions: float | None = option(
        "Number of decisions: amounts are printed for so many, and a total --cost is spread over them.", metavar="N"
    )
    per: str | None = option(
        "The time that has so many decisions, such as year. With --capacity: column whose every value has that "
        "capacity, such as the day.",
        metavar="TIME",
    )


@options(DECISION)
class TermsOptions(AmountOptions):
    """The same, and what the actions are called."""

    names: str | None = option("Names of the decisions 0 and 1, such as 'reject,accept'.", metavar="NAME0,NAME1")


@options(STATISTICS)
class ConfidenceOptions:
    """How sure the intervals are."""

    confidence: float | None = option("Confidence level of the intervals.", metavar="LEVEL", shown=CONFIDENCE)


@options(STATISTICS)
class SeedOptions(ConfidenceOptions):
    """The same, and the seed of random numbers."""

    seed: int | None = option("Seed of folds and resamples.", metavar="N", shown=SEED)


@options(OUTPUT)
class OutputOptions(SeedOptions):
    """The same, and where results go."""

    output: str | None = option(
        "Write the result to this file instead of standard output.", None, "--output", "-o", metavar="FILE"
    )
