"""Options of the commands that act: fit, apply, study."""

from __future__ import annotations

from decal_cli.commands.options.choices import Missing, method_names, method_names_or_auto
from decal_cli.commands.options.common import INPUT, OUTPUT, ConfidenceOptions, SeedOptions
from decal_cli.commands.options.declare import argument, option, options
from decal_cli.commands.options.formats import format_option
from decal_cli.commands.options.judging import THRESHOLDS
from decal_cli.declarations.defaults import N_STUDY_SEEDS, STUDY_FOLDER, STUDY_THRESHOLDS

OUT = ("--output", "-o")


@options("Method")
class FitOptions(SeedOptions):
    """Which method is fitted, how the model is evaluated and where it is saved."""

    method: str = argument(
        "Method to fit, such as isotonic or 'platt(on=p)'; `decal methods` lists them. "
        "auto fits what `decal recommend` advises.",
        "METHOD",
        required=True,
        complete=method_names_or_auto,
    )
    test: list[str] = option(
        "Evaluate the model on this file instead of by cross-fitting. Repeatable.", [], metavar="FILE"
    )
    model: str = option(
        "Model file to write, as readable JSON.", None, *OUT, required=True, metavar="MODEL", panel=OUTPUT
    )
    force: bool = option("Overwrite the model file if it exists.", False, panel=OUTPUT)
    format: str = format_option("blocks", "data", text="Format of the evaluation.", by_suffix=False)


@options(OUTPUT)
class ApplyOptions:
    """A model file, the rows to be scored, and where they go."""

    model: str = argument("Model file that `decal fit` wrote.", "MODEL", required=True, panel=INPUT)
    file: str = argument(
        "Rows to score, in any input format; - reads standard input.", "FILE", required=True, panel=INPUT
    )
    missing: Missing | None = option(
        "Missing scores: report an error, or keep the rows without a new score (drop).",
        shown=Missing.error,
        panel=INPUT,
    )
    output: str = option(
        "File for the rows with the new score (.csv or .parquet); - writes CSV to standard output.",
        None,
        *OUT,
        required=True,
        metavar="OUT",
    )
    name: str | None = option(
        "Name of the new column.", metavar="COLUMN", shown="the old score's name and the method's, such as p_isotonic"
    )
    force: bool = option("Overwrite the output file if it exists.", False)


@options("Study")
class StudyOptions(ConfidenceOptions):
    """What is studied, and where points, tables and pictures go."""

    thresholds: str = option(THRESHOLDS, STUDY_THRESHOLDS, metavar="GRID")
    method: list[str] = option(
        "Study only this method. Repeatable.", [], metavar="METHOD", complete=method_names, shown="all"
    )
    seeds: int = option("Number of random halvings of every file (seeds 0 to N - 1).", N_STUDY_SEEDS, metavar="N")
    workers: int | None = option("Number of processes.", metavar="N", shown="one per processor")
    figures: bool = option(
        "Also draw every figure of Perez-Lebel et al. 2025, in both units, on a page of its own: figures.md.",
        False,
        panel=OUTPUT,
    )
    folder: str = option("Folder for points, tables and pictures.", STUDY_FOLDER, *OUT, metavar="FOLDER", panel=OUTPUT)
    format: str = format_option("blocks", "data", "rows", text="Format of the summary.", by_suffix=False)
