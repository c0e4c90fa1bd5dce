"""One run of `decal apply`: rows scored by a model file, or by the forecasters of a state that go on after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from decal_cli.analysis.fit import columns_for, model_text, scored
from decal_cli.analysis.online.plan import AS_IT_IS
from decal_cli.analysis.online.replay import Replay, predicted_name
from decal_cli.analysis.online.state_file import check_goes_on, is_state, replay_of
from decal_cli.api.words import AROUND, computing
from decal_cli.commands.streams import say
from decal_cli.data import Batch, Columns, NewRows, Stream, Writer, format_of, read_times
from decal_cli.data.output import STANDARD_OUTPUT, check_new, standard_output, whole_file
from decal_cli.data.words import enumerated
from decal_cli.errors import DecalError
from decal_cli.learn.method import DECISION, THRESHOLD
from decal_cli.learn.model_file import Saved, from_text
from decal_cli.numbers import many, shares_text

Part: TypeAlias = tuple[Batch, Mapping[str, Any]]
"""A batch of rows, and the columns that are added to it, by name."""


def run(model: str, file: str, missing: Any, output: str, name: str | None, force: bool) -> None:
    """Score the rows batch by batch, and write them with what was added."""
    typed = format_of(output) == ".parquet"
    if output != STANDARD_OUTPUT:
        check_new(output, "output", force)
    text = model_text(model)
    stdin = AROUND.get().stdin if file == "-" else None
    if is_state(text):
        replay = replay_of(text, model)
        plan = replay.plan
        score, *groups = ((each,) if each else () for each in (plan.score, plan.group, plan.cluster))
        columns = Columns(score=score, group=sum(groups, ()), logit=plan.logit, missing=missing)
        _apply_state(replay, NewRows(file, columns, (), stdin, typed), model, output, name)
        return
    saved = from_text(text, model)
    rows = NewRows(file, columns_for(saved, missing), saved.column_kinds, stdin, typed)
    n_unseen, of_fit = 0, False

    def parts() -> Iterator[Part]:
        nonlocal n_unseen, of_fit
        for each in scored(saved, rows, name, model):
            n_unseen += each.unseen
            yield each.batch, each.added
        # Before the output is in place, which may be that of the rows.
        of_fit = rows.source.raw.sha256() in (each["sha256"] for each in saved.fitted_on.get("inputs", ()))

    n_scored = _write(output, parts(), "new score", lambda added: _added_text(saved, added))
    if "prevalence" in saved.fitted_on:
        shares = saved.fitted_on["prevalence"]
        say(f"The model is for a population with {shares_text(shares)}.")
        if not saved.method.startswith("threshold"):
            given = ",".join(f"{each}={share:.12g}" for each, share in shares.items()) if saved.classes else shares
            say(f"The new score is of that population already: judge it with --prevalence {given} --keep-scores.")
    if n_unseen:
        has = "has" if n_unseen == 1 else "have"
        rows_with = f"{n_unseen:,} of {many(n_scored, 'row')} {has}"
        say(f"{rows_with} a category that the model was not fitted on: it counts as a rare one.")
    if of_fit:
        say(
            "The model was fitted to these rows: metrics computed on them are optimistic "
            "(`decal fit` printed held-out ones)."
        )


def _write(output: str, parts: Iterable[Part], what: str, told: Callable[[list[str]], str]) -> int:
    """Write batches with their added columns, and say so; returns how many rows have a new score.

    told: gives the sentence on the added columns, from their names.
    """
    n_scored = n_all = 0
    names: list[str] = []
    to_file = standard_output() if output == STANDARD_OUTPUT else whole_file(output, "output")
    with to_file as file, computing() as progress:
        writer = Writer(output, file)
        for batch, added in parts:
            writer.write(batch.table, added, batch.known)
            n_scored, n_all, names = n_scored + len(batch.rows), n_all + len(batch.known), list(added)
            progress(f"{n_scored:,} rows")
        writer.close()
    unscored = f"; no {what} for {many(n_all - n_scored, 'row')} (missing score)" if n_all > n_scored else ""
    where = "standard output" if output == STANDARD_OUTPUT else output
    say(f"wrote {where}: {many(n_all, 'row')}; added {told(names)}{unscored}")
    return n_scored


def _added_text(saved: Saved, added: Sequence[str]) -> str:
    """A sentence that names each added column with its method, or says that only the threshold moves, not the score."""
    if saved.classes:
        return f"{len(added)} columns, {added[0]} to {added[-1]} (method: {saved.method})"
    columns, last = enumerated(added), added[-1]
    if not (added[0].startswith(THRESHOLD) and last.startswith(DECISION)):
        return f"{columns} (method: {saved.method})"
    return f"{columns} (method: {saved.method}; {saved.score} does not change, {last} holds the decisions)"


def _apply_state(replay: Replay, rows: NewRows, model: str, output: str, name: str | None) -> None:
    """Score rows that come after those of a state by all of its forecasters; the state stays as it is."""
    plan = replay.plan
    methods = [spec.key for spec in plan.methods if spec.key != AS_IT_IS]
    if name and len(methods) > 1:
        raise DecalError(f"--name names one column, and the state has {len(methods)} forecasters", "leave --name out")
    names = {method: name or predicted_name(plan, method) for method in methods}
    if taken := [each for each in names.values() if each in rows.names]:
        raise DecalError(f"there is a column {taken[0]!r} already", "rename it in the file")
    batches = list(rows.batches())
    known = np.concatenate([batch.known for batch in batches])
    time, clock = read_times(rows.source, plan.time) if plan.time else (np.arange(len(known)), plan.clock)
    score = np.concatenate([batch.rows.score for batch in batches])
    label, no_text, time = np.zeros(len(score), dtype=np.uint8), np.zeros(len(score), dtype=str), time[known]
    group, cluster = (
        np.concatenate([batch.rows.groups[each] for batch in batches]) if each else no_text
        for each in (plan.group, plan.cluster)
    )
    stream = Stream((), {}, (), (), clock, score, label, 0, time, time, group, cluster, np.arange(len(score)))
    check_goes_on(replay, stream, model)
    predictions = replay.ahead(stream)
    ends = np.cumsum([len(batch.rows) for batch in batches])[:-1]
    columns = {added: np.split(predictions[method], ends) for method, added in names.items()}
    parts = ((batch, {added: each[k] for added, each in columns.items()}) for k, batch in enumerate(batches))
    _write(output, parts, "prediction", lambda added: f"{', '.join(added)} after {many(replay.rows, 'row')}")
