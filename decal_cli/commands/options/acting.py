"""Options of the commands that act: fit, apply, study."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import typer

from decal_cli.commands.options.choices import FitFormat, Missing, method_names, one_of


@dataclass(frozen=True)
class MethodOptions:
    """Which method is fitted."""

    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            autocompletion=method_names,
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
        FitFormat, typer.Option("--format", "-f", metavar=one_of(FitFormat), help="How to write what it wins.")
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
            metavar=one_of(Missing),
            help="Missing scores or features: an error, or keep the rows with no new score (drop). [default: error]",
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False


@dataclass(frozen=True)
class StudyOptions:
    """What is studied, and where points, tables and pictures go."""

    folder: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where the points, tables and pictures are written."),
    ] = "decal-study"
    thresholds: Annotated[
        str,
        typer.Option(metavar="GRID", help="Thresholds t*: start:end:step, or a list such as 0.1,0.3,0.5."),
    ] = "0.01,0.025,0.05,0.1,0.25,0.5,0.75,0.9,0.95,0.975,0.99"
    method: Annotated[
        list[str],
        typer.Option(
            metavar="METHOD", autocompletion=method_names, help="Study only this method; repeatable. [default: all]"
        ),
    ] = field(default_factory=list)
    seeds: Annotated[int, typer.Option(metavar="N", help="Halvings of every file: seeds 0 to N - 1.")] = 5
    workers: Annotated[int | None, typer.Option(metavar="N", help="Processes. [default: one a processor]")] = None
    confidence: Annotated[
        float | None, typer.Option(metavar="LEVEL", help="Level of the intervals. [default: 0.95]")
    ] = None
    format: Annotated[
        FitFormat, typer.Option("--format", "-f", metavar=one_of(FitFormat), help="How to print the summary.")
    ] = FitFormat.table
