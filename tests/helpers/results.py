"""Hand-made results for the renderers: evaluations, advice, and two rounds of methods tried."""

from dataclasses import replace
from typing import Any

from decal_cli.analysis.described import Decided, DecisionCounts, Utility, Worth
from decal_cli.analysis.evaluate import Evaluation, Plan, Report, Result
from decal_cli.analysis.evidence import Evidence, Item
from decal_cli.analysis.flowchart import walk
from decal_cli.analysis.recommend import Picked, Recommendation, Round, Trial
from decal_cli.data import Input
from decal_cli.learn.methods import parse as parse_method
from decal_cli.metrics import parse
from decal_cli.metrics.decisions import DecisionChange
from decal_cli.render.format import Page
from decal_cli.render.formats import write
from decal_cli.task import BinaryTask


def as_text(result: Any, format: str = "table", width: int = 100, color: bool = False) -> str:
    """The result in a format that is text."""
    text = write(result, format, Page(width, color))
    assert isinstance(text, str)
    return text


RESULTS = {
    "brier": Result(0.19695801, (0.18544, 0.20847)),
    "log_loss": Result(
        None, None, "infinite: rows that are certain and wrong: 2 with score 0 and label 1, 1 with score 1 and label 0"
    ),
    "auc": Result(0.74288666, (0.7197, 0.7647)),
    "ece": Result(0.0981831, (0.0770, 0.1110)),
    "ece_null": Result(0.02396, (0.0151, 0.0348)),
    "ece_debiased": Result(0.0143573, (0.0093, 0.0195)),
    "spiegelhalter_z": Result(14.6168),
    "expected_utility": Result(-0.1343, (-0.14403, -0.12457)),
    "eu_never": Result(-0.2216, (-0.2358, -0.2072)),
    "eu_always": Result(-0.2050, (-0.2112, -0.1989)),
    "regret_calibration": Result(0.0043267, (0.0003, 0.0096)),
    "gain_recalibration": Result(-0.0033, (-0.0091, 0.0025)),
    "grouping_loss": Result(0.0144, (0.0097, 0.0191)),
    "regret_grouping": Result(0.0108, (0.0056, 0.0138)),
    "gain_beyond": Result(0.0194, (0.0078, 0.0310)),
    "gain_post_training": Result(0.0161, (0.0045, 0.0278)),
    "utility_at_stake": Result(2.05),
    "external_regret": Result(-0.0707, (-0.0821, -0.0593)),
    "gain_over_constant": Result(0.05, (0.03, 0.07)),
    "utility_share": Result(0.5, (0.4, 0.6)),
    "threshold_adjusted": Result(0.2012889),
}


AS_IS = Decided(500.0, 418.0, 132.0, 947.0)
RECALIBRATED = DecisionChange(20.0, 5.0, 10.0, 40.0)
WITH_FEATURES = DecisionChange(50.5, 20.5, 15.25, 60.75)
STEP = AS_IS.changed(RECALIBRATED, 0.0107)
COUNTS = DecisionCounts(1997.0, {"now": AS_IS, "recalibrate": STEP, "post-train": STEP.changed(WITH_FEATURES, 0.03)})


def made_up_evaluation(models: list[tuple[str, str | None]]) -> Evaluation:
    plan = Plan(tuple(map(parse, RESULTS)), BinaryTask.of_costs(3, 7, 0.25))
    return Evaluation(
        plan,
        (Input("preds.parquet", 2000, 633, "ab" * 32),),
        {"score": tuple(dict.fromkeys(model for model, _ in models)), "label": "y", "features": ("x0", "x1")},
        ("label",),
        ("p_a: dropped 3 of 2,000 rows (missing score)",),
        tuple(
            Report(model, group, 1997, 632, RESULTS, 1800, 3, True, sections=(COUNTS, WORTH_OF_ONE))
            for model, group in models
        ),
    )


WORTH_OF_ONE = Worth(
    Utility(-0.1343, (-0.14403, -0.12457)), Utility(0.0707, (0.0593, 0.0821)), constant=-0.2050, action="1", perfect=0.0
)
ONE_REPORT = made_up_evaluation([("p_a", None)])
SIX_REPORTS = made_up_evaluation(
    [("p_a", None), ("p_a", "north"), ("p_a", "south"), ("p_longer_name", None), ("p_c", None), ("p_d", None)]
)


def with_advice(whole: Evaluation, **preferences: object) -> Recommendation:
    items = {key: Item(key, result.value, result.interval, result.reason) for key, result in RESULTS.items()}
    evidence = Evidence(items, rows=1997, features=True, tolerance=0.01, **preferences)
    return Recommendation(whole, tuple(walk(evidence) for _ in whole.reports))


def made_up_trial(key: str, predicted: Result, achieved: Result, cost: float, seconds: float) -> Trial:
    return Trial(parse_method(key), predicted, achieved, cost, seconds=seconds)


def two_rounds() -> Recommendation:
    """Two rounds: stacking is best, and a recalibration may be as good; then nothing is left."""
    whole = with_advice(ONE_REPORT, costs={"post-train": 0.001})
    recalibrated, together = RESULTS["gain_recalibration"], RESULTS["gain_post_training"]
    trials = (
        made_up_trial("stack", together, Result(0.0213, (0.0091, 0.0335)), 0.001, 0.214),
        replace(
            made_up_trial("platt(on=p)", recalibrated, Result(0.0101, (0.0002, 0.0220)), 0.0, 0.004),
            behind=Result(0.0102, (-0.0013, 0.0217)),
        ),
        made_up_trial("glar", together, Result(0.0004, (-0.0006, 0.0014)), 0.001, 1.31),
        made_up_trial(
            "meta-cal", recalibrated, Result(None, None, "needs at least 10 rows that p >= .5 decides rightly"), 0, 0
        ),
    )
    again = (made_up_trial("isotonic", recalibrated, Result(-0.002, (-0.006, 0.002)), 0.0, 0.003),)
    report = replace(ONE_REPORT.reports[0], model="p_a_stack")
    by_cv = Picked("stack", ("stack", "platt"), Result(0.0187, (0.0061, 0.0313)))
    rounds = (Round("p_a", trials, trials[0], report, whole.advice[0], by_cv), Round("p_a_stack", again))
    return replace(whole, rounds={"p_a": rounds})
