"""The verb that writes a page: report, on arrays, data frames and files."""

from __future__ import annotations

from decal_cli.api.answer import ReportAnswer
from decal_cli.api.inputs import Cost, Data, Missing, Names, Several, Utilities, Values, preferences_of, terms_of
from decal_cli.api.question import asked_question
from decal_cli.api.words import spoken
from decal_cli.declarations.defaults import CONFIDENCE, SEED


@spoken
def report(
    data: Data,
    label: Values | None = None,
    *,
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
) -> ReportAnswer:
    """Measure, recommend and draw: one page, which `answer.save('report.html')` writes and a notebook shows.

    data, label, the columns and the decision as for `evaluate`, what post-training costs as for `recommend`. Without a
    decision nothing is recommended.
    """
    from decal_cli.plot import planned_for, report_page

    asked = locals()
    question, preferences, terms = asked_question(asked), preferences_of(asked), terms_of(asked)
    plan = planned_for(question.data, question.plan)
    return ReportAnswer(report_page(question.data, plan, preferences, terms=terms), question)
