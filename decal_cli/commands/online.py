"""One run of `decal online`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import PurePath

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.gate import outcome
from decal_cli.analysis.online import (
    Delay,
    OnlineRule,
    Period,
    Replay,
    check_goes_on,
    check_same,
    online_plan,
    predicted_columns,
    replay_of,
    state_text,
    unknown_rows,
)
from decal_cli.api.asking import AROUND, asked, columns_of, computing, paths_of
from decal_cli.api.nouns import Data, Decision, OverTime, Statistics
from decal_cli.api.online import OnlineAnswer, in_words, online, replayed
from decal_cli.commands.line import GivenOptions
from decal_cli.commands.options import OnlineOptions, OutputOptions
from decal_cli.commands.writing import check_plot, emit, pictures_possible
from decal_cli.data import StreamColumns, as_parquet, read_stream
from decal_cli.data.output import check_writable, only_run, write_whole
from decal_cli.documents import read_document
from decal_cli.errors import DecalError, Exit
from decal_cli.plot import draw_replay, replay_pictures
from decal_cli.render.formats import format_for, offered
from decal_cli.render.results.online import Replayed

PREDICTIONS = ".parquet"
"""The suffix of a file of predictions."""


def run(
    decision: Decision,
    over_time: OverTime,
    options: OnlineOptions,
    data: Data,
    statistics: Statistics,
    out: OutputOptions,
    said: GivenOptions,
) -> Exit:
    """Replay a stream, write what it comes to, and return the exit code of the rules."""
    to_file = out.output is not None and PurePath(out.output).suffix.lower() == PREDICTIONS
    to_page = replace(out, output=None) if to_file else out
    form = format_for(options.format, to_page.output, Replayed)
    if form in offered(["checks"]) and not options.rule:
        raise DecalError(f"--format {form} writes rules, and there is none", "give --rule 'e_calibration<20'")
    check_plot(options.plot)
    if options.state is None:
        if options.skip_known:
            raise DecalError("--skip-known speaks of the rows that a state has", "give --state too, or leave it out")
        answer = online(data, decision, over_time=over_time, rules=options.rule, statistics=statistics)
    else:
        check_writable(options.state, "state")
        with only_run(options.state, "state"):
            answer = _with_state(options.state, data, decision, over_time, statistics, options, said)
    result = answer.result
    if to_file and out.output is not None:
        write_whole(out.output, as_parquet(answer.predicted), "output")
    if options.plot is not None:
        write_whole(options.plot, draw_replay(result.judged, options.plot), "plot")
    result.drawings = replay_pictures(result.judged) if form == "html" and pictures_possible() else ()
    emit(result, form, to_page)
    return outcome(result.gates)


def _with_state(
    state: str,
    data: Data,
    decision: Decision,
    over_time: OverTime,
    statistics: Statistics,
    options: OnlineOptions,
    said: GivenOptions,
) -> OnlineAnswer:
    """A replay that goes on where an earlier run ended, or begins; the state is written anew."""
    plan, rules = asked(data, decision, statistics, {}).plan, [OnlineRule.parse(text) for text in options.rule]
    begun = _begun(state, over_time, plan, said) if os.path.exists(state) else None
    columns, paths, stdin = columns_of(data, decision), paths_of(data.source) or [], AROUND.get().stdin
    in_time = in_words(over_time, whole_stream=False)
    with computing() as progress:
        progress("the stream")
        if begun is None:
            stream = read_stream(paths, columns, in_time.columns(columns), stdin)
            replay = in_time.replay(stream, plan, columns.logit)
            stream = unknown_rows(stream, replay, options.skip_known, f"state {state}")
        else:
            replay = begun
            of = replay.plan
            columns = replace(
                columns,
                score=() if of.score is None else (of.score,),
                group=() if of.group is None else (of.group,),
                cluster=of.cluster,
                logit=of.logit,
            )
            stream = read_stream(paths, columns, StreamColumns(of.time, of.delay.column, of.score is not None), stdin)
            stream = unknown_rows(stream, replay, options.skip_known, f"state {state}")
            check_goes_on(replay, stream, state)
        before, predictions = replay.rows, replay.advance(stream)
    write_whole(state, state_text(replay).encode(), "state")
    note = f"state {state}: had {before:,} rows, and has {replay.rows:,} now"
    result = replayed(replay, stream, plan, rules, decision.terms, (note,))
    return OnlineAnswer(
        result, "pandas", lambda: predicted_columns(stream, replay.plan, predictions, replay.ahead(stream))
    )


def _begun(state: str, over_time: OverTime, plan: Plan, said: GivenOptions) -> Replay:
    """The replay that the state file holds. Errors: DecalError, where the line says another."""
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
