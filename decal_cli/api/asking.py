"""From what a verb is asked to a checked data set and a plan: short forms and single keywords made nouns, and read."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from decal_cli.analysis.evaluate import Plan, all_choices
from decal_cli.api.frames import Library, library_of
from decal_cli.api.nouns import Costs, Data, Decision, DecisionLike, Names, Source, Statistics
from decal_cli.api.words import AROUND, VERB, UnknownKeyword, one_of
from decal_cli.data import Columns, Counting, Dataset, Paired, from_arrays, join_files, pair_up, read
from decal_cli.data.arrays import is_table
from decal_cli.data.large.engines.connections import Engine, is_address
from decal_cli.data.words import text_of
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.declarations.option import keys_of, options_of
from decal_cli.declarations.spec import split_names
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.limits import MAX_UTILITY
from decal_cli.metrics import MetricSpec, parse
from decal_cli.roles import DECLARATIONS, ROLES, ROW_UTILITIES, several
from decal_cli.task import ClassTask, RowTask, Task, row_task_of, task_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from decal_cli.analysis.over_costs import Unknown
    from decal_cli.analysis.recommend import Preferences
    from decal_cli.learn.method import MethodSpec
    from decal_cli.render.terms import StatedTerms

MATRIX_FILES = (".json", ".toml", ".csv")
"""What files of utilities end in."""
ALL, QUICK = "all", "quick"
"""Metrics by one word: every one, or every one that does not take long."""


class ReadFrom(NamedTuple):
    """Where rows came from: the library that frames of an answer are of, and the files that were read."""

    library: Library
    files: Sequence[str]


class Asked(NamedTuple):
    """The nouns of a call."""

    data: Data
    decision: Decision
    statistics: Statistics
    others: tuple[Any, ...] = ()

    @property
    def plan(self) -> Plan:
        """What is to be computed, without metrics yet."""
        if self.decision.varied:
            raise DecalError("a number of the decision varies, which is for sweep", "give a decision without vary")
        statistics = self.statistics
        confidence = CONFIDENCE if statistics.confidence is None else real("confidence", statistics.confidence)
        seed = SEED if statistics.seed is None else whole("seed", statistics.seed)
        return Plan((), task_given(self.decision), confidence, seed, truth("intervals", statistics.intervals))

    @property
    def preferences(self) -> Preferences:
        """What the costs, its first further noun, say in the terms of the decision."""
        return preferences_of(self.others[0], self.terms)

    @property
    def terms(self) -> StatedTerms:
        """How amounts and actions are written; a utility whose rows have names says what its two actions are called.

        Errors: DecalError, where two names are given and there are not two actions.
        """
        terms, plan = self.decision.terms, self.plan
        task = plan.binary
        if terms.names and not (plan.decision is None or plan.by_row or task):
            problem = f"{Hint('names', ','.join(terms.names))} names the actions of a decision to act or not"
            raise DecalError(problem, f"give names in {Hint('utility').words}: 'wait,0,-20;test,-2,-3;treat,-5,-1'")
        return replace(terms, names=task.names) if task and task.names and not terms.names else terms

    @property
    def read_from(self) -> ReadFrom:
        """Where the rows come from; of files their whole paths, since the working directory may change."""
        sources: list[Any] = [self.data.source, self.data.reference, self.data.test]
        paths = [path for each in sources for path in paths_of(Data.of(each).source)]
        return ReadFrom(library_of(sources[0]), [os.path.abspath(path) for path in paths])

    @property
    def source(self) -> Any:
        """Where the rows are; a connection or an address as an engine. Errors: DecalError, where there is more than one
        of them, or it has no query.
        """
        source: Any = self.data.source
        paths = paths_of(source)
        if any(map(is_address, paths)):
            if len(paths) > 1:
                fix = "give one address; its query may join tables"
                raise DecalError("rows come from files or from one engine", fix)
            return Engine(paths[0], query=self.data.query)
        opened = hasattr(source, "cursor") and hasattr(source, "close")
        if self.data.query and not opened and getattr(source, "query", "") != self.data.query:
            fix = "leave it out, or give an address or an open connection beside it"
            raise DecalError("query= is asked of an engine, and the data is none, or says itself what to ask", fix)
        if isinstance(source, Engine) or not opened:
            return source
        if not self.data.query:
            raise DecalError("the data is a connection", "say what to ask it: Data(connection, query='select ..')")
        return Engine(source, query=self.data.query)

    @property
    def said(self) -> dict[str, Any]:
        """What is given of the columns: names or values, and how they are read."""
        given = {**self.data.said(), **self.decision.said()}
        if "per" in given and "capacity" not in given:
            named = given["per"] if isinstance(given["per"], str) else ""
            raise DecalError(
                f"{Hint('per', named)} is the column of days of a capacity",
                f"give {Hint('capacity')} too; decisions a year are {Hint('decisions', '100000/year')}",
            )
        return {name: given[name] for name in DECLARATIONS if name in given}

    def columns(self, named: bool = True) -> Columns:
        """What is said of the columns; named: whether every role is a name, as where the rows are files."""
        said: dict[str, Any] = {}
        for name, given in self.said.items():
            option = DECLARATIONS[name]
            if isinstance(given, str) and not (given or option.choices):
                raise DecalError(f"{Hint(name)} is empty", "give a value, or leave it out")
            if name in ROLES:
                listed = names_of(name, given) if named or name == "score" else ()
                said |= {name: listed if several(name) else listed[0]} if listed else {}
            elif option.choices:
                said[name] = one_of(name, given, option.choices)
            elif option.kind is bool:
                said[name] = truth(name, given)
            else:
                said[name] = text_of(given) if name == "positive" else number_text(name, given)
        return Columns(**said)

    def rows(self, edges: Sequence[float] | None = None, pairs: bool = False) -> Dataset:
        """The checked data set. Errors: DecalError.

        edges: thresholds of decisions, where counts of rows will do. pairs: whether they are counted by two scores.
        """
        data, source, around = self.data, self.source, AROUND.get()
        spark = type(source).__module__.startswith("pyspark.sql")
        if spark or isinstance(source, Engine):
            # Late: most callers have files or arrays.
            from decal_cli.data.large.engines.counting import read_engine, read_spark

            count = read_spark if spark else read_engine
            return count(source, self.columns(), tuple(edges or ()), pairs)
        if paths := paths_of(source):
            if edges is None:
                return read(paths, self.columns(), around.stdin, sampled=not pairs)
            with around.reading() as progress:
                return read(paths, self.columns(), around.stdin, Counting(tuple(edges), progress, pairs), not pairs)
        if data.log:
            raise DecalError("log= reads files, and the data is in memory", "give the path of the log")
        if "score" in self.said and not is_table(source):
            raise DecalError("score= names columns, and the scores are an array", "leave it out, or give a frame")
        roles = {name: given for name, given in self.said.items() if name in ROLES and name not in ("score", "label")}
        try:
            return from_arrays(readable(source), data.label, columns=self.columns(named=False), **roles)
        except DecalError as error:
            table = data.label is None or is_table(source)
            raise (None if table else swapped(source, data.label, "evaluate(scores, labels)")) or error from None

    def paired(self, edges: Sequence[float]) -> Paired:
        """The two models of a comparison, on the same rows; edges: thresholds of decisions. Errors: DecalError."""
        id_column, paths, around = self.data.id, paths_of(self.source), AROUND.get()
        columns, asked = self.columns(named=bool(paths)), self
        if id_column is not None and not columns.aggregated:
            if len(paths) > 1:
                return join_files(paths, columns, id_column, around.stdin)
            # Ids are read as groups are.
            columns = replace(columns, group=names_of("group", self.data.group))
            asked = self._replace(data=replace(self.data, group=(*columns.group, id_column)))
        counted = not (paths and (around.rows or id_column is not None))
        return pair_up(asked.rows(edges if counted else None, pairs=True), columns, id_column)

    def of(self, what: str, source: Any) -> Asked:
        """This question about other rows with columns of the same names. Errors: DecalError, if columns have none."""
        if isinstance(source, Data):
            return self._replace(data=source)
        if not isinstance(self.data.label, (str, type(None))):
            raise DecalError(f"{what}= has columns of the same names", "give the data as a frame or as files too")
        return self._replace(data=replace(self.data, source=source))


def asked(
    data: Data | Source,
    decision: DecisionLike | None,
    statistics: Statistics | None,
    keywords: Mapping[str, Any],
    *others: Any,
) -> Asked:
    """The nouns of a call, with single keywords, such as threshold=, in the nouns that declare them.

    others: further nouns of the verb. Errors: TypeError for a keyword that no noun has.
    """
    labels = None if decision is None or is_decision(decision) else decision
    noun = Data.of(data)
    if isinstance(decision, Data) or (labels is not None and keywords.get("label", noun.label) is not None):
        shown = "Data" if isinstance(decision, Data) else reprlib.repr(labels)
        fix = "data come first, then the decision, such as 0.3; all else is named, as in method='isotonic'"
        raise DecalError(f"{shown} stands where the decision does", fix)
    nouns: list[Any] = [noun, Decision.of(None if labels is not None else decision)]
    nouns += [nouns[1].terms, Statistics() if statistics is None else statistics, *others]
    if wrong := [each for each in nouns if not is_dataclass(each)]:
        fix = "give Costs(..), Statistics(..) or the like, or their fields by name, such as seed=1"
        raise DecalError(f"{reprlib.repr(wrong[0])} is no noun of decal", fix)
    if labels is not None:
        nouns[0] = replace(nouns[0], label=labels)
    homes = {key: (at, name) for at, noun in enumerate(nouns) for key, name in keys_of(type(noun)).items()}
    for key, value in keywords.items():
        if key not in homes:
            raise UnknownKeyword(key, homes)
        at, name = homes[key]
        nouns[at] = replace(nouns[at], **{name: value})
    asked_data, asked_decision, terms, asked_statistics, *further = nouns
    for key, each in options_of(Data).items():
        elsewhere = each.verbs and VERB.get() and VERB.get() not in each.verbs
        if elsewhere and getattr(asked_data, each.name) is not None:
            raise DecalError(f"{key}= is for {' and '.join(each.verbs)}", "leave it out")
    return Asked(asked_data, replace(asked_decision, terms=terms), asked_statistics, tuple(further))


def is_decision(given: Any) -> bool:
    """Whether what follows the data is a decision, not the labels of scores: a number, a matrix or its text."""
    if isinstance(given, str):
        return ";" in given or given.lower().endswith(MATRIX_FILES)
    if isinstance(given, (Decision, Mapping, float, int)):
        return True
    try:
        shape = np.shape(given)
    except ValueError:
        return False
    return not shape or (len(shape) == 2 and shape[0] > 1 < shape[1])


def names_of(what: str, given: Any) -> tuple[str, ...]:
    """One name, or several."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    listed = tuple(given) if isinstance(given, Iterable) else (given,)
    if wrong := [each for each in listed if not isinstance(each, str)]:
        raise DecalError(f"{what}= holds {wrong[0]!r}, which is not a text", "give a text, or a list of texts")
    return listed


