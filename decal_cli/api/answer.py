"""What the verbs return: a short text of it, frames, plain data, pages and pictures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from decal_cli.analysis.evaluate import MetricReport, Plan, Report
from decal_cli.api.asking import Asked, ReadFrom
from decal_cli.api.frames import LIBRARIES, Library, frame_of, in_library
from decal_cli.api.nouns import Data, Paths, Table
from decal_cli.api.words import one_of, spoken
from decal_cli.data.arrays import is_table
from decal_cli.data.output import as_table, check_not_read, write_whole
from decal_cli.declarations.spec import near
from decal_cli.errors import DecalError
from decal_cli.hints import Verb
from decal_cli.metrics import Result, parse
from decal_cli.numbers import Interval, many, plain, rounded, short, times
from decal_cli.render.format import Page
from decal_cli.render.formats import as_bytes, faces_of, format_for, offered, write
from decal_cli.render.results.evaluation import Evaluated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from decal_cli.analysis.baseline import Baseline
    from decal_cli.analysis.compare import Comparison
    from decal_cli.analysis.flowchart import Advice
    from decal_cli.analysis.gate import GateRow
    from decal_cli.analysis.online.judged import Judged
    from decal_cli.analysis.over_costs import Stretch
    from decal_cli.analysis.study_summary import Summary
    from decal_cli.analysis.sweep import Sweep, VariedSweep
    from decal_cli.data import Dataset, Paired
    from decal_cli.learn.model_file import Saved
    from decal_cli.render.results.card import Card
    from decal_cli.render.results.comparison import Compared
    from decal_cli.render.results.fitting import FittedPage
    from decal_cli.render.results.gates import Gated
    from decal_cli.render.results.online import Replayed
    from decal_cli.render.results.over_costs import Ranged
    from decal_cli.render.results.page import ReportPage
    from decal_cli.render.results.recommendation import Recommended
    from decal_cli.render.results.study import Studied
    from decal_cli.render.results.sweep import Curves, VariedCurves

IN_GIST = ("brier", "auc", "expected_utility")
"""Metrics that the short text of an evaluation shows, where they were measured."""


@dataclass(eq=False, repr=False)
class Answer:
    """What a verb returned.

    `str(answer)` is what the command would print, with keywords where it names options; `answer.result` holds all.
    """

    result: Any
    read_from: ReadFrom

    @property
    def one_line(self) -> str:
        """The answer in a few words."""
        raise NotImplementedError

    def rows(self) -> Iterator[Sequence[Any]]:
        """Rows of the frame, the first of which names its columns."""
        yield from self.result.rows()

    @spoken
    def to_frame(self, library: Library | None = None) -> Any:
        """The answer as a frame: of pandas, polars or pyarrow; by default of the library that the data came in."""
        return frame_of(self.rows(), self._named(library))

    def _named(self, library: Library | None) -> Library:
        """The library that is asked for, by default that of the data. Errors: DecalError."""
        return self.read_from.library if library is None else one_of("library", library, LIBRARIES)  # type: ignore[return-value]

    @spoken
    def to_dict(self) -> dict[str, Any]:
        """The JSON document as plain data."""
        return self.result.data()

    @spoken
    def to_text(self, format: str = "table", width: int = 100) -> str:
        """The text that the command would print: table, csv, html, json, markdown and others."""
        names = [name for name in offered(faces_of(self.result)) if name != "parquet"]
        return str(write(self.result, one_of("format", format, names), Page(width=width)))

    @spoken
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the answer to a file, in the format that its suffix names: .html, .json, .csv, .md and others.

        Errors: DecalError, where the file is one of those that were read.
        """
        name = os.fspath(path)
        check_not_read(name, self.read_from.files)
        write_whole(name, as_bytes(self.result, format_for(None, name, offered(faces_of(self.result)))), "output")

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.one_line}>"

    @spoken
    def _repr_html_(self) -> str:
        from decal_cli.render.formats.html import Html

        return Html(Page()).embedded(self.result)


