"""The walk through the flowchart, case by case."""

import itertools

import pytest

from decal_cli.analysis.flowchart import EVIDENCE_KEYS, Advice, Evidence, Item, walk
from decal_cli.metrics import METRICS

NOTHING, CLEAR, DOUBTFUL = (-0.004, 0.006), (0.01, 0.03), (-0.01, 0.03)


def evidence(
    recalibration: tuple[float, float] | None = NOTHING,
    beyond: tuple[float, float] | None = NOTHING,
    together: tuple[float, float] | None = NOTHING,
    worst: tuple[float, float] = (0.1, 0.12),
    features: bool = True,
    **more: object,
) -> Evidence:
    given = {"gain_recalibration": recalibration, "regret_grouping_worst": worst, "expected_utility": (-0.2, -0.1)}
    if features:
        given |= {"gain_beyond": beyond, "gain_post_training": together}
    items = {
        key: Item(
            key, None if ends is None else sum(ends) / 2, ends, "needs at least 10 rows" if ends is None else None
        )
        for key, ends in given.items()
    }
    items["threshold_adjusted"] = Item("threshold_adjusted", 0.25, (0.2, 0.3))
    return Evidence(items, 1.0, 2000, features, **more)


def answers(advice: Advice) -> list[str]:
    return [step.answer for step in advice.steps]


def test_the_evidence_is_made_of_metrics() -> None:
    assert set(EVIDENCE_KEYS) <= set(METRICS)


def test_nothing_to_win_is_done() -> None:
    advice = walk(evidence())
    assert advice.action == "done" and answers(advice) == ["no", "unknown"]
    assert advice.gain is None and advice.method is None


def test_a_loss_from_miscalibration_is_recalibrated() -> None:
    advice = walk(evidence(CLEAR, NOTHING, CLEAR))
    assert advice.action == "recalibrate" and answers(advice) == ["yes", "yes", "unknown"]
    assert advice.gain == pytest.approx(0.02) and advice.interval == CLEAR
    assert "from a score of 0.25 on" in advice.next_steps[0]


def test_a_loss_beyond_the_score_is_post_trained() -> None:
    for recalibration in (NOTHING, CLEAR, DOUBTFUL):
        advice = walk(evidence(recalibration, CLEAR, (0.02, 0.05)))
        assert advice.action == "post-train" and answers(advice)[:2] == ["yes", "no"]
        assert advice.gain == pytest.approx(0.035)


def test_how_much_recalibration_has_to_do_with_it_is_said() -> None:
    said = [walk(evidence(gain, CLEAR, CLEAR)).steps[1].reason for gain in (CLEAR, DOUBTFUL, NOTHING)]
    for reason, start in zip(said, ("Only in part", "Not alone", "Recalibration wins at most 0.01"), strict=True):
        assert reason.startswith(start)


def test_where_only_both_together_are_clear_a_method_that_does_both_is_advised() -> None:
    assert walk(evidence(DOUBTFUL, DOUBTFUL, CLEAR)).action == "post-train"


def test_recalibration_comes_first_where_features_are_in_doubt() -> None:
    advice = walk(evidence(CLEAR, DOUBTFUL, CLEAR))
    assert advice.action == "recalibrate" and answers(advice)[:2] == ["yes", "unknown"]


def test_doubt_is_said_with_the_rows_that_would_settle_it() -> None:
    advice = walk(evidence(DOUBTFUL, NOTHING, NOTHING))
    assert advice.action == "cannot-tell" and answers(advice) == ["unknown"]
    # The gain seems .01 and its interval reaches .02: it must reach half as far, which takes four times the rows.
    assert advice.rows_needed == 8000 and "8,000 rows" in advice.next_steps[0]


def test_without_features_a_clear_gain_of_recalibration_is_advised() -> None:
    advice = walk(evidence(CLEAR, features=False))
    assert advice.action == "recalibrate" and answers(advice) == ["yes", "unknown", "unknown"]


def test_without_features_rows_alone_do_not_settle_it() -> None:
    advice = walk(evidence(NOTHING, features=False))
    assert advice.action == "cannot-tell" and advice.rows_needed is None
    assert "--features" in advice.next_steps[0]
    assert "cannot be said without them" in advice.steps[0].reason


def test_without_features_a_harmless_worst_case_is_done() -> None:
    assert walk(evidence(NOTHING, worst=(0.001, 0.004), features=False)).action == "done"


def test_the_tolerance_decides_what_matters() -> None:
    assert walk(evidence(DOUBTFUL, tolerance=0.03)).action == "done"
    assert walk(evidence((0.001, 0.006))).action == "done"
    assert walk(evidence((0.001, 0.006), tolerance=0.002)).action == "recalibrate"


def test_the_tolerance_is_in_the_units_of_the_task() -> None:
    small = evidence(NOTHING)
    assert walk(small).action == "done"
    assert walk(Evidence(small.items, 0.1, 2000, True)).action == "cannot-tell"


