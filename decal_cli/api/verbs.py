"""The verbs on arrays, data frames and files: those that judge, such as evaluate and gate, and fit, apply and study."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from decal_cli.analysis.evaluate import Plan, shown_choices
from decal_cli.api.answer import (
    CardAnswer,
    CompareAnswer,
    EvaluateAnswer,
    FitAnswer,
    GateAnswer,
    RangeAnswer,
    RecommendAnswer,
    ReportAnswer,
    StudyAnswer,
    SweepAnswer,
    VariedAnswer,
    earlier,
)
from decal_cli.api.asking import (
    Asked,
    asked,
    choices_of,
    method_of,
    methods_of,
    metrics_of,
    names_of,
    number_text,
    paths_of,
    thresholds_text,
    unknown_of,
    whole,
)
from decal_cli.api.frames import with_columns
from decal_cli.api.nouns import (
    Costs,
    Data,
    DecisionLike,
    Halvings,
    Names,
    Path,
    Paths,
    Rules,
    Source,
    Statistics,
    Table,
)
from decal_cli.api.words import AROUND, computing, one_of, spoken
from decal_cli.data import NewRows
from decal_cli.data.arrays import column_names, is_table, rows_in_memory
from decal_cli.data.words import text_of
from decal_cli.declarations.defaults import STUDY_THRESHOLDS, SWEEP_THRESHOLDS
from decal_cli.declarations.option import keys_of
from decal_cli.errors import DecalError
from decal_cli.hints import GIVE_TASK, Hint, Verb
from decal_cli.roles import ROW_UTILITIES
from decal_cli.task import CAPACITY, BinaryTask, RowTask, parse_varied

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from decal_cli.analysis.over_costs import Unknown
    from decal_cli.learn.model_file import Saved


@spoken
def evaluate(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    metrics: Names = (),
    regimes: bool = False,
    statistics: Statistics | None = None,
    **fields: Any,
) -> EvaluateAnswer:
    """Measure scores against labels: losses, calibration, and the regret of acting on the scores.

    Parameters
    ----------
    data
        Path, frame, (scores, labels) with scores of shape (T,) in [0, 1], or `Data`.
    decision
        Threshold t*, utilities of shape (A, 2), or `Decision`. None: no metric that needs a decision is defined.
    metrics
        Such as 'ece(bins=20)', by default those of the command's table; 'all'; or the measures of a field: 'clinical',
        'credit' or 'fairness'.
    regimes
        Show each bin of the score, and whether miscalibration or grouping loses more there.
    statistics
        Level of the intervals, seed, and whether there are intervals.
    **fields
        Single fields of these: `evaluate(p, y, threshold=0.3)` is `evaluate(Data(p, y), Decision(0.3))`.

    Returns
    -------
    EvaluateAnswer
        `answer["brier"]` has value, interval and reason; utilities are per decision, in the unit of the decision.

    Raises
    ------
    DecalError
        A ValueError, for what cannot be evaluated; one line.

    Examples
    --------
    >>> answer = evaluate(([0.2, 0.8, 0.6, 0.1], [0, 1, 1, 0]), 0.5)
    >>> answer["brier"].value
    0.0625
    """
    from decal_cli.analysis.described import against
    from decal_cli.analysis.evaluate import evaluate
    from decal_cli.analysis.packs import NO_PACK, PACKS
    from decal_cli.render.results.evaluation import Evaluated

    given = asked(data, decision, statistics, fields)
    plan, pack = given.plan, PACKS.get(str(metrics), NO_PACK)
    named = pack.choices or metrics_of(metrics)
    if regimes and not plan.two_actions(Verb("evaluate", "regimes")):
        raise DecalError(f"{Hint('regimes')} needs a decision", GIVE_TASK)
    rows = given.rows(plan.edges)
    plan = replace(plan, choices=named or choices_of(metrics, rows, plan, shown_choices))
    other, reference = given.data.reference, None
    if other is not None:
        reference = against(rows, given.of("reference", other).rows(), plan.level)
    with computing() as progress:
        result = evaluate(rows, plan, progress, regimes=regimes, pack=pack, reference=reference)
    return EvaluateAnswer(Evaluated(result, bool(named or metrics)), given.read_from, rows, plan)


@spoken
def recommend(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    methods: Names = (),
    costs: Costs | None = None,
    statistics: Statistics | None = None,
    **fields: Any,
) -> RecommendAnswer:
    """Walk from "is this model suboptimal for my decision?" to an action, a method and its gain.

    Parameters
    ----------
    data, decision, statistics, **fields
        As for `evaluate`. Amounts are in its terms: `Decision(0.3).in_terms(unit="EUR")`. Where costs are not known, a
        range, such as threshold="0.1:0.4", or no decision: the answer says which advice holds where.
    methods
        To try on held-out rows, such as 'platt(on=p)', or 'all'.
    costs
        What post-training costs per decision, and what is good enough.

    Returns
    -------
    RecommendAnswer
        `answer.advice` has action, method, and gain per decision with its interval.

    Examples
    --------
    >>> scores = [k / 200 for k in range(200)]
    >>> recommend((scores, [score > 0.6 for score in scores]), 0.3).advice.action
    'recalibrate'
    """
    from decal_cli.analysis.recommend import edges_of_advice, evidence_choices, recommend, try_methods
    from decal_cli.render.results.recommendation import Recommended

    given = asked(data, decision, statistics, fields, costs or Costs())
    unknown = unknown_of(given.decision)
    if unknown or not given.plan.decision:
        return _over_costs(given, unknown, bool(methods))
    plan, terms, preferences = given.plan, given.terms, given.preferences
    chosen = () if methods == "all" else methods_of(methods)
    rows = given.rows(None if methods else edges_of_advice(plan))
    plan = replace(plan, choices=evidence_choices(bool(rows.classes), AROUND.get().every))
    with computing() as progress:
        if methods:
            recommendation = try_methods(rows, plan, preferences, progress, chosen)
        else:
            recommendation = recommend(rows, plan, preferences, progress)
    return RecommendAnswer(Recommended(recommendation, terms), given.read_from, rows, plan)


def _over_costs(given: Asked, unknown: Unknown | None, tries: bool) -> RangeAnswer:
    """Advice at every number of a range; without one, at every threshold. Errors: DecalError."""
    from decal_cli.analysis.over_costs import STEPS, Unknown, advise_over
    from decal_cli.analysis.recommend import NO_DECISION, evidence_choices
    from decal_cli.render.results.over_costs import Ranged

    if tries:
        raise DecalError(
            "methods are tried for one decision", f"give one number for it, such as {Hint('threshold', '0.3')}"
        )
    if given.decision.capacity is not None:
        raise DecalError(f"{Hint('capacity')} needs one decision", f"name it, such as {Hint('threshold', '0.3')}")
    named = bool(unknown)
    unknown = unknown or Unknown("threshold", 0.01, 0.99)

    def at(number: float) -> Asked:
        numbers: Any = {unknown.name: number}
        return given._replace(decision=replace(given.decision, **numbers))

    def task(number: float) -> Any:
        return at(number).plan.decision

    if not isinstance(task(unknown.low), BinaryTask):
        raise DecalError("a range is of costs that all rows share, of two decisions", "name one number in place of it")
    rows = given.rows(sorted({task(unknown.at(step)).threshold for step in range(STEPS + 1)}))
    if rows.classes:
        raise NO_DECISION if not named else DecalError("a range is for scores of two classes", "name one decision")
    first = at(unknown.low)
    plan = replace(first.plan, choices=evidence_choices(False, False))
    with computing() as progress:
        advice = advise_over(rows, plan, first.preferences, unknown, task, progress)
    return RangeAnswer(Ranged(advice, given.decision.terms), given.read_from, rows, advice.evaluation.plan)


@spoken
def gate(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    rules: Rules | Names = (),
    statistics: Statistics | None = None,
    **fields: Any,
) -> GateAnswer:
    """Judge rules, such as 'gain_recalibration<=0.01'; `answer.passed` says whether all hold.

    Parameters
    ----------
    data, decision, statistics, **fields
        As for `evaluate`.
    rules
        One or several, or `Rules` with a baseline, such as an earlier answer, for rules such as
        'brier<=baseline+0.005' and 'drop(auc)<=0.01'.

    Returns
    -------
    GateAnswer
        `passed` is None where a rule cannot be judged, which is no pass.

    Examples
    --------
    >>> gate(([0.2, 0.8, 0.6, 0.1], [0, 1, 1, 0]), 0.5, rules=["brier<=0.1", "rows>=3"]).passed
    True
    """
    from decal_cli.analysis import gate as gating
    from decal_cli.analysis import rules as ruling
    from decal_cli.render.results.gates import Gated

    given = asked(data, decision, statistics, fields, rules if isinstance(rules, Rules) else Rules(rules))
    (kept,) = given.others
    parsed = [ruling.parse_rule(text) for text in names_of("rules", kept.rules)]
    example = ruling.example_rule(bool(given.plan.decision))
    if not parsed:
        raise DecalError("there is no rule to judge by", f"give for example {Hint('rule', repr(example))}")
    if kept.anytime and given.data.margin:
        raise DecalError(
            f"{Hint('margin')} rescales all rows by the range of these, so that added rows change earlier scores",
            f"give {Hint('logit')}, a map that is the same for all rows, or drop {Hint('anytime')}",
        )
    undecided: Any = kept.undecided and one_of("undecided", kept.undecided, get_args(gating.Undecided))
    family: Any = one_of("family", kept.family or "none", get_args(gating.Family))
    # What rows show is known by intervals alone.
    promised = kept.anytime or undecided == "pass" or family != "none"
    shown = promised or any(rule.needs_interval for rule in parsed)
    plan = replace(given.plan, choices=ruling.choices_of(parsed), intervals=given.plan.intervals or shown)
    baseline = earlier(kept.baseline, given, plan)
    rows = given.rows(plan.edges, pairs=any(rule.change == "delta" for rule in parsed))
    with computing() as progress:
        outcome = gating.gate(rows, plan, parsed, baseline, progress, undecided, kept.anytime, family)
    return GateAnswer(Gated(outcome), given.read_from, rows, plan)


@spoken
def compare(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    metrics: Names = (),
    statistics: Statistics | None = None,
    **fields: Any,
) -> CompareAnswer:
    """Compare two models on the same rows: every metric's difference, who wins at which thresholds, the splice.

    Parameters
    ----------
    data
        Rows with two score columns, `data.models("p_old", "p_new")`; or two files of one score each, joined by the
        column of row ids `Data(["old.csv", "new.csv"], id="id")`.
    decision, statistics, **fields
        As for `evaluate`.
    metrics
        By default those that tell two models apart.

    Returns
    -------
    CompareAnswer
        Differences are of the second model minus the first, with paired intervals.

    Examples
    --------
    >>> rows = {"old": [0.4, 0.6, 0.5, 0.3], "new": [0.2, 0.8, 0.6, 0.1], "y": [0, 1, 1, 0]}
    >>> round(compare(Data(rows).models("old", "new"), metrics="brier")["brier"].value, 4)
    -0.1025
    """
    from decal_cli.analysis.compare import compare, shown_choices
    from decal_cli.render.results.comparison import Compared

    given = asked(data, decision, statistics, fields)
    plan = given.plan
    metrics_of(metrics)
    paired = given.paired(plan.edges)
    plan = replace(plan, choices=choices_of(metrics, paired.dataset, plan, shown_choices))
    with computing() as progress:
        result = compare(paired.dataset, plan, progress, ids=paired.ids)
    return CompareAnswer(Compared(result, given.terms), given.read_from, paired.dataset, plan, paired)


@spoken
def sweep(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    thresholds: str | ArrayLike = SWEEP_THRESHOLDS,
    prior: Path | None = None,
    statistics: Statistics | None = None,
    **fields: Any,
) -> SweepAnswer:
    """Compute every curve over the threshold t*: Brier curves, regret, net benefit and others.

    Parameters
    ----------
    data, statistics, **fields
        As for `evaluate`.
    decision
        Needed for the picture 'waterfall', and where a number of it varies in place of t*:
        `Decision.abstain(0.2).vary("abstain", 0, 0.5)`.
    thresholds
        In (0, 1): numbers, or text such as '0.05:0.95:0.05'.
    prior
        How often each t* occurs: 'beta:A,B', or a CSV or JSON file.

    Returns
    -------
    SweepAnswer
        One curve for each metric, model and group.

    Examples
    --------
    >>> sweep(([0.2, 0.8, 0.6, 0.1], [0, 1, 1, 0]), thresholds=[0.3, 0.5])
    <SweepAnswer: score: 15 curves at 2 thresholds, 0.3 to 0.5>
    """
    from decal_cli.analysis import sweep as sweeps
    from decal_cli.curves.grid import Grid, parse_prior, parse_thresholds
    from decal_cli.render.results.sweep import Curves, VariedCurves

    given = asked(data, decision, statistics, fields)
    decision, terms = given.decision, given.decision.terms
    varied = parse_varied(decision.varied) if isinstance(decision.varied, str) else decision.varied
    capacities = varied if varied and varied.name == CAPACITY else None
    text = thresholds_text(thresholds)
    grid = Grid(parse_thresholds(text), None if prior is None else parse_prior(os.fspath(prior)))
    given = given._replace(decision=replace(decision, varied=None))
    plan = given.plan
    if capacities:
        # So that what --per names is read, and the largest capacity is checked against the rows.
        given = given._replace(decision=replace(given.decision, capacity=sweeps.largest(capacities)))
    rows = given.rows(None if varied else sorted({*plan.edges, *grid.thresholds}))
    rows.need_no_time("sweep")
    plan = plan.for_rows(rows)
    if not (varied or rows.classes or plan.by_row):
        with computing() as progress:
            return SweepAnswer(Curves(sweeps.swept(rows, plan, grid, progress), terms=terms), given.read_from)
    if prior is not None or text != SWEEP_THRESHOLDS:
        raise DecalError(
            f"{Hint('thresholds' if prior is None else 'prior')} is of t*, and a number of the task varies here",
            f"drop it; {Hint('vary')} says what takes which values",
        )
    with computing() as progress:
        if capacities:
            series = sweeps.capacity_series(rows, plan, capacities, number_text("capacity", decision.capacity))
        else:
            in_costs = not {"cost_matrix", "cost_fp"}.isdisjoint(decision.spelled)
            series = sweeps.series_for(rows, plan, varied, in_costs)
        tasks = sweeps.sweep_tasks(rows, plan, series, progress)
    return VariedAnswer(VariedCurves(tasks, terms=terms), given.read_from)


@spoken
def report(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    costs: Costs | None = None,
    statistics: Statistics | None = None,
    **fields: Any,
) -> ReportAnswer:
    """Measure, recommend and draw: one page, which `answer.save('report.html')` writes and a notebook shows.

    Parameters
    ----------
    data, decision, statistics, **fields
        As for `evaluate`. Without a decision nothing is recommended.
    costs
        As for `recommend`.

    Returns
    -------
    ReportAnswer
        The page, and its reports.

    Examples
    --------
    >>> scores = [k / 200 for k in range(200)]
    >>> report((scores, [k % 4 == 0 for k in range(200)]), 0.3).reports[0].rows
    200
    """
    # Late: it loads what draws.
    from decal_cli.plot.report import planned_for, report_page, said_before

    given = asked(data, decision, statistics, fields, costs or Costs())
    plan, terms, preferences = given.plan, given.terms, given.preferences
    rows = given.rows(plan.edges)
    plan = planned_for(rows, plan)
    AROUND.get().say(said_before(rows))
    with computing() as progress:
        page = report_page(rows, plan, preferences, progress, terms)
    return ReportAnswer(page, given.read_from, rows, plan)


@spoken
def model_card(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    costs: Costs | None = None,
    statistics: Statistics | None = None,
    **fields: Any,
) -> CardAnswer:
    """Fill a model card: what is measured, what is advised, and what decal cannot know, item by item of TRIPOD+AI.

    Parameters
    ----------
    data, decision, statistics, **fields
        As for `evaluate`. Without a decision nothing is advised.
    costs
        As for `recommend`.

    Returns
    -------
    CardAnswer
        The card; its numbers are those of `recommend`.

    Examples
    --------
    >>> scores = [k / 200 for k in range(200)]
    >>> model_card((scores, [k % 4 == 0 for k in range(200)]), 0.3).result.title
    'Model card: score'
    """
    from decal_cli.analysis.described import reliability_bins
    from decal_cli.analysis.recommend import edges_of_advice, recommend
    from decal_cli.plot.report import planned_for, said_before
    from decal_cli.render.results.card import Card

    given = asked(data, decision, statistics, fields, costs or Costs())
    plan, terms, preferences = given.plan, given.terms, given.preferences
    rows = given.rows(edges_of_advice(plan))
    plan = planned_for(rows, plan)
    AROUND.get().say(said_before(rows))
    with computing() as progress:
        recommendation = recommend(rows, plan, preferences, progress)
        bins = [reliability_bins(part, plan.level) for model in rows.models for _, part in model.rows.by_group()]
    card = Card(recommendation, bins, terms, text_of(given.data.positive))
    return CardAnswer(card, given.read_from, rows, plan)


@spoken
def fit(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    method: str = "auto",
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
    from decal_cli.analysis import fit as fits
    from decal_cli.render.results.fitting import FittedPage

    given = asked(data, decision, statistics, fields, costs or Costs())
    chosen = None if method == fits.AUTO else method_of(method)
    if chosen and given.others[0] != Costs():
        costs, keys = given.others[0], keys_of(Costs)
        named = next(key for key, name in keys.items() if getattr(costs, name) != getattr(Costs(), name))
        raise DecalError(
            f"{Hint(named)} decides what {fits.AUTO} fits, and {chosen.key} is named",
            f"drop it, or write: {Verb('fit', method=fits.AUTO)}",
        )
    if given.data.margin:
        raise DecalError(
            "a model file does not hold the range of margins, which other rows would not have",
            f"give {Hint('logit')}, a map that is the same for all rows",
        )
    plan, preferences, rows = given.plan, given.preferences, fits.one_model(given.rows())
    plan = plan.for_rows(rows)
    test_set = None
    if given.data.test is not None:
        known = {role: names for role, names in rows.columns.items() if role != "proba"}
        own = Data.of(given.data.test)
        if not isinstance(own.label, (str, type(None))):
            # Scores and labels are arrays, which need no names.
            known = {role: names for role, names in known.items() if role not in ("score", "label")}
        rows_of = own if isinstance(given.data.test, Data) else replace(given.data, source=given.data.test)
        tested = asked(rows_of, given.decision, None, known)
        test_set = fits.test_set(tested.rows(), rows)
    with computing() as progress:
        followed = fits.Advised(chosen) if chosen else fits.advised(rows, plan, preferences)
        progress(followed.chosen.key)
        fitting = fits.fit(rows, plan, followed.chosen, test_set, followed.why)
    saved = fits.saved_model(fitting.chosen, fitting.model, fitting.training, rows, plan, bool(given.data.logit))
    return FitAnswer(FittedPage(fitting, None, given.terms), given.read_from, saved, plan)


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
    from decal_cli.analysis.fit import columns_for, read_model, scored
    from decal_cli.learn.model_file import Saved

    saved = model.model if isinstance(model, FitAnswer) else model
    shown = "the model"
    if not isinstance(saved, Saved):
        if not isinstance(saved, (str, os.PathLike)):
            raise DecalError(f"the model is of type {type(saved).__name__}", "give what `fit` returned, or a path")
        shown = os.fspath(saved)
        saved = read_model(shown)
    columns = columns_for(saved, one_of("missing", missing, ("error", "drop")))
    paths = paths_of(data)
    if paths:
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
        As for `evaluate`. A decision of more than two actions, or of several classes, takes the place of the
        thresholds; without one, several classes have 11 tasks.
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
    from decal_cli.analysis.study_summary import summarise
    from decal_cli.curves.grid import parse_thresholds
    from decal_cli.render.results.study import Studied

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
        Plan((), RowTask(by_row)).need_shared(Verb("study"))
    text, plan = thresholds_text(halved.thresholds), given.plan
    if plan.decision and text != STUDY_THRESHOLDS:
        raise DecalError(f"{Hint('thresholds')} and a task are both given", "keep one of them")
    named = studies.tasks_named(plan.need_shared(Verb("study")))
    at = tuple(float(t) for t in parse_thresholds(text))
    setting = studies.Setting(at, methods_of(methods), plan.confidence, named)
    folder, columns = studies.folder_of(os.fspath(halved.folder)), given.columns()
    with AROUND.get().counting() as count:
        result = studies.run(list(dict.fromkeys(paths)), columns, setting, range(halved.seeds), folder, workers, count)
        return StudyAnswer(Studied(summarise(result)), given.read_from, result.notes)
