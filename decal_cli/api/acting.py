"""The verbs that act: fit and apply, and study."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from decal_cli.analysis import fit as fits
from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.fit import columns_for, read_model, scored
from decal_cli.api.answer import Answer, of_thousand
from decal_cli.api.asking import (
    asked,
    methods_of,
    paths_of,
    thresholds_text,
    whole,
)
from decal_cli.api.frames import library_of, with_columns
from decal_cli.api.nouns import Costs, Data, DecisionLike, Halvings, Names, Paths, Source, Statistics, Table
from decal_cli.api.pictures import draw_picture
from decal_cli.api.words import AROUND, computing, one_of, spoken
from decal_cli.curves.grid import parse_thresholds
from decal_cli.data import NewRows
from decal_cli.data.arrays import column_names, is_table, rows_in_memory
from decal_cli.data.output import write_whole
from decal_cli.declarations.defaults import STUDY_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.learn.methods import parse
from decal_cli.learn.model_file import Saved, to_text
from decal_cli.render.results.fitting import FittedPage
from decal_cli.render.results.study import Studied
from decal_cli.roles import ROW_UTILITIES
from decal_cli.task import RowTask

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from decal_cli.analysis.study_summary import Summary

IN_MEMORY = "the model"
"""What a model that was not read from a file is called in messages."""


@dataclass(eq=False, repr=False)
class FitAnswer(Answer):
    """A fitted model and how it does on rows that it was not fitted to; `apply(answer, rows)` scores new rows.

    model: what `save_model` writes.
    """

    result: FittedPage
    model: Saved
    plan: Plan

    @property
    def gist(self) -> str:
        fitting = self.result.fitting
        gain = ""
        if fitting.gain is not None:
            won = of_thousand(fitting.gain.after - fitting.gain.before, fitting.gain.interval)
            gain = f"; gain per 1,000 decisions on held-out rows: {won}"
        return f"{fitting.chosen.key} fitted to {len(fitting.training.rows):,} rows{gain}"

    def rows(self) -> Iterator[Sequence[Any]]:
        """One row for each metric: before, after, and the difference with its paired interval."""
        yield ["metric", "before", "after", "difference", "low", "high", "reason"]
        for key, each in self.result.fitting.differences.items():
            ends = each.difference.interval or (None, None)
            yield [key, each.a.value, each.b.value, each.difference.value, *ends, each.difference.reason]

    @spoken
    def apply(
        self, data: Table | Paths, *, missing: Literal["error", "drop"] = "error", name: str | None = None
    ) -> Any:
        """The rows with the new score: see `apply`."""
        return apply(self, data, missing=missing, name=name)

    @spoken
    def plot(self, picture: str = "reliability", *, ax: Axes | None = None, report: int = 1) -> Axes:
        """Draw brier, decision, roc, reliability, grouping or waterfall of the rows that the model is judged on.

        report: for pictures of a single score, 0 for the score as it is and 1 for the new one.
        """
        return draw_picture(self.result.fitting.scores, self.plan, picture, ax, report, self.result.terms)

    @spoken
    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Write the model as readable JSON, for `apply` and `decal apply`."""
        write_whole(os.fspath(path), to_text(self.model).encode(), "model file")


@dataclass(eq=False, repr=False)
class StudyAnswer(Answer):
    """How well the estimates predict what methods win; `to_frame()` has every point.

    notes: what was found out about the files.
    """

    result: Studied
    notes: Sequence[str]

    @property
    def summary(self) -> Summary:
        """Points, relations and ways of choosing."""
        return self.result.summary

    @property
    def gist(self) -> str:
        points = self.summary.points
        return f"{len(points.pairs)} scores of {len(points.files)} files, {len(points.threshold):,} points"

    @spoken
    def plot(self, estimate: str = "gain_recalibration", target: str = "isotonic", *, ax: Axes | None = None) -> Axes:
        """Draw the gain of a method against an estimate of it into `ax`, or into a figure of its own."""
        from decal_cli.plot.study import draw_relation

        relations = self.summary.relations
        one_of("estimate", estimate, dict.fromkeys(name for name, _ in relations))
        one_of("target", target, dict.fromkeys(name for each, name in relations if each == estimate))
        return draw_relation(self.summary, estimate, target, ax)


@spoken
def fit(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    method: str = fits.AUTO,
    costs: Costs | None = None,
    statistics: Statistics | None = None,
    **fields: Any,
) -> FitAnswer:
    """Fit a method, and evaluate it on rows that it was not fitted to.

    Parameters
    ----------
    data, decision, statistics, **fields
        As for `evaluate`; one score. test: a source with the same columns, to evaluate the model on instead of by
        cross-fitting.
    method
        Such as 'isotonic' or 'platt(on=p)'; 'auto' fits what `recommend` advises.
    costs
        As for `recommend`.

    Returns
    -------
    FitAnswer
        `answer.apply(rows)` scores new rows; gains are per decision, of rows that the model was not fitted to.

    Examples
    --------
    >>> scores = [k / 200 for k in range(200)]
    >>> fit((scores, [k % 4 == 0 for k in range(200)]), 0.3, method="isotonic").result.fitting.chosen.key
    'isotonic'
    """
    given = asked(data, decision, statistics, fields, costs or Costs())
    chosen = None if method == fits.AUTO else parse(method)
    if given.data.margin:
        raise DecalError(
            "a model file does not hold the range of margins, which other rows would not have",
            f"give {Hint('logit')}, a map that is the same for all rows",
        )
    plan, preferences, rows = given.plan, given.preferences, fits.one_model(given.rows())
    plan = plan.for_rows(rows)
    unseen = None
    if given.data.test is not None:
        known = {role: names for role, names in rows.columns.items() if role != "proba"}
        tested = asked(replace(given.data, source=given.data.test), given.decision, None, known)
        unseen = fits.unseen(tested.rows(), rows)
    with computing() as progress:
        followed = fits.advised(rows, plan, preferences) if chosen is None else fits.Advised(chosen)
        progress(followed.chosen.key)
        fitting = fits.fit(rows, plan, followed.chosen, unseen, followed.why)
    saved = fits.saved_model(fitting.chosen, fitting.model, fitting.training, rows, plan, bool(given.data.logit))
    return FitAnswer(FittedPage(fitting, None, given.terms), given.library, saved, plan)


