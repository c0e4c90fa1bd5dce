"""The walk through the flowchart, case by case. At stakes of .2 the default tolerance is .01 per decision."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from decal_cli.analysis.flowchart import EVIDENCE_KEYS, SMOOTHED, ActNow, Advice, Evidence, Item, walk
from decal_cli.metrics import METRICS
from decal_cli.numbers import around

Ends = tuple[float, float]
NOTHING, CLEAR, DOUBTFUL, SMALL = (-0.004, 0.006), (0.01, 0.03), (-0.01, 0.03), (0.001, 0.006)


def evidence(
    recalibration: Ends | None = NOTHING,
    beyond: Ends | None = NOTHING,
    both: Ends | None = NOTHING,
    worst: Ends = (0.1, 0.12),
    features: bool = True,
    over_constant: Ends = (0.05, 0.07),
    lead: Ends = (-0.06, -0.02),
    auc: Ends = (0.7, 0.8),
    share: float | None = 0.5,
    stakes: float = 0.2,
    **more: object,
) -> Evidence:
    """Each gain by its interval, its value in the middle; lead: of the better constant decision, 0, over the score."""
    ends = {
        "gain_recalibration": recalibration,
        "regret_grouping_worst": worst,
        "expected_utility": (-0.2, -0.1),
        "gain_over_constant": over_constant,
        "external_regret": lead,
        "auc": auc,
    }
    if features:
        ends |= {"gain_beyond": beyond, "gain_post_training": both}
    items = {
        key: Item(
            key, None if pair is None else sum(pair) / 2, pair, "needs at least 10 rows" if pair is None else None
        )
        for key, pair in ends.items()
    }
    items |= {"eu_never": Item("eu_never", -0.1), "eu_always": Item("eu_always", -0.3)}
    items["threshold_adjusted"] = Item("threshold_adjusted", 0.25, (0.2, 0.3), text="0.25")
    items["utility_share"] = Item("utility_share", share, None, None if share else "no threshold beats a constant")
    items["utility_at_stake"] = Item("utility_at_stake", stakes)
    return Evidence(items, 2000, features, **more)


def answers(advice: Advice) -> list[str]:
    return [step.answer for step in advice.steps]


def test_the_evidence_is_made_of_metrics() -> None:
    assert set(EVIDENCE_KEYS) <= set(METRICS)


def test_nothing_to_win_is_done() -> None:
    advice = walk(evidence())
    assert advice.action == "done" and answers(advice) == ["no", "unknown"]
    assert advice.gain is None and advice.method is None
    assert advice.headline == "Done: use the model as it is."


@pytest.mark.parametrize(
    ("exact", "ends", "text"),
    [
        ("0.048145", (0.0422, 0.0512), "about 0.0481 [0.0422, 0.0512]"),
        ("0.25", (0.2, 0.3), "0.25 [0.200, 0.300]"),
        ("0.0628", (0.07, 0.28), "about 0.06 [0.06, 0.28]"),
    ],
)
def test_a_threshold_has_the_digits_of_its_interval_which_holds_it(
    exact: str, ends: tuple[float, float], text: str
) -> None:
    assert around(exact, ends) == text


def test_a_loss_from_miscalibration_is_recalibrated() -> None:
    advice = walk(evidence(CLEAR, NOTHING, CLEAR))
    assert advice.action == "recalibrate" and answers(advice) == ["yes", "yes", "unknown"]
    assert advice.method == "isotonic" and advice.gain == pytest.approx(0.02) and advice.interval == CLEAR
    assert advice.lead[-1] == "For this decision the same is free today: act from a score of 0.25 [0.200, 0.300] on."


def test_a_loss_beyond_the_score_is_post_trained() -> None:
    for recalibration in (NOTHING, CLEAR, DOUBTFUL):
        advice = walk(evidence(recalibration, CLEAR, (0.02, 0.05)))
        assert advice.action == "post-train" and answers(advice)[:2] == ["yes", "no"]
        assert advice.method == "blend" and advice.gain == pytest.approx(0.035)


def test_the_shares_of_both_causes_are_stated_and_the_free_step_is_named() -> None:
    advice = walk(evidence((0.3, 0.36), (0.03, 0.054), (0.33, 0.414)))
    assert advice.action == "post-train"
    assert "Of the gain, 89 % [86, 92] comes from recalibration." in advice.steps[1].reason
    assert (
        advice.interim is not None and advice.interim.threshold == "0.25" and advice.interim.gain == pytest.approx(0.33)
    )
    assert advice.lead == (
        "Post-train on the features with blend (a small model on score and features): wins 372 [330, 414] per 1,000 "
        "decisions.",
        "The chance that it wins anything is over 99 %.",
        "Of that, 330 [300, 360] per 1,000 decisions is free today: act from a score of 0.25 [0.200, 0.300] on.",
    )


def test_a_free_step_that_may_win_nothing_is_not_said_to_win() -> None:
    assert "may win 10 [-10, 30]" in walk(evidence(DOUBTFUL, CLEAR, CLEAR)).lead[-1]
    assert "free" not in " ".join(walk(evidence((-0.03, -0.01), CLEAR, CLEAR)).lead).lower()


def test_where_only_both_together_are_clear_a_method_that_does_both_is_advised() -> None:
    assert walk(evidence(DOUBTFUL, DOUBTFUL, CLEAR)).action == "post-train"


def test_recalibration_comes_first_where_features_are_in_doubt() -> None:
    advice = walk(evidence(CLEAR, DOUBTFUL, CLEAR))
    assert advice.action == "recalibrate" and answers(advice)[:2] == ["yes", "unknown"]


class TestSigns:
    """Within the tolerance .01, but with a sign of a gain: the best threshold lies in .2 to .3; what features say."""

    def signed(self, p_value: float = 0.5, acts_from: float = 0.25, **gains: Ends) -> Evidence:
        world = evidence(**gains, acts_from=acts_from)
        return replace(world, items={**world.items, "features_pvalue": Item("features_pvalue", p_value)})

    def test_no_sign_leaves_the_tolerance_as_it_is(self) -> None:
        assert walk(self.signed(recalibration=NOTHING, beyond=NOTHING)).action == "done"

    @pytest.mark.parametrize("acts_from", [0.194, 0.306])
    def test_another_threshold_is_a_sign_of_recalibration(self, acts_from: float) -> None:
        """Half the tolerance, .005, is the limit; a threshold within .005 of the interval's ends is not clearly out."""
        advice = walk(self.signed(recalibration=NOTHING, acts_from=acts_from))
        assert advice.action == "cannot-tell"
        assert f"the best threshold to act from, 0.200 to 0.300, is clearly not {acts_from}" in advice.steps[0].reason
        assert "threshold_adjusted" in [item.metric for item in advice.steps[0].evidence]
        assert walk(self.signed(recalibration=(-0.004, 0.0049), acts_from=acts_from)).action == "done"
        inward = acts_from + 0.002 * np.sign(0.25 - acts_from)
        assert walk(self.signed(recalibration=NOTHING, acts_from=inward)).action == "done"

    def test_features_that_say_more_are_a_sign_of_a_gain_beyond(self) -> None:
        """A third of the tolerance, .0033, is the limit."""
        advice = walk(self.signed(0.0004, beyond=(-0.002, 0.0035)))
        assert advice.action == "cannot-tell" and advice.rows_needed is not None
        assert "the features clearly say more than the score (p-value 0.0004)" in advice.steps[0].reason
        assert "features_pvalue" in [item.metric for item in advice.steps[0].evidence]
        assert walk(self.signed(0.0004, beyond=(-0.002, 0.0032))).action == "done"
        assert walk(self.signed(0.002, beyond=(-0.002, 0.0035))).action == "done"

    def test_features_that_say_more_and_win_by_the_estimate_are_post_trained(self) -> None:
        """Half the tolerance, .005, is the least estimate."""
        doubtful = {"recalibration": CLEAR, "beyond": (-0.001, 0.013), "both": (0.014, 0.038)}
        assert walk(self.signed(0.5, **doubtful)).action == "recalibrate"
        advice = walk(self.signed(0.0004, **doubtful))
        assert advice.action == "post-train" and "clearly say more than the score" in advice.steps[1].reason
        assert answers(advice)[1] == "unknown"
        assert walk(self.signed(0.0004, **doubtful | {"beyond": (-0.004, 0.013)})).action == "recalibrate"


