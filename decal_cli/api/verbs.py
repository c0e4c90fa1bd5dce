"""The verbs that judge: evaluate, recommend, gate, compare and sweep, on arrays, data frames and files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from decal_cli.analysis import compare as comparing
from decal_cli.analysis import evaluate as evaluating
from decal_cli.analysis import gate as gating
from decal_cli.analysis import recommend as recommending
from decal_cli.analysis.choices import all_choices
from decal_cli.analysis.sweep import swept
from decal_cli.api.answer import (
    Answer,
    CompareAnswer,
    EvaluateAnswer,
    GateAnswer,
    RecommendAnswer,
    SweepAnswer,
    earlier,
)
from decal_cli.api.frames import library_of
from decal_cli.api.inputs import (
    NEEDS_TASK,
    Cost,
    Data,
    Missing,
    Names,
    Several,
    Utilities,
    Values,
    methods_of,
    metrics_of,
    names_of,
    pack_of,
    paired_of,
    plan_of,
    preferences_of,
    reference_of,
    task_given,
    terms_of,
    thresholds_text,
)
from decal_cli.api.question import Question, asked_question
from decal_cli.api.varying import limited, varied_answer
from decal_cli.api.words import spoken
from decal_cli.curves import Grid, parse_prior, parse_thresholds
from decal_cli.declarations.defaults import CONFIDENCE, SEED, SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.render.results.comparison import Compared
from decal_cli.render.results.evaluation import Evaluated
from decal_cli.render.results.gates import Gated
from decal_cli.render.results.recommendation import Recommended
from decal_cli.render.results.sweep import Curves

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@spoken
def evaluate(
    data: Data,
    label: Values | None = None,
    *,
    metrics: Names = (),
    pack: str | None = None,
    reference: Data | None = None,
    regimes: bool = False,
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
    margin: bool = False,
    missing: Missing = "error",
    prevalence: float | None = None,
    sampled_negatives: float | None = None,
    keep_scores: bool = False,
    aggregated: bool = False,
    capacity: str | float | None = None,
    per: Values | None = None,
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
    intervals: bool = True,
) -> EvaluateAnswer:
    """Measure scores against labels.

    data: scores, shape (T,) in [0, 1], with `label`; or a frame (pandas, polars, pyarrow, or a mapping of arrays), or
    path(s) of files. In a frame or a file, `score`, `label`, `weight`, `group`, `cluster` and `features` name columns
    as on the command line. With arrays, `weight`, `group` (or a mapping), `cluster` and `features`, shape (T, d), are
    arrays too. The decision is given as threshold=, utility=, cost_fp= and cost_fn=, or odds=; decision_threshold= says
    where the model is operated, if not at t*. proba: of several classes, in place of scores, a pattern such as 'lr:*'
    for each model; the decision is then abstain=, or utility= with a column for each class. metrics: such as
    'ece(bins=20)', by default all; or pack: the measures of a field, 'clinical', 'credit' or 'fairness'. reference: a
    frame or path(s) to hold the scores against. positive: the label value that counts as 1. logit: scores are log-odds;
    margin: margins, rescaled to [0, 1]. log: 'lm-eval' or 'inspect', who wrote the files. missing: 'error' or 'drop'.
    prevalence: share of labels 1 where decisions are made, to which rows are weighted and scores moved; or
    sampled_negatives, the share of the negatives that was kept. keep_scores: do not move them. capacity: act only on so
    many rows, those with the highest scores, '50/1000', 0.05 or 200; per: column of what has that capacity, such as the
    day. aggregated: the data are counts, with columns score, n and pos, as a GROUP BY gives them.
    Raises DecalError, a ValueError, for what cannot be evaluated.

    >>> answer = evaluate([0.2, 0.8, 0.6, 0.1], [0, 1, 1, 0], threshold=0.5)
    >>> answer["brier"].value
    0.0625
    """
    asked = locals()
    question, packed = asked_question(asked), pack_of(pack, metrics)
    choices = metrics_of(metrics) or all_choices(bool(question.data.classes))
    plan = replace(question.plan, choices=choices if packed is None else packed.choices)
    if regimes and plan.two_actions("evaluate(regimes=True)") is None:
        raise DecalError("regimes=True needs a decision", "give threshold=, utility=, costs or odds=")
    held_against = reference_of(asked, question.data, plan)
    result = evaluating.evaluate(question.data, plan, regimes=regimes, pack=packed, reference=held_against)
    return EvaluateAnswer(Evaluated(result, held_against), question)


@spoken
def recommend(
    data: Data,
    label: Values | None = None,
    *,
    methods: Names = (),
    cost: Cost | None = None,
    unit: str | None = None,
    per: Values | None = None,
    decisions: float | None = None,
    names: Names | None = None,
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
    margin: bool = False,
    missing: Missing = "error",
    prevalence: float | None = None,
    sampled_negatives: float | None = None,
    keep_scores: bool = False,
    aggregated: bool = False,
    capacity: str | float | None = None,
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
) -> RecommendAnswer:
    """Walk from "is this model suboptimal for my decision?" to an action, a method and its gain.

    data, label, the columns and the decision as for `evaluate`; a decision is required. methods: to try on held-out
    rows, such as 'platt(on=p)', or 'all'. cost: utility per decision that post-training costs, or {'recalibrate': ..,
    'post-train': ..}; in total with decisions=. unit, per, decisions: amounts are in this unit, for so many decisions,
    such as those of a year. names: of the actions, such as 'reject,accept'. satisfied_at: expected utility that is good
    enough. tolerance: gain per decision too small to matter.
    """
    asked = locals()
    question, preferences, terms = asked_question(asked), preferences_of(asked), terms_of(asked)
    if not question.plan.decides:
        raise NEEDS_TASK
    choices = recommending.evidence_choices(bool(question.data.classes), every=True)
    plan = replace(question.plan, choices=choices)
    if methods in ((), []):
        recommendation = recommending.recommend(question.data, plan, preferences)
    else:
        chosen = () if methods == "all" else methods_of(methods)
        recommendation = recommending.try_methods(question.data, plan, preferences, methods=chosen)
    return RecommendAnswer(Recommended(recommendation, terms), question)


@spoken
def gate(
    data: Data,
    label: Values | None = None,
    *,
    rules: Names,
    baseline: Answer | Mapping[str, Any] | str | os.PathLike[str] | None = None,
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
    margin: bool = False,
    missing: Missing = "error",
    prevalence: float | None = None,
    sampled_negatives: float | None = None,
    keep_scores: bool = False,
    aggregated: bool = False,
    capacity: str | float | None = None,
    per: Values | None = None,
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
) -> GateAnswer:
    """Judge rules, such as 'regret<=0.02' or 'upper(ece(bins=20))<=0.05'; `answer.passed` says whether all hold.

    data, label, the columns and the decision as for `evaluate`. baseline: an earlier answer of `evaluate`, its
    `to_dict()`, or the path of a JSON report, for rules such as 'brier<=baseline+0.005'.
    """
    parsed = [gating.parse_rule(text) for text in names_of("rules", rules)]
    if not parsed:
        raise DecalError("there is no rule to judge by", "give for example rules='regret<=0.02'")
    needed = {"intervals": any(rule.needs_interval for rule in parsed), "pairs": any(rule.delta for rule in parsed)}
    question = asked_question({**locals(), **needed})
    plan = replace(question.plan, choices=gating.choices_of(parsed))
    return GateAnswer(Gated(gating.gate(question.data, plan, parsed, earlier(baseline))), question)


@spoken
def compare(
    data: Data,
    label: Values | None = None,
    *,
    metrics: Names = (),
    id: str | None = None,
    unit: str | None = None,
    per: Values | None = None,
    decisions: float | None = None,
    names: Names | None = None,
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
    margin: bool = False,
    missing: Missing = "error",
    prevalence: float | None = None,
    sampled_negatives: float | None = None,
    keep_scores: bool = False,
    aggregated: bool = False,
    capacity: str | float | None = None,
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
    intervals: bool = True,
) -> CompareAnswer:
    """Compare two models on the same rows: every metric's difference, who wins at which thresholds, the splice.

    data: a frame or file with two score columns, a mapping of two names to scores beside `label`, or with `id`, a
    column of row ids, the paths of two files of one score each. The columns and the decision as for `evaluate`.
    metrics: by default those that tell two models apart. Differences are of the second model minus the first.
    """
    asked = locals()
    plan = plan_of(asked, (), task_given(asked))
    paired = paired_of(asked, plan.edges)
    question = Question(paired.dataset, plan, library_of(data))
    choices = metrics_of(metrics) or comparing.shown_choices(paired.dataset, question.plan)
    result = comparing.compare(paired.dataset, replace(question.plan, choices=choices), ids=paired.ids)
    spliced = None if result.splice is None or paired.counted else comparing.spliced(paired, result)
    return CompareAnswer(Compared(result, terms_of(asked)), question, spliced)


@spoken
def sweep(
    data: Data,
    label: Values | None = None,
    *,
    thresholds: str | ArrayLike = SWEEP_THRESHOLDS,
    prior: str | os.PathLike[str] | None = None,
    vary: str | None = None,
    unit: str | None = None,
    per: Values | None = None,
    decisions: float | None = None,
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
    margin: bool = False,
    missing: Missing = "error",
    prevalence: float | None = None,
    sampled_negatives: float | None = None,
    keep_scores: bool = False,
    aggregated: bool = False,
    capacity: str | float | None = None,
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
    intervals: bool = True,
) -> SweepAnswer:
    """Compute every curve over the threshold t*: Brier curves, regret, net benefit and others.

    data, label and the columns as for `evaluate`; a decision is needed only for the picture 'waterfall'. thresholds:
    numbers, or text such as '0.05:0.95:0.05'. prior: how often each t* occurs, 'beta:A,B' or a CSV or JSON file. vary:
    a number of the task that varies in place of t*, 'ACTION:CLASS=LOW:HIGH' of utility= or cost_matrix=, or
    'abstain=LOW:HIGH', the price of abstention, which varies by default where proba= names several classes; or
    'prevalence=LOW:HIGH', the share of labels 1 where decisions are made; or 'capacity=LOW:HIGH', the rows that can be
    acted on, with per= for each day.
    """
    asked = limited(locals())
    question = asked_question(asked)
    if vary is not None or question.data.classes or question.plan.row_task is not None:
        return varied_answer(question, asked)
    grid = Grid(parse_thresholds(thresholds_text(thresholds)), None if prior is None else parse_prior(os.fspath(prior)))
    return SweepAnswer(Curves(swept(question.data, question.plan, grid), terms=terms_of(asked)), question.library)