@spoken
def apply(
    model: FitAnswer | Saved | str | os.PathLike[str],
    data: Table | Paths,
    *,
    missing: Literal["error", "drop"] = "error",
    name: str | None = None,
) -> Any:
    """Rows with the new score of a fitted model, in a frame of their own library; those of files as a pyarrow table.

    model: what `fit` returned, or the path of a model file. data: a frame or mapping with the columns that the model
    was fitted on (of arrays they are called 'score', 'features' and 'group'), or path(s) of files. missing: 'error', or
    'drop' to leave rows without a score as they are. name: of the new column, by default the old score's name and the
    method's, such as 'p_isotonic'.
    """
    saved = model.model if isinstance(model, FitAnswer) else model
    shown = IN_MEMORY
    if not isinstance(saved, Saved):
        shown = os.fspath(saved)
        saved = read_model(shown)
    columns = columns_for(saved, one_of("missing", missing, ("error", "drop")))
    paths = paths_of(data)
    if paths is not None:
        import pyarrow as pa

        sources = [NewRows(path, columns, saved.column_kinds, typed=True) for path in paths]
        parts = (each for rows in sources for each in scored(saved, rows, name, shown))
        tables = [with_columns(each.batch.table, each.added, each.batch.known) for each in parts]
        return pa.concat_tables(tables, promote_options="default")
    if not is_table(data):
        raise DecalError("the rows have no columns", f"name them: apply(model, {{{saved.score!r}: scores}})")
    looked_at = (*(saved.proba or (saved.score,)), *saved.features, *saved.groups)
    (each,) = scored(saved, NewRows(rows_in_memory(data, looked_at), columns, saved.column_kinds), name, shown)
    for column in each.added:
        if column in column_names(data):
            raise DecalError(f"there is a column {column!r} already", "name the new one: name='column'")
    return with_columns(data, each.added, each.batch.known)


@spoken
def study(
    files: Data | Paths,
    decision: DecisionLike | None = None,
    *,
    methods: Names = (),
    halvings: Halvings | None = None,
    statistics: Statistics | None = None,
    **fields: Any,
) -> StudyAnswer:
    """Ask of your own files whether the estimates predict what every method then wins.

    Parameters
    ----------
    files
        Paths, or `Data` of paths; each is a data set.
    decision, statistics, **fields
        As for `evaluate`. One task in place of thresholds: of more than two actions, or of several classes, which have
        11 tasks otherwise.
    methods
        By default all.
    halvings
        Thresholds, number of random halvings, processes, and the folder of what is finished.

    Returns
    -------
    StudyAnswer
        `to_frame()` has every point: gains per decision, estimated and won.

    Examples
    --------
    >>> study("a.parquet", halvings=Halvings(seeds=10), score="p")  # doctest: +SKIP
    """
    from decal_cli.analysis import study as studies
    from decal_cli.analysis.study import folder_of
    from decal_cli.analysis.study_summary import summarise

    given = asked(files, decision, statistics, fields, halvings or Halvings())
    (halved,) = given.others
    paths = paths_of(given.data.source)
    if not paths or "-" in paths:
        raise DecalError("a study needs files by name", "name them, such as a.parquet and b.parquet")
    workers = 1 if halved.workers is None else halved.workers
    for what, count in (("seeds", halved.seeds), ("workers", workers)):
        if whole(what, count) < 1:
            raise DecalError(f"{Hint(what, count)} is not positive", "give 1 or more")
    if by_row := tuple(role for role in ROW_UTILITIES if role in given.said):
        Plan((), RowTask(by_row)).need_shared("study")
    text, plan = thresholds_text(halved.thresholds), given.plan
    if plan.decision is not None and text != STUDY_THRESHOLDS:
        raise DecalError(f"{Hint('thresholds')} and a task are both given", "keep one of them")
    named = studies.tasks_named(plan.need_shared("study"))
    at = tuple(float(t) for t in parse_thresholds(text))
    setting = studies.Setting(at, methods_of(methods), plan.confidence, named)
    folder, columns = Path(folder_of(os.fspath(halved.folder))), given.columns()
    with AROUND.get().counting() as count:
        result = studies.run(list(dict.fromkeys(paths)), columns, setting, range(halved.seeds), folder, workers, count)
        return StudyAnswer(Studied(summarise(result)), library_of(None), result.notes)