class TestSmallGains:
    def test_a_clear_gain_is_never_no_but_marked_small(self) -> None:
        advice = walk(evidence(SMALL, NOTHING, NOTHING))
        assert advice.action == "recalibrate" and advice.small and advice.steps[0].small
        assert "small" in advice.headline and "the tolerance" in advice.steps[0].reason

    def test_a_small_gain_of_the_features_is_small_beside_a_noisy_recalibration(self) -> None:
        advice = walk(evidence(DOUBTFUL, SMALL, DOUBTFUL))
        assert advice.action == "post-train" and advice.small and "clear but small" in advice.headline

    def test_the_cheapest_method_that_wins_it_is_named(self) -> None:
        assert walk(evidence(NOTHING, SMALL, SMALL)).action == "post-train"
        assert walk(evidence(CLEAR, SMALL, CLEAR)).action == "recalibrate"

    def test_a_gain_of_the_sum_alone_counts(self) -> None:
        advice = walk(evidence(NOTHING, NOTHING, SMALL))
        assert advice.action == "post-train" and advice.small

    def test_the_tolerance_is_a_share_of_what_is_at_stake(self) -> None:
        assert walk(evidence(NOTHING)).action == "done"
        assert walk(evidence(NOTHING, stakes=0.02)).action == "cannot-tell"
        assert walk(evidence(DOUBTFUL, tolerance=0.03)).action == "done"
        assert not walk(evidence(SMALL, tolerance=0.002)).small


