"""The command line: every command with its options and help, and the exit code of a run."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

import decal_cli
from decal_cli.api.nouns import OF_STREAM, Costs, Data, Decision, Halvings, OverTime, Rules, Statistics
from decal_cli.commands import streams
from decal_cli.commands.line import GivenOptions
from decal_cli.commands.options import (
    INPUT_FORMATS,
    OF_STATEMENT,
    AdviceOptions,
    ApplyOptions,
    CompareOptions,
    DemoOptions,
    EvaluateOptions,
    FitOptions,
    GateOptions,
    MethodName,
    MetricName,
    MetricOptions,
    OnlineOptions,
    OutputOptions,
    PlanOptions,
    ReportOptions,
    SqlOptions,
    StudyOptions,
    SweepOptions,
)
from decal_cli.commands.tree import ACT, COMMANDS, EXPLAIN, JUDGE, Group, under
from decal_cli.commands.writing import as_bytes, check_plot, draw_sweep, emit, load_ahead, needing, pictures_possible
from decal_cli.declarations.option import keys_of
from decal_cli.errors import DecalError, Exit, Interrupted, out_of_memory
from decal_cli.hints import Hint
from decal_cli.render.formats import DEFAULT, FORMATS, format_for
from decal_cli.roles import DECLARATIONS
from decal_cli.task import SPELLINGS, parse_varied
from decal_cli.version import __version__

if TYPE_CHECKING:
    from decal_cli.analysis.evaluate import Plan
    from decal_cli.analysis.online.replay import Replay

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


VERSION = typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")


@app.callback()
def decal(version: Annotated[bool, VERSION] = False) -> None:
    """Measure what acting on a classifier's scores costs, and what recalibration or post-training would gain.

    Results go to standard output, everything else to standard error.

    Example: decal recommend preds.parquet --score p --label y --features 'x*' --threshold 0.3
    """


WITHOUT_TERMS = dict.fromkeys(("unit", "decisions", "names"))
"""Terms are of amounts, and these verbs print none."""


@under(JUDGE)
def evaluate(
    decision: Annotated[Decision, WITHOUT_TERMS],
    options: EvaluateOptions,
    data: Data,
    statistics: Statistics,
    out: OutputOptions,
) -> None:
    """Measure scores against labels: losses, calibration, and the regret of acting on them.

    With --features, it also estimates what post-training could gain.

    Example: decal evaluate preds.parquet --score 'p_*' --label y --features 'x*' --threshold 0.3
    """
    from decal_cli.analysis.packs import pack_named
    from decal_cli.api.asking import metrics_of

    pack = None if options.pack is None else pack_named(options.pack)
    if pack is not None and (options.metric or options.all_metrics):
        raise DecalError("--pack chooses the metrics, and so do --metric and --all", "give one of them")
    if options.plot is not None and (pack is None or not pack.compares_groups):
        raise DecalError(
            "--plot draws groups side by side", "give --pack fairness and --group; decal sweep draws curves"
        )
    check_plot(options.plot)
    named = options.pack or metrics_named(options)
    load_ahead(pack.choices if pack else metrics_of(named))
    answer = decal_cli.evaluate(data, decision, metrics=named, regimes=options.regimes, statistics=statistics)
    if options.plot is not None and pack is not None:
        from decal_cli.data.output import write_whole
        from decal_cli.plot.groups import draw_groups

        write_whole(options.plot, draw_groups(answer.result.evaluation, pack, options.plot), "plot")
    emit(answer.result, options.format, out)


def metrics_named(options: MetricOptions) -> str | list[str]:
    """The metrics of the line; all of them in formats whose readers pick for themselves; else those of the table."""
    return options.metric or ("all" if options.all_metrics else "quick" if options.format in ("json", "csv") else [])


@under(JUDGE, "one of these, or none where costs are not known")
def recommend(
    decision: Decision,
    options: AdviceOptions,
    costs: Costs,
    data: Data,
    statistics: Statistics,
    out: OutputOptions,
) -> None:
    """Find out whether a model is suboptimal for your decision, and what to do about it.

    The recommendation names an action and a method, with the gain to expect.

    Example: decal recommend preds.parquet --score p --features 'x*' --threshold 0.3 --cost post-train=0.01
    """
    needing(every=options.format == "json")
    methods = options.method or ("all" if options.trying else [])
    answer = decal_cli.recommend(data, decision, methods=methods, costs=costs, statistics=statistics)
    emit(answer.result, options.format, out)


@under(JUDGE)
def gate(
    decision: Annotated[Decision, WITHOUT_TERMS],
    rules: Rules,
    options: GateOptions,
    data: Data,
    statistics: Statistics,
    out: OutputOptions,
) -> Exit:
    """Pass or fail a model by rules, for continuous integration.

    The exit code is 0 when every rule passes, 1 when one fails, and 2 when one cannot be judged.

    Example: decal gate preds.parquet --score p --threshold 0.3 --rule 'gain_recalibration<=0.01'
    """
    from decal_cli.analysis.gate import example_rule, outcome
    from decal_cli.data.output import check_not_read, write_all
    from decal_cli.render.results.evaluation import Evaluated

    began = time.perf_counter()
    form, files = gate_formats(options, out)
    with told_to_ci(form, files):
        if not rules.rules:
            example = example_rule(bool(decision.spelled))
            raise DecalError("there is no rule to judge by", f"give --rule '{example}', or gates = [..] in decal.toml")
        answer = decal_cli.gate(data, decision, rules=rules, statistics=statistics)
    for path in (*files, options.write_baseline):
        check_not_read(path, [item.path for item in answer.data.inputs])
    answer.result.seconds = time.perf_counter() - began
    code = outcome(answer.outcomes)
    contents = {path: as_bytes(answer.result, name) for path, name in files.items()}
    if options.write_baseline is not None and code is Exit.OK:
        contents[options.write_baseline] = as_bytes(Evaluated(answer.result.outcome.evaluation), "json")
    write_all(contents, "output")
    if options.write_baseline is not None and code is not Exit.OK:
        streams.say(f"decal: baseline {options.write_baseline} is not written: not every rule passed")
    emit(answer.result, form, out)
    return code


@contextmanager
def told_to_ci(form: str, files: dict[str, str]) -> Iterator[None]:
    """Within it, an error is written in what CI systems and people read of a gate too, so that no file is missing."""
    from decal_cli.data.output import write_all
    from decal_cli.render.results.gates import Refused

    try:
        yield
    except DecalError as error:
        refused = Refused(error)
        shown = [face for face in ("blocks", "checks") if hasattr(refused, face)]
        write_all(
            {path: as_bytes(refused, name) for path, name in files.items() if FORMATS[name].reads in shown}, "output"
        )
        if FORMATS[form].reads == "checks":
            emit(refused, form)
        raise


def gate_formats(options: GateOptions, out: OutputOptions) -> tuple[str, dict[str, str]]:
    """The format of standard output or --output, and by path the formats of further files."""
    from decal_cli.data.output import check_writable

    files: dict[str, str] = {}
    if options.write_baseline is not None:
        check_writable(options.write_baseline, "baseline")
    for text in options.format:
        name, equals, path = text.partition("=")
        if not equals:
            continue
        check_writable(path, f"--format {name}")
        if path in (*files, out.output, options.write_baseline):
            raise DecalError(f"--format {text}: {path} is named twice", "name a file of its own for each format")
        files[path] = format_for(name, path, ("blocks", "data", "rows", "checks"))
    alone = [text for text in options.format if "=" not in text]
    if len(alone) > 1:
        raise DecalError(f"several formats for one output: {', '.join(alone)}", f"give files: --format {alone[1]}=FILE")
    return format_for(alone[0] if alone else None, out.output, ("blocks", "data", "rows", "checks")), files


@under(JUDGE)
def plan(
    decision: Annotated[Decision, WITHOUT_TERMS],
    options: PlanOptions,
    statistics: Statistics,
    out: OutputOptions,
) -> None:
    """Find out how many rows to collect: for a gate, an interval, and clear advice.

    Rows are planned for 80 and 90 % of samples to show it, from a pilot or from the AUC and prevalence to expect.

    Example: decal plan --rule 'gain_recalibration<=0.01' --pilot preds.parquet --score p --threshold 0.3

    Example: decal plan --auc 0.8 --prevalence 0.05 --threshold 0.1
    """
    from decal_cli.analysis.gate import parse_rule
    from decal_cli.analysis.plan import made_up_pilot, plan_rows
    from decal_cli.api.asking import asked
    from decal_cli.render.results.planned import PlannedRows

    if (options.pilot is None) == (options.auc is None or options.prevalence is None):
        raise DecalError("rows are planned from what is known of them", "give --pilot FILE, or --auc and --prevalence")
    rules = [parse_rule(text) for text in options.rule]
    if options.pilot is None:
        source: Any = made_up_pilot(options.auc or 0.0, options.prevalence or 0.0)
        known = f"calibrated scores with AUC {options.auc:g} and {100 * (options.prevalence or 0):g} % of label 1"
        data = Data(source)
    else:
        known = options.pilot
        data = Data(options.pilot, score=options.score or (), label=options.label, features=options.features)
    given = asked(data, decision, statistics, {})
    planned = plan_rows(given.rows(given.plan.edges), given.plan, rules, options.half_width, known)
    emit(PlannedRows(planned), options.format, out)


@under(JUDGE)
def compare(
    decision: Decision,
    models: CompareOptions,
    options: MetricOptions,
    data: Annotated[
        Data,
        {
            "files": f"{INPUT_FORMATS} One file with two score columns, or with --id two files.",
            "score": "Score column: name two, A and B. With --id, one name for both files or one for each.",
        },
    ],
    statistics: Statistics,
    out: OutputOptions,
) -> None:
    """Compare two models on the same rows.

    The result says which model is better, by how much, for which groups and at which thresholds, and whether the
    difference could be chance.

    Example: decal compare preds.parquet --score p_old --score p_new --threshold 0.3 --group site

    Example: decal compare old.csv new.csv --id id --write-splice spliced.csv
    """
    from decal_cli.analysis.compare import spliced
    from decal_cli.data import as_file, format_of
    from decal_cli.data.output import check_new, write_whole

    check_plot(models.plot, options.format)
    if models.write_splice is not None:
        format_of(models.write_splice)
        check_new(models.write_splice, "splice", models.force)
    if data.proba and (models.write_splice is not None or models.plot is not None):
        raise DecalError("--plot and --write-splice are for scores of two classes", "drop them")
    # What is drawn, or written row by row, needs the rows.
    needing(rows=models.plot is not None or models.write_splice is not None)
    named = options.metric or ("quick" if metrics_named(options) else [])
    answer = decal_cli.compare(data, decision, metrics=named, statistics=statistics)
    result = answer.result
    if models.plot is not None:
        from decal_cli.api.pictures import curves_of_models
        from decal_cli.plot.sweeps import SHARED

        result.drawing = draw_sweep(curves_of_models(answer.data, answer.plan), models.plot, SHARED, out)
    if models.write_splice is not None:
        columns = spliced(answer.paired, result.comparison)
        write_whole(models.write_splice, as_file(models.write_splice, columns), "splice")
    emit(result, options.format, out)


@under(JUDGE)
def sweep(
    decision: Annotated[Decision, {"names": None}],
    options: SweepOptions,
    data: Annotated[Data, {"time": None}],
    statistics: Statistics,
    out: OutputOptions,
) -> None:
    """Show what every threshold t* costs: curves of Brier loss, regret and net benefit.

    Example: decal sweep preds.parquet --score 'p_*' --features 'x*' --thresholds 0.05:0.95:0.05 --plot curves.png
    """
    if options.plot is None and options.picture:
        raise DecalError("--picture names what to draw, and nothing is drawn", "give --plot FILE, or --plot -")
    check_plot(options.plot, options.format)
    ways = {
        "vary": options.vary,
        "prevalence_range": options.prevalence_range,
        "capacity_range": options.capacity_range,
    }
    varied = {Hint(way).words: parse_varied(text, way) for way, text in ways.items() if text is not None}
    if len(varied) > 1:
        raise DecalError(f"{' and '.join(varied)} both say what varies", "give one of them")
    decision = replace(decision, varied=next(iter(varied.values()), None))
    answer = decal_cli.sweep(data, decision, thresholds=options.thresholds, prior=options.prior, statistics=statistics)
    answer.result.everything = options.all_thresholds
    if options.plot is not None:
        from decal_cli.plot.sweeps import pictures_of

        pictures = pictures_of(answer.sweep, options.picture)
        answer.result.drawing = draw_sweep(answer.sweep, options.plot, pictures, out)
    emit(answer.result, options.format, out)


@under(JUDGE, ONE_REQUIRED)
def online(
    decision: Decision,
    over_time: OverTime,
    options: OnlineOptions,
    data: Annotated[
        Data,
        {
            **{name: None for name in (*DECLARATIONS, "engine", "query") if name not in OF_STREAM},
            "files": f"{INPUT_FORMATS} Several files are one stream, in this order.",
            "score": "Score column. Without one, the base rate is forecast.",
            "time": "Column of dates, times or numbers, never decreasing; by default rows are in order as they stand.",
            "group": "Column of groups: every forecaster runs inside each group on its own.",
            "missing": "Missing scores, and missing labels before later ones: report an error, or drop the rows and "
            "say how many.",
        },
    ],
    statistics: Annotated[
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
    said: GivenOptions,
) -> Exit:
    """Replay rows in the order of time: is the score still calibrated, since when not, and what to do now.

    Forecasters that recalibrate while labels come in are replayed without looking ahead. Alarms and intervals hold at
    all times at once: they may be looked at every day.

    Example: decal online preds.parquet --score p --label y --threshold 0.3

    Example: decal online preds.parquet --score p --threshold 0.3 --state state.json --rule 'e_calibration<20'
    """
    from decal_cli.analysis.gate import outcome
    from decal_cli.analysis.online.judged import OnlineRule
    from decal_cli.api.asking import asked
    from decal_cli.api.online import KeptState, replayed
    from decal_cli.data import as_parquet
    from decal_cli.data.output import check_writable, only_run, write_whole
    from decal_cli.plot.online import draw_replay, replay_pictures

    began = time.perf_counter()
    to_file = out.output is not None and PurePath(out.output).suffix.lower() == ".parquet"
    to_page = replace(out, output=None) if to_file else out
    form = format_for(options.format, to_page.output, ("blocks", "data", "rows", "checks"))
    if FORMATS[form].reads == "checks" and not options.rule:
        raise DecalError(f"--format {form} writes rules, and there is none", "give --rule 'e_calibration<20'")
    check_plot(options.plot)
    if options.state is None:
        if options.skip_known:
            raise DecalError("--skip-known speaks of the rows that a state has", "give --state too, or leave it out")
        answer = decal_cli.online(data, decision, over_time=over_time, rules=options.rule, statistics=statistics)
    else:
        check_writable(options.state, "state")
        with only_run(options.state, "state"):
            given = asked(data, decision, statistics, {}, over_time)
            rules = [OnlineRule.parse(text) for text in options.rule]
            begun = _begun(options.state, over_time, given.plan, said) if os.path.exists(options.state) else None
            answer = replayed(given, rules, KeptState(options.state, begun, options.skip_known))
    result = answer.result
    result.seconds = time.perf_counter() - began
    if to_file and out.output is not None:
        write_whole(out.output, as_parquet(answer.predicted), "output")
    if options.plot is not None:
        write_whole(options.plot, draw_replay(result.judged, options.plot), "plot")
    result.drawings = replay_pictures(result.judged) if form == "html" and pictures_possible() else ()
    emit(result, form, to_page)
    return outcome(result.gates)


def _begun(state: str, over_time: OverTime, plan: Plan, said: GivenOptions) -> Replay:
    """The replay that the state file holds. Errors: DecalError, where the line says another."""
    from decal_cli.analysis.online.plan import Delay, Period, online_plan
    from decal_cli.analysis.online.state_file import check_same, replay_of
    from decal_cli.documents import read_document

    replay = replay_of(read_document(state, f"state {state}", "name another file"), state)
    delay, every, methods = over_time.delay, over_time.every, list(over_time.methods)
    given = {
        "task": plan.two_actions("online"),
        **{name: said[name][0] for name in ("score", "group") if name in said},
        **{name: said.get(name) for name in ("cluster", "time", "warm_up", "horizon", "seed", "confidence", "logit")},
        "delay": None if delay is None else Delay.parse(str(delay)),
        "every": None if every is None else Period.parse(str(every)),
        "methods": online_plan(methods, replay.plan.warm_up, replay.plan).methods if methods else None,
    }
    check_same(replay.plan, {name: value for name, value in given.items() if value is not None}, state)
    return replay


@under(JUDGE)
def report(
    decision: Decision,
    options: ReportOptions,
    costs: Costs,
    data: Data,
    statistics: Statistics,
    out: Annotated[OutputOptions, {"output": "HTML file to write; of a card its .md, .html or .json file."}],
) -> None:
    """Write one self-contained HTML page: recommendation, pictures, and every metric explained.

    Example: decal report preds.parquet --score p --features 'x*' --threshold 0.3 -o report.html

    Example: decal report preds.parquet --score p --threshold 0.3 --card -o card.md
    """
    if options.card:
        form = format_for(None if out.output else "markdown", out.output, ("blocks", "data"))
        form = "markdown" if form == DEFAULT else form
        emit(decal_cli.model_card(data, decision, costs=costs, statistics=statistics).result, form, out)
        return
    if out.output is None:
        raise DecalError("the report needs a file to be written to", "name it: -o report.html")
    form = format_for("html", out.output, ["blocks"])
    pictures_possible()
    emit(decal_cli.report(data, decision, costs=costs, statistics=statistics).result, form, out)


@under(JUDGE)
def sql(
    options: SqlOptions,
    data: Annotated[
        Data,
        {
            **{name: None for name in ("files", *DECLARATIONS, "engine") if name not in OF_STATEMENT},
            "score": "Score column. Repeatable: every column is a model.",
            "weight": "Column of positive row weights.",
            "group": "Column of groups that are counted by themselves. Repeatable.",
        },
    ],
    said: GivenOptions,
) -> None:
    """Print one SQL statement that counts scores and labels, or scores rows, where the rows are.

    Run it in a database or warehouse, and export its result as CSV or Parquet: `decal evaluate FILE --aggregated` needs
    nothing else. The statement also checks the rows, and counts those that are wrong in rows of their own.

    Example: decal sql --dialect duckdb --table preds --score p --label y --group site
    """
    from decal_cli.api.asking import names_of
    from decal_cli.data.large.engines.dialects import DIALECTS
    from decal_cli.data.large.engines.statement import CountRequest, statement

    dialect = DIALECTS[options.dialect]
    if dialect.experimental:
        streams.say(f"decal: the dialect {options.dialect} is experimental: hold its counts against known ones first")
    if options.model is not None:
        if set(said) - {"dialect", "model", "table", "query"}:
            raise DecalError("--model scores rows, and nothing is counted", "give it with --table or --query alone")
        # Late: it loads all methods.
        from decal_cli.analysis.fit import read_model
        from decal_cli.learn.as_sql import scoring_statement

        text = scoring_statement(read_model(options.model), options.table, options.query, dialect)
        sys.stdout.write(f"{text};\n")
        return
    for role, named in (("score", data.score), ("label", data.label)):
        if not named:
            raise DecalError(f"the {role} column is not named", f"name it with --{role}")
    if options.threshold and not options.cells:
        raise DecalError(
            "--threshold is for --cells: without them every score is counted by itself", "drop it, or add --cells"
        )
    several = {role: names_of(role, getattr(data, role)) for role in ("score", "group")}
    request = CountRequest(
        table=options.table,
        query=options.query,
        cells=options.cells,
        pairs=options.pairs,
        thresholds=tuple(options.threshold),
        **{**{role: getattr(data, role) for role in OF_STATEMENT}, **several},
    )
    sys.stdout.write(statement(request, dialect) + ";\n")


@under(ACT)
def fit(
    options: FitOptions,
    decision: Decision,
    data: Annotated[
        Data,
        {
            "files": f"Rows to fit the method to. {INPUT_FORMATS} Several files are one data set.",
            "score": "Score column.",
            "group": "Column of groups that multicalibration corrects. Repeatable.",
        },
    ],
    costs: Costs,
    statistics: Annotated[Statistics, {"seed": "Seed of folds and methods."}],
) -> None:
    """Fit a post-training method, evaluate it on held-out rows, and save it as a model file.

    Example: decal fit isotonic calibration.parquet --score p --label y --threshold 0.3 -o model.json
    """
    from decal_cli.data.output import check_new, check_not_read
    from decal_cli.data.words import file_word
    from decal_cli.learn.methods import METHODS

    name = options.method.partition("(")[0].strip()
    if name not in ("auto", *METHODS) and os.path.isfile(options.method):
        raise DecalError(
            f"{options.method} is a file, and the method comes first",
            f"name one: decal fit isotonic {file_word(options.method)}",
        )
    check_new(options.model, "model file", options.force)
    check_not_read(options.model, options.test)
    answer = decal_cli.fit(data, decision, method=options.method, costs=costs, statistics=statistics)
    answer.save_model(options.model)
    answer.result.path = options.model
    emit(answer.result, options.format)


@under(ACT)
def apply(options: ApplyOptions) -> None:
    """Score new rows with a model file. Every column is kept, and the new score is added.

    Example: decal apply model.json new.parquet -o scored.parquet
    """
    from decal_cli.commands.apply import run

    run(options)


@under(ACT)
def study(
    halvings: Halvings,
    decision: Annotated[
        Decision,
        {
            **WITHOUT_TERMS,
            **dict.fromkeys(("threshold", "cost_fp", "cost_fn", "odds", "decision_threshold")),
            "utility": "Study this one task in place of thresholds: a utility of more than two actions, or with a "
            "column for each of several classes.",
            "cost_matrix": "The same as costs.",
            "abstain": "With --proba: study only naming the class or abstaining at this price. [default: 11 tasks: "
            "accuracy, abstention at 6 prices, dearer misses of the first 4 classes]",
        },
    ],
    options: StudyOptions,
    data: Annotated[
        Data,
        {
            "files": "CSV, Parquet, Arrow/Feather or JSON Lines, each also gzipped. Every file is a data set.",
            "time": None,
            "group": "Column of groups that multicalibration corrects. Repeatable.",
            "engine": None,
            "query": None,
        },
    ],
    statistics: Annotated[Statistics, {"seed": None}],
    said: GivenOptions,
) -> None:
    """Check on your own models whether the estimated gains come true.

    Every file is a data set: methods are fitted to one half and evaluated on the other, several times.

    Example: decal study a.parquet b.parquet --score 'p_*' --features 'x*' --missing drop -o study
    """
    from decal_cli.commands.study import run

    of_settings = set() if set(said) & set(SPELLINGS) else set(decision.spelled)
    nothing: dict[str, Any] = {name: None for key, name in keys_of(Decision).items() if key in of_settings}
    decision = replace(decision, **nothing)
    run(options, halvings, data, decision, statistics)


@under(EXPLAIN)
def demo(options: DemoOptions) -> Any:
    """Write the files of the examples, and ask for advice on one of them.

    The examples of README run on these files.

    Example: decal demo
    """
    from decal_cli.commands.demo import run

    return run(options.folder)


@under(EXPLAIN)
def methods(wanted: MethodName) -> None:
    """List the methods and the forecasters over time, or explain one.

    An explanation says what the method does, its parameters, its source, and what it needs.

    Example: decal methods glar
    """
    from decal_cli.learn.methods import named
    from decal_cli.render.results.explained import method_explained, method_list, online_explained
    from decal_cli.sequential import ONLINE

    name = wanted.name
    if name is None:
        emit(method_list())
    else:
        emit(online_explained(ONLINE[name]) if name in ONLINE else method_explained(named(name)))


@under(EXPLAIN)
def metrics(wanted: MetricName) -> None:
    """List the metrics, or explain one.

    An explanation gives the formula, range, direction, parameters, source, and what the metric needs.

    Example: decal metrics regret_calibration
    """
    from decal_cli.metrics import parse
    from decal_cli.render.results.explained import metric_explained, metric_list

    emit(metric_list() if wanted.name is None else metric_explained(parse(wanted.name).declared))


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
