"""One run of `decal online`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import BinaryIO

from decal_cli.analysis.evaluate import Evaluation, Plan
from decal_cli.analysis.gate import outcome
from decal_cli.analysis.online import (
    Delay,
    OnlineRequest,
    OnlineRule,
    Period,
    Replay,
    check_goes_on,
    check_same,
    judge_online,
    judged,
    online_plan,
    predicted_columns,
    replay_of,
    state_text,
    unknown_rows,
)
from decal_cli.api.nouns import Decision, Statistics
from decal_cli.commands.common import emit, inputs_of, plan_of, settings_of, terms_of
from decal_cli.commands.options.acting import OF_STREAM, OnlineOptions, StreamOptions
from decal_cli.commands.options.common import OutputOptions
from decal_cli.commands.plotting import check_plot_file, pictures_possible
from decal_cli.commands.progress import progress_of
from decal_cli.commands.settings import Settings
from decal_cli.data import Columns, Stream, StreamColumns, as_parquet, read_stream
from decal_cli.data.output import check_not_read, check_writable, only_run, write_whole
from decal_cli.documents import read_document
from decal_cli.errors import DecalError, Exit
from decal_cli.plot import draw_replay, replay_pictures
from decal_cli.render.formats import format_for, offered
from decal_cli.render.results.online import Replayed
from decal_cli.render.terms import StatedTerms

PREDICTIONS = ".parquet"
"""The suffix of a file of predictions."""


def run(
    over_time: OnlineOptions,
    source: StreamOptions,
    task: Decision,
    terms: StatedTerms,
    sure: Statistics,
    out: OutputOptions,
) -> Exit:
    """Replay a stream, write what it comes to, and return the exit code of the rules."""
    settings = settings_of(out)
    plan, terms = plan_of((), task, sure, settings), terms_of(terms, settings)
    if over_time.state is None:
        if over_time.skip_known:
            raise DecalError("--skip-known speaks of the rows that a state has", "give --state too, or leave it out")
        return _run(over_time, source, out, settings, plan, terms, sure)
    check_writable(over_time.state, "state")
    with only_run(over_time.state, "state"):
        return _run(over_time, source, out, settings, plan, terms, sure)


def _run(
    over_time: OnlineOptions,
    source: StreamOptions,
    out: OutputOptions,
    settings: Settings,
    plan: Plan,
    terms: StatedTerms,
    sure: Statistics,
) -> Exit:
    to_file = out.output is not None and PurePath(out.output).suffix.lower() == PREDICTIONS
    form = format_for(over_time.format, None if to_file else out.output, Replayed)
    rules = [OnlineRule.parse(text) for text in over_time.rule]
    if form in offered(["checks"]) and not rules:
        raise DecalError(f"--format {form} writes rules, and there is none", "give --rule 'e_calibration<20'")
    if over_time.plot is not None:
        check_plot_file(over_time.plot)
    begun = _begun(over_time, source, sure, plan)
    paths, stdin = inputs_of(source, settings, out.output)
    check_not_read(over_time.state, paths)
    with progress_of() as progress:
        progress("the stream")
        if begun is None:
            stream, replay = _begin(over_time, paths, stdin, _columns(source, settings), plan)
        else:
            stream, replay = _go_on(begun, paths, stdin, _columns(source, settings), over_time)
        before = replay.rows
        predictions = replay.advance(stream)
        if over_time.state is None:
            replay.close()
        result, gates = judged(replay), judge_online(rules, replay)
    if to_file and out.output is not None:
        columns = predicted_columns(stream, replay.plan, predictions, replay.ahead(stream))
        write_whole(out.output, as_parquet(columns), "output")
        out = replace(out, output=None)
    notes = stream.notes
    if over_time.state is not None:
        write_whole(over_time.state, state_text(replay).encode(), "state")
        notes += (f"state {over_time.state}: had {before:,} rows, and has {replay.rows:,} now",)
    if over_time.plot is not None:
        write_whole(over_time.plot, draw_replay(result, over_time.plot), "plot")
    drawings = replay_pictures(result) if form == "html" and pictures_possible() else ()
    plan = replace(plan, task=replay.plan.task)
    evaluation = Evaluation(plan, stream.inputs, stream.columns, stream.guessed, notes, ())
    emit(Replayed(result, evaluation, terms, gates, drawings), form, out)
    return outcome(gates)


def _columns(source: StreamOptions, settings: Settings) -> Columns:
    """The columns of the line, else of the settings, as far as a stream has them."""
    known = {name: getattr(settings.columns, name) for name in OF_STREAM}
    return Columns(**known | source.named)


def _begun(options: OnlineOptions, source: StreamOptions, sure: Statistics, plan: Plan) -> Replay | None:
    """The replay that the state file holds, if there is one. Errors: DecalError, where the line says another."""
    if options.state is None or not os.path.exists(options.state):
        return None
    shown = f"state {options.state}"
    replay = replay_of(read_document(options.state, shown, "name another file"), options.state)
    named = source.named
    given = {
        "task": plan.two_actions("online"),
        "score": named["score"][0] if "score" in named else None,
        "group": named["group"][0] if "group" in named else None,
        "cluster": named.get("cluster"),
        "time": options.time,
        "delay": None if options.delay is None else Delay.parse(options.delay),
        "every": None if options.every is None else Period.parse(options.every),
        "warm_up": options.warm_up,
        "horizon": options.horizon,
        "methods": online_plan(options.method, replay.plan.warm_up, replay.plan).methods if options.method else None,
        "seed": sure.seed,
        "confidence": sure.confidence,
        "logit": named.get("logit"),
    }
    check_same(replay.plan, {name: value for name, value in given.items() if value is not None}, options.state)
    return replay


def _go_on(
    replay: Replay, paths: Sequence[str], stdin: BinaryIO | None, columns: Columns, options: OnlineOptions
) -> tuple[Stream, Replay]:
    """Rows after those of a state."""
    plan = replay.plan
    columns = replace(
        columns,
        score=() if plan.score is None else (plan.score,),
        group=() if plan.group is None else (plan.group,),
        cluster=plan.cluster,
        logit=plan.logit,
    )
    stream = read_stream(paths, columns, StreamColumns(plan.time, plan.delay.column, plan.score is not None), stdin)
    stream = unknown_rows(stream, replay, options.skip_known, f"state {options.state}")
    check_goes_on(replay, stream, options.state or "")
    return stream, replay


def _begin(
    options: OnlineOptions, paths: Sequence[str], stdin: BinaryIO | None, columns: Columns, plan: Plan
) -> tuple[Stream, Replay]:
    """The first rows."""
    asked = OnlineRequest(
        options.time,
        options.delay,
        options.warm_up,
        options.every,
        options.horizon,
        tuple(options.method),
        options.state is None,
    )
    stream = read_stream(paths, columns, asked.columns(columns), stdin)
    replay = asked.replay(stream, plan, columns.logit)
    if options.state is not None:
        stream = unknown_rows(stream, replay, options.skip_known, f"state {options.state}")
    return stream, replay