class TestConstantDecisions:
    def test_a_model_that_a_constant_decision_beats_is_never_used_as_it_is(self) -> None:
        advice = walk(evidence(lead=(0.01, 0.03)))
        assert advice.action == "done" and advice.constant is not None
        assert (advice.constant.decision, advice.constant.interval[0] > 0) == (0, True)
        assert "use the model as it is" not in advice.headline and "never acting is worth more" in advice.headline
        assert not walk(evidence(lead=(-0.01, 0.03))).constant.interval[0] > 0
        assert walk(evidence()).constant is None

    def test_a_useless_score_is_not_recalibrated(self) -> None:
        for useless in ({"over_constant": (-0.02, 0.005)}, {"share": None}):
            advice = walk(evidence(CLEAR, NOTHING, CLEAR, lead=(0.01, 0.03), auc=(0.40, 0.48), **useless))
            assert advice.action == "find-better-features" and advice.method is None
            assert "until then never act" in advice.headline
            assert any("AUC below 0.5" in text for text in advice.next_steps)
            assert advice.interim is not None and advice.interim.decision == 0

    def test_features_that_win_are_still_used(self) -> None:
        advice = walk(evidence(CLEAR, CLEAR, CLEAR, lead=(0.005, 0.015), over_constant=(-0.02, 0.005)))
        assert (
            advice.action == "post-train"
            and "[5.0, 15.0] per 1,000 decisions less than never acting" in advice.lead[-1]
        )

    def test_features_that_win_no_more_than_a_constant_decision_are_not(self) -> None:
        advice = walk(evidence(CLEAR, CLEAR, CLEAR, lead=(0.02, 0.03)))
        assert advice.action == "find-better-features" and "By the estimates" in advice.steps[2].reason

    def test_a_cost_is_compared_with_what_a_constant_decision_wins_free(self) -> None:
        ahead = evidence(NOTHING, (0.1, 0.12), (0.1, 0.12), lead=(0.07, 0.09), costs={"post-train": 0.02})
        assert walk(ahead).action == "post-train"
        advice = walk(replace(ahead, costs={"post-train": 0.04}))
        assert advice.action == "do-not-post-train" and "never act, which is free" in advice.headline
        assert "never acting wins 80 per 1,000 decisions" in advice.steps[2].reason

    def test_features_in_doubt_cannot_tell(self) -> None:
        advice = walk(evidence(CLEAR, DOUBTFUL, CLEAR, lead=(0.01, 0.03), over_constant=(-0.02, 0.005)))
        assert advice.action == "cannot-tell" and advice.lead[0].startswith("Never act: that wins 20")
        assert advice.lean == "done"

    def test_whoever_cannot_wait_takes_what_the_estimates_say_after_the_cost(self) -> None:
        doubtful = evidence(CLEAR, (-0.01, 0.07), (0.02, 0.08), lead=(0.01, 0.03), over_constant=(-0.02, 0.005))
        assert walk(doubtful).lean == "post-train"
        assert walk(replace(doubtful, costs={"post-train": 0.04})).lean == "done"


