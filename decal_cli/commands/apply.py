"""One run of `decal apply`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from decal_cli.analysis.apply import columns_for, model_text, scored
from decal_cli.analysis.online import is_state, replay_of
from decal_cli.commands.apply_state import apply_state
from decal_cli.commands.options.acting import ApplyOptions
from decal_cli.commands.progress import progress_of
from decal_cli.commands.streams import say
from decal_cli.data import NewRows, Writer, format_of
from decal_cli.data.output import check_new, standard_output, whole_file
from decal_cli.data.writing import STANDARD_OUTPUT
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
    with written as file, progress_of() as progress:
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