def truth(name: str, given: Any) -> bool:
    """A switch. Errors: DecalError, where it is neither True nor False."""
    if not isinstance(given, (bool, np.bool_)):
        raise DecalError(f"{name}={given!r} is neither True nor False", "give one of them")
    return bool(given)


def parts_of(what: str, given: Any) -> tuple[str, ...]:
    """The names of metrics or methods; a text may hold several: 'ece(bins=20),auc'."""
    return tuple(name for text in names_of(what, given) for name in split_names(text))


def paths_of(data: Any) -> list[str]:
    """The paths that the data is named by; none where it is in memory."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple)) and data and all(isinstance(each, (str, os.PathLike)) for each in data):
        return [os.fspath(each) for each in data]
    return []


def number_text(name: str, given: Any) -> str | None:
    """A number as the command line takes it: '50/1000', or what Python writes of it; of a mapping 'a=0.2,b=0.3'."""
    if isinstance(given, Mapping):
        return ",".join(f"{key}={number_text(name, value)}" for key, value in given.items())
    return given if given is None or isinstance(given, str) else text_of(real(name, given))


def readable(source: Any) -> Any:
    """A frame that only narwhals reads, such as one of dask, as an Arrow table; all else as it is."""
    if is_table(source) or not hasattr(source, "columns"):
        return source
    try:
        import narwhals
    except ImportError:
        return source
    frame = narwhals.from_native(source, pass_through=True)
    frame = frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame
    return frame.to_arrow() if isinstance(frame, narwhals.DataFrame) else source


def swapped(scores: Any, labels: Any, call: str) -> DecalError | None:
    """The error where what is given as scores is all 0 and 1, and what is given as labels lies between them."""
    try:
        first, second = (np.asarray(values, dtype=np.float64) for values in (scores, labels))
    except (TypeError, ValueError):
        return None
    of_labels = np.isin(first, (0.0, 1.0)).all() and not np.isin(second, (0.0, 1.0)).all()
    if not (of_labels and ((second >= 0) & (second <= 1)).all()):
        return None
    return DecalError("the labels hold values between 0 and 1, and the scores hold only 0 and 1", f"swapped? {call}")


def task_given(decision: Decision) -> Task | ClassTask | RowTask | None:
    """The decision, in one of its spellings."""
    given = decision.spelled
    for name, value in given.items():
        if is_range(name, value):
            raise DecalError(
                f"{Hint(name, value)} is a range, and this needs one decision",
                f"name one number; {Verb('recommend').words} answers for a range",
            )
        if name in ("utility", "cost_matrix"):
            given[name] = value.tolist() if hasattr(value, "tolist") else value
        elif name != "odds":
            given[name] = real(name, value)
        elif not isinstance(value, str):
            raise DecalError(f"odds={value!r} is not a text", "give for example odds='1:19' (t* = 0.05)")
    columns = [role for role in ROW_UTILITIES if role in decision.said()]
    try:
        return row_task_of(columns, given) if columns else task_of(**given)
    except DecalError as error:
        error.about |= given.keys()
        raise


def is_range(name: str, value: Any) -> bool:
    """Whether a number of a decision that may be a range is of the form LOW:HIGH."""
    may_be = name in ("threshold", "cost_fp", "cost_fn") and isinstance(value, str)
    return may_be and value.count(":") == 1 and ";" not in value


def unknown_of(decision: Decision) -> Unknown | None:
    """The number of the decision that is a range, None where there is none. Errors: DecalError."""
    ranges = {key: value for key, value in decision.spelled.items() if is_range(key, value)}
    if len(ranges) > 1:
        both = " and ".join(Hint(key).words for key in ranges)
        raise DecalError(f"{both} are both ranges", "give one number for one of them")
    for key, text in ranges.items():
        low, high = map(as_number, text.split(":"))
        kind, most, example = ("costs above 0", math.inf, "3:8")
        if key == "threshold":
            kind, most, example = ("thresholds between 0 and 1", 1.0, "0.1:0.4")
        if not 0 < low < high < most:
            raise DecalError(f"{Hint(key, text)} is no range of {kind}", f"write the lower first: {Hint(key, example)}")
        # Late: it brings what advice rests on.
        from decal_cli.analysis.over_costs import Unknown

        name: Any = key
        return Unknown(name, low, high)
    return None


def real(name: str, value: Any) -> float:
    """A number. Errors: DecalError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise DecalError(f"{name}={value!r} is not a number", f"give a number, such as {name}=0.3")
    return float(value)


