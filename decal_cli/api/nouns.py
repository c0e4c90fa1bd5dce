"""What a verb is asked, as nouns: the data, the decision, the statistics, and what acting costs.

Each field is declared once. The option of the command line, the key of a settings file and the keyword of Python come
from its declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, Field, dataclass, replace
from datetime import timedelta
from importlib import import_module
from inspect import cleandoc
from itertools import chain
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from decal_cli.api.words import InputError, spoken
from decal_cli.declarations.defaults import CONFIDENCE, N_STUDY_SEEDS, SEED, STUDY_FOLDER, STUDY_THRESHOLDS, WARM_UP
from decal_cli.declarations.option import Complete, Declaring, beginning, declared, keys_of, option
from decal_cli.hints import Hint, said, speaking_to
from decal_cli.render.terms import StatedTerms
from decal_cli.roles import DECLARATIONS
from decal_cli.task import SPELLINGS, Varied

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike

    from decal_cli.analysis.gate import Family, Undecided
    from decal_cli.api.answer import Answer
    from decal_cli.data.large.engines.connections import Engine

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
    """A field that says something of the columns, as it is declared there; None where nothing is said."""
    option = DECLARATIONS[name]
    return declared(replace(option, default=option.default or None) if option.kind is str else option)


def names_in(*homes: str, also: tuple[str, ...] = ()) -> Complete:
    """Completes names of registries, 'module.NAME'; they are loaded when somebody completes."""

    def names() -> Iterable[str]:
        registries = (getattr(import_module(f"decal_cli.{home}"), what) for home, _, what in parts)
        return dict.fromkeys((*also, *chain.from_iterable(registries)))

    parts = [each.rpartition(".") for each in homes]
    return beginning(names)


rule_names = names_in("metrics.METRICS", "analysis.rules.COUNTED", also=("gain_recalibration", "drop(", "upper(drop("))
OF_STREAM = ("label", "score", "group", "cluster", "time", "positive", "logit", "missing")
"""What can be said of rows over time."""


class Noun(Declaring):
    """A part of what is asked, which never changes: a method gives another one.

    Its docstring is completed by what its fields declare, in the words of Python.
    """

    def __init_subclass__(cls, panel: str = "", **more: Any) -> None:
        super().__init_subclass__(panel, **more)
        cls.__doc__ = with_parameters(cls.__doc__ or "", vars(cls))

    def said(self) -> dict[str, Any]:
        """Key -> value of every field that has been given."""
        values = {key: getattr(self, name) for key, name in keys_of(type(self)).items()}
        unsaid = [key for key, value in values.items() if isinstance(value, (tuple, list)) and not value]
        # False may be the label that counts as 1.
        unsaid += [key for key, value in values.items() if value is None or (value is False and key != "positive")]
        return {key: value for key, value in values.items() if key not in unsaid}


def with_parameters(text: str, members: Mapping[str, Any]) -> str:
    """A docstring with what is declared of these fields, before its examples."""
    with speaking_to("python"):
        helps = {name: said(each.metadata["option"].help) for name, each in members.items() if isinstance(each, Field)}
    lines = [f"{name}\n{fill(help, 114, **INDENTED)}" for name, help in helps.items() if help]
    begins, *examples = cleandoc(text).partition("Examples\n")
    return "\n".join([begins.rstrip(), "", "Parameters", "----------", *lines, "", "".join(examples)]).rstrip()


INDENTED: dict[str, Any] = {"initial_indent": "    ", "subsequent_indent": "    ", "break_on_hyphens": False}


@dataclass(frozen=True, eq=False, repr=False)
class Data(Noun, panel="Input"):
    """Rows with scores and labels, and what their columns stand for.

    The source is path(s) of CSV, Parquet, Arrow or JSON Lines; a frame of pandas, polars, pyarrow, DuckDB or any that
    narwhals reads; a mapping of arrays; scores, shape (T,), in [0, 1]; (scores, labels); or an open connection of
    DB-API or ADBC with `query`. Columns are given by their names, all but scores also as arrays of T rows;
    without `score`, they are found by their usual names.

    Examples
    --------
    >>> data = Data({"p": [0.2, 0.8], "y": [0, 1], "site": ["a", "b"]}, score="p", label="y")
    >>> data.by("site").clustered("patient")
    Data(source=<dict>, label='y', score='p', group=('site',), cluster='patient')
    """

    source: Source
    label: Values | None = column("label")
    _: KW_ONLY
    score: Names = column("score")
    proba: Names = column("proba")
    classes: str | None = column("classes")
    weight: Values | None = column("weight")
    group: Several = column("group")
    cluster: Values | None = column("cluster")
    time: Values | None = column("time")
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
    query: str | None = option("The query that gives the rows of an engine, in place of a table.", metavar="SQL")
    id: str | None = option(
        "Column of row ids, to join two files that hold one score each.",
        metavar="COLUMN",
        verbs=("compare",),
        brief=True,
    )
    reference: Source | None = option(
        "Rows with the same columns, such as those the model was trained on: compare the scores with theirs, and "
        "estimate the share of labels 1 from the scores alone.",
        metavar="FILE",
        verbs=("evaluate",),
    )
    test: Source | None = option(
        "Evaluate the model on these rows instead of by cross-fitting.",
        metavar="FILE",
        kind=list[str],
        verbs=("fit",),
        brief=True,
    )

    def __post_init__(self) -> None:
        source: Any = self.source
        pair = isinstance(source, tuple) and len(source) == 2
        # Two names or paths are files, and two numbers are scores.
        if pair and not any(isinstance(each, (str, int, float)) or hasattr(each, "__fspath__") for each in source):
            object.__setattr__(self, "source", source[0])
            object.__setattr__(self, "label", source[1])

    @classmethod
    def of(cls, given: Data | Source) -> Data:
        """Data as it is, or of a short form."""
        return given if isinstance(given, Data) else cls(given)

    def by(self, *columns: str) -> Self:
        """Return these rows, with results for every value of the given columns too."""
        return replace(self, group=columns)

    def clustered(self, column: Values) -> Self:
        """Return these rows as sampled by cluster, such as the patient: a column's name, or values of shape (T,)."""
        return replace(self, cluster=column)

    def at_prevalence(self, share: float | Mapping[str, float], *, keep_scores: bool = False) -> Self:
        """Return these rows, weighted to this share of labels 1, with the scores moved to it or kept as they are.

        For several classes, give a share of each: {"a": 0.2, "b": 0.3}; one class may be missing and gets the rest.
        """
        return replace(self, prevalence=share, keep_scores=keep_scores)

    def models(self, *scores: str) -> Self:
        """Return these rows with these score columns, each of which is a model."""
        return replace(self, score=scores)


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Noun, panel="Decision"):
    """What is decided, and what it is worth.

    More than one threshold, or costs, have constructors: `costs`, `utility`, `per_row` and `abstain`.

    Examples
    --------
    >>> Decision.costs(fp=1, fn=19)
    Decision(cost_fp=1, cost_fn=19)
    >>> Decision(0.3).at_capacity("50/1000", per="day")
    Decision(threshold=0.3, capacity='50/1000', per='day')
    """

    threshold: float | str | None = option(
        "Act from this score on (t*); a false positive then costs T, a miss 1 - T. With `recommend`, T may be a range: "
        "0.1:0.4.",
        None,
        "-t",
        metavar="T",
        kind=float,
        ranged=True,
        brief=True,
    )
    _: KW_ONLY
    matrix: Matrix | None = option(
        "Utilities 'u00,u01;u10,u11': a row for each decision, a column for each label. More rows have names: "
        "'wait,0,-20;test,-2,-3;treat,-5,-1'. Or a .json, .toml or .csv file of them.",
        metavar="MATRIX",
        key="utility",
        brief=True,
    )
    cost_matrix: Matrix | None = option(
        f"Costs in place of utilities, spelled as {Hint('utility')}: a row for each decision and a column for each "
        "label.",
        metavar="MATRIX",
    )
    cost_fp: float | str | None = option(
        f"Cost of a false positive; give {Hint('cost_fn')} too. With `recommend`, COST may be a range: 3:8.",
        metavar="COST",
        kind=float,
        ranged=True,
        brief=True,
    )
    cost_fn: float | str | None = option(
        f"Cost of a false negative; give {Hint('cost_fp')} too. With `recommend`, COST may be a range: 3:8.",
        metavar="COST",
        kind=float,
        ranged=True,
        brief=True,
    )
    odds: str | None = option(
        "Cost of a false positive to that of a false negative: 1:19 means t* = 0.05.", metavar="A:B", brief=True
    )
    price: float | None = option(
        "Of several classes: name one, or abstain at this price. A right name is worth 1, and abstaining 1 less the "
        "price.",
        metavar="PRICE",
        key="abstain",
        brief=True,
    )
    decision_threshold: float | None = option(
        "Threshold at which the model is used today, where that is not t*.", metavar="T"
    )
    amount: Values | None = column("amount")
    cost_fp_column: Values | None = column("cost_fp_column")
    cost_fn_column: Values | None = column("cost_fn_column")
    utility_columns: Several = column("utility_columns")
    capacity: str | float | None = column("capacity")
    per: Values | None = column("per")
    varied: str | Varied | None = option("What `sweep` varies in place of t*: see `vary`.", key="vary", line="")
    terms: StatedTerms = option("How amounts are written: see `in_terms`.", StatedTerms(), key="")

    @classmethod
    def of(cls, given: DecisionLike | None) -> Decision:
        """A decision as it is, or of a short form: a number is a threshold, a matrix is utilities."""
        if given is None or isinstance(given, Decision):
            return given or cls()
        single: Any = given
        number = isinstance(single, float | int) or getattr(single, "ndim", 1) == 0
        return cls(single) if number else cls(matrix=single)

    @classmethod
    def costs(cls, *, fp: float, fn: float) -> Decision:
        """Costs of a false positive and of a false negative: t* = fp / (fp + fn)."""
        return cls(cost_fp=fp, cost_fn=fn)

    @classmethod
    def utility(cls, matrix: Matrix, *, actions: Sequence[str] = ()) -> Decision:
        """Utilities, shape (A, 2) or (A, K): a row for each action, a column for each label."""
        rows: Any = matrix
        names = list(map(str, actions))
        if names and len(rows) != len(names):
            raise InputError(f"the matrix has {len(rows)} rows, and actions= names {len(names)}", "name each row")
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"actions= names {twice[0]!r} twice", "give every action a name of its own")
        return cls(matrix=dict(zip(names, rows, strict=True)) if names else matrix)

    @classmethod
    def per_row(
        cls, *, fp: float | Values | None = None, fn: float | Values | None = None, utility: Several = ()
    ) -> Decision:
        """Costs that differ from row to row: names of columns or arrays, shape (T,); a number is of every row.

        utility: in place of costs, the four columns of the utilities tn, fn, fp, tp, in this order or by these names.
        """
        if fp is None and fn is None and isinstance(utility, (str, tuple, list)) and not utility:
            raise InputError("per_row() is given neither costs nor utilities", "give fn= or utility=, or both costs")
        costs = {"cost_fp": fp, "cost_fn": fn}
        of_rows = {name: value if isinstance(value, (int, float)) else None for name, value in costs.items()}
        in_columns = {f"{name}_column": value for name, value in costs.items() if of_rows[name] is None}
        return cls(utility_columns=utility, **of_rows, **in_columns)  # type: ignore[arg-type]

    @classmethod
    def abstain(cls, price: float) -> Decision:
        """For several classes: name the class, worth 1 where right, or abstain, worth 1 - price, price in (0, 1)."""
        return cls(price=price)

    def at_capacity(self, k: str | float, *, per: Values | None = None) -> Self:
        """Act on so many rows only: a share such as '50/1000' or 0.05, or a count; per: of every value of a column."""
        return replace(self, capacity=k, per=per)

    def vary(self, name: str, low: float, high: float, step: float | None = None) -> Self:
        """Let a number of the decision vary for `sweep`.

        It is called 'abstain', 'prevalence', 'capacity', 'cost_fp' or 'ACTION:CLASS'.
        """
        ends = (low, high) if step is None else (low, high, step)
        name = name.replace("_", "-") if name == "cost_fp" else name
        return replace(self, varied=f"{name}={':'.join(map(repr, ends))}")

    def in_terms(self, **terms: Any) -> Self:
        """Return this decision with amounts in the unit and for the number of decisions of `Terms(**terms)`."""
        return replace(self, terms=Terms(**terms))

    @property
    def spelled(self) -> dict[str, Any]:
        """Key -> value of what names the task."""
        keys = keys_of(Decision)
        return {key: value for key in SPELLINGS if (value := getattr(self, keys[key])) is not None}