def test_a_method_that_costs_more_than_it_wins_is_not_taken() -> None:
    advice = walk(evidence(CLEAR, costs={"recalibrate": 0.04}))
    assert advice.action == "do-not-post-train" and answers(advice) == ["yes", "yes", "no", "unknown"]
    assert walk(evidence(CLEAR, costs={"recalibrate": 0.005})).steps[2].answer == "yes"
    # Gain and cost cannot be told apart in either case: the estimate, .02, decides.
    for cost, action in ((0.015, "recalibrate"), (0.025, "do-not-post-train")):
        advice = walk(evidence(CLEAR, costs={"recalibrate": cost}))
        assert advice.action == action and answers(advice)[2] == "unknown"


def test_where_both_costs_are_known_the_better_buy_is_taken() -> None:
    gains = (CLEAR, DOUBTFUL, (0.02, 0.05))  # .02, .01 and .035 in all
    cheap = walk(evidence(*gains, costs={"recalibrate": 0.002, "post-train": 0.01}))
    assert cheap.action == "post-train" and answers(cheap) == ["yes", "unknown", "no", "yes"]
    assert "stacking on the score and the features leaves more after its cost, 0.025" in cheap.steps[2].reason
    dear = walk(evidence(*gains, costs={"recalibrate": 0.002, "post-train": 0.018}))
    assert dear.action == "recalibrate" and answers(dear) == ["yes", "unknown", "yes"]


def test_who_cannot_wait_is_told_what_the_estimates_lean_to() -> None:
    assert walk(evidence(DOUBTFUL, NOTHING, NOTHING)).lean == "recalibrate"
    advice = walk(evidence((-0.03, 0.02), DOUBTFUL, (-0.02, 0.03)))
    assert advice.action == "cannot-tell" and advice.lean == "post-train"
    assert "If it must be decided now: stacking" in advice.next_steps[-1]
    assert walk(evidence((-0.03, 0.02), (-0.03, 0.02), (-0.03, 0.02))).lean == "done"
    dear = walk(evidence(DOUBTFUL, NOTHING, NOTHING, costs={"recalibrate": 0.02, "post-train": 0.02}))
    assert dear.lean == "done"


def test_a_cost_lowers_the_gain_that_does_not_matter() -> None:
    assert walk(evidence((0.001, 0.006))).action == "done"
    assert walk(evidence((0.001, 0.006), costs={"recalibrate": 0.002})).action == "recalibrate"
    assert walk(evidence((0.001, 0.006), costs={"recalibrate": 0.002}, tolerance=0.01)).action == "done"


def test_the_cheaper_method_is_taken_where_the_better_one_costs_too_much() -> None:
    advice = walk(evidence(CLEAR, CLEAR, (0.02, 0.05), costs={"post-train": 0.06, "recalibrate": 0.001}))
    assert advice.action == "recalibrate" and answers(advice) == ["yes", "no", "no", "yes"]
    dear = walk(evidence(NOTHING, CLEAR, CLEAR, costs={"post-train": 0.06, "recalibrate": 0.001}))
    assert dear.action == "do-not-post-train"


def test_doubt_does_not_matter_where_even_the_most_is_not_worth_the_cost() -> None:
    dear = {"recalibrate": 0.05, "post-train": 0.05}
    assert walk(evidence(DOUBTFUL, costs=dear)).action == "do-not-post-train"
    assert walk(evidence(DOUBTFUL, costs={"recalibrate": 0.05})).action == "cannot-tell"
    assert walk(evidence(DOUBTFUL, features=False, costs=dear)).action == "cannot-tell"


def test_utility_that_is_not_good_enough_asks_for_better_features() -> None:
    assert walk(evidence(satisfied_at=-0.05)).action == "find-better-features"
    assert walk(evidence(satisfied_at=-0.3)).action == "done"
    near = walk(evidence(satisfied_at=-0.14))
    assert near.action == "done" and near.steps[-1].answer == "unknown" and near.rows_needed == 50_000
    assert walk(evidence(CLEAR, costs={"recalibrate": 1}, satisfied_at=-0.05)).action == "find-better-features"


def test_what_is_undefined_is_unknown_with_its_reason() -> None:
    advice = walk(evidence(None, None, None))
    assert advice.action == "cannot-tell" and advice.rows_needed is None
    assert "it needs at least 10 rows" in advice.steps[0].reason
    assert walk(Evidence({}, 1.0, 5, False)).action == "cannot-tell"


def test_every_case_ends_in_an_action_with_full_sentences() -> None:
    ends = (NOTHING, CLEAR, DOUBTFUL, None)
    for gains in itertools.product(ends, ends, ends):
        for features, cost, wanted in itertools.product(
            (True, False), (None, 0.0, 0.02, 1.0), (None, -0.3, -0.15, 0.0)
        ):
            costs = {} if cost is None else {"recalibrate": cost, "post-train": cost}
            advice = walk(evidence(*gains, features=features, costs=costs, satisfied_at=wanted))
            assert (advice.method is not None) == (advice.action in ("recalibrate", "post-train"))
            assert advice.next_steps or advice.action in ("done", "do-not-post-train", "cannot-tell")
            for step in advice.steps:
                assert step.question.endswith("?") and step.reason.endswith(".") and step.reason[0].isupper()
                assert "  " not in step.reason and ",," not in step.reason
