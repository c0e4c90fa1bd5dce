"""What the verbs are given, by the names of their keywords, to a checked data set and a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from decal_cli.analysis.evaluate import Plan, planned
from decal_cli.analysis.packs import Pack, pack_named
from decal_cli.analysis.recommend import COSTED, Preferences
from decal_cli.analysis.reference import Reference, against
from decal_cli.api.words import one_of
from decal_cli.data import Columns, Counting, Dataset, Paired, from_arrays, pair_up, read, read_pair
from decal_cli.data.arrays import is_table
from decal_cli.data.large.engines.address import is_address
from decal_cli.data.large.engines.opened import Engine
from decal_cli.data.words import number, text_of
from decal_cli.errors import DecalError
from decal_cli.metrics import MetricSpec, parse
from decal_cli.render.terms import Terms
from decal_cli.roles import DECLARATIONS, ROLES, ROW_UTILITIES, several
from decal_cli.task import SPELLINGS, ClassTask, RowTask, Task, row_task_of, task_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from decal_cli.methods import MethodSpec


class ArrowFrame(Protocol):
    """A data frame that speaks the Arrow protocol: pandas, polars, pyarrow, duckdb and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class LazyFrame(Protocol):
    """A frame of polars whose columns are yet to be computed."""

    def collect_schema(self) -> Any: ...


Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
Table: TypeAlias = "ArrowFrame | LazyFrame | Mapping[str, ArrayLike]"
Data: TypeAlias = "ArrayLike | Table | Paths | Engine"
Values: TypeAlias = "str | ArrayLike"
"""A column's name, or its values."""
Several: TypeAlias = "str | Sequence[str] | ArrayLike | Table"
"""Columns' names, or their values."""
Names: TypeAlias = "str | Sequence[str]"
Utilities: TypeAlias = "str | Sequence[Sequence[float]] | NDArray[Any]"
Missing: TypeAlias = 'Literal["error", "drop"]'
Cost: TypeAlias = "float | Mapping[str, float]"

NEEDS_TASK = DecalError(
    "a recommendation needs the decision it is for", "give threshold=, utility=, cost_fp= and cost_fn=, or odds="
)


def names_of(what: str, given: Any) -> tuple[str, ...]:
    """One name, or several."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    listed = tuple(given)
    if wrong := [each for each in listed if not isinstance(each, str)]:
        raise DecalError(f"{what}= holds {wrong[0]!r}, which is not a text", "give a text, or a list of texts")
    return listed


def paths_of(data: Any) -> list[str] | None:
    """The paths that the data is named by; None where it is in memory."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple)) and data and all(isinstance(each, (str, os.PathLike)) for each in data):
        return [os.fspath(each) for each in data]
    return None


def columns_of(asked: Mapping[str, Any]) -> Columns:
    """What is said of the columns, without the roles that may be arrays."""
    for name, declared in DECLARATIONS.items():
        if declared.choices and asked.get(name) is not None:
            one_of(name, asked[name], declared.choices)
    return Columns(
        score=names_of("score", asked["score"]),
        log=asked.get("log"),
        positive=text_of(asked["positive"]),
        logit=bool(asked["logit"]),
        margin=bool(asked.get("margin")),
        missing=asked["missing"],
        prevalence=_number_text(asked, "prevalence"),
        sampled_negatives=_number_text(asked, "sampled_negatives"),
        keep_scores=bool(asked.get("keep_scores")),
        aggregated=bool(asked.get("aggregated")),
        capacity=capacity_text(asked.get("capacity")),
    )


def capacity_text(given: Any) -> str | None:
    """A capacity as the command line takes it: '50/1000', or a number."""
    return given if given is None or isinstance(given, str) else text_of(real("capacity", given))


