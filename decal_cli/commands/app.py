"""The command line: option groups in, one call into the pipeline, text and an exit code out."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

from decal_cli.commands.options import (
    AdviceOptions,
    ApplyOptions,
    CompareOptions,
    FitOptions,
    GateOptions,
    InputOptions,
    MethodOptions,
    OutputOptions,
    ReportOptions,
    StudyOptions,
    SweepOptions,
    TaskOptions,
    WishOptions,
    flat,
)
from decal_cli.errors import DecalError, Exit, Interrupted
from decal_cli.version import __version__

app = typer.Typer(
    name="decal",
    help="What acting on a classifier's scores costs you, what recalibration wins back, what needs post-training.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


INTERRUPTED = 130
"""Exit code after an interrupt, as shells have it."""


def _version(asked: bool) -> None:
    if asked:
        print(f"decal {__version__}")
        raise typer.Exit


@app.callback()
def decal(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What acting on a classifier's scores costs you, what recalibration wins back, what needs post-training.

    Results go to standard output, everything else to standard error. Exit codes: 0 judged and passed, 1 a gate
    failed, 2 could not judge (usage, bad input, undefined metric under a gate), 3 a bug in decal.
    """


@app.command()
@flat
def evaluate(source: InputOptions, task: TaskOptions, report: ReportOptions, out: OutputOptions) -> None:
    """Measure scores against labels: losses, calibration, and the regret of deciding by them, with intervals.

    Example: decal evaluate preds.parquet --score 'p_*' --label y --features 'x*' --threshold 0.3
    """
    from decal_cli.commands import judge

    judge.evaluate(source, task, report, out)


@app.command()
@flat
def recommend(source: InputOptions, task: TaskOptions, wishes: AdviceOptions, out: OutputOptions) -> None:
    """Walk from the question "is this model suboptimal for my decision?" to an action, a method and its gain.

    Example: decal recommend preds.parquet --threshold 0.3 --features 'x*' --cost post-train=0.01
    """
    from decal_cli.commands import judge

    judge.recommend(source, task, wishes, out)


@app.command()
@flat
def gate(source: InputOptions, task: TaskOptions, gates: GateOptions, out: OutputOptions) -> None:
    """Pass or fail a model by rules: exit code 0 passed, 1 failed, 2 cannot judge.

    Example: decal gate preds.parquet --threshold 0.3 --rule 'upper(regret_calibration)<=0.02' --rule 'auc>=0.8'
    """
    from decal_cli.commands import judge

    raise typer.Exit(judge.gate(source, task, gates, out))


@app.command()
@flat
def compare(
    source: InputOptions, task: TaskOptions, models: CompareOptions, report: ReportOptions, out: OutputOptions
) -> None:
    """Compare two models on the same rows: who wins, by how much, for whom, at which thresholds, could it be chance.

    Example: decal compare preds.parquet --score p_old --score p_new --threshold 0.3 --group site

    Example: decal compare old.csv new.csv --id id --write-splice spliced.csv
    """
    from decal_cli.commands import compare as session

    session.compare(source, task, models, report, out)


@app.command()
@flat
def sweep(source: InputOptions, task: TaskOptions, curves: SweepOptions, out: OutputOptions) -> None:
    """Show what every threshold t* costs: Brier, regret and net benefit curves, with intervals and pictures.

    Example: decal sweep preds.parquet --score 'p_*' --features 'x*' --thresholds 0.05:0.95:0.05 --plot curves.png
    """
    from decal_cli.commands import sweep as session

    session.sweep(source, task, curves, out)


@app.command()
@flat
def report(source: InputOptions, task: TaskOptions, wishes: WishOptions, out: OutputOptions) -> None:
    """Write one self-contained HTML page: recommendation, pictures, every metric with its explanation.

    Example: decal report preds.parquet --score p --features 'x*' --threshold 0.3 -o report.html
    """
    from decal_cli.commands import report as session

    session.report(source, task, wishes, out)


@app.command()
@flat
def fit(
    wanted: MethodOptions, source: InputOptions, task: TaskOptions, wishes: WishOptions, options: FitOptions
) -> None:
    """Fit a post-training method to a calibration file, judge it on rows it has not seen, and write a model file.

    Example: decal fit isotonic calibration.parquet --score p --label y --threshold 0.3 -o model.json
    """
    from decal_cli.commands import fit as session

    session.fit(wanted, source, task, wishes, options)


@app.command()
@flat
def apply(options: ApplyOptions) -> None:
    """Score new rows with a fitted model: every column is kept, the new score is added.

    Example: decal apply model.json new.parquet -o scored.parquet
    """
    from decal_cli.commands import apply as session

    session.apply(options)


@app.command()
@flat
def study(source: InputOptions, options: StudyOptions) -> None:
    """Do the estimates predict the gains on your own models? Every file is a data set: one half fits, one half tests.

    Example: decal study a.parquet b.parquet --score 'p_*' --features 'x*' --missing drop -o study
    """
    from decal_cli.commands import study as session

    session.study(source, options)


@app.command()
def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The method to explain; all are listed without.")
    ] = None,
) -> None:
    """List the post-training methods, or explain one: what it does, parameters, source, what it needs.

    Example: decal methods glar
    """
    from decal_cli.commands import fit as session

    session.explain(name)


@app.command()
def metrics(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The metric to explain; all are listed without.")
    ] = None,
) -> None:
    """List the metrics, or explain one: formula, range, direction, parameters, source, what it needs.

    Example: decal metrics regret_calibration
    """
    from decal_cli.commands import judge

    judge.explain(name)


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; no exception leaves it."""
    try:
        try:
            app(arguments, prog_name="decal")
        finally:
            sys.stdout.flush()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # which Typer turns into code 1, that of a failed gate
            return Exit.CANNOT_JUDGE
        if stop.code == INTERRUPTED and not isinstance(stop, Interrupted):
            print("decal: interrupted", file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else Exit.OK
    except DecalError as error:
        print(f"decal: {error}", file=sys.stderr)
        return Exit.CANNOT_JUDGE
    except BrokenPipeError:
        # The reader of our output has gone; the interpreter must not complain while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.CANNOT_JUDGE
    except KeyboardInterrupt:
        print("decal: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        return _bug(error)
    return Exit.OK


def _bug(error: Exception) -> int:
    if os.environ.get("DECAL_DEBUG"):
        traceback.print_exception(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    print(
        f"decal: this is a bug in decal {__version__}: {type(error).__name__} at {where}: {error}; "
        "please report it with what DECAL_DEBUG=1 prints",
        file=sys.stderr,
    )
    return Exit.BUG