def as_number(text: str) -> float:
    """The number that a text is; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def whole(name: str, value: Any) -> int:
    """A whole number. Errors: DecalError."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise DecalError(f"{name}={value!r} is not a whole number", f"give a whole number, such as {name}=1")
    return int(value)


def metrics_of(given: Names) -> tuple[MetricSpec, ...]:
    """The named metrics; none where none are named, or all by one word."""
    return () if given in (ALL, QUICK) else tuple(dict.fromkeys(map(parse, parts_of("metrics", given))))


def choices_of(
    given: Names, data: Dataset, plan: Plan, shown: Callable[[Dataset, Plan], tuple[MetricSpec, ...]]
) -> tuple[MetricSpec, ...]:
    """The metrics that are measured: those that are named, else all of these rows, else those of the table."""
    if given in (ALL, QUICK):
        return all_choices(bool(data.classes), slow=given == ALL)
    return metrics_of(given) or shown(data, plan)


def methods_of(given: Names) -> tuple[MethodSpec, ...]:
    """The named methods; none where none are named."""
    return tuple(dict.fromkeys(map(method_of, parts_of("methods", given))))


def method_of(text: str) -> MethodSpec:
    """The method of this name. Errors: DecalError, for a forecaster too, which is replayed and not fitted."""
    from decal_cli.learn.methods import parse
    from decal_cli.sequential import ONLINE

    if not isinstance(text, str):
        raise DecalError(f"method={text!r} is not a text", "give for example method='isotonic'")
    name = text.partition("(")[0].strip()
    if name in ONLINE:
        raise DecalError(
            f"{name} is a forecaster over time", f"replay it: {Verb('online')} with {Hint('method', name)}"
        )
    return parse(text)