@dataclass(eq=False, repr=False)
class ReportsAnswer(Answer):
    """An answer about each model and group: its metrics by key, as a mapping has them, and pictures of the data."""

    data: Dataset
    plan: Plan
    pictures: ClassVar[tuple[str, str]] = "reliability", "reliability"
    """What `plot` draws of scores of two classes, and of several."""

    def rows(self) -> Iterator[Sequence[Any]]:
        """Rows of the frame, the first of which names its columns."""
        told = self.result if hasattr(self.result, "rows") else Evaluated(self.result.evaluation)
        yield from told.rows()

    @property
    def reports(self) -> tuple[Report, ...]:
        """One report for each model and group."""
        return self.result.evaluation.reports

    @property
    def one_line(self) -> str:
        """Which reports there are, and of a single one a few metrics."""
        first = self.reports[0]
        metrics = many(len(self), "metric")
        if len(self.reports) > 1:
            models = len({report.model for report in self.reports})
            groups = len({report.group for report in self.reports} - {None})
            parts = [many(models, "model"), *([many(groups, "group")] if groups else [])]
            return f"{len(self.reports)} reports ({', '.join(parts)}), {metrics} each"
        values = {key: first.results[key].value for key in (*IN_GIST, *first.results) if key in first.results}
        some = [f"{key} {short(value, 4)}" for key, value in values.items() if value is not None][:3]
        return f"{first.model}, {first.rows:,} rows, {metrics}: {', '.join(some) or 'none is defined'}"

    @property
    def picture(self) -> str:
        """What `plot` draws where no picture is named."""
        return self.pictures[bool(self.data.classes)]

    @spoken
    def __getitem__(self, key: str) -> Result:
        """The result of a metric, by its name, of the only report (several: use `reports`)."""
        if len(self.reports) != 1:
            raise DecalError(f"there are {len(self.reports)} reports", "pick one: answer.reports[0].results[key]")
        return result_of(self.reports[0], key)

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics, which are those of every report."""
        return iter(self.reports[0].results)

    def __len__(self) -> int:
        return len(self.reports[0].results)

    def __bool__(self) -> bool:
        """True, also where no metric was asked for."""
        return True

    def __contains__(self, key: object) -> bool:
        """Whether a metric was measured, by any of its names."""
        try:
            return isinstance(key, str) and result_of(self.reports[0], key) is not None
        except DecalError:
            return False

    @spoken
    def plot(self, picture: str | None = None, *, ax: Axes | None = None, report: int = 0) -> Axes:
        """Draw brier, decision, roc, reliability, grouping or waterfall into `ax`, or into a figure of its own.

        Of several classes: reliability, confusion, risk-coverage or waterfall. By default what `picture` names.
        report: which one of several, for pictures of a single model and group.
        """
        from decal_cli.api.pictures import draw_picture

        return draw_picture(self.data, self.plan, picture or self.picture, ax, report, self.result.terms)


def result_of(report: MetricReport, key: str) -> Result:
    """A metric's result in a report. Errors: DecalError with the near match."""
    if key in report.results:
        return report.results[key]
    known = parse(key).key
    if known in report.results:
        return report.results[known]
    fix = near(key, report.results) or f"name it: evaluate(.., metrics=[{key!r}])"
    raise DecalError(f"{key} was not measured", fix)


class EvaluateAnswer(ReportsAnswer):
    """The metrics of each model and group; `answer["brier"]` is a result with value, interval and reason."""

    result: Evaluated


class RecommendAnswer(ReportsAnswer):
    """The advice on each model and group, and the metrics that it rests on."""

    result: Recommended
    pictures = "waterfall", "waterfall"

    @property
    def advice(self) -> Advice:
        """The advice on the only report, or on the first of several (`advised` has them all)."""
        return self.advised[0][1]

    @property
    def advised(self) -> tuple[tuple[Report, Advice], ...]:
        """Each report with its advice."""
        return self.result.recommendation.advised

    @property
    def one_line(self) -> str:
        if len(self.advised) == 1:
            return advice_line(*self.advised[0])
        return f"{len(self.advised)} reports; the first: {advice_line(*self.advised[0])}"