DecisionLike: TypeAlias = "Decision | float | Matrix"
"""A decision, a threshold, or utilities; and after scores, their labels."""


class Terms(StatedTerms):
    __doc__ = with_parameters(StatedTerms.__doc__ or "", StatedTerms.__dataclass_fields__)

    @spoken
    def __post_init__(self) -> None:
        super().__post_init__()


@dataclass(frozen=True, repr=False)
class Statistics(Noun, panel="Statistics"):
    """How sure the intervals are, and the random numbers."""

    confidence: float | None = option("Confidence level of the intervals.", metavar="LEVEL", shown=CONFIDENCE)
    seed: int | None = option("Seed of folds and resamples.", metavar="N", shown=SEED)
    intervals: bool = option(
        "Intervals take most of the time: a run without them is faster.",
        True,
        line="no_intervals",
        verbs=("evaluate", "gate", "compare", "sweep"),
    )


@dataclass(frozen=True, repr=False)
class Costs(Noun, panel="Cost of post-training"):
    """What post-training costs per decision, in the unit of the utilities, and what is good enough.

    A mapping has a cost for each action. With a number of decisions in the terms, costs are totals.
    """

    both: float | Mapping[str, float] | Sequence[str] | None = option(
        f"What a method costs per decision, such as post-train=0.01. In total with {Hint('decisions')}; "
        "'recalibrate=1' and 'post-train=50' are of one action each, a number alone is of both.",
        metavar="[ACTION=]COST",
        key="cost",
        kind=list[str],
        brief=True,
    )
    _: KW_ONLY
    recalibrate: float | None = option("Cost of recalibration alone.", line="")
    post_train: float | None = option("Cost of post-training alone.", line="")
    satisfied_at: float | None = option("Expected utility per decision that is good enough.", metavar="EU")
    tolerance: float | None = option(
        "Gain per decision that is too small to matter.", metavar="U", shown="0.05 of what is at stake"
    )


