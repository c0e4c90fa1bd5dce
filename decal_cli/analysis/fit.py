"""One method fitted to a data set, what it wins on rows that it has not seen, and new rows scored by it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.compare import Difference, ModelComparison, compare
from decal_cli.analysis.described import Utility
from decal_cli.analysis.evaluate import Evaluation, Plan, with_lists
from decal_cli.analysis.recommend import Preferences, evidence_choices, fitted_at, idle, ranks_now, recommend
from decal_cli.data import Batch, Columns, Dataset, NewRows, Predictions
from decal_cli.data.large.sampling import with_rows
from decal_cli.documents import read_document
from decal_cli.errors import DecalError, Undefined, printable
from decal_cli.hints import Hint, Verb
from decal_cli.learn.curves import in_population
from decal_cli.learn.encoding import unseen_categories
from decal_cli.learn.held_out import MIN_ISOTONIC_ROWS, WIDENED
from decal_cli.learn.method import (
    MethodSpec,
    Performance,
    added_columns,
    new_name,
    training_rows,
    try_out,
    with_score,
)
from decal_cli.learn.method import fit as fit_method
from decal_cli.learn.methods import parse
from decal_cli.learn.model_file import Saved, from_text, score_rows
from decal_cli.learn.models import Model
from decal_cli.metrics import Interval
from decal_cli.metrics import parse as parse_metric
from decal_cli.metrics.decisions import Change
from decal_cli.metrics.inputs import decisions_on
from decal_cli.numbers import many, short
from decal_cli.tables.features import PLURALS, Features, mismatch, mixed_bits
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows
from decal_cli.task import Task
from decal_cli.version import __version__

AUTO = "auto"
"""In place of a method: the one that the recommendation advises."""
JUDGED_BY = tuple(parse_metric(name) for name in ("brier", "log_loss", "auc", "ece", "c_emp"))
OF_CLASSES = tuple(parse_metric(name) for name in ("brier", "log_loss", "accuracy", "auc", "ece_top"))
WITH_TASK = (parse_metric("regret_calibration"),)


@dataclass(frozen=True)
class Gain:
    """What acting on the new score wins per decision, and expected utility with the score as it is and the new one."""

    value: float
    interval: Interval | None
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Fitting:
    """A fitted model and how it did.

    columns: what applying it adds, the new score first. shared: how many test rows are training rows; None: unknown.
    scores: the rows that judge it, with both scores: those it was fitted to, scored by other folds (cross_fitted), or
    those of a test file. judged: their evaluation. differences: metrics before and after; empty where only the
    threshold moves. gain: None without a task. why: what `auto` compared, where it left the advised method.
    """

    chosen: MethodSpec
    model: Model
    training: Predictions
    scores: Dataset
    judged: Evaluation
    columns: tuple[str, ...]
    cross_fitted: bool
    shared: int | None
    differences: Mapping[str, Difference]
    gain: Gain | None
    seconds: float
    why: str = ""


def one_model(data: Dataset) -> Dataset:
    """The data set, which holds one model. Errors: DecalError, where it holds several, or no rows."""
    data = with_rows(data, "fit")
    if len(data.models) != 1:
        names = ", ".join(model.name for model in data.models)
        raise DecalError(
            f"{len(data.models)} score columns are named ({names})", f"fit one at a time: {Hint('score', 'NAME')}"
        )
    return data


def test_set(test: Dataset, data: Dataset) -> Dataset:
    """A test set of one model, none of whose files the model is fitted to. Errors: DecalError, where one is."""
    known = {item.sha256 for item in data.inputs}
    for item in one_model(test).inputs:
        if item.sha256 in known:
            raise DecalError(
                f"{Hint('test', f'{printable(item.path)}')} holds the rows that the model is fitted to",
                f"name a file that it was not fitted to, or drop {Hint('test')} to evaluate it by cross-fitting",
            )
    return test


class Advised(NamedTuple):
    """The method that `auto` stands for; why: what was compared, where the advice names another, else empty."""

    chosen: MethodSpec
    why: str = ""


OF_FEW_ROWS = tuple(map(parse, ("isotonic", "platt", "beta", "quadratic", "spline")))
"""What is compared where isotonic regression may waste the rows."""


def advised(data: Dataset, plan: Plan, wanted: Preferences) -> Advised:
    """The method that the flowchart ends in; of few rows the recalibration that predicts held-out rows best.

    Errors: DecalError, where it ends in none.
    """
    if plan.decision_of(data.classes) is None:
        fix = (
            f"give {Hint('utility').words} or {Hint('abstain').words}"
            if data.classes
            else f"give {Hint('threshold').words}"
        )
        raise DecalError(f"auto takes what `{Verb('recommend')}` advises, which needs the decision", fix)
    choices = evidence_choices(bool(data.classes), every=False)
    found = recommend(data, replace(plan, choices=choices), wanted)
    advice = found.advice[0]
    method, lean, said = advice.method, advice.act_now.method, advice.lead[0].rstrip(".")
    if data.capacity is not None:
        # Who gets a place is another question than on whom to act where every row has one.
        first = ranks_now(found.ranked[data.models[0].name], advice.evidence.acted_on, plan.confidence)
        waits = idle(found.evaluation.reports[0], first, advice.evidence.stakes) is not None
        method, lean = None if waits else first.method, None
        keep = "use no place" if waits else "keep the order of the score"
        said = f"with {Hint('capacity', data.capacity.text)} {keep}, since no method is sure enough to win more"
    if method is None and lean is not None:
        problem = f"`{Verb('recommend')}` cannot tell yet what a method would win; by the estimates it leans to {lean}"
        raise DecalError(problem, f"to fit it anyway: {Verb('fit', method=lean)}")
    if method is None:
        problem = f"there is nothing to fit; the advice is: {said}"
        raise DecalError(problem, f"see why with {Verb('recommend')}, or name a method")
    chosen = parse(method)
    few = len(data.models[0].rows) < MIN_ISOTONIC_ROWS and not data.classes
    return _of_few(data, plan, chosen) if few and chosen in OF_FEW_ROWS else Advised(chosen)


def _of_few(data: Dataset, plan: Plan, advice: MethodSpec) -> Advised:
    """By the Brier score, or by less the utility per decision at the capacity."""
    rows, capacity = training_rows(data.models[0], plan.simplest.shared_by(data.classes), plan.seed), data.capacity
    (model,) = with_lists(data.judged, plan).models

    def lost(chosen: MethodSpec) -> float:
        applied = try_out(chosen, rows).applied
        if capacity is None:
            return float(np.average((applied.score - rows.judged.label) ** 2, weights=rows.judged.weights))
        return -float(fitted_at(model, capacity, plan, chosen, applied, WIDENED).utility or 0.0)

    losses = {}
    for chosen in OF_FEW_ROWS:
        with suppress(Undefined):
            losses[chosen] = lost(chosen)
    best, *others = sorted(losses, key=losses.__getitem__) or [advice]
    if best == advice:
        return Advised(advice)
    sign, best_of = (1, "has the lowest Brier score") if capacity is None else (-1, "is worth most at the capacity")
    listed = ", ".join(f"{each.key} {short(sign * losses[each], 4)}" for each in others)
    why = (
        f"With few rows, {best.key} {best_of} on held-out rows: {short(sign * losses[best], 4)} "
        f"({listed}). The advice names {advice.key}; the gain below is that of {best.key}."
    )
    return Advised(best, why)


def fit(dataset: Dataset, plan: Plan, chosen: MethodSpec, test: Dataset | None = None, why: str = "") -> Fitting:
    """Fit a method to the one model of a data set; judge it there by cross-fitting, or on a test set.

    Errors: DecalError where the method cannot be fitted to these rows, with the reason.
    """
    training, cross_fitted = dataset.models[0], test is None
    if len(training.columns) < len(dataset.classes):
        raise DecalError(
            f"{training.name} is one list-valued column, and a model takes a column for each class",
            "write the probabilities to columns such as lr:a, lr:b, lr:c",
        )
    task = plan.simplest.shared_by(dataset.classes)
    rows = training_rows(training, task, plan.seed)
    judged = dataset.judged if test is None else _comparable(test, dataset)
    try:
        model = fit_method(chosen, rows)
        performance = (
            None if cross_fitted else Performance(chosen, model(training_rows(judged.models[0], task, plan.seed)))
        )
        population = dataset.population
        if population is not None and not population.kept:
            # It learned from scores that were moved there; those of new rows come as they were made.
            model = in_population(model, population.factors)
    except Undefined as undefined:
        why = f"{chosen.key} cannot be fitted to {training.name}: it {undefined.reason}"
        raise DecalError(why, "`decal methods` lists other methods") from None
    if performance is None:
        try:
            performance = try_out(chosen, rows)
        except Undefined as undefined:
            why = f"{chosen.key} can be fitted to {training.name}, and not judged there: it {undefined.reason}"
            raise DecalError(why, f"give more rows, or others to judge it on with {Hint('test', 'FILE')}") from None
    applied, name = performance.applied, new_name(training.name, chosen)
    # All rows, with the score as it is and with the new one.
    (before,) = judged.changed(lambda rows: replace(rows, groups={})).models
    scores = replace(judged, models=(before, with_score(before, applied, name)))
    choices = OF_CLASSES if scores.classes else JUDGED_BY
    choices += () if plan.shared_by(scores.classes) is None else WITH_TASK
    comparison = compare(scores, replace(plan, choices=choices), splicing=False)
    gain = _gain(performance, judged, plan, None if cross_fitted else comparison.contests[0])
    shared = 0 if cross_fitted else shared_rows(training.rows, judged.models[0].rows)
    return Fitting(
        chosen,
        model,
        training,
        scores,
        comparison.evaluation,
        tuple(added_columns(applied, training.name, name, dataset.classes)),
        cross_fitted,
        shared,
        {} if applied.threshold is not None else comparison.contests[0].differences,
        gain,
        performance.seconds,
        why,
    )


def _comparable(test: Dataset, dataset: Dataset) -> Dataset:
    """The test set, with classes in the order of the training file.

    Errors: DecalError, where both have rows of one cluster, or a feature is of another kind than in the training file.
    """
    where = f"{Hint('test', test.inputs[0].path)}"
    if test.clusters is not None and dataset.clusters is not None:
        both = np.intersect1d(dataset.clusters, test.clusters)
        if len(both):
            raise DecalError(
                f"{where}: cluster {printable(repr(str(both[0])))} is in the training file as well "
                f"({many(len(both), 'such cluster')})",
                f"split by cluster, or drop {Hint('test')} to evaluate by cross-fitting, which keeps clusters whole",
            )
    model = test.models[0].with_classes(dataset.classes)
    _need_same_kinds(dataset.models[0], model.rows, where)
    return replace(test, models=(model,))


def _need_same_kinds(training: Predictions, rows: Rows, where: str) -> None:
    """Errors: DecalError, where a feature of these rows is of another kind than in the training file."""
    if not (rows.has_features and training.rows.has_features):
        return
    have, want = rows.typed.kinds, training.rows.typed.kinds
    if len(have) != len(want):
        raise DecalError(
            f"{where}: the features hold {len(have)} numbers a row, those of the training file {len(want)}",
            "give the same features",
        )
    at = mismatch(have, want)
    if at is not None:
        raise DecalError(
            f"{where}, column {training.feature_names[at]!r} holds {PLURALS[have[at]]}, where the training file holds "
            f"{PLURALS[want[at]]}",
            "store the column in the same way in both files",
        )


def shared_rows(training: Rows, test: Rows) -> int | None:
    """How many test rows stand among the training rows as well; None where equal rows may be equal by chance.

    Equal in score, label and features. As many rows of their own have a twin among the training rows as these have
    among themselves: with few distinct scores and no features an equal row need not be the same one.
    """

    def keys(rows: Rows) -> np.ndarray:
        scores = Features.of_numbers(np.column_stack((rows.score, rows.label)))
        return mixed_bits((*scores.hashed(), *rows.typed.hashed()), len(rows))

    known, asked = keys(training), keys(test)
    times = np.unique(known, return_counts=True)[1]
    # Of scores alone one pair more: that none is seen among these does not make the next one a copy.
    pairs = times[times > 1].sum() + (0 if training.has_features else 2)
    twins, found = min(pairs / len(known), 1.0), int(np.isin(asked, known).sum())
    # Both shares vary; that of twins twice as much, since a row makes another one's twin.
    noise = math.sqrt(twins * (1 - twins) * (1 / len(asked) + 2 / len(known)))
    return None if 0 < found <= len(asked) * (twins + 3 * noise) else found


def _gain(performance: Performance, judged: Dataset, plan: Plan, contest: ModelComparison | None) -> Gain | None:
    """What acting on the new score wins, at the capacity where there is one.

    None without a task, and for a method that moves one threshold where rows have others. contest: of both scores on
    rows that no fold learned from; None for cross-fitted rows.
    """
    rows, applied, widened = judged.models[0].rows, performance.applied, WIDENED if contest is None else 1.0
    decision = plan.simplest.decision_of(judged.classes)
    if decision is None or (plan.by_row and applied.threshold is not None):
        return None
    if judged.capacity is not None:
        (model,) = with_lists(judged, plan).models
        new = fitted_at(model, judged.capacity, plan, performance.chosen, applied, widened)
        assert new.utility is not None and new.gain is not None  # a method that was fitted has them
        return Gain(new.gain, new.interval if plan.intervals else None, new.utility - new.gain, new.utility)
    at_best = not isinstance(decision, Task) or decision.operated_at_best == decision
    if contest is not None and applied.threshold is None and at_best:
        # Two scores that are acted on alike: their difference is that of `decal compare`, with its interval.
        found = contest.headline["expected_utility"]
        before, won = found.a.value or 0.0, found.difference.value or 0.0
        return Gain(won, found.difference.interval, before, before + won)
    change = Change(decisions_on(rows, decision), decisions_on(rows, decision, applied), widened)
    before, gain = change.before.utility.value, Utility.of(change.gain, rows.adjusted_confidence(plan.level))
    return Gain(*gain, before, before + gain.value)


def saved_model(
    chosen: MethodSpec, model: Model, training: Predictions, dataset: Dataset, plan: Plan, logit: bool = False
) -> Saved:
    """The model file of a model that was fitted to these rows."""
    # A model asks of new rows what it looks at, not what else was named when it was fitted.
    method = chosen.declared
    rows = training.rows
    with_features = method.takes("features") and rows.has_features
    kinds = rows.typed.kinds if with_features else ()
    names = training.feature_names if with_features else ()
    return Saved(
        method=chosen.key,
        model=model,
        score=training.name,
        features=names,
        width=len(kinds),
        # One list-valued column is one feature of many numbers.
        kinds=kinds[: len(names)],
        groups=tuple(rows.groups) if method.takes("groups") else (),
        logit=logit,
        task=plan.binary,
        classes=rows.classes,
        proba=training.columns if rows.classes else (),
        fitted_on={
            "decal": __version__,
            "rows": len(rows),
            **({} if rows.classes else {"positives": rows.positives}),
            **({} if dataset.population is None else {"prevalence": dataset.population.prevalence}),
            "seed": plan.seed,
            "inputs": [{"sha256": item.sha256, "rows": item.rows} for item in dataset.inputs],
        },
    )


def how_judged(fitting: Fitting) -> str:
    """Which rows the figures are of, in words: never those that the model was fitted to."""
    judged = fitting.judged.reports[0].rows
    rows = many(judged, "row")
    if fitting.cross_fitted and fitting.training.rows.in_time:
        return (
            f"on {judged:,} of {len(fitting.training.rows):,} rows, those after the first block: each row is scored by "
            "a model that was fitted to earlier rows only"
        )
    if fitting.cross_fitted:
        it = "it" if fitting.training.rows.unit is None else "its cluster"
        return f"cross-fitted in {FOLDS} folds of the {rows}: each row is scored by a model that was not fitted to {it}"
    if fitting.shared:
        return (
            f"on the {rows} of the test file; {fitting.shared:,} of them are in the training file too, so these "
            "figures are optimistic"
        )
    return f"on the {rows} of the test file" + (", which the model was not fitted to" if fitting.shared == 0 else "")


def read_model(path: str) -> Saved:
    """The model of a file. Errors: DecalError, where it is none that `decal fit` wrote."""
    return from_text(model_text(path), path)


def model_text(path: str) -> str:
    """The text of a model file. Errors: DecalError, where it cannot be read."""
    return read_document(path, f"model file {path}", "name a model file that decal wrote")


def columns_for(saved: Saved, missing: Any = "error") -> Columns:
    """The columns that the model looks at; missing: what is done with rows that lack a score."""
    return Columns(
        score=() if saved.proba else (saved.score,),
        proba=saved.proba,
        features=saved.features,
        group=saved.groups,
        logit=saved.logit,
        missing=missing,
    )


@dataclass(frozen=True, eq=False)
class ScoredBatch:
    """Some rows with what the model adds to them.

    added: name -> values, shape (rows that lack no score,). unseen: how many of these have a category that the model
    was not fitted on.
    """

    batch: Batch
    added: Mapping[str, NDArray[Any]]
    unseen: int


def scored(saved: Saved, rows: NewRows, name: str | None, shown: str) -> Iterator[ScoredBatch]:
    """Every batch of rows with its new columns. name: of the new score; shown: the model, for messages."""
    for batch in rows.batches():
        applied = score_rows(saved, batch.rows, shown)
        new = name or new_name(saved.score, parse(saved.method))
        added = added_columns(applied, name or saved.score, new, saved.classes)
        for column in added:
            if column in rows.names:
                raise DecalError(f"there is a column {column!r} already", f"name the new one: {Hint('name', 'COLUMN')}")
        yield ScoredBatch(batch, added, unseen_categories(saved.model, batch.rows))
