"""The verbs that judge: evaluate, recommend, gate, compare, sweep and report, on arrays, data frames and files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from decal_cli.analysis import compare as comparing
from decal_cli.analysis import evaluate as evaluating
from decal_cli.analysis import gate as gating
from decal_cli.analysis import recommend as recommending
from decal_cli.analysis.capacities import capacity_series, largest, sweep_capacities
from decal_cli.analysis.choices import all_choices
from decal_cli.analysis.packs import PACKS
from decal_cli.analysis.sweep import swept
from decal_cli.analysis.varied import series_for, sweep_tasks
from decal_cli.api.answer import (
    CompareAnswer,
    EvaluateAnswer,
    GateAnswer,
    RecommendAnswer,
    ReportAnswer,
    SweepAnswer,
    VariedAnswer,
    earlier,
)
from decal_cli.api.asking import (
    Question,
    asked,
    capacity_text,
    methods_of,
    metrics_of,
    names_of,
    paired_of,
    preferences_of,
    reference_of,
    thresholds_text,
)
from decal_cli.api.frames import library_of
from decal_cli.api.nouns import Costs, Data, DecisionLike, Names, Path, Rules, Source, Statistics
from decal_cli.api.words import spoken
from decal_cli.curves import Grid, parse_prior, parse_thresholds
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.render.results.comparison import Compared
from decal_cli.render.results.evaluation import Evaluated
from decal_cli.render.results.gates import Gated
from decal_cli.render.results.recommendation import Recommended
from decal_cli.render.results.sweep import Curves
from decal_cli.render.results.varied import VariedCurves
from decal_cli.task import CAPACITY, parse_varied

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

NEEDS_TASK = DecalError(
    "a recommendation needs the decision it is for", "give threshold=, utility=, cost_fp= and cost_fn=, or odds="
)


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
        Such as 'ece(bins=20)', by default all; or the measures of a field: 'clinical', 'credit' or 'fairness'.
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
    given = asked(data, decision, statistics, fields)
    question, pack = given.question(), PACKS.get(metrics) if isinstance(metrics, str) else None
    choices = pack.choices if pack else metrics_of(metrics) or all_choices(bool(question.data.classes))
    plan = replace(question.plan, choices=choices)
    if regimes and plan.two_actions("evaluate(regimes=True)") is None:
        raise DecalError("regimes=True needs a decision", "give threshold=, utility=, costs or odds=")
    reference = reference_of(given, question.data, plan)
    result = evaluating.evaluate(question.data, plan, regimes=regimes, pack=pack, reference=reference)
    return EvaluateAnswer(Evaluated(result, reference), question)


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
        As for `evaluate`; a decision is required. Amounts are in its terms: `Decision(0.3).in_terms(unit="EUR")`.
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
    given = asked(data, decision, statistics, fields, costs or Costs())
    question = given.question(counted=not methods)
    preferences = preferences_of(given.others[0], given.decision.terms)
    if not question.plan.decides:
        raise NEEDS_TASK
    plan = replace(question.plan, choices=recommending.evidence_choices(bool(question.data.classes), every=True))
    if not methods:
        recommendation = recommending.recommend(question.data, plan, preferences)
    else:
        chosen = () if methods == "all" else methods_of(methods)
        recommendation = recommending.try_methods(question.data, plan, preferences, methods=chosen)
    return RecommendAnswer(Recommended(recommendation, given.decision.terms), question)


@spoken
def gate(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    rules: Rules | Names = (),
    statistics: Statistics | None = None,
    **fields: Any,
) -> GateAnswer:
    """Judge rules, such as 'regret<=0.02'; `answer.passed` says whether all hold.

    Parameters
    ----------
    data, decision, statistics, **fields
        As for `evaluate`.
    rules
        One or several, or `Rules` with a baseline, an earlier answer for rules such as 'brier<=baseline+0.005'.

    Returns
    -------
    GateAnswer
        `passed` is None where a rule cannot be judged, which is no pass.

    Examples
    --------
    >>> gate(([0.2, 0.8, 0.6, 0.1], [0, 1, 1, 0]), 0.5, rules=["brier<=0.1", "rows>=3"]).passed
    True
    """
    given = asked(data, decision, statistics, fields, rules if isinstance(rules, Rules) else Rules(rules))
    (kept,) = given.others
    parsed = [gating.parse_rule(text) for text in names_of("rules", kept.rules)]
    if not parsed:
        raise DecalError("there is no rule to judge by", "give for example rules='regret<=0.02'")
    needed = replace(given.statistics, intervals=any(rule.needs_interval for rule in parsed))
    question = given._replace(statistics=needed).question(pairs=any(rule.delta for rule in parsed))
    plan = replace(question.plan, choices=gating.choices_of(parsed))
    return GateAnswer(Gated(gating.gate(question.data, plan, parsed, earlier(kept.baseline))), question)


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
    given = asked(data, decision, statistics, fields)
    plan = given.plan
    paired = paired_of(given, plan.edges)
    question = Question(paired.dataset, plan, library_of(given.data.source))
    choices = metrics_of(metrics) or comparing.shown_choices(paired.dataset, plan)
    result = comparing.compare(paired.dataset, replace(plan, choices=choices), ids=paired.ids)
    spliced = None if result.splice is None or paired.counted else comparing.spliced(paired, result)
    return CompareAnswer(Compared(result, given.decision.terms), question, spliced)


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
    given = asked(data, decision, statistics, fields)
    text = given.decision.varied
    given = given._replace(decision=replace(given.decision, varied=None))
    varied = None if text is None else parse_varied(text)
    if varied is not None and varied.name == CAPACITY:
        # So that what per= names is read, and the largest capacity is checked against the rows.
        limited = given._replace(decision=replace(given.decision, capacity=largest(varied)))
        question = limited.question(counted=False)
        own = capacity_text(given.decision.capacity)
        series = capacity_series(question.data, question.plan.for_rows(question.data), varied, own)
        result = sweep_capacities(question.data, question.plan.for_rows(question.data), series)
        return VariedAnswer(VariedCurves(result, terms=given.decision.terms), question.library)
    question = given.question(counted=varied is None)
    if varied is not None or question.data.classes or question.plan.row_task is not None:
        plan = question.plan.for_rows(question.data)
        in_costs = not {"cost_matrix", "cost_fp"}.isdisjoint(given.decision.spelled)
        tasks = sweep_tasks(question.data, plan, series_for(question.data, plan, varied, in_costs))
        return VariedAnswer(VariedCurves(tasks, terms=given.decision.terms), question.library)
    grid = Grid(parse_thresholds(thresholds_text(thresholds)), None if prior is None else parse_prior(os.fspath(prior)))
    return SweepAnswer(Curves(swept(question.data, question.plan, grid), terms=given.decision.terms), question.library)


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
    # Late: it loads matplotlib.
    from decal_cli.plot import planned_for, report_page

    given = asked(data, decision, statistics, fields, costs or Costs())
    question, terms = given.question(), given.decision.terms
    plan, preferences = planned_for(question.data, question.plan), preferences_of(given.others[0], terms)
    return ReportAnswer(report_page(question.data, plan, preferences, terms=terms), question)
