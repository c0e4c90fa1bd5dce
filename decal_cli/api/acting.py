"""The verbs that act: fit and apply, and study."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decal_cli.analysis import fit as fits
from decal_cli.analysis.apply import columns_for, read_model, scored
from decal_cli.analysis.evaluate import Plan
from decal_cli.api.answer import Answer
from decal_cli.api.frames import Library, library_of, with_columns
from decal_cli.api.inputs import (
    Cost,
    Data,
    Missing,
    Names,
    Paths,
    Several,
    Table,
    Utilities,
    Values,
    dataset_of,
    file_columns,
    methods_of,
    paths_of,
    plan_of,
    preferences_of,
    real,
    task_given,
    terms_of,
    thresholds_text,
    whole,
)
from decal_cli.api.pictures import draw_picture
from decal_cli.api.words import one_of, spoken
from decal_cli.curves import parse_thresholds
from decal_cli.data import NewRows
from decal_cli.data.arrays import column_names, is_table, rows_in_memory
from decal_cli.data.output import write_whole
from decal_cli.declarations.defaults import CONFIDENCE, N_STUDY_SEEDS, SEED, STUDY_FOLDER, STUDY_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.methods import Saved, parse, to_text
from decal_cli.numbers import short, span
from decal_cli.render.results.fitting import Fitted
from decal_cli.render.results.study import Studied
from decal_cli.task import RowTask

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from decal_cli.analysis.study import Summary

IN_MEMORY = "the model"
"""What a model that was not read from a file is called in messages."""


class FitAnswer(Answer):
    """A fitted model and how it does on rows that it was not fitted to; `apply(answer, rows)` scores new rows."""

    result: Fitted

    def __init__(self, result: Fitted, model: Saved, plan: Plan, library: Library) -> None:
        super().__init__(result, library)
        self.plan = plan
        self.model = model
        """What `save_model` writes."""

    @property
    def gist(self) -> str:
        fitting = self.result.fitting
        gain = ""
        if fitting.gain is not None:
            ends = fitting.gain.interval
            thousands = None if ends is None else (1000 * ends[0], 1000 * ends[1])
            won = short(1000 * (fitting.gain.after - fitting.gain.before), 3)
            gain = f"; gain per 1,000 decisions on held-out rows: {won} {span(thousands, 3)}".rstrip()
        return f"{fitting.chosen.key} fitted to {len(fitting.training.rows):,} rows{gain}"

    def rows(self) -> Iterator[Sequence[Any]]:
        """One row for each metric: before, after, and the difference with its paired interval."""
        yield ["metric", "before", "after", "difference", "low", "high", "reason"]
        for key, each in self.result.fitting.differences.items():
            ends = each.difference.interval or (None, None)
            yield [key, each.a.value, each.b.value, each.difference.value, *ends, each.difference.reason]

    @spoken
    def apply(self, data: Table | Paths, *, missing: Missing = "error", name: str | None = None) -> Any:
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


class StudyAnswer(Answer):
    """How well the estimates predict what methods win; `to_frame()` has every point."""

    result: Studied

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
        from decal_cli.plot import draw_relation

        relations = self.summary.relations
        one_of("estimate", estimate, dict.fromkeys(name for name, _ in relations))
        one_of("target", target, dict.fromkeys(name for each, name in relations if each == estimate))
        axes: Axes = draw_relation(self.summary, estimate, target, ax)
        return axes


@spoken
def fit(
    data: Data,
    label: Values | None = None,
    *,
    method: str = fits.AUTO,
    test: Table | Paths | None = None,
    cost: Cost | None = None,
    unit: str | None = None,
    per: str | None = None,
    decisions: float | None = None,
    satisfied_at: float | None = None,
    tolerance: float | None = None,
    score: Names = (),
    proba: Names = (),
    classes: str | None = None,
    weight: Values | None = None,
    group: Several = (),
    cluster: Values | None = None,
    amount: Values | None = None,
    cost_fp_column: Values | None = None,
    cost_fn_column: Values | None = None,
    utility_columns: Several = (),
    log: str | None = None,
    features: Several = (),
    positive: object = None,
    logit: bool = False,
    missing: Missing = "error",
    threshold: float | None = None,
    utility: Utilities | None = None,
    cost_matrix: Utilities | None = None,
    cost_fp: float | None = None,
    cost_fn: float | None = None,
    odds: str | None = None,
    abstain: float | None = None,
    decision_threshold: float | None = None,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> FitAnswer:
    """Fit a method, and evaluate it on rows that it was not fitted to.

    data, label, the columns and the decision as for `evaluate`; one score. method: such as 'isotonic' or 'platt(on=p)';
    'auto' fits what `recommend` advises. test: a frame or files with the same columns, to evaluate the model on instead
    of by cross-fitting. unit, per, decisions: as for `recommend`.
    """
    asked = locals()
    chosen = None if method == fits.AUTO else parse(method)
    plan, preferences, terms = plan_of(asked, (), task_given(asked)), preferences_of(asked), terms_of(asked)
    rows = fits.one_model(dataset_of(asked))
    plan = plan.for_rows(rows)
    unseen = None
    if test is not None:
        known = {role: names for role, names in rows.columns.items() if role != "proba"}
        named = {**asked, **known, "data": test}
        unseen = fits.unseen(dataset_of(named), rows)
    followed = fits.advised(rows, plan, preferences) if chosen is None else fits.Advised(chosen)
    fitting = fits.fit(rows, plan, followed.chosen, unseen, followed.why)
    saved = fits.saved(fitting, rows, plan, bool(logit))
    return FitAnswer(Fitted(fitting, None, terms), saved, plan, library_of(data))


@spoken
def apply(
    model: FitAnswer | Saved | str | os.PathLike[str],
    data: Table | Paths,
    *,
    missing: Missing = "error",
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
        return _applied_to_files(saved, paths, columns, name, shown)
    if not is_table(data):
        raise DecalError("the rows have no columns", f"name them: apply(model, {{{saved.score!r}: scores}})")
    looked_at = (*(saved.proba or (saved.score,)), *saved.features, *saved.groups)
    (each,) = scored(saved, NewRows(rows_in_memory(data, looked_at), columns, saved.column_kinds), name, shown)
    for column in each.added:
        if column in column_names(data):
            raise DecalError(f"there is a column {column!r} already", "name the new one: name='column'")
    return with_columns(data, each.added, each.batch.known)


def _applied_to_files(saved: Saved, paths: Sequence[str], columns: Any, name: str | None, shown: str) -> Any:
    import pyarrow as pa

    tables = []
    for path in paths:
        rows = NewRows(path, columns, saved.column_kinds, typed=True)
        tables += [
            with_columns(each.batch.table, each.added, each.batch.known) for each in scored(saved, rows, name, shown)
        ]
    return pa.concat_tables(tables, promote_options="default")


@spoken
def study(
    files: Paths,
    *,
    methods: Names = (),
    thresholds: str | ArrayLike = STUDY_THRESHOLDS,
    seeds: int = N_STUDY_SEEDS,
    workers: int = 1,
    folder: str | os.PathLike[str] = STUDY_FOLDER,
    score: Names = (),
    proba: Names = (),
    classes: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    group: Names = (),
    cluster: str | None = None,
    features: Names = (),
    log: str | None = None,
    positive: object = None,
    logit: bool = False,
    missing: Missing = "error",
    utility: Utilities | None = None,
    cost_matrix: Utilities | None = None,
    abstain: float | None = None,
    confidence: float = CONFIDENCE,
) -> StudyAnswer:
    """Ask of your own files whether the estimates predict what every method then wins.

    files: paths. Their columns as for `evaluate`. utility, cost_matrix, abstain: one task in place of thresholds, of
    more than two actions or, with proba=, of several classes, which have 11 tasks otherwise. methods: by default all.
    seeds: number of random halvings of every file. folder: where finished units are kept, so that a stopped study goes
    on from there. workers: processes; more than one need `if __name__ == "__main__":` around the call in a script.
    """
    from decal_cli.analysis import study as studies
    from decal_cli.analysis.study.store import folder_of

    asked = locals()
    paths = paths_of(files)
    if not paths:
        raise DecalError("a study needs files by name", "give paths: study(['a.parquet', 'b.parquet'])")
    for what, count in (("seeds", seeds), ("workers", workers)):
        if whole(what, count) < 1:
            raise DecalError(f"{what}={count} is not positive", "give 1 or more")
    at = tuple(float(t) for t in parse_thresholds(thresholds_text(thresholds)))
    sure = Plan((), confidence=real("confidence", confidence)).confidence
    task = task_given(asked)
    assert not isinstance(task, RowTask)  # no keyword names one
    setting = studies.Setting(at, methods_of(methods), sure, studies.tasks_named(task))
    kept = folder_of(os.fspath(folder))
    result = studies.run(list(dict.fromkeys(paths)), file_columns(asked), setting, range(seeds), Path(kept), workers)
    return StudyAnswer(Studied(studies.summarise(result)), library_of(None))