def _roles(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is given for each role; per is one where there is a capacity, and elsewhere the time of decisions."""
    given = {name: asked[name] for name in ROLES if not _unnamed(asked.get(name))}
    if "per" in given and asked.get("capacity") is None:
        if "decisions" not in asked:
            raise DecalError("per= is the column of days of a capacity", "give capacity= too")
        del given["per"]
    return given


def _number_text(asked: Mapping[str, Any], name: str) -> str | None:
    return None if asked.get(name) is None else repr(real(name, asked[name]))


def dataset_of(asked: Mapping[str, Any], edges: Sequence[float] | None = None, pairs: bool = False) -> Dataset:
    """The data set of a verb's arguments; edges: thresholds of decisions, where counts of rows will do.

    pairs: whether rows are counted by two scores at once. Errors: DecalError.
    """
    data, label = asked["data"], asked["label"]
    paths = paths_of(data)
    if paths is not None and _names_engine(paths):
        # Late: most callers have files or arrays.
        from decal_cli.data.large.engines.reading import read_engine

        return read_engine(paths[0], file_columns(asked), None, tuple(edges or ()), pairs)
    if isinstance(data, Engine):
        from decal_cli.data.large.engines.reading import read_connection

        return read_connection(data, file_columns(asked), tuple(edges or ()), pairs)
    if hasattr(data, "cursor") and hasattr(data, "close"):
        raise DecalError("the data is a connection", "say what to ask it: decal_cli.Engine(connection, table='preds')")
    if type(data).__module__.startswith("pyspark.sql"):
        from decal_cli.data.large.engines.reading import read_spark

        return read_spark(data, file_columns(asked), tuple(edges or ()), pairs)
    if paths is not None:
        counting = None if edges is None else Counting(tuple(edges), pairs=pairs)
        return read(paths, file_columns(asked), None, counting, not pairs)
    columns = columns_of(asked)
    if columns.log is not None:
        raise DecalError("log= reads files, and the data is in memory", "give the path of the log")
    roles = {name: given for name, given in _roles(asked).items() if name not in ("score", "label")}
    try:
        return from_arrays(data, label, columns=columns, **roles)
    except DecalError as error:
        if label is not None and not is_table(data) and look_swapped(data, label):
            raise swapped("evaluate(scores, labels)") from None
        raise error


def paired_of(asked: Mapping[str, Any], edges: Sequence[float]) -> Paired:
    """The two models of a comparison, on the same rows; edges: thresholds of decisions. Errors: DecalError."""
    id_column, group = asked["id"], names_of("group", asked["group"])
    paths = paths_of(asked["data"])
    if paths is not None and not _names_engine(paths):
        return read_pair(paths, file_columns(asked), id_column, None, Counting(tuple(edges), pairs=True))
    grouped = {**asked, "group": (*group, id_column)} if id_column is not None else asked
    columns = replace(columns_of(asked), group=group if id_column else ())
    return pair_up(dataset_of(grouped, edges, pairs=True), columns, id_column)


def _names_engine(paths: Sequence[str] | None) -> bool:
    return paths is not None and len(paths) == 1 and is_address(paths[0])


def reference_of(asked: Mapping[str, Any], dataset: Dataset, plan: Plan) -> Reference | None:
    """What the rows are held against, if anything: a frame or files with columns of the same names."""
    if asked["reference"] is None:
        return None
    if asked["label"] is not None and not isinstance(asked["label"], str):
        raise DecalError("reference= has columns of the same names", "give the data as a frame or as files too")
    known = dataset_of({**asked, "data": asked["reference"]})
    return against(dataset, known, plan.confidence if plan.intervals else None)


def _unnamed(given: Any) -> bool:
    return given is None or (isinstance(given, (tuple, list)) and not given)


def file_columns(asked: Mapping[str, Any]) -> Columns:
    """What is said of the columns of files, where every role is a name."""
    named = {role: names_of(role, values) for role, values in _roles(asked).items()}
    given = {role: listed if several(role) else listed[0] for role, listed in named.items() if listed}
    return columns_of(asked).updated(given)


def look_swapped(scores: Any, labels: Any) -> bool:
    """Whether what is given as scores is all 0 and 1, and what is given as labels lies between them."""
    try:
        first, second = (np.asarray(values, dtype=np.float64) for values in (scores, labels))
    except (TypeError, ValueError):
        return False
    binary = bool(np.isin(first, (0.0, 1.0)).all())
    return binary and bool(((second >= 0) & (second <= 1)).all()) and not np.isin(second, (0.0, 1.0)).all()


def swapped(call: str) -> DecalError:
    """The error for labels in the place of scores."""
    return DecalError("the labels hold values between 0 and 1, and the scores hold only 0 and 1", f"swapped? {call}")


MATRICES = ("utility", "cost_matrix")


def task_given(asked: Mapping[str, Any]) -> Task | ClassTask | RowTask | None:
    """The decision, in one of its spellings."""
    given = {name: asked[name] for name in SPELLINGS if asked.get(name) is not None}
    for name, value in given.items():
        if name not in (*MATRICES, "odds"):
            given[name] = real(name, value)
    if "odds" in given and not isinstance(given["odds"], str):
        raise DecalError(f"odds={given['odds']!r} is not a text", "give for example odds='1:19' (t* = .05)")
    for name in MATRICES:
        if isinstance(given.get(name), np.ndarray):
            given[name] = given[name].tolist()
    if columns := [role for role in ROW_UTILITIES if not _unnamed(asked.get(role))]:
        return row_task_of(columns, given)
    return task_of(**given)


def real(name: str, value: Any) -> float:
    """A number. Errors: DecalError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise DecalError(f"{name}={value!r} is not a number", f"give a number, such as {name}=0.3")
    return float(value)


def whole(name: str, value: Any) -> int:
    """A whole number. Errors: DecalError."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise DecalError(f"{name}={value!r} is not a whole number", f"give a whole number, such as {name}=1")
    return int(value)


def plan_of(asked: Mapping[str, Any], choices: Sequence[MetricSpec], task: Task | ClassTask | RowTask | None) -> Plan:
    """What is to be computed."""
    confidence, seed = real("confidence", asked["confidence"]), whole("seed", asked["seed"])
    return planned(choices, task, confidence, seed, bool(asked.get("intervals", True)))


def pack_of(pack: str | None, metrics: Names) -> Pack | None:
    """The pack that is named, in place of metrics."""
    if pack is not None and metrics not in ((), []):
        raise DecalError("pack= chooses the metrics, and so does metrics=", "give one of them")
    return None if pack is None else pack_named(pack)


def metrics_of(given: Names) -> tuple[MetricSpec, ...]:
    """The named metrics; none where none are named."""
    return tuple(dict.fromkeys(map(parse, names_of("metrics", given))))


def methods_of(given: Names) -> tuple[MethodSpec, ...]:
    """The named methods; none where none are named."""
    from decal_cli.methods import parse

    return tuple(dict.fromkeys(map(parse, names_of("methods", given))))


def preferences_of(asked: Mapping[str, Any]) -> Preferences:
    """What post-training costs and what is good enough."""
    cost = asked["cost"]
    costs = cost if isinstance(cost, Mapping) else {} if cost is None else dict.fromkeys(COSTED, cost)
    for name in costs:
        one_of("cost", name, COSTED)
    numbers = {
        name: None if asked[name] is None else real(name, asked[name])
        for name in ("decisions", "satisfied_at", "tolerance")
    }
    texts = [f"{name}={real('cost', value)!r}" for name, value in costs.items()]
    return Preferences.parse(texts, numbers["decisions"], numbers["satisfied_at"], numbers["tolerance"])


def terms_of(asked: Mapping[str, Any]) -> Terms:
    """In which unit and for how many decisions amounts are said, and what the actions are called."""
    decisions = None if asked["decisions"] is None else real("decisions", asked["decisions"])
    per = asked["per"] if asked.get("capacity") is None else None
    return Terms.of(asked["unit"], per, decisions, asked.get("names"))


def thresholds_text(given: str | ArrayLike) -> str:
    """Thresholds as the command line takes them: 'start:end:step', or a list."""
    if isinstance(given, str):
        return given
    try:
        return ",".join(repr(float(each)) for each in np.atleast_1d(np.asarray(given, dtype=np.float64)))
    except (TypeError, ValueError):
        raise DecalError(
            f"thresholds={number_or_text(given)} are not numbers", "give numbers, or '0.05:0.95:0.05'"
        ) from None


def number_or_text(value: Any) -> str:
    """A value as an error shows it."""
    return number(value) if isinstance(value, float) else repr(value)[:60]
