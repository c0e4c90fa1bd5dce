"""Options that most commands share: what is read, for which decision, and where results go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import typer

from decal_cli.commands.options.choices import Missing, one_of


@dataclass(frozen=True)
class InputOptions:
    """Files and the roles of their columns."""

    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILES]...",
            help="CSV (also gzip), Parquet, Arrow/Feather or JSON Lines; - is standard input. "
            "Several: one data set (study: one each).",
            show_default=False,
        ),
    ] = field(default_factory=list)
    score: Annotated[
        list[str],
        typer.Option(
            "--score",
            "-s",
            metavar="COLUMN",
            help="Score column or glob such as 'p_*'; repeat for several models (fit: one).",
        ),
    ] = field(default_factory=list)
    label: Annotated[str | None, typer.Option("--label", "-y", metavar="COLUMN", help="Label column.")] = None
    positive: Annotated[str | None, typer.Option(metavar="VALUE", help="The label value that counts as 1.")] = None
    weight: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of positive row weights.")] = None
    group: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN",
            help="Also report every value of this column by itself (fit: what multicalibration corrects); repeatable.",
        ),
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
            metavar=one_of(Missing),
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
