"""The command line: every command with its options and help, and the exit code of a run."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, Any

import typer

from decal_cli.api.nouns import Costs, Decision, Halvings, Statistics
from decal_cli.commands import streams
from decal_cli.commands.options.acting import (
    ApplyOptions,
    FitOptions,
    OnlineOptions,
    SqlOptions,
    StreamOptions,
    StudyOptions,
)
from decal_cli.commands.options.common import INPUT_FORMATS, EngineOptions, InputOptions, OutputOptions
from decal_cli.commands.options.explaining import MethodName, MetricName
from decal_cli.commands.options.judging import (
    AdviceOptions,
    CompareOptions,
    EvaluateOptions,
    GateOptions,
    MetricOptions,
    SweepOptions,
)
from decal_cli.commands.tree import ACT, COMMANDS, EXPLAIN, JUDGE, Group, under
from decal_cli.errors import DecalError, Exit, Interrupted, out_of_memory
from decal_cli.render.formats import FORMATS
from decal_cli.render.terms import StatedTerms
from decal_cli.version import __version__

app = typer.Typer(
    name="decal",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


ONE_REQUIRED = "one of these is required"
_USAGE_ERROR: Any = typer.BadParameter.__base__
"""What Typer raises for a line that it cannot parse, of which it exports only this kind."""


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
    """Measure what acting on a classifier's scores costs, and what recalibration or post-training would gain.

    Results go to standard output, everything else to standard error.

    Example: decal recommend preds.parquet --score p --label y --features 'x*' --threshold 0.3
    """


@under(JUDGE)
def evaluate(
    task: Decision, metrics: EvaluateOptions, source: EngineOptions, sure: Statistics, out: OutputOptions
) -> None:
    """Measure scores against labels: losses, calibration, and the regret of acting on them.

    With --features, it also estimates what post-training could gain.

    Example: decal evaluate preds.parquet --score 'p_*' --label y --features 'x*' --threshold 0.3
    """


@under(JUDGE, ONE_REQUIRED)
def recommend(
    task: Decision,
    terms: StatedTerms,
    advice: AdviceOptions,
    costs: Costs,
    source: EngineOptions,
    sure: Statistics,
    out: OutputOptions,
) -> None:
    """Find out whether a model is suboptimal for your decision, and what to do about it.

    The recommendation names an action and a method, with the gain to expect.

    Example: decal recommend preds.parquet --score p --features 'x*' --threshold 0.3 --cost post-train=0.01
    """


@under(JUDGE)
def gate(task: Decision, gates: GateOptions, source: EngineOptions, sure: Statistics, out: OutputOptions) -> None:
    """Pass or fail a model by rules, for continuous integration.

    The exit code is 0 when every rule passes, 1 when one fails, and 2 when one cannot be judged.

    Example: decal gate preds.parquet --score p --threshold 0.3 --rule 'upper(regret_calibration)<=0.02'
    """


@under(JUDGE)
def compare(
    task: Decision,
    terms: StatedTerms,
    models: CompareOptions,
    metrics: MetricOptions,
    source: Annotated[
        EngineOptions,
        {
            "files": f"{INPUT_FORMATS} One file with two score columns, or with --id two files.",
            "score": "Score column: name two, A and B. With --id, one name for both files or one for each.",
        },
    ],
    sure: Statistics,
    out: OutputOptions,
) -> None:
    """Compare two models on the same rows.

    The result says which model is better, by how much, for which groups and at which thresholds, and whether the
    difference could be chance.

    Example: decal compare preds.parquet --score p_old --score p_new --threshold 0.3 --group site

    Example: decal compare old.csv new.csv --id id --write-splice spliced.csv
    """


@under(JUDGE)
def sweep(
    task: Decision,
    terms: Annotated[StatedTerms, {"names": None}],
    curves: SweepOptions,
    source: EngineOptions,
    sure: Statistics,
    out: OutputOptions,
) -> None:
    """Show what every threshold t* costs: curves of Brier loss, regret and net benefit.

    Example: decal sweep preds.parquet --score 'p_*' --features 'x*' --thresholds 0.05:0.95:0.05 --plot curves.png
    """


@under(JUDGE, ONE_REQUIRED)
def online(
    task: Decision,
    terms: StatedTerms,
    over_time: OnlineOptions,
    source: Annotated[
        StreamOptions,
        {
            "score": "Score column. Without one, the base rate is forecast.",
            "group": "Column of groups: every forecaster runs inside each group on its own.",
            "missing": "Missing scores, and missing labels before later ones: report an error, or drop the rows and "
            "say how many.",
        },
    ],
    sure: Annotated[
        Statistics,
        {
            "seed": "Seed of the randomised forecasters.",
            "confidence": "1 less the chance of a false alarm, and of an interval that misses at any time.",
        },
    ],
    out: Annotated[
        OutputOptions,
        {
            "output": "Write the result to this file; a .parquet file gets every row with the predictions that would "
            "have been made."
        },
    ],
) -> None:
    """Replay rows in the order of time: is the score still calibrated, since when not, and what to do now.

    Forecasters that recalibrate while labels come in are replayed without looking ahead. Alarms and intervals hold at
    all times at once: they may be looked at every day.

    Example: decal online preds.parquet --score p --label y --threshold 0.3

    Example: decal online preds.parquet --score p --threshold 0.3 --state state.json --rule 'e_calibration<20'
    """


@under(JUDGE)
def report(
    task: Decision,
    terms: StatedTerms,
    costs: Costs,
    source: EngineOptions,
    sure: Statistics,
    out: Annotated[OutputOptions, {"output": "HTML file to write."}],
) -> None:
    """Write one self-contained HTML page: recommendation, pictures, and every metric explained.

    Example: decal report preds.parquet --score p --features 'x*' --threshold 0.3 -o report.html
    """


@under(JUDGE)
def sql(
    options: Annotated[
        SqlOptions,
        {
            "score": "Score column. Repeatable: every column is a model.",
            "weight": "Column of positive row weights.",
            "group": "Column of groups that are counted by themselves. Repeatable.",
        },
    ],
) -> None:
    """Print one SQL statement that counts scores and labels, or scores rows, where the rows are.

    Run it in a database or warehouse, and export its result as CSV or Parquet: `decal evaluate FILE --aggregated` needs
    nothing else. The statement also checks the rows, and counts those that are wrong in rows of their own.

    Example: decal sql --dialect duckdb --table preds --score p --label y --group site
    """


@under(ACT)
def fit(
    options: FitOptions,
    task: Decision,
    terms: StatedTerms,
    source: Annotated[
        EngineOptions,
        {
            "files": f"Rows to fit the method to. {INPUT_FORMATS} Several files are one data set.",
            "score": "Score column.",
            "group": "Column of groups that multicalibration corrects. Repeatable.",
        },
    ],
    costs: Costs,
    sure: Annotated[Statistics, {"seed": "Seed of folds and methods."}],
) -> None:
    """Fit a post-training method, evaluate it on held-out rows, and save it as a model file.

    Example: decal fit isotonic calibration.parquet --score p --label y --threshold 0.3 -o model.json
    """


@under(ACT)
def apply(options: ApplyOptions) -> None:
    """Score new rows with a model file. Every column is kept, and the new score is added.

    Example: decal apply model.json new.parquet -o scored.parquet
    """


@under(ACT)
def study(
    halvings: Halvings,
    task: Annotated[
        Decision,
        {
            **dict.fromkeys(("threshold", "cost_fp", "cost_fn", "odds", "decision_threshold")),
            "utility": "Study this one task in place of thresholds: a utility of more than two actions, or with a "
            "column for each of several classes.",
            "cost_matrix": "The same as costs.",
            "abstain": "With --proba: study only naming the class or abstaining at this price. [default: 11 tasks: "
            "accuracy, abstention at 6 prices, dearer misses of the first 4 classes]",
        },
    ],
    options: StudyOptions,
    source: Annotated[
        InputOptions,
        {
            "files": "CSV, Parquet, Arrow/Feather or JSON Lines, each also gzipped. Every file is a data set.",
            "group": "Column of groups that multicalibration corrects. Repeatable.",
        },
    ],
    sure: Annotated[Statistics, {"seed": None}],
) -> None:
    """Check on your own models whether the estimated gains come true.

    Every file is a data set: methods are fitted to one half and evaluated on the other, several times.

    Example: decal study a.parquet b.parquet --score 'p_*' --features 'x*' --missing drop -o study
    """


@under(EXPLAIN)
def methods(wanted: MethodName) -> None:
    """List the methods and the forecasters over time, or explain one.

    An explanation says what the method does, its parameters, its source, and what it needs.

    Example: decal methods glar
    """


@under(EXPLAIN)
def metrics(named: MetricName) -> None:
    """List the metrics, or explain one.

    An explanation gives the formula, range, direction, parameters, source, and what the metric needs.

    Example: decal metrics regret_calibration
    """


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; no exception leaves it."""
    with streams.checked():
        try:
            try:
                code = app(arguments, prog_name="decal", standalone_mode=False)
            finally:
                sys.stdout.flush()
            if code == Exit.INTERRUPTED:
                streams.say("decal: interrupted")
            return int(code or Exit.OK)
        except SystemExit as stop:
            if isinstance(stop.__context__, OSError):  # which Typer turns into code 1, that of a failed gate
                return streams.lost(stop.__context__)
            return int(stop.code or Exit.OK)
        except _USAGE_ERROR as error:
            return _unusable(error, arguments)
        except Interrupted as error:
            streams.say(f"decal: interrupted; {error}")
            return Exit.INTERRUPTED
        except DecalError as error:
            streams.say(f"decal: {error}")
            return Exit.CANNOT_JUDGE
        except KeyboardInterrupt:
            streams.say("decal: interrupted")
            return Exit.INTERRUPTED
        except Exception as error:
            if out_of_memory(error):
                streams.say("decal: there is not enough memory; give fewer rows or columns, or run it with more")
                return Exit.CANNOT_JUDGE
            return streams.lost(error) if isinstance(error, OSError) else _bug(error)


def _unusable(error: Any, arguments: list[str]) -> Exit:
    """A line that does not parse, in one line; the help where there was nothing to parse."""
    text = error.format_message()
    if not arguments:
        for line in text.split("\n"):
            streams.say(line)
        return Exit.CANNOT_JUDGE
    wrong = getattr(error, "option_name", "") or ""
    if wrong.removeprefix("--") in FORMATS:
        text = f"No such option: {wrong} (write -f {wrong.removeprefix('--')})"
    text = text.replace("Value error, ", "").replace(". Did you mean", "; did you mean").removesuffix(".")
    command = f"decal {arguments[0]}" if arguments[0] in COMMANDS else "decal"
    streams.say(f"decal: {text[:1].lower()}{text[1:]}{'' if text.endswith('?') else ';'} see {command} --help")
    return Exit.CANNOT_JUDGE


def _bug(error: Exception) -> int:
    if os.environ.get("DECAL_DEBUG"):
        for line in "".join(traceback.format_exception(error)).splitlines():
            streams.say(line)
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    streams.say(
        f"decal: this is a bug in decal {__version__}: {type(error).__name__} at {where}: {error}; "
        "please report it with what DECAL_DEBUG=1 prints"
    )
    return Exit.BUG