@dataclass(frozen=True, repr=False)
class Rules(Noun, panel="Gate"):
    """What must hold."""

    rules: Names = option(
        "Rule that must hold, such as 'gain_recalibration<=0.01'. Also 'upper(drop(auc))<=0.01', 'rows>=500' or "
        "'brier@group=B<=0.2'. A name with @, spaces at its ends or new lines stands in quotes, as in JSON: "
        "'brier@group=\"a@b\"<=0.2'.",
        (),
        "-r",
        metavar="RULE",
        line="rule",
        complete=rule_names,
        brief=True,
    )
    baseline: Answer | Data | Table | Path | None = option(
        "Report, or rows, of an earlier model, for rules such as 'drop(auc)<=0.01'. Or 'brier<=baseline+0.005'; a "
        "report is JSON, and by rows with its scores drop(..) is paired.",
        metavar="FILE",
        brief=True,
    )
    undecided: Undecided | None = option(
        "What an undecided rule counts as. Its value misses the bound, but the rows do not show that it fails.",
        choices=("fail", "pass"),
        shown="fail",
        brief=True,
    )
    anytime: bool = option(
        "Rules may be judged again whenever rows are added: the chance that a rule that holds ever fails clearly is at "
        "most 1 - confidence. For means of bounded numbers, rows in the order of the file; what is not shown passes "
        f"unless {Hint('undecided')} says otherwise.",
        False,
    )
    family: Family | None = option(
        "Bound the chance that any rule fails wrongly (holm), and not only that of each rule.",
        choices=("none", "holm"),
        shown="none",
        brief=True,
    )