class TestDoubt:
    def test_the_rows_that_would_settle_it_are_named(self) -> None:
        advice = walk(evidence(DOUBTFUL, NOTHING, NOTHING))
        assert advice.action == "cannot-tell" and answers(advice) == ["unknown"]
        # The gain seems .01, its standard error .0102, which must come down to .01 / (1.96 + .84).
        assert advice.rows_needed == 17_000 and "17,000 rows like these" in advice.next_steps[0]
        assert "4 of 5 cases" in advice.next_steps[0]

    def test_without_features_a_clear_gain_of_recalibration_is_advised(self) -> None:
        advice = walk(evidence(CLEAR, features=False))
        assert advice.action == "recalibrate" and answers(advice) == ["yes", "unknown", "unknown"]

    def test_without_features_rows_alone_do_not_settle_it(self) -> None:
        advice = walk(evidence(NOTHING, features=False))
        assert advice.action == "cannot-tell" and advice.rows_needed is None
        assert "--features" in advice.next_steps[0] and "none were named" in advice.steps[0].reason

    def test_without_features_a_harmless_worst_case_is_done(self) -> None:
        assert walk(evidence(NOTHING, worst=(0.001, 0.004), features=False)).action == "done"

    def test_whoever_cannot_wait_learns_what_the_estimates_lean_to(self) -> None:
        assert walk(evidence(DOUBTFUL, NOTHING, NOTHING, stakes=0.19)).lean == "recalibrate"
        advice = walk(evidence((-0.03, 0.02), DOUBTFUL, (-0.01, 0.05)))
        assert advice.action == "cannot-tell" and advice.lean == "post-train"
        assert advice.lead[0].startswith("Post-train on the features with blend")
        assert walk(evidence((-0.03, 0.02), (-0.03, 0.02), (-0.03, 0.02))).lean == "done"
        dear = {"recalibrate": 0.02, "post-train": 0.02}
        assert walk(evidence(DOUBTFUL, NOTHING, NOTHING, costs=dear)).lean == "done"

    def test_there_is_always_something_to_do_now(self) -> None:
        likely = walk(evidence((-0.03, 0.02), DOUBTFUL, (-0.01, 0.05)))
        assert likely.act_now == ActNow("post-train", "blend", 0.02, pytest.approx(0.9044, abs=1e-4))
        assert likely.certainty == "likely"
        clear = walk(evidence(CLEAR, NOTHING, CLEAR))
        assert (clear.act_now.action, clear.act_now.method, clear.certainty) == ("recalibrate", "isotonic", "clear")
        assert clear.act_now.chance > 0.999
        done = walk(evidence())
        assert done.act_now.action == "done" and done.certainty == "clear" and done.act_now.chance > 0.97

    def test_no_gain_within_the_tolerance_or_within_noise_is_acted_on(self) -> None:
        # The default tolerance is .01, and half of it counts; one that the user gave counts whole.
        less, more = (-0.0055, 0.0145), (-0.0025, 0.0165)  # .0045 and .007
        for gain, given, half in ((less, None, "half "), (more, 0.01, "")):
            small = walk(evidence(gain, NOTHING, gain, tolerance=given))
            assert small.act_now.action == "done" and f"less than {half}the tolerance" in small.lead[-1]
        assert walk(evidence(more, NOTHING, more)).act_now.action == "recalibrate"
        noise = walk(evidence((-0.04, 0.06), NOTHING, (-0.04, 0.06)))  # .01, and half a standard error is .0128
        assert noise.act_now.action == "done" and noise.certainty == "open"
        assert "chance could explain that easily" in noise.lead[-1]

    def test_a_constant_decision_is_shrunken_as_methods_are(self) -> None:
        # A constant decision wins .02; recalibration wins .03, .03 with more noise, and .024, hardly more.
        for gain, action in (((0.0, 0.06), "recalibrate"), ((-0.05, 0.11), "done"), ((-0.001, 0.049), "done")):
            advice = walk(evidence(gain, NOTHING, gain, lead=(-0.01, 0.05), over_constant=(-0.01, 0.05)))
            assert advice.act_now.action == action

    def test_undefined_is_unknown_with_its_reason(self) -> None:
        advice = walk(evidence(None, None, None))
        assert advice.action == "cannot-tell" and advice.rows_needed is None
        assert "it needs at least 10 rows" in advice.steps[0].reason
        assert walk(Evidence({}, 5, False)).action == "cannot-tell"


