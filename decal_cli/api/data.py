"""Nouns, and the first of them: the data, by a path, a frame, arrays or a connection, and what columns stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeAlias

from decal_cli.declarations.option import declared, keys_of, option
from decal_cli.roles import DECLARATIONS, DEFAULTS

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike

    from decal_cli.data.large.engines.opened import Engine

    class Frame(Protocol):
        """A data frame that speaks the Arrow protocol: pandas, polars, pyarrow, DuckDB and others."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

    class Array(Protocol):
        """An array of numpy, or a series of pandas, polars or pyarrow."""

        def __array__(self, *args: Any, **more: Any) -> Any: ...

    class LazyFrame(Protocol):
        """A frame of polars whose columns are yet to be computed."""

        def collect_schema(self) -> Any: ...

    class Connection(Protocol):
        """An open connection of DB-API 2 or of ADBC."""

        def cursor(self) -> Any: ...
        def close(self) -> None: ...


Path: TypeAlias = "str | os.PathLike[str]"
Paths: TypeAlias = "Path | Sequence[Path]"
Table: TypeAlias = "Frame | LazyFrame | Mapping[str, ArrayLike]"
Source: TypeAlias = "ArrayLike | Table | Paths | Engine | Connection | tuple[ArrayLike, ArrayLike]"
Values: TypeAlias = "str | ArrayLike"
"""A column's name, or its values, shape (T,)."""
Several: TypeAlias = "str | Sequence[str] | ArrayLike | Table"
"""Columns' names, or their values."""
Names: TypeAlias = "str | Sequence[str]"
Matrix: TypeAlias = "str | Sequence[Any] | Array | Mapping[str, Sequence[float]]"
"""A row for each action, a column for each label."""


def column(name: str) -> Any:
    """A field that says something of the columns, as it is declared there."""
    return declared(DEFAULTS[name], DECLARATIONS[name])


def same(noun: type, name: str, default: Any = None) -> Any:
    """A field that is declared as one of a noun."""
    return declared(default, next(each for each in fields(noun) if each.name == name).metadata["option"])


OF_STREAM = ("label", "score", "group", "cluster", "positive", "logit", "missing")
"""What can be said of rows over time."""


class Noun:
    """A part of what is asked, which never changes: a method gives another one."""

    PANEL: ClassVar[str] = ""

    def said(self) -> dict[str, Any]:
        """Key -> value of every field that has been given."""
        values = {key: getattr(self, name) for key, name in keys_of(type(self)).items()}
        return {key: value for key, value in values.items() if not unsaid(value)}

    def __repr__(self) -> str:
        shown = [(each.name, getattr(self, each.name), each.default) for each in fields(self)]  # type: ignore[arg-type]
        given = (f"{name}={_brief(value)}" for name, value, default in shown if not _same(value, default))
        return f"{type(self).__name__}({', '.join(given)})"


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value).__module__.startswith("decal_cli") and bool(value == default))


def unsaid(value: Any) -> bool:
    """Whether a field was left as it is: None, False, or nothing in it."""
    return value is None or value is False or (isinstance(value, (tuple, list, str)) and not value)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 50 and not hasattr(value, "__array__") else f"<{type(value).__name__}>"


@dataclass(frozen=True, eq=False, repr=False)
class Data(Noun):
    """Rows with scores and labels, and what their columns stand for.

    Parameters
    ----------
    source
        Path(s) of CSV, Parquet, Arrow or JSON Lines; a frame of pandas, polars, pyarrow, DuckDB or any that narwhals
        reads; a mapping of arrays; scores, shape (T,), in [0, 1]; (scores, labels); or an open connection of DB-API or
        ADBC with `query`.
    label
        Labels, shape (T,), or the name of their column.
    score, weight, group, cluster, features
        Names of columns, or arrays of T rows; without `score`, columns are found by their usual names.
    id
        Column of row ids, by which `compare` joins two files of one score each.
    reference
        Rows that the scores are held against, such as those of the training: a source with the same columns.
    test
        Rows that `fit` evaluates the model on, in place of cross-fitting.

    Examples
    --------
    >>> data = Data({"p": [0.2, 0.8], "y": [0, 1], "site": ["a", "b"]}, score="p", label="y")
    >>> data.by("site").clustered("patient")
    Data(source=<dict>, label='y', score='p', group=('site',), cluster='patient')
    """

    PANEL = "Input"

    source: Source
    label: Values | None = column("label")
    _: KW_ONLY
    score: Names = column("score")
    proba: Names = column("proba")
    classes: str | None = column("classes")
    weight: Values | None = column("weight")
    group: Several = column("group")
    cluster: Values | None = column("cluster")
    features: Several = column("features")
    log: Literal["lm-eval", "inspect"] | None = column("log")
    positive: object = column("positive")
    logit: bool = column("logit")
    margin: bool = column("margin")
    missing: Literal["error", "drop"] = column("missing")
    prevalence: float | Mapping[str, float] | None = column("prevalence")
    sampled_negatives: float | None = column("sampled_negatives")
    keep_scores: bool = column("keep_scores")
    aggregated: bool = column("aggregated")
    query: str | None = option("With --engine: the query that gives the rows, in place of a table.", metavar="SQL")
    id: str | None = option(
        "Column of row ids, to join two files that hold one score each.", metavar="COLUMN", brief=True
    )
    reference: Source | None = option(
        "File of rows with the same columns, such as those the model was trained on: compare the scores with theirs, "
        "and estimate the share of labels 1 from the scores alone.",
        metavar="FILE",
    )
    test: Source | None = option(
        "Evaluate the model on this file instead of by cross-fitting. Repeatable.",
        metavar="FILE",
        kind=list[str],
        brief=True,
    )

    def __post_init__(self) -> None:
        source: Any = self.source
        if isinstance(source, tuple) and len(source) == 2 and not any(map(_is_single, source)):
            object.__setattr__(self, "source", source[0])
            object.__setattr__(self, "label", source[1])

    @classmethod
    def of(cls, given: Data | Source) -> Data:
        """Data as it is, or of a short form."""
        return given if isinstance(given, Data) else cls(given)

    def by(self, *columns: str) -> Self:
        """The same rows, reported by every value of these columns too."""
        return replace(self, group=columns)

    def clustered(self, column: Values) -> Self:
        """The same rows, sampled by cluster, such as the patient: a name, or shape (T,)."""
        return replace(self, cluster=column)

    def at_prevalence(self, share: float | Mapping[str, float], *, keep_scores: bool = False) -> Self:
        """The same rows, weighted to this share of labels 1, with the scores moved to it, or kept as they are.

        Of several classes a share for each: {"a": .2, "b": .3}; one that is left out has the rest.
        """
        return replace(self, prevalence=share, keep_scores=keep_scores)

    def models(self, *scores: str) -> Self:
        """The same rows with these score columns, each one model."""
        return replace(self, score=scores)


def _is_single(value: Any) -> bool:
    """Whether it is a name, a path or a number, not an array."""
    return isinstance(value, (str, int, float)) or hasattr(value, "__fspath__")
