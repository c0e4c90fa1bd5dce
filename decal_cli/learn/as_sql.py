"""Fitted models as SQL: scores where the rows are, for models that are plain functions of the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from decal_cli.data.large.engines.dialects import Dialect, logistic
from decal_cli.data.large.engines.statement import source_of
from decal_cli.data.words import enumerated
from decal_cli.errors import DecalError
from decal_cli.hints import Verb
from decal_cli.learn.curves import MAX_LOGIT, MIN_SCORE, Beta, InPopulation, Quadratic, Sigmoid, Steps, Threshold
from decal_cli.learn.method import DECISION, THRESHOLD, new_name
from decal_cli.learn.methods import METHODS
from decal_cli.learn.model_file import Saved
from decal_cli.learn.models import Model
from decal_cli.learn.regions import Curve
from decal_cli.tables.population import MOVED_ROUNDING

PUSHED = ("isotonic", "histogram", "platt", "temperature", "beta", "quadratic", "threshold")


def scoring_statement(saved: Saved, table: str, query: str, dialect: Dialect) -> str:
    """The statement that adds to rows what `decal apply` adds; NULL where the score is missing or cannot be one.

    Errors: DecalError, for a model that is no plain function of one score.
    """
    given = dialect.as_double(dialect.name(saved.score))
    score = logistic(given, dialect) if saved.logit else given
    more = saved.features or saved.groups or saved.classes
    formula = "" if more else _sql_of(saved.model, score, dialect)
    if not formula:
        name = METHODS.parse(saved.method).name
        why = "this one is of several classes" if saved.classes and name in PUSHED else f"{enumerated(PUSHED)} can"
        raise DecalError(f"{saved.method} cannot be written as SQL: {why}", f"score the rows with {Verb('apply')}")
    least, most = (-np.inf, np.inf) if saved.logit else (0.0, 1.0)
    ends = (">", "<") if saved.logit else (">=", "<=")
    known = f"{given} {ends[0]} {dialect.number(least)} AND {given} {ends[1]} {dialect.number(most)}"
    known += f" AND NOT ({dialect.is_nan(given)})"
    if isinstance(saved.model, Threshold):
        threshold = dialect.number(saved.model.threshold)
        added = {
            f"{THRESHOLD}{saved.score}": threshold,
            f"{DECISION}{saved.score}": f"CASE WHEN {score} >= {threshold} THEN 1 ELSE 0 END",
        }
    else:
        added = {new_name(saved.score, METHODS.parse(saved.method)): formula}
    columns = [f"CASE WHEN {known} THEN\n{each}\n    END AS {dialect.name(name)}" for name, each in added.items()]
    listed = ",\n    ".join(["*", *columns])
    return f"SELECT\n    {listed}\nFROM {source_of(table, query, dialect)}"


def _sql_of(model: Model, score: str, dialect: Dialect) -> str | None:
    """A model's new score as an expression of the old one, which is a probability; None of one that is no formula."""
    number, p, logit = dialect.number, _clipped(score, dialect), _logit(score, dialect)
    match model:
        case Sigmoid():
            term = logit if model.on == "logit" else score
            return logistic(_linear([(model.slope, term)], model.intercept, dialect), dialect)
        case Beta():
            logs = f"{number(model.a)} * LN({p}) - {number(model.b)} * LN(1 - {p})"
            return logistic(f"{logs} + {_signed(model.c, dialect)}", dialect)
        case Quadratic():
            z = _within(logit, -MAX_LOGIT, MAX_LOGIT, dialect)
            terms = [(model.square, f"{z} * {z}"), (model.slope, z)]
            return logistic(_linear(terms, model.intercept, dialect), dialect)
        case Curve():
            return _interpolated(model, score, dialect)
        case Steps():
            return _halved(score, list(map(number, model.edges)), list(map(number, model.value)), "<=")
        case InPopulation():
            zero, one = map(number, model.factors)
            moved = f"({one} * {score} / ({one} * {score} + {zero} * (1 - {score})))"
            return _sql_of(_reached(model.fitted), moved, dialect)
        case Threshold():
            return score
    return None


def _reached(model: Model) -> Model:
    """The model of moved scores, with edges that a score reaches which lies there but for rounding, as here."""
    if isinstance(model, Steps):
        return replace(model, edges=np.minimum(model.edges * (1 + MOVED_ROUNDING), 1.0))
    return model


def _interpolated(model: Curve, score: str, dialect: Dialect) -> str:
    """An expression that is linear between points, found by halving; a point that occurs twice has a jump."""
    at, value = model.at, model.value
    last = np.flatnonzero(np.append(at[1:] > at[:-1], True))
    pieces = [dialect.number(value[0])]
    for j in last:
        slope = 0.0 if j == len(at) - 1 else (value[j + 1] - value[j]) / (at[j + 1] - at[j])
        start = dialect.number(value[j])
        pieces.append(
            start if slope == 0 else f"{start} + {dialect.number(slope)} * ({score} - {_signed(at[j], dialect)})"
        )
    return _halved(score, [dialect.number(each) for each in at[last]], pieces, "<")


def _halved(score: str, edges: Sequence[str], pieces: Sequence[str], below: str) -> str:
    """One of len(edges) + 1 pieces, found by halving."""
    if not edges:
        return pieces[0]
    middle = len(edges) // 2
    left = _halved(score, edges[:middle], pieces[: middle + 1], below)
    right = _halved(score, edges[middle + 1 :], pieces[middle + 1 :], below)
    return f"CASE WHEN {score} {below} {edges[middle]} THEN {left} ELSE {right} END"


def _linear(terms: Sequence[tuple[float, str]], intercept: float, dialect: Dialect) -> str:
    products = [f"{_signed(factor, dialect)} * {term}" for factor, term in terms]
    return " + ".join([*products, _signed(intercept, dialect)])


def _signed(value: float, dialect: Dialect) -> str:
    return f"({dialect.number(value)})" if value < 0 else dialect.number(value)


def _within(value: str, least: float, most: float, dialect: Dialect) -> str:
    return f"{dialect.least}({dialect.greatest}({value}, {_signed(least, dialect)}), {dialect.number(most)})"


def _clipped(score: str, dialect: Dialect) -> str:
    return _within(score, MIN_SCORE, 1 - MIN_SCORE, dialect)


def _logit(score: str, dialect: Dialect) -> str:
    p = _clipped(score, dialect)
    return f"LN({p} / (1 - {p}))"