class RangeAnswer(RecommendAnswer):
    """Advice where costs are not known: of each model and group, which advice holds from which to which number."""

    result: Ranged  # type: ignore[assignment]

    @property
    def stretches(self) -> tuple[tuple[Stretch, ...], ...]:
        """The stretches of the unknown number at which advice stays the same, in order: a tuple for each report."""
        return self.result.advice.stretches

    @property
    def advised(self) -> tuple[tuple[Report, Advice], ...]:
        """None: advice depends on the costs. Errors: DecalError."""
        raise DecalError("advice depends on the costs, of which a range was given", "see answer.stretches")

    @property
    def one_line(self) -> str:
        unknown = self.result.advice.unknown
        counts = ", ".join(str(len(each)) for each in self.stretches)
        return f"{unknown.name} from {unknown.low:g} to {unknown.high:g}, stretches of one advice: {counts}"


def advice_line(report: Report, advice: Advice) -> str:
    """What to do now, how sure that is, and what it wins, on one line."""
    won, interval = advice.wins
    gain = "" if won is None else f", wins {of_thousand(won, interval)} per 1,000 decisions"
    return f"{report.model}, {many(report.rows, 'row')}: {advice.todo}{gain} (how sure: {advice.certainty})"


def of_thousand(gain: float, interval: Interval | None) -> str:
    """A gain per decision as that of 1,000, with its interval."""
    return rounded(1000 * gain, times(interval, 1000), 3)


def all_passed(rows: Sequence[GateRow]) -> bool | None:
    """Whether every rule passed; None where one cannot be judged."""
    each = {row.passed for row in rows}
    return None if None in each else False not in each


class GateAnswer(ReportsAnswer):
    """The outcome of every rule."""

    result: Gated

    @property
    def outcomes(self) -> tuple[GateRow, ...]:
        """Each rule on each report: value, bound, passed, and the reason where it cannot be judged."""
        return self.result.outcome.rows

    def __bool__(self) -> bool:
        """Whether every rule passed."""
        return bool(self.passed)

    @property
    def passed(self) -> bool | None:
        """Whether every rule passed; None where one cannot be judged, which is no pass."""
        return all_passed(self.outcomes)

    @spoken
    def write_baseline(self, path: str | os.PathLike[str]) -> None:
        """Write what was measured as JSON, for rules against a baseline.

        Errors: DecalError, unless every rule passed.
        """
        if not self.passed:
            raise DecalError("not every rule passed", "mend the model, or save what evaluate() returns")
        write_whole(os.fspath(path), as_bytes(Evaluated(self.result.evaluation), "json"), "baseline")

    @property
    def one_line(self) -> str:
        verdict = {True: "passed", False: "failed", None: "cannot judge"}[self.passed]
        if self.passed:
            return f"{verdict}, {many(len({row.rule for row in self.outcomes}), 'rule')}"
        worst = next(row for row in self.outcomes if row.passed is self.passed)
        value = (worst.reason or "") if worst.value is None else plain(worst.value)
        return f"{verdict}; {worst.rule}: {value}"


@dataclass(eq=False, repr=False)
class CompareAnswer(ReportsAnswer):
    """Two models on the same rows: every metric's difference, who wins at which thresholds, and the splice."""

    result: Compared
    paired: Paired
    pictures = "brier", "risk-coverage"

    @property
    def spliced(self) -> Mapping[str, Any] | None:
        """Columns of the spliced scores (row, label, p_splice), None where there is no splice, or rows were counted."""
        from decal_cli.analysis.compare import spliced
        from decal_cli.analysis.splice import Splice

        some = isinstance(self.comparison.splice, Splice) and not self.paired.counted
        return spliced(self.paired, self.comparison) if some else None

    @property
    def comparison(self) -> Comparison:
        """Everything that was compared."""
        return self.result.comparison

    @property
    def reports(self) -> tuple[MetricReport, ...]:  # type: ignore[override]
        """The differences, second model minus first, one report for all rows and each group."""
        return self.comparison.contests

    @property
    def one_line(self) -> str:
        first, second = self.comparison.models
        key, each = next(iter(self.comparison.contests[0].headline.items()))
        value, interval = each.difference.value, each.difference.interval
        difference = "" if value is None else f" {rounded(value, interval, 4)}"
        return f"{second} - {first}, {self.comparison.contests[0].rows:,} rows: {key}{difference}"


