"""The commands that judge scores, each with its options and help."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import decal_cli
from decal_cli.api.nouns import (
    OF_STREAM,
    Costs,
    Data,
    Decision,
    OverTime,
    Rules,
    Statistics,
    column,
    names_in,
    rule_names,
)
from decal_cli.commands import streams
from decal_cli.commands.gating import gate_formats, told_to_ci
from decal_cli.commands.line import GivenOptions
from decal_cli.commands.options import (
    ALL_METRICS,
    DIALECTS,
    FILE,
    INPUT_FORMATS,
    METRIC,
    OUTPUT,
    PICTURES,
    RULED,
    TABLE,
    WITHOUT_TERMS,
    format_option,
    method_names,
    output_option,
)
from decal_cli.commands.tree import JUDGE, under
from decal_cli.commands.writing import check_plot, draw_sweep, emit, load_ahead, needing, pictures_possible
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.declarations.option import option
from decal_cli.errors import DecalError, Exit
from decal_cli.hints import Hint, Verb
from decal_cli.render.formats import FORMATS, as_bytes, format_for, offered
from decal_cli.roles import DECLARATIONS

if TYPE_CHECKING:
    from decal_cli.analysis.evaluate import Plan
    from decal_cli.analysis.online.replay import Replay

ONE_REQUIRED = "one of these is required"
PLOT = "Draw the curves into this .png, .svg or .pdf file; - draws them in the terminal."
OF_STATEMENT = ("score", "label", "weight", "group", "cluster", "positive", "logit")
"""Roles and readings of columns that an SQL statement can handle."""


@under(JUDGE, "Metrics")
def evaluate(
    decision: Annotated[Decision, WITHOUT_TERMS],
    data: Data,
    statistics: Statistics,
    metric: list[str] = METRIC,
    all_metrics: bool = ALL_METRICS,
    pack: str | None = option(
        "The measures of a field: clinical, credit or fairness. They have the names that the field uses, and "
        "fairness compares the groups of --group.",
        metavar="FIELD",
        complete=names_in("analysis.packs.PACKS"),
        brief=True,
    ),
    plot: str | None = option(
        "With --pack fairness: draw the measures of every group into this .png, .svg or .pdf file.", metavar="FILE"
    ),
    regimes: bool = option(
        "Show each bin of the score, and whether miscalibration or grouping loses more utility there.", False
    ),
    format: str = TABLE,
    output: str | None = FILE,
) -> None:
    """Measure scores against labels: losses, calibration, and the regret of acting on them.

    With --features, it also estimates what post-training could gain.

    Example: decal evaluate preds.parquet --score 'p_*' --label y --features 'x*' --threshold 0.3
    """
    from decal_cli.analysis.packs import pack_named
    from decal_cli.api.asking import metrics_of

    measures = pack and pack_named(pack)
    if measures and (metric or all_metrics):
        raise DecalError("--pack chooses the metrics, and so do --metric and --all", "give one of them")
    if plot and not (measures and measures.compares_groups):
        raise DecalError(
            "--plot draws groups side by side", "give --pack fairness and --group; decal sweep draws curves"
        )
    check_plot(plot)
    named = pack or metrics_named(metric, all_metrics, format)
    load_ahead(measures.choices if measures else metrics_of(named))
    answer = decal_cli.evaluate(data, decision, metrics=named, regimes=regimes, statistics=statistics)
    if plot and measures:
        from decal_cli.data.output import write_whole
        from decal_cli.plot.groups import draw_groups

        write_whole(plot, draw_groups(answer.result.evaluation, measures, plot), "plot")
    emit(answer.result, format, output)


def metrics_named(metric: list[str], all_metrics: bool, form: str) -> str | list[str]:
    """The metrics of the line; else "all" if asked, "quick" for JSON and CSV; [] leaves the choice to the table."""
    return metric or ("all" if all_metrics else "quick" if form in ("json", "csv") else [])


@under(JUDGE, "Methods", "one of these, or none where costs are not known")
def recommend(
    decision: Decision,
    costs: Costs,
    data: Data,
    statistics: Statistics,
    trying: bool = option(
        "Fit the methods by cross-fitting, and show what each gains. The questions are repeated with the best one.",
        False,
        key="try",
        brief=True,
    ),
    method: list[str] = option(
        "Try only this method, such as isotonic or 'platt(on=p)'; implies --try.",
        (),
        metavar="METHOD",
        complete=method_names,
        shown="every method that the columns allow",
        brief=True,
    ),
    format: str = TABLE,
    output: str | None = FILE,
) -> None:
    """Find out whether a model is suboptimal for your decision, and what to do about it.

    The recommendation names an action and a method, with the gain to expect.

    Example: decal recommend preds.parquet --score p --features 'x*' --threshold 0.3 --cost post-train=0.01
    """
    needing(every=format == "json")
    methods = method or ("all" if trying else [])
    answer = decal_cli.recommend(data, decision, methods=methods, costs=costs, statistics=statistics)
    emit(answer.result, format, output)


@under(JUDGE, "Gate")
def gate(
    decision: Annotated[Decision, WITHOUT_TERMS],
    rules: Rules,
    data: Data,
    statistics: Statistics,
    write_baseline: str | None = option(
        "Write the metrics as a JSON report, a baseline for later runs, if every rule passes.",
        metavar="REPORT",
        brief=True,
    ),
    format: list[str] = format_option(
        *RULED,
        text="Format of the result; junit=FILE writes this format into a file.",
        settled=False,
        several=True,
    ),
    output: str | None = FILE,
) -> Exit:
    """Pass or fail a model by rules, for continuous integration.

    The exit code is 0 when every rule passes, 1 when one fails, and 2 when one cannot be judged.

    Example: decal gate preds.parquet --score p --threshold 0.3 --rule 'gain_recalibration<=0.01'
    """
    from decal_cli.analysis.gate import outcome
    from decal_cli.analysis.rules import example_rule
    from decal_cli.data.output import check_not_read, write_all
    from decal_cli.render.results.evaluation import Evaluated

    began = time.perf_counter()
    form, files = gate_formats(format, output, write_baseline)
    with told_to_ci(form, files):
        if not rules.rules:
            example = example_rule(bool(decision.spelled))
            raise DecalError("there is no rule to judge by", f"give --rule '{example}', or gates = [..] in decal.toml")
        answer = decal_cli.gate(data, decision, rules=rules, statistics=statistics)
    for path in (*files, write_baseline):
        check_not_read(path, [item.path for item in answer.data.inputs])
    answer.result.seconds = time.perf_counter() - began
    code = outcome(answer.outcomes)
    contents = {path: as_bytes(answer.result, name) for path, name in files.items()}
    if write_baseline and code is Exit.OK:
        contents[write_baseline] = as_bytes(Evaluated(answer.result.evaluation), "json")
    write_all(contents)
    if write_baseline and code is not Exit.OK:
        streams.say(f"decal: baseline {write_baseline} is not written: not every rule passed")
    emit(answer.result, form, output)
    return code


@under(JUDGE, "Plan")
def plan(
    decision: Annotated[Decision, {**WITHOUT_TERMS, **dict.fromkeys((*DECLARATIONS, "abstain"))}],
    statistics: Statistics,
    rule: list[str] = option(
        "Rule that the rows are to show to hold, or to fail, such as 'gain_recalibration<=0.01'.",
        (),
        "-r",
        metavar="RULE",
        complete=rule_names,
    ),
    pilot: str | None = option("File of rows like those to come, with scores and labels.", metavar="FILE"),
    score: str | None = option("Score column of the pilot.", None, "-s", metavar="COL"),
    label: str | None = option("Label column of the pilot.", None, "-y", metavar="COL"),
    features: list[str] = option("Feature columns of the pilot, for rules on gain_beyond.", (), metavar="COL"),
    weight: str | None = column("weight"),
    cluster: str | None = column("cluster"),
    positive: str | None = column("positive"),
    auc: float | None = option("Without a pilot: the AUC to expect, of calibrated scores.", metavar="AUC"),
    prevalence: float | None = option("Without a pilot: the share of label 1 to expect.", metavar="SHARE"),
    half_width: float | None = option("Half-width that the interval of each rule's metric is to have.", metavar="X"),
    format: str = TABLE,
    output: str | None = FILE,
) -> None:
    """Find out how many rows to collect: for a gate, an interval, and clear advice.

    Rows are planned for 80 and 90 % of samples to show it, from a pilot or from the AUC and prevalence to expect.

    Example: decal plan --rule 'gain_recalibration<=0.01' --pilot preds.parquet --score p --threshold 0.3

    Example: decal plan --auc 0.8 --prevalence 0.05 --threshold 0.1
    """
    from decal_cli.analysis.plan import made_up_pilot, plan_rows
    from decal_cli.analysis.rules import parse_rule
    from decal_cli.api.asking import asked
    from decal_cli.api.words import computing
    from decal_cli.render.results.planned import PlannedRows

    expected = {"auc": auc, "prevalence": prevalence}
    if pilot and (said := [name for name, value in expected.items() if value is not None]):
        raise DecalError(f"{Hint(said[0]).words} is for a plan without a pilot", f"drop it, or drop {Hint('pilot')}")
    if not pilot and None in expected.values():
        raise DecalError("rows are planned from what is known of them", "give --pilot FILE, or --auc and --prevalence")
    rules = [parse_rule(text) for text in rule]
    of_pilot = {"score": score, "label": label, "features": features}
    of_pilot |= {"weight": weight, "cluster": cluster, "positive": positive}
    given = {key: value for key, value in of_pilot.items() if value}
    source: Any = pilot
    known = pilot or f"calibrated scores with AUC {auc:g} and {100 * (prevalence or 0):g} % of label 1"
    if not pilot:
        if given:
            raise DecalError(
                f"{Hint(next(iter(given))).words} is of a pilot, and there is none", f"drop it, or give {Hint('pilot')}"
            )
        source = made_up_pilot(auc or 0.0, prevalence or 0.0)
    question = asked(source, decision, statistics, given)
    rows = question.rows(question.plan.edges)
    if not pilot:
        rows = replace(rows, inputs=(replace(rows.inputs[0], path="made-up pilot"),), columns={})
    with computing() as progress:
        planned = plan_rows(rows, question.plan, rules, half_width, known, progress, made_up=not pilot)
    emit(PlannedRows(planned), format, output)


@under(JUDGE, "Comparison")
def compare(
    decision: Decision,
    data: Annotated[
        Data,
        {
            "files": f"{INPUT_FORMATS} One file with two score columns, or with --id two files.",
            "score": "Score column: name two, A and B. With --id, one name for both files or one for each.",
        },
    ],
    statistics: Statistics,
    write_splice: str | None = option(
        "Write the spliced scores, row by row, to this .csv or .parquet file.", metavar="FILE"
    ),
    plot: str | None = option(PLOT, metavar="FILE"),
    force: bool = option("Overwrite the file of --write-splice if it exists.", False),
    metric: list[str] = METRIC,
    all_metrics: bool = ALL_METRICS,
    format: str = TABLE,
    output: str | None = FILE,
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

    check_plot(plot, format)
    if write_splice:
        format_of(write_splice)
        check_new(write_splice, "splice", force)
    if data.proba and (write_splice or plot):
        raise DecalError("--plot and --write-splice are for scores of two classes", "drop them")
    # What is drawn, or written row by row, needs the rows.
    needing(rows=bool(plot or write_splice))
    named = metric or ("quick" if metrics_named(metric, all_metrics, format) else [])
    answer = decal_cli.compare(data, decision, metrics=named, statistics=statistics)
    result = answer.result
    if plot:
        from decal_cli.api.pictures import curves_of_models
        from decal_cli.plot.sweeps import SHARED

        result.drawing = draw_sweep(curves_of_models(answer.data, answer.plan), plot, SHARED, output, result.terms)
    if write_splice:
        columns = spliced(answer.paired, result.comparison)
        write_whole(write_splice, as_file(write_splice, columns), "splice")
    emit(result, format, output)


@under(JUDGE, "Curves")
def sweep(
    decision: Annotated[Decision, {"names": None}],
    data: Annotated[Data, {"time": None}],
    statistics: Statistics,
    thresholds: str = option(
        "Thresholds t*: start:end:step, or a list such as 0.1,0.3,0.5.", SWEEP_THRESHOLDS, metavar="GRID", brief=True
    ),
    prior: str | None = option(
        "How often each t* occurs: beta:A,B, or a CSV or JSON file of thresholds and weights. "
        "Adds the expectation of every curve.",
        metavar="PRIOR",
    ),
    vary: str | None = option(
        "Vary a number of the task, 'ACTION:CLASS=LOW:HIGH[:STEP]', in place of t*. It is an entry of --utility or "
        "--cost-matrix; with --proba 'abstain=..', the price of abstention; with --amount 'cost-fp=..', how many times "
        "what a false positive costs today; 'capacity=0.01:0.2', or counts 50:500; or 'prevalence=..', the share of "
        "labels 1 where decisions are made.",
        metavar="WHAT=RANGE",
        shown="t*; with --proba the price of abstention, with --amount cost-fp",
        brief=True,
    ),
    plot: str | None = option(PLOT, metavar="FILE", brief=True),
    picture: list[str] = option(
        "What to draw; waterfall needs a decision, such as --threshold. With --vary or --proba: utility, actions, "
        "risk-coverage or reliability.",
        (),
        choices=PICTURES,
        shown="brier and decision; utility and actions",
    ),
    all_thresholds: bool = option("Show every threshold in the table, not only some.", False, key="all"),
    format: str = format_option("blocks", "data", "rows", "columns"),
    output: str | None = FILE,
) -> None:
    """Show what every threshold t* costs: curves of Brier loss, regret and net benefit.

    Example: decal sweep preds.parquet --score 'p_*' --features 'x*' --thresholds 0.05:0.95:0.05 --plot curves.png
    """
    if picture and not plot:
        raise DecalError("--picture names what to draw, and nothing is drawn", "give --plot FILE, or --plot -")
    check_plot(plot, format)
    decision = replace(decision, varied=vary)
    answer = decal_cli.sweep(data, decision, thresholds=thresholds, prior=prior, statistics=statistics)
    answer.result.everything = all_thresholds
    if plot:
        from decal_cli.plot.sweeps import pictures_of

        pictures = pictures_of(answer.sweep, picture)
        answer.result.drawing = draw_sweep(answer.sweep, plot, pictures, output, answer.result.terms)
    emit(answer.result, format, output)


@under(JUDGE, "Over time", ONE_REQUIRED)
def online(
    decision: Annotated[
        Decision,
        {
            **dict.fromkeys((*DECLARATIONS, "abstain")),
            "utility": "Utilities 'u00,u01;u10,u11': a row for each decision, a column for each label. Or a .json, "
            ".toml or .csv file of them.",
        },
    ],
    over_time: OverTime,
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
    said: GivenOptions,
    state: str | None = option(
        "Go on from this file where an earlier run ended, and write it anew; it is begun where there is none.",
        metavar="STATE",
        brief=True,
    ),
    skip_known: bool = option(
        "Leave out rows that the state has already. Without this a file that begins with such rows is refused; a file "
        "that was taken whole is skipped in any case.",
        False,
    ),
    plot: str | None = option(
        "Draw the utility won, the evidence against the score and its reliability by period into this .png, .svg or "
        ".pdf file. The HTML page has them too.",
        metavar="FILE",
    ),
    rule: list[str] = option(
        "Rule that must hold, such as 'e_calibration<20'. Or 'lower(gain)<0.01'. The exit code is 1 where one fails; "
        "it may be checked every day.",
        (),
        "-r",
        metavar="RULE",
        brief=True,
    ),
    format: str | None = format_option(*RULED, settled=False),
    output: str | None = output_option(
        "Write the result to this file; a .parquet file gets every row with the predictions that would have been made."
    ),
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
    to_file = PurePath(output or "").suffix.lower() == ".parquet"
    page = None if to_file else output
    form = format_for(format, page, offered(RULED), beside=".parquet")
    if FORMATS[form].reads == "checks" and not rule:
        raise DecalError(f"--format {form} writes rules, and there is none", "give --rule 'e_calibration<20'")
    check_plot(plot)
    if not state:
        if skip_known:
            raise DecalError("--skip-known speaks of the rows that a state has", "give --state too, or leave it out")
        answer = decal_cli.online(data, decision, over_time=over_time, rules=rule, statistics=statistics)
    else:
        check_writable(state, "state")
        with only_run(state, "state"):
            given = asked(data, decision, statistics, {}, over_time)
            rules = [OnlineRule.parse(text) for text in rule]
            begun = _begun(state, given.plan, said) if os.path.exists(state) else None
            answer = replayed(given, rules, KeptState(state, begun, skip_known))
    result = answer.result
    result.seconds = time.perf_counter() - began
    if output and to_file:
        write_whole(output, as_parquet(answer.predicted), "output")
    if plot:
        write_whole(plot, draw_replay(result.judged, plot), "plot")
    result.drawings = replay_pictures(result.judged) if form == "html" and pictures_possible() else ()
    emit(result, form, page)
    return outcome(result.gates)


def _begun(state: str, plan: Plan, said: GivenOptions) -> Replay:
    """The replay that the state file holds. Errors: DecalError, where the line says another."""
    from decal_cli.analysis.online.plan import Delay, Period, online_plan
    from decal_cli.analysis.online.state_file import check_same, replay_of
    from decal_cli.documents import read_document

    replay = replay_of(read_document(state, f"state {state}", "name another file"), state)
    task = plan.two_actions(Verb("online"))
    given: dict[str, Any] = {"task": task} if task else {}
    given |= {name: said[name][0] for name in ("score", "group") if name in said}
    as_it_is = ("cluster", "time", "warm_up", "horizon", "seed", "confidence", "logit")
    given |= {name: said[name] for name in as_it_is if name in said}
    given |= {name: kind.parse(said[name]) for name, kind in (("delay", Delay), ("every", Period)) if name in said}
    if "method" in said:
        given["methods"] = online_plan(said["method"], replay.plan.warm_up, replay.plan).methods
    check_same(replay.plan, given, state)
    return replay


@under(JUDGE, OUTPUT)
def report(
    decision: Decision,
    costs: Costs,
    data: Data,
    statistics: Statistics,
    card: bool = option(
        "Write a model card by TRIPOD+AI in place of the page. It says what decal measured and what it cannot know, "
        "item by item: a .md, .html or .json file, or Markdown to standard output.",
        False,
        brief=True,
    ),
    output: str | None = output_option("HTML file to write; of a card its .md, .html or .json file."),
) -> None:
    """Write one self-contained HTML page: recommendation, pictures, and every metric explained.

    Example: decal report preds.parquet --score p --features 'x*' --threshold 0.3 -o report.html

    Example: decal report preds.parquet --score p --threshold 0.3 --card -o card.md
    """
    if card:
        form = format_for(None, output, ["markdown", "html", "json"])
        emit(decal_cli.model_card(data, decision, costs=costs, statistics=statistics).result, form, output)
        return
    if not output:
        raise DecalError("the report needs a file to be written to", "name it: -o report.html")
    form = format_for(None, output, ["html"])
    pictures_possible()
    emit(decal_cli.report(data, decision, costs=costs, statistics=statistics).result, form, output)


@under(JUDGE, "Statement")
def sql(
    data: Annotated[
        Data,
        {
            **{name: None for name in ("files", *DECLARATIONS, "engine") if name not in OF_STATEMENT},
            "score": "Score column; every column is a model. Repeatable.",
            "group": "Column of groups that are counted by themselves. Repeatable.",
            "query": "Query that gives the rows, in place of a table.",
        },
    ],
    said: GivenOptions,
    dialect: str = option(
        "Dialect of SQL; bigquery and snowflake are experimental: no server of theirs has run them. mysql has run in "
        "MariaDB.",
        "duckdb",
        choices=DIALECTS,
    ),
    table: str | None = option("Table that holds the rows: table, schema.table or '\"my.table\"'.", metavar="TABLE"),
    model: str | None = option(
        "Score the rows with this model file in place of counting them: isotonic, histogram, platt, temperature, beta, "
        "quadratic and threshold can be written as SQL.",
        metavar="MODEL",
    ),
    cells: bool = option(
        "Count by cell of the score, 65,536 of equal width, with the sums in each: the result stays small whatever "
        "the rows.",
        False,
    ),
    pairs: bool = option(
        "Count rows by two scores at once, for `decal compare FILE --aggregated`; with --cells, 256 on each side.",
        False,
    ),
    threshold: list[float] = option(
        "With --cells: a threshold at which decisions are to be exact.", (), "-t", kind=list[float], metavar="T"
    ),
) -> None:
    """Print one SQL statement that counts scores and labels, or scores rows, where the rows are.

    Run it in a database or warehouse, and export its result as CSV or Parquet: `decal evaluate FILE --aggregated`
    needs nothing else but --cluster, if you give it here. The statement also checks the rows, and counts those that
    are wrong in rows of their own.

    Example: decal sql --dialect duckdb --table preds --score p --label y --group site
    """
    from decal_cli.api.asking import asked
    from decal_cli.data.large.engines import DIALECTS as KINDS
    from decal_cli.data.large.engines.statement import CountRequest, statement

    kind = KINDS[dialect]
    if kind.experimental:
        streams.say(f"decal: the dialect {dialect} is experimental: hold its counts against known ones first")
    if model:
        if set(said) - {"dialect", "model", "table", "query"}:
            raise DecalError("--model scores rows, and nothing is counted", "give it with --table or --query alone")
        # Late: it loads all methods.
        from decal_cli.analysis.fit import read_model
        from decal_cli.learn.as_sql import scoring_statement

        text = scoring_statement(read_model(model), table or "", data.query or "", kind)
        sys.stdout.write(f"{text};\n")
        return
    for role, named in (("score", data.score), ("label", data.label)):
        if not named:
            raise DecalError(f"the {role} column is not named", f"name it with --{role}")
    if threshold and not cells:
        raise DecalError(
            "--threshold is for --cells: without them every score is counted by itself", "drop it, or add --cells"
        )
    columns = asked(data, None, None, {}).columns()
    roles = {role: getattr(columns, role) for role in OF_STATEMENT}
    request = CountRequest(
        table=table or "", query=data.query or "", cells=cells, pairs=pairs, thresholds=tuple(threshold), **roles
    )
    sys.stdout.write(f"{statement(request, kind)};\n")
