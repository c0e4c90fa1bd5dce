"""One run of `decal apply`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from decal_cli.analysis.fit import columns_for, model_text, scored
from decal_cli.analysis.online import Replay, check_goes_on, is_state, predicted_name, replay_of
from decal_cli.analysis.online.plan import AS_IT_IS
from decal_cli.api.words import computing
from decal_cli.commands.options import ApplyOptions
from decal_cli.commands.streams import say
from decal_cli.data import Columns, NewRows, Stream, Writer, format_of, read_times
from decal_cli.data.output import check_new, standard_output, whole_file
from decal_cli.data.writing import STANDARD_OUTPUT
from decal_cli.errors import DecalError
from decal_cli.learn.method import DECISION, THRESHOLD
from decal_cli.learn.model_file import Saved, from_text
from decal_cli.render.results.source import shares_text


def run(options: ApplyOptions) -> None:
    """Score the rows batch by batch, and write them with what was added."""
    typed = format_of(options.output) == ".parquet"
    to_stdout = options.output == STANDARD_OUTPUT
    if not to_stdout:
        check_new(options.output, "output", options.force)
    text = model_text(options.model)
    if is_state(text):
        apply_state(options, replay_of(text, options.model))
        return
    saved = from_text(text, options.model)
    columns = columns_for(saved, "drop" if options.missing == "drop" else "error")
    stdin = sys.stdin.buffer if options.file == "-" else None
    rows = NewRows(options.file, columns, saved.column_kinds, stdin, typed)
    fitted_on = {item["sha256"] for item in saved.fitted_on.get("inputs", ())}
    n_scored = n_unscored = n_unseen = 0
    added: list[str] = []
    written = standard_output() if to_stdout else whole_file(options.output, "output")
    with written as file, computing() as progress:
        writer = Writer(options.output, file)
        for each in scored(saved, rows, options.name, options.model):
            batch, added = each.batch, list(each.added)
            writer.write(batch.table, each.added, batch.known)
            n_scored += len(batch.rows)
            n_unscored += len(batch.known) - len(batch.rows)
            n_unseen += each.unseen
            progress(f"{n_scored:,} rows")
        writer.close()
    unscored_text = f"; {n_unscored:,} rows have no new score (missing score)" if n_unscored else ""
    total = n_scored + n_unscored
    where = "standard output" if to_stdout else options.output
    say(f"wrote {where}: {total:,} rows; added {_added_text(saved, added)}{unscored_text}")
    if "prevalence" in saved.fitted_on:
        say(f"The model is calibrated for a population with {shares_text(saved.fitted_on['prevalence'])}.")
    if n_unseen:
        say(
            f"{n_unseen:,} of {n_scored:,} rows have a category that the model was not fitted on: it counts as a rare "
            "one."
        )
    if rows.source.raw.sha256() in fitted_on:
        say(
            "The model was fitted to these rows: metrics computed on them are optimistic "
            "(`decal fit` printed held-out ones)."
        )


def _added_text(saved: Saved, added: Sequence[str]) -> str:
    """Every added column with the method; where only the threshold moves, that the score does not change."""
    if saved.classes:
        return f"{len(added)} columns, {added[0]} to {added[-1]} (method: {saved.method})"
    *others, last = added
    columns = f"{', '.join(others)} and {last}" if others else last
    if not (added[0].startswith(THRESHOLD) and last.startswith(DECISION)):
        return f"{columns} (method: {saved.method})"
    return f"{columns} (method: {saved.method}; {saved.score} does not change, {last} holds the decisions)"


def apply_state(options: ApplyOptions, replay: Replay) -> None:
    """Score rows that come after those of a state by all of its forecasters; the state stays as it is."""
    plan = replay.plan
    columns = Columns(
        score=() if plan.score is None else (plan.score,),
        group=tuple(name for name in (plan.group, plan.cluster) if name is not None),
        logit=plan.logit,
        missing="drop" if options.missing == "drop" else "error",
    )
    stdin = sys.stdin.buffer if options.file == "-" else None
    rows = NewRows(options.file, columns, (), stdin, format_of(options.output) == ".parquet")
    names = _names(options, replay, rows.names)
    stream, batches = _stream(rows, replay)
    check_goes_on(replay, stream, options.model)
    predictions = replay.ahead(stream)
    to_stdout = options.output == STANDARD_OUTPUT
    with standard_output() if to_stdout else whole_file(options.output, "output") as file:
        writer, first = Writer(options.output, file), 0
        for batch in batches:
            end = first + len(batch.rows)
            added = {name: predictions[method][first:end] for method, name in names.items()}
            writer.write(batch.table, added, batch.known)
            first = end
        writer.close()
    total = sum(len(batch.known) for batch in batches)
    unscored = f"; {total - first:,} rows have no prediction (missing score)" if total > first else ""
    where = "standard output" if to_stdout else options.output
    say(f"wrote {where}: {total:,} rows; added {', '.join(names.values())} after {replay.rows:,} rows{unscored}")


def _names(options: ApplyOptions, replay: Replay, columns: list[str]) -> dict[str, str]:
    """What the column of each forecaster's predictions is called."""
    methods = [spec.key for spec in replay.plan.methods if spec.key != AS_IT_IS]
    if options.name is not None and len(methods) > 1:
        raise DecalError(f"--name names one column, and the state has {len(methods)} forecasters", "leave --name out")
    names = {method: options.name or predicted_name(replay.plan, method) for method in methods}
    for name in names.values():
        if name in columns:
            raise DecalError(f"there is a column {name!r} already", "rename it in the file")
    return names


def _stream(rows: NewRows, replay: Replay) -> tuple[Stream, list]:
    """The rows without labels, and the batches that they came in."""
    plan = replay.plan
    batches = list(rows.batches())
    known = np.concatenate([batch.known for batch in batches])
    time, clock = np.arange(len(known)), plan.clock
    if plan.time is not None:
        time, clock = read_times(rows.source, plan.time)
    group, cluster = (
        None if name is None else np.concatenate([batch.rows.groups[name] for batch in batches])
        for name in (plan.group, plan.cluster)
    )
    score = np.concatenate([batch.rows.score for batch in batches])
    label = np.zeros(len(score), dtype=np.uint8)
    return Stream((), {}, (), (), clock, score, label, 0, time[known], group=group, cluster=cluster), batches