@dataclass(frozen=True, repr=False)
class OverTime(Noun, panel="Over time"):
    """How time passes in a stream of rows, and which forecasters are replayed."""

    delay: int | str | timedelta | None = option(
        "When labels become known: rows (500), a time (7d) or a column that says when. Times are in s, min, h, d and "
        "w.",
        metavar="DELAY",
        shown=f"before the next row, or with {Hint('time')} at any later time",
        brief=True,
    )
    warm_up: int | None = option(
        "First rows, from which the frozen recalibration is learned.", metavar="ROWS", shown=WARM_UP
    )
    every: int | str | None = option(
        "Windows of the table: hour, day, week, month, quarter, year, or a number of rows.",
        metavar="WINDOW",
        shown="at most 24; with a state, months or 1000 rows",
        brief=True,
    )
    horizon: int | None = option(
        "Number of rows that there will be, if you know it: most bounds are smaller then.", metavar="ROWS"
    )
    methods: Names = option(
        "Replay only this forecaster, such as online-platt. Or 'rolling-isotonic(window=500)'.",
        (),
        metavar="METHOD",
        line="method",
        complete=names_in("sequential.ONLINE"),
        shown="all; without a score, those that need none",
        brief=True,
    )


@dataclass(frozen=True, repr=False)
class Halvings(Noun, panel="Study"):
    """How a study halves its files, and where finished units are kept, so that a stopped study goes on from there.

    More than one process need `if __name__ == "__main__":` around the call in a script.
    """

    thresholds: str | ArrayLike = option(
        "Thresholds t*: start:end:step, or a list such as 0.1,0.3,0.5.", STUDY_THRESHOLDS, metavar="GRID", brief=True
    )
    seeds: int = option(
        "Number of random halvings of every file (seeds 0 to N - 1).", N_STUDY_SEEDS, metavar="N", brief=True
    )
    workers: int | None = option("Number of processes.", metavar="N", shown="one per processor", brief=True)
    folder: Path = option(
        "Folder for points, tables and pictures.", STUDY_FOLDER, "-o", metavar="FOLDER", line="output", brief=True
    )