class TestCosts:
    def test_a_method_that_costs_more_than_it_wins_is_not_taken(self) -> None:
        advice = walk(evidence(CLEAR, costs={"recalibrate": 0.04}))
        assert advice.action == "do-not-post-train" and answers(advice) == ["yes", "yes", "no", "unknown"]
        assert advice.lead[-1].startswith(
            "Free today: act from a score of 0.25 [0.200, 0.300] on, which wins 20 [10, 30]"
        )
        assert walk(evidence(CLEAR, costs={"recalibrate": 0.005})).steps[2].answer == "yes"
        # Gain and cost cannot be told apart in either case: the estimate, .02, decides.
        for cost, action in ((0.015, "recalibrate"), (0.025, "do-not-post-train")):
            advice = walk(evidence(CLEAR, costs={"recalibrate": cost}))
            assert advice.action == action and answers(advice)[2] == "unknown"

    def test_where_both_costs_are_known_the_better_buy_is_taken(self) -> None:
        gains = (CLEAR, DOUBTFUL, (0.02, 0.05))  # .02, .01 and .035 in all
        cheap = walk(evidence(*gains, costs={"recalibrate": 0.002, "post-train": 0.01}))
        assert cheap.action == "post-train" and answers(cheap) == ["yes", "unknown", "no", "yes"]
        assert "blend wins 25 per 1,000 decisions after its cost" in cheap.steps[2].reason
        dear = walk(evidence(*gains, costs={"recalibrate": 0.002, "post-train": 0.018}))
        assert dear.action == "recalibrate" and answers(dear) == ["yes", "unknown", "yes"]

    def test_between_costs_the_smoothed_gain_decides_within_its_interval(self) -> None:
        def with_smoothed(gain: float, **costs: float) -> Evidence:
            case = evidence(
                DOUBTFUL, DOUBTFUL, (-0.01, 0.04), costs={"recalibrate": 0.012, "post-train": 0.03, **costs}
            )
            return replace(case, items={**case.items, SMOOTHED: Item(SMOOTHED, gain)})

        # On held-out labels alone recalibration wins .01, both .015.
        doubtful = walk(with_smoothed(0.01))
        assert doubtful.lean == "done" and SMOOTHED in [item.metric for item in doubtful.steps[0].evidence]
        assert not any("smoothed" in sentence for sentence in doubtful.lead)  # none wins anything by them
        assert walk(with_smoothed(0.014)).lean == "recalibrate"
        assert with_smoothed(0.014).expected("post-train") == pytest.approx(0.019)
        assert (
            with_smoothed(0.5).expected("recalibrate") == 0.03 and with_smoothed(-0.5).expected("post-train") == -0.01
        )
        dear = walk(with_smoothed(0.014, **{"recalibrate": 0.05, "post-train": 0.015}))
        assert dear.lean == "post-train"
        clear = evidence(CLEAR, CLEAR, (0.02, 0.05), costs={"recalibrate": 0.002, "post-train": 0.018})
        clear = replace(clear, items={**clear.items, SMOOTHED: Item(SMOOTHED, 0.024)})
        reasons = [step.reason for step in walk(clear).steps]
        assert any(
            "wins 20 [10, 30] per 1,000 decisions, 24 per 1,000 decisions by the smoothed estimate" in reason
            for reason in reasons
        )
        # Without a cost nothing is chosen by it.
        assert with_smoothed(0.014).net("recalibrate") == pytest.approx(0.002)
        assert replace(with_smoothed(0.014), costs={}).net("recalibrate") == pytest.approx(0.01)

    def test_a_cost_never_turns_done_into_an_action(self) -> None:
        for gains in itertools.product((NOTHING, (-0.009, 0.01), (-0.02, -0.01)), repeat=3):
            assert walk(evidence(*gains)).action == "done"
            for cost in (0.0, 1e-6, 0.002, 0.5):
                for named in (("recalibrate",), ("post-train",), ("recalibrate", "post-train")):
                    assert walk(evidence(*gains, costs=dict.fromkeys(named, cost))).action == "done"

    def test_the_cheaper_method_is_taken_where_the_better_one_costs_too_much(self) -> None:
        advice = walk(evidence(CLEAR, CLEAR, (0.02, 0.05), costs={"post-train": 0.06, "recalibrate": 0.001}))
        assert advice.action == "recalibrate" and answers(advice) == ["yes", "no", "no", "yes"]
        dear = walk(evidence(NOTHING, CLEAR, CLEAR, costs={"post-train": 0.06, "recalibrate": 0.001}))
        assert dear.action == "do-not-post-train"

    def test_doubt_does_not_matter_where_even_the_most_is_not_worth_the_cost(self) -> None:
        dear = {"recalibrate": 0.05, "post-train": 0.05}
        assert walk(evidence(DOUBTFUL, costs=dear)).action == "do-not-post-train"
        assert walk(evidence(DOUBTFUL, costs={"recalibrate": 0.05})).action == "cannot-tell"
        assert walk(evidence(DOUBTFUL, features=False, costs=dear)).action == "cannot-tell"


