"""The options of the command line alone, by command; those that Python has too are declared by its nouns."""

from __future__ import annotations

import os
from typing import Any

from decal_cli.api.nouns import Data, names_in, rule_names, same
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.declarations.option import argument, option, options
from decal_cli.render.format import Face
from decal_cli.render.formats import DEFAULT, check_format, format_for, offered, suffixes

INPUT, DECISION, STATISTICS, OUTPUT = "Input", "Decision", "Statistics", "Output"
INPUT_FORMATS = "CSV, Parquet, Arrow/Feather or JSON Lines, each also gzipped; - reads standard input."


MISSING = ("error", "drop")
"""What to do with missing scores of new rows."""
DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "spark")
"""Whose SQL a statement is in."""
PICTURES = (
    *("brier", "decision", "roc", "reliability", "grouping", "waterfall", "utility", "actions", "risk-coverage"),
    "all",
)
"""What is drawn of a sweep."""


def column_names(incomplete: str) -> list[str]:
    """Columns of the first file on the line that begin so."""
    from decal_cli.data import columns_in
    from decal_cli.errors import DecalError

    # The line as the shell hands it over: an option without its value yet keeps Typer from parsing it.
    words = (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()
    path = next((word.strip("'\"") for word in words[1:] if os.path.isfile(word.strip("'\""))), None)
    try:
        return [] if path is None else [name for name in columns_in(path) if name.startswith(incomplete)]
    except (DecalError, OSError):
        return []


metric_names, method_names = names_in("metrics.METRICS"), names_in("learn.methods.METHODS")


def format_option(
    *faces: Face,
    text: str = "Format of the result.",
    by_suffix: bool = True,
    settled: bool = True,
    several: bool = False,
) -> Any:
    """The option of a command whose result has these faces; it refuses any other format before anything is read.

    by_suffix: whether the file of --output says the format where the option does not; settled: and nothing else does.
    several: whether it may be given more than once, with a file each.
    """

    def check(context: Any, value: Any) -> Any:
        for each in value if several else [value] if value is not None else []:
            check_format(each.partition("=")[0] if several else each, faces, f"`{context.command_path}`")
        return value

    def begin_so(incomplete: str) -> list[str]:
        return [name for name in offered(faces) if name.startswith(incomplete)]

    metavar = "|".join(offered(faces))
    ends = ", ".join(suffixes(faces))
    default, shown = (None, f"by the suffix of --output ({ends}), else {DEFAULT}") if by_suffix else (DEFAULT, None)
    return option(
        text,
        [] if several else default,
        "-f",
        metavar=metavar,
        brief=True,
        complete=begin_so,
        check=check,
        panel=OUTPUT,
        shown=shown,
        settle=(lambda value, line: format_for(value, line["output"], faces)) if by_suffix and settled else None,
    )


@options(OUTPUT)
class OutputOptions:
    """Where results go."""

    output: str | None = option(
        "Write the result to this file instead of standard output.", None, "-o", metavar="FILE", brief=True
    )


PLOT = "Draw the curves into this .png, .svg or .pdf file; - draws them in the terminal."
NO_INTERVALS = "Compute no intervals, which is faster."


@options("Metrics")
class MetricOptions:
    """Which metrics, with intervals or not, and in which format."""

    metric: list[str] = option(
        "Report only this metric, such as 'ece(bins=20)'. Repeatable; `decal metrics` lists them.",
        [],
        "-m",
        metavar="METRIC",
        complete=metric_names,
        brief="Report only this metric, such as 'ece(bins=20)'. Repeatable.",
    )
    all_metrics: bool = option("Show every metric in the table, not only the main ones.", False, key="all", brief=True)
    no_intervals: bool = option(NO_INTERVALS, False, panel=STATISTICS)
    format: str = format_option("blocks", "data", "rows")


@options("Metrics")
class EvaluateOptions(MetricOptions):
    """The same, the measures of a field, and whether the bins of the score are shown."""

    pack: str | None = option(
        "The measures of a field under its own names: clinical, credit or fairness (which compares the groups of "
        "--group).",
        metavar="FIELD",
        complete=names_in("analysis.packs.PACKS"),
        brief="The measures of a field: clinical, credit or fairness.",
    )
    plot: str | None = option(
        "With --pack fairness: draw the measures of every group into this .png, .svg or .pdf file.", metavar="FILE"
    )
    reference: str | None = same(Data, "reference")
    regimes: bool = option(
        "Show each bin of the score, and whether miscalibration or grouping loses more utility there.", False
    )


@options("Comparison")
class CompareOptions:
    """Which rows belong together, and what is written of the two models."""

    id: str | None = same(Data, "id")
    write_splice: str | None = option(
        "Write the spliced scores, row by row, to this .csv or .parquet file.", metavar="FILE"
    )
    plot: str | None = option(PLOT, metavar="FILE")
    force: bool = option("Overwrite the file of --write-splice if it exists.", False)


@options("Methods")
class AdviceOptions:
    """Whether methods are tried, and how the advice is written."""

    trying: bool = option(
        "Fit the methods by cross-fitting, show what each gains, and repeat the questions with the best one.",
        False,
        key="try",
        brief="Fit the methods by cross-fitting, and show what each gains.",
    )
    method: list[str] = option(
        "Try only this method, such as isotonic or 'platt(on=p)'. Repeatable; implies --try.",
        [],
        metavar="METHOD",
        complete=method_names,
        shown="every method that the columns allow",
        brief="Try only this method, such as isotonic. Repeatable; implies --try.",
    )
    format: str = format_option("blocks", "data", "rows")


@options("Gate")
class GateOptions:
    """What is written of it."""

    no_intervals: bool = option(NO_INTERVALS, False, panel=STATISTICS)
    write_baseline: str | None = option(
        "Write the metrics as a JSON report, a baseline for later runs, if every rule passes.",
        metavar="REPORT",
        brief=True,
    )
    format: list[str] = format_option(
        "blocks",
        "data",
        "rows",
        "checks",
        text="Format of the result; junit=FILE writes this format into a file. Repeatable.",
        settled=False,
        several=True,
    )


@options("Plan")
class PlanOptions:
    """What rows are to show, and what is known of them beforehand."""

    rule: list[str] = option(
        "Rule that the rows are to show to hold, or to fail, such as 'gain_recalibration<=0.01'. Repeatable.",
        [],
        "-r",
        metavar="RULE",
        complete=rule_names,
    )
    pilot: str | None = option("File of rows like those to come, with scores and labels.", metavar="FILE")
    score: str | None = option("Score column of the pilot.", None, "-s", metavar="COL")
    label: str | None = option("Label column of the pilot.", None, "-y", metavar="COL")
    features: list[str] = option(
        "Feature columns of the pilot, for rules on gain_beyond. Repeatable.", [], metavar="COL"
    )
    auc: float | None = option("Without a pilot: the AUC to expect, of calibrated scores.", metavar="AUC")
    prevalence: float | None = option("Without a pilot: the share of label 1 to expect.", metavar="SHARE")
    half_width: float | None = option("Half-width that the interval of each rule's metric is to have.", metavar="X")
    format: str = format_option("blocks", "data", "rows")


@options("Curves")
class SweepOptions:
    """Which thresholds, and what is written and drawn of them."""

    thresholds: str = option(
        "Thresholds t*: start:end:step, or a list such as 0.1,0.3,0.5.", SWEEP_THRESHOLDS, metavar="GRID", brief=True
    )
    prior: str | None = option(
        "How often each t* occurs: beta:A,B, or a CSV or JSON file of thresholds and weights. "
        "Adds the expectation of every curve.",
        metavar="PRIOR",
    )
    prevalence_range: str | None = option(
        "Shares of labels 1 where decisions are made, LOW:HIGH[:STEP]: what the decision is worth at each, with the "
        "scores moved to it and kept.",
        metavar="RANGE",
    )
    capacity_range: str | None = option(
        "Capacities LOW:HIGH[:STEP], shares such as 0.01:0.2 or counts such as 50:500: at each, what acting on the "
        "highest scores is worth, and how many of label 1 it finds.",
        metavar="RANGE",
    )
    vary: str | None = option(
        "Vary a number of the task in place of t*: 'ACTION:CLASS=LOW:HIGH[:STEP]', an entry of --utility or "
        "--cost-matrix, or 'abstain=LOW:HIGH[:STEP]', the price of abstention with --proba, or with --amount "
        "'cost-fp=LOW:HIGH', how many times what a false positive costs today.",
        metavar="WHAT=RANGE",
        shown="t*; with --proba the price of abstention, with --amount cost-fp",
        brief="Vary a number of the task, 'ACTION:CLASS=LOW:HIGH', in place of t*.",
    )
    plot: str | None = option(PLOT, metavar="FILE", brief=True)
    picture: list[str] = option(
        "What to draw; waterfall needs a decision, such as --threshold. With --vary or --proba: utility, actions, "
        "risk-coverage or reliability. Repeatable.",
        [],
        choices=PICTURES,
        shown="brier and decision; utility and actions",
    )
    all_thresholds: bool = option("Show every threshold in the table, not only some.", False, key="all")
    no_intervals: bool = option(NO_INTERVALS, False, panel=STATISTICS)
    format: str = format_option("blocks", "data", "rows", "columns")


@options(OUTPUT)
class ReportOptions:
    """What kind of page is written."""

    card: bool = option(
        "Write a model card in place of the page: what decal measured and what it cannot know, item by item of "
        "TRIPOD+AI. A .md, .html or .json file, or Markdown to standard output.",
        False,
        brief="Write a model card by TRIPOD+AI, as Markdown or JSON, in place of the page.",
    )


@options("Method")
class FitOptions:
    """Which method is fitted, how the model is evaluated and where it is saved."""

    method: str = argument(
        "Method to fit, such as isotonic or 'platt(on=p)'; `decal methods` lists them. "
        "auto fits what `decal recommend` advises.",
        "METHOD",
        required=True,
        complete=names_in("learn.methods.METHODS", also=("auto",)),
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

    dialect: str = option(
        "Dialect of SQL; bigquery and snowflake are experimental: no server of theirs has run them.",
        "duckdb",
        choices=DIALECTS,
    )
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


@options("Arguments")
class DemoOptions:
    """Where the files go."""

    folder: str = argument("Folder to write the example file to.", "FOLDER", "fixtures")


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


@options("Over time")
class OnlineOptions:
    """What a replay goes on from, what must hold, and how the result is written."""

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
    format: str | None = format_option("blocks", "data", "rows", "checks", settled=False)


ARGUMENTS = "Arguments"


@options(ARGUMENTS)
class MetricName:
    """Which metric is explained."""

    name: str | None = argument("Metric to explain; without it, all are listed.", "NAME", complete=metric_names)


@options(ARGUMENTS)
class MethodName:
    """Which method is explained."""

    name: str | None = argument(
        "Method to explain; without it, all are listed.",
        "NAME",
        complete=names_in("learn.methods.METHODS", "sequential.ONLINE"),
    )