def preferences_of(costs: Costs, terms: StatedTerms) -> Preferences:
    """What post-training costs and what is good enough; costs are totals where the number of decisions is given."""
    from decal_cli.analysis.recommend import COSTED, Preferences

    both: Any = costs.both
    named = {"": both, "recalibrate=": costs.recalibrate, "post-train=": costs.post_train}
    if isinstance(both, Mapping):
        named = {f"{one_of('cost', name, COSTED)}=": cost for name, cost in both.items()}
    texts = both
    if not isinstance(both, (list, tuple)):
        texts = [f"{name}{real('cost', cost)!r}" for name, cost in named.items() if cost is not None]
    by_method: dict[str, float] = {}
    for text in texts:
        method, equals, amount = text.rpartition("=")
        cost, names = as_number(amount), (method.strip(),) if equals else COSTED
        if math.isnan(cost) or any(each not in COSTED for each in names):
            raise DecalError(
                f"{Hint('cost', repr(text))} does not parse",
                f"give a number from 0 to {MAX_UTILITY:g}, or recalibrate=COST or post-train=COST",
            )
        if not 0 <= cost <= MAX_UTILITY:
            raise DecalError(
                f"{Hint('cost', repr(text))} is not a number from 0 to {MAX_UTILITY:g}",
                "give what a method costs, which is 0 or more",
            )
        by_method |= dict.fromkeys(names, cost / (1.0 if terms.decisions is None else terms.number))
    for key, least, kind, fix in (
        ("tolerance", 0.0, f"from 0 to {MAX_UTILITY:g}", "give the regret per decision that does not matter"),
        ("satisfied_at", -MAX_UTILITY, f"up to {MAX_UTILITY:g}", "give a utility per decision"),
    ):
        value = getattr(costs, key)
        if value is not None and not least <= real(key, value) <= MAX_UTILITY:
            raise DecalError(f"{Hint(key, f'{value:g}')} is not a number {kind}", fix)
    enough = costs.satisfied_at
    return Preferences(by_method, enough, costs.tolerance, terms.saying, terms.names or ())


def thresholds_text(given: str | ArrayLike) -> str:
    """Thresholds as the command line takes them: 'start:end:step', or a list."""
    if isinstance(given, str):
        return given
    try:
        return ",".join(repr(float(each)) for each in np.atleast_1d(np.asarray(given, dtype=np.float64)))
    except (TypeError, ValueError):
        raise DecalError(
            f"thresholds={repr(given)[:60]} are not numbers", "give numbers, or '0.05:0.95:0.05'"
        ) from None