def test_utility_that_is_not_good_enough_asks_for_better_features() -> None:
    assert walk(evidence(satisfied_at=-0.05)).action == "find-better-features"
    assert walk(evidence(satisfied_at=-0.3)).action == "done"
    near = walk(evidence(satisfied_at=-0.14))
    assert near.action == "done" and near.steps[-1].answer == "unknown" and near.rows_needed == 110_000
    assert walk(evidence(CLEAR, costs={"recalibrate": 1}, satisfied_at=-0.05)).action == "find-better-features"


def test_every_case_follows_from_its_numbers_and_ends_in_full_sentences() -> None:
    ends = (NOTHING, CLEAR, DOUBTFUL, SMALL, None)
    leads, shares = ((-0.06, -0.02), (0.01, 0.03)), (0.5, None)
    for gains in itertools.product(ends, ends, ends):
        for features, cost, lead, share in itertools.product((True, False), (None, 0.0, 0.02, 1.0), leads, shares):
            costs = {} if cost is None else {"recalibrate": cost, "post-train": cost}
            case = evidence(*gains, features=features, costs=costs, lead=lead, share=share)
            advice = walk(case)
            intervals = [item.interval for item in advice.steps[0].evidence if item.metric.startswith("gain")]
            if advice.action == "done":
                assert all(interval is None or interval[0] <= 0 for interval in intervals)
            assert (advice.method is not None) == (advice.action in ("recalibrate", "post-train"))
            assert ("use the model as it is" in advice.headline) <= (advice.constant is None)
            for text in (*(step.reason for step in advice.steps), *advice.next_steps, *advice.lead, advice.headline):
                assert text.endswith(".") and (text[0].isupper() or text[0] == "`")
                assert "  " not in text and ",," not in text and "None" not in text
