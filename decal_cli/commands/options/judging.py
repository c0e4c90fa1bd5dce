"""Options of the commands that judge: evaluate, recommend, gate, compare, sweep, report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import typer

from decal_cli.commands.options.choices import (
    Format,
    GateFormat,
    Picture,
    SweepFormat,
    method_names,
    metric_names,
    one_of,
)


@dataclass(frozen=True)
class ReportOptions:
    """What is reported."""

    metric: Annotated[
        list[str],
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            autocompletion=metric_names,
            help="Only this metric, e.g. 'ece(bins=20)'; repeatable. `decal metrics` lists them.",
        ),
    ] = field(default_factory=list)
    all_metrics: Annotated[
        bool, typer.Option("--all", help="Every metric in the table too, not a readable choice.")
    ] = False
    format: Annotated[
        Format, typer.Option("--format", "-f", metavar=one_of(Format), help="How to write the result.")
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
        float | None,
        typer.Option(
            metavar="U",
            help="Regret per decision too small to matter. [default: 0.01 u_delta, or the least --cost below it]",
        ),
    ] = None


@dataclass(frozen=True)
class AdviceOptions(WishOptions):
    """The same, whether methods are tried, and how the advice is written."""

    trying: Annotated[
        bool,
        typer.Option(
            "--try", help="Fit the methods by cross-fitting, show what they win, and start over with the best one."
        ),
    ] = False
    method: Annotated[
        list[str],
        typer.Option(
            metavar="METHOD",
            autocompletion=method_names,
            help="Try only this one, e.g. isotonic or 'stack-forest'; repeatable; implies --try. "
            "[default: every method that the columns allow]",
        ),
    ] = field(default_factory=list)

    format: Annotated[
        Format, typer.Option("--format", "-f", metavar=one_of(Format), help="How to write the result.")
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
        GateFormat, typer.Option("--format", "-f", metavar=one_of(GateFormat), help="How to write the outcome.")
    ] = GateFormat.table


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
            metavar=one_of(Picture),
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
            metavar=one_of(SweepFormat),
            help="How to write the result. [default: by the suffix of --output (.json, .csv, .parquet), else table]",
        ),
    ] = None
    no_intervals: Annotated[bool, typer.Option("--no-intervals", help="Point estimates only, faster.")] = False