class SweepAnswer(Answer):
    """Curves over thresholds, of each model and group."""

    result: Curves
    picture: ClassVar[str] = "decision"
    """What `plot` draws where none is named."""

    @property
    def sweep(self) -> Sweep:
        """All curves."""
        return self.result.sweep

    @property
    def one_line(self) -> str:
        names = [report.name for report in self.sweep.reports]
        shown = ", ".join([*names[:3], *(["..."] if len(names) > 3 else [])])
        what, at = self._swept()
        return f"{shown}: {what}, {at[0]:g} to {at[-1]:g}"

    def _swept(self) -> tuple[str, Any]:
        """What varies, and its values."""
        at = self.sweep.grid.thresholds
        return f"{len(self.sweep.reports[0].curves)} curves at {len(at)} thresholds", at

    @spoken
    def plot(self, picture: str | None = None, *, ax: Axes | None = None, report: int = 0) -> Axes:
        """Draw brier, decision, roc, reliability, grouping or waterfall into `ax`, or into a figure of its own.

        Where a number of the task varies: utility, actions, risk-coverage or reliability.
        """
        from decal_cli.api.pictures import draw_sweep

        return draw_sweep(self.sweep, picture or self.picture, ax, report, self.result.terms)


class VariedAnswer(SweepAnswer):
    """What decisions are worth, and which are made, as a number of the task varies; of each model and group."""

    result: VariedCurves  # type: ignore[assignment]
    picture = "utility"

    @property
    def sweep(self) -> VariedSweep:  # type: ignore[override]
        """All curves."""
        return self.result.sweep

    def _swept(self) -> tuple[str, Any]:
        at = self.sweep.values
        return f"{self.sweep.series.title}, {len(at)} values", at


class ReportAnswer(ReportsAnswer):
    """The page of a report: advice, pictures and every metric. `save('report.html')` writes it."""

    result: ReportPage

    @property
    def facts(self) -> Evaluated | Recommended:
        """The page without its pictures."""
        from decal_cli.render.results.recommendation import Recommended

        whole = self.result.recommendation
        return Recommended(whole) if whole.advice else Evaluated(whole.evaluation)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of the same data as plain data."""
        return self.facts.data()

    @property
    def one_line(self) -> str:
        whole = self.result.recommendation
        said = advice_line(*whole.advised[0]) if whole.advice else super().one_line
        return f"{said.rstrip('.')}; {len(self.result.drawings)} pictures"


class CardAnswer(ReportsAnswer):
    """A model card. `save('card.md')` writes it, and so does .json or .html."""

    result: Card

    @property
    def one_line(self) -> str:
        items = list(self.result.items())
        return (
            f"{self.result.title}; {sum(each.known is not None for each in items)} of {len(items)} items say something"
        )


@dataclass(eq=False, repr=False)
class FitAnswer(Answer):
    """A fitted model and how it does on rows that it was not fitted to; `apply(answer, rows)` scores new rows.

    model: what `save_model` writes.
    """

    result: FittedPage
    model: Saved
    plan: Plan

    @property
    def one_line(self) -> str:
        fitting = self.result.fitting
        gain = ""
        if fitting.gain is not None:
            won = of_thousand(fitting.gain.value, fitting.gain.interval)
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
        from decal_cli.api.verbs import apply

        return apply(self, data, missing=missing, name=name)

    @spoken
    def plot(self, picture: str = "reliability", *, ax: Axes | None = None, report: int = 1) -> Axes:
        """Draw brier, decision, roc, reliability, grouping or waterfall of the rows that the model is judged on.

        report: for pictures of a single score, 0 for the score as it is and 1 for the new one.
        """
        from decal_cli.api.pictures import draw_picture

        return draw_picture(self.result.fitting.scores, self.plan, picture, ax, report, self.result.terms)

    @spoken
    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Write the model as readable JSON, for `apply` and `decal apply`."""
        from decal_cli.learn.model_file import to_text

        name = os.fspath(path)
        format_for(None, name, ["json"], "model file")
        check_not_read(name, self.read_from.files, "model file")
        write_whole(name, to_text(self.model).encode(), "model file")


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
    def one_line(self) -> str:
        points = self.summary.points
        scores, files = many(len(points.pairs), "score"), many(len(points.files), "file")
        return f"{scores} of {files}, {many(len(points.threshold), 'point')}"

    @spoken
    def plot(self, estimate: str = "gain_recalibration", target: str = "isotonic", *, ax: Axes | None = None) -> Axes:
        """Draw the gain of a method against an estimate of it into `ax`, or into a figure of its own."""
        from decal_cli.plot.study import draw_relation

        relations = self.summary.relations
        one_of("estimate", estimate, dict.fromkeys(name for name, _ in relations))
        one_of("target", target, dict.fromkeys(name for each, name in relations if each == estimate))
        return draw_relation(self.summary, estimate, target, ax)


