"""Every option of the command line, declared once: parser, help, completion and man pages read it from here.

A command takes whole groups of options; `flat` spreads the fields of the groups into the flat parameters Typer wants.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

import typer


class Format(StrEnum):
    """How results are written."""

    table = "table"
    json = "json"
    markdown = "markdown"
    csv = "csv"


class GateFormat(StrEnum):
    """How a gate's outcome is written."""

    table = "table"
    json = "json"
    markdown = "markdown"
    csv = "csv"
    github = "github"
    junit = "junit"


class Missing(StrEnum):
    """What to do with missing scores and labels."""

    error = "error"
    drop = "drop"


class FitFormat(StrEnum):
    """How the outcome of a fit is written."""

    table = "table"
    json = "json"


class SweepFormat(StrEnum):
    """How a sweep is written."""

    table = "table"
    json = "json"
    csv = "csv"


class Picture(StrEnum):
    """What is drawn of a sweep."""

    brier = "brier"
    decision = "decision"
    reliability = "reliability"
    grouping = "grouping"
    waterfall = "waterfall"
    all = "all"


def _one_of(choices: type[StrEnum]) -> str:
    return "|".join(choices)


def _metric_names(incomplete: str) -> list[str]:
    from decal_cli.metrics import METRICS

    return [name for name in METRICS if name.startswith(incomplete)]


@dataclass(frozen=True)
class InputOptions:
    """Files and the roles of their columns."""

    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILES]...",
            help="CSV (also gzip), Parquet, Arrow/Feather or JSON Lines; - is standard input. Several: one data set.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    score: Annotated[
        list[str],
        typer.Option(
            "--score", "-s", metavar="COLUMN", help="Score column or glob such as 'p_*'; repeat for several models."
        ),
    ] = field(default_factory=list)
    label: Annotated[str | None, typer.Option("--label", "-y", metavar="COLUMN", help="Label column.")] = None
    positive: Annotated[str | None, typer.Option(metavar="VALUE", help="The label value that counts as 1.")] = None
    weight: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of positive row weights.")] = None
    group: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="Also report every value of this column by itself; repeatable.")
    ] = field(default_factory=list)
    features: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN", help="Feature columns, globs such as 'x*', or one list-valued embedding column."
        ),
    ] = field(default_factory=list)
    logit: Annotated[bool, typer.Option("--logit", help="Scores are on the log-odds scale.")] = False
    missing: Annotated[
        Missing | None,
        typer.Option(
            metavar=_one_of(Missing),
            help="Missing scores or labels: an error, or drop the rows and say how many. [default: error]",
        ),
    ] = None


@dataclass(frozen=True)
class TaskOptions:
    """The decision and what it is worth."""

    threshold: Annotated[
        float | None,
        typer.Option("--threshold", "-t", metavar="T", help="Act from this probability on (t*), u_delta = 1."),
    ] = None
    utility: Annotated[
        str | None,
        typer.Option(
            metavar="MATRIX", help="'u00,u01;u10,u11' (row: decision, column: label) or a .json/.toml/.csv file."
        ),
    ] = None
    cost_fp: Annotated[float | None, typer.Option(metavar="COST", help="Cost of a false positive.")] = None
    cost_fn: Annotated[float | None, typer.Option(metavar="COST", help="Cost of a false negative.")] = None
    odds: Annotated[
        str | None, typer.Option(metavar="A:B", help="Cost of false positives to false negatives: 1:19 is t* = .05.")
    ] = None
    decision_threshold: Annotated[
        float | None, typer.Option(metavar="T", help="Where the model is operated, if elsewhere than at t*.")
    ] = None


@dataclass(frozen=True)
class OutputOptions:
    """Where results go and how sure they are."""

    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to standard output.")
    ] = None
    confidence: Annotated[
        float | None, typer.Option(metavar="LEVEL", help="Level of the intervals. [default: 0.95]")
    ] = None
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of folds and resamples. [default: 0]")] = None


@dataclass(frozen=True)
class ReportOptions:
    """What is reported."""

    metric: Annotated[
        list[str],
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            autocompletion=_metric_names,
            help="Only this metric, e.g. 'ece(bins=20)'; repeatable. `decal metrics` lists them.",
        ),
    ] = field(default_factory=list)
    all_metrics: Annotated[
        bool, typer.Option("--all", help="Every metric in the table too, not a readable choice.")
    ] = False
    format: Annotated[
        Format, typer.Option("--format", "-f", metavar=_one_of(Format), help="How to write the result.")
    ] = Format.table
    no_intervals: Annotated[bool, typer.Option("--no-intervals", help="Point estimates only, faster.")] = False


@dataclass(frozen=True)
class CompareOptions:
    """Which rows belong together, and what is written of the two models."""

    id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column of row ids: joins two files of one score each."),
    ] = None
    write_splice: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the spliced scores there, row by row (.csv or .parquet)."),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Let --write-splice write over a file.")] = False


@dataclass(frozen=True)
class WishOptions:
    """What post-training costs, and what is good enough."""

    cost: Annotated[
        list[str],
        typer.Option(
            metavar="[METHOD=]COST",
            help="Cost of post-training, in utility per decision (in total with --decisions); "
            "'recalibrate=1' or 'post-train=50' for one method. Repeatable.",
        ),
    ] = field(default_factory=list)
    decisions: Annotated[
        float | None, typer.Option(metavar="N", help="Decisions over which a total --cost is spread.")
    ] = None
    satisfied_at: Annotated[
        float | None, typer.Option(metavar="EU", help="Expected utility per decision that is good enough.")
    ] = None
    tolerance: Annotated[
        float | None, typer.Option(metavar="U", help="Regret per decision too small to matter. [default: 0.01 u_delta]")
    ] = None