@dataclass(eq=False, repr=False)
class OnlineAnswer(Answer):
    """A replay: windows, forecasters, the alarm and the advice."""

    result: Replayed
    making_predicted: Callable[[], dict[str, NDArray[Any]]]

    @cached_property
    def predicted(self) -> dict[str, NDArray[Any]]:
        """Columns of every row and of the predictions that would have been made."""
        return self.making_predicted()

    @property
    def judged(self) -> Judged:
        """What the replay comes to."""
        return self.result.judged

    @property
    def passed(self) -> bool | None:
        """Whether every rule passed; None where one cannot be judged, which is no pass."""
        return all_passed(self.rules)

    @property
    def rules(self) -> tuple[GateRow, ...]:
        """What came of each rule."""
        return tuple(self.result.gates)

    @property
    def one_line(self) -> str:
        """The advice."""
        advice, alarm = self.judged.advice, self.judged.alarm
        method = f" with {advice.method}" if advice.method else ""
        unraised = "no alarm" if self.judged.has_e_value else "no e-value"
        raised = f"alarm at row {alarm.row:,}" if alarm else unraised
        return f"{self.judged.rows:,} rows, {raised}: {advice.action}{method}"

    @spoken
    def plot(self, picture: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw gain, evidence or reliability into `ax`, or into a figure of its own. By default the first there is."""
        from decal_cli.plot.online import pictures_of
        from decal_cli.plot.page import on_axes

        pictures = pictures_of(self.judged)
        return on_axes(ax, pictures[one_of("picture", picture or next(iter(pictures)), pictures)])

    @spoken
    def predictions(self, library: Library | None = None) -> Any:
        """Every row with the predictions that would have been made, as a frame."""
        return in_library(as_table(self.predicted), self._named(library))


ROWS = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".jsonl", ".ndjson")
"""What the name of a baseline that is a file of rows ends in; any other is a JSON report."""


def earlier(given: Any, asked: Asked, plan: Plan) -> Baseline | None:
    """What a gate compares with: a report, as a path, as `to_dict()` gives it or an answer; or rows, in any form."""
    from decal_cli.analysis.baseline import baseline_of, read_baseline
    from decal_cli.analysis.evaluate import evaluate

    if given is None:
        return None
    if isinstance(given, ReportsAnswer):
        return replace(baseline_of(given.to_dict(), "given"), rows=given.data)
    if isinstance(given, Mapping):
        return baseline_of(given, "given")
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        if not path.lower().removesuffix(".gz").endswith(ROWS):
            return read_baseline(path)
    elif is_table(given) or isinstance(given, Data):
        path = "given"
    else:
        raise DecalError(f"baseline= is a {type(given).__name__}", "give an answer of evaluate(), a frame or a path")
    try:
        rows = asked.of("baseline", given).rows(plan.edges)
    except DecalError as error:
        problem, fix = error.given
        raise DecalError(
            f"baseline {problem}", f"{fix}; a baseline has rows like these, or is a JSON report of {Verb('evaluate')}"
        ) from None
    return replace(baseline_of(Evaluated(evaluate(rows, plan)).data(), path), rows=rows)