@dataclass(frozen=True)
class AdviceOptions(WishOptions):
    """The same, and how the advice is written."""

    format: Annotated[
        Format, typer.Option("--format", "-f", metavar=_one_of(Format), help="How to write the result.")
    ] = Format.table


@dataclass(frozen=True)
class GateOptions:
    """What must hold."""

    rule: Annotated[
        list[str],
        typer.Option(
            "--rule", "-r", metavar="RULE", help="E.g. 'regret<=0.02', 'upper(ece(bins=20))<=0.05'; repeatable."
        ),
    ] = field(default_factory=list)
    baseline: Annotated[
        str | None, typer.Option(metavar="REPORT", help="JSON report for rules such as 'brier<=baseline+0.005'.")
    ] = None
    format: Annotated[
        GateFormat, typer.Option("--format", "-f", metavar=_one_of(GateFormat), help="How to write the outcome.")
    ] = GateFormat.table


def _method_names(incomplete: str) -> list[str]:
    from decal_cli.posttrain import METHODS

    return [name for name in ("auto", *METHODS) if name.startswith(incomplete)]


@dataclass(frozen=True)
class MethodOptions:
    """Which method is fitted."""

    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            autocompletion=_method_names,
            help="E.g. isotonic or 'platt(on=p)'; `decal methods` lists them. auto: what `decal recommend` advises.",
            show_default=False,
        ),
    ]
    option: Annotated[
        str | None, typer.Option("--method", metavar="METHOD", help="The method, in place of the first argument.")
    ] = None


@dataclass(frozen=True)
class FitOptions:
    """How the model is judged and where it is kept."""

    model: Annotated[
        str, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write, readable JSON.")
    ]
    test: Annotated[
        list[str],
        typer.Option(
            metavar="FILE", help="Judge the model on these rows instead of cross-fitting on its own; repeatable."
        ),
    ] = field(default_factory=list)
    force: Annotated[bool, typer.Option("--force", help="Write over a model file that is there.")] = False
    confidence: Annotated[
        float | None, typer.Option(metavar="LEVEL", help="Level of the intervals. [default: 0.95]")
    ] = None
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of folds and methods. [default: 0]")] = None
    format: Annotated[
        FitFormat, typer.Option("--format", "-f", metavar=_one_of(FitFormat), help="How to write what it wins.")
    ] = FitFormat.table


@dataclass(frozen=True)
class ApplyOptions:
    """A model file, the rows to be scored, and where they go."""

    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that `decal fit` wrote.", show_default=False)]
    file: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]", help="The rows to be scored, in any format; - is standard input.", show_default=False
        ),
    ]
    output: Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="Where to write them, .csv or .parquet.")]
    name: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the new score. [default: the old one's name and the method's]"),
    ] = None
    missing: Annotated[
        Missing | None,
        typer.Option(
            metavar=_one_of(Missing),
            help="Missing scores or features: an error, or keep the rows with no new score (drop). [default: error]",
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False


@dataclass(frozen=True)
class SweepOptions:
    """Which thresholds, and what is written and drawn of them."""

    thresholds: Annotated[
        str, typer.Option(metavar="GRID", help="Thresholds t*: start:end:step, or a list such as 0.1,0.3,0.5.")
    ] = "0.01:0.99:0.01"
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="PRIOR",
            help="How often each t* occurs: beta:A,B, or a CSV or JSON file of threshold and weight; "
            "every curve's expectation under it is printed too.",
        ),
    ] = None
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw into a .png, .svg or .pdf file; - draws in the terminal."),
    ] = None
    picture: Annotated[
        list[Picture],
        typer.Option(
            metavar=_one_of(Picture),
            help="What to draw; repeatable. waterfall is drawn for the decision of --threshold. "
            "[default: brier and decision]",
        ),
    ] = field(default_factory=list)
    all_thresholds: Annotated[bool, typer.Option("--all", help="Every threshold in the table, not a choice.")] = False
    format: Annotated[
        SweepFormat | None,
        typer.Option(
            "--format",
            "-f",
            metavar=_one_of(SweepFormat),
            help="How to write the result. [default: by the suffix of --output (.json, .csv, .parquet), else table]",
        ),
    ] = None
    no_intervals: Annotated[bool, typer.Option("--no-intervals", help="Point estimates only, faster.")] = False


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes option groups be called with their fields as flat keyword parameters."""
    groups = get_type_hints(command)
    groups.pop("return", None)
    hints = {name: get_type_hints(group, include_extras=True) for name, group in groups.items()}

    @functools.wraps(command)
    def spread(**given: Any) -> None:
        command(**{name: group(**{f.name: given[f.name] for f in fields(group)}) for name, group in groups.items()})

    parameters = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=_default(f), annotation=hints[name][f.name])
        for name, group in groups.items()
        for f in fields(group)
    ]
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del spread.__wrapped__
    return spread


def _default(declared: Field[Any]) -> Any:
    """Lists are made by a factory; what has neither default nor factory is required."""
    if declared.default is not MISSING:
        return declared.default
    return inspect.Parameter.empty if declared.default_factory is MISSING else []
