"""The walk through the flowchart, case by case. At stakes of .2 the default tolerance is .01 per decision."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import decal_cli as decal
from decal_cli.analysis.evidence import EVIDENCE_KEYS, GAINS, Evidence, Item
from decal_cli.analysis.flowchart import ActNow, Advice, rows_for, walk
from decal_cli.metrics import METRICS
from decal_cli.render.results.page import answer_of

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


def test_rows_that_would_show_an_effect_are_more_than_do_not_show_it() -> None:
    """However short the interval: these 2,000 rows left it open."""
    assert rows_for(evidence(), Item("gain_recalibration", 0.5, (-0.01, 0.01)), 0.5) == 2001


def test_how_far_a_method_is_ahead_of_a_constant_decision_is_known_by_the_error_of_that_difference() -> None:
    """Both win .02 [0, .04] over the score; how they differ is known to .001."""
    wide, narrow = (0.0, 0.04), (-0.001, 0.001)
    beside = evidence(wide, narrow, wide, lead=wide, over_constant=narrow)
    for action, error in (("recalibrate", 1.0), ("post-train", math.sqrt(2))):
        assert beside.chance(action, 0.0005) == pytest.approx(NormalDist().cdf(-0.5 * 1.96 / error), abs=1e-5)
    assert evidence(wide).chance("recalibrate") == pytest.approx(0.975, abs=1e-5)


def test_what_is_likely_on_the_page_is_what_the_chance_speaks_of() -> None:
    """The gain over the score is clear; that over the constant decision, which is worth .03 more, is not."""
    beside = evidence((0.02, 0.06), lead=(0.01, 0.05), over_constant=(-0.001, 0.021), features=False)
    advice = walk(beside)
    assert advice.certainty == "likely" and "chance that it wins more than never acting" in " ".join(advice.lead)
    assert answer_of(advice).text == "Recalibrate with isotonic: that it wins more than never acting is likely."


def test_what_clearly_wins_over_the_score_waits_while_a_constant_decision_wins_as_much() -> None:
    """Recalibration wins .04 clearly, and never acting .045, for nothing."""
    world = {"recalibration": (0.02, 0.06), "lead": (0.025, 0.065), "features": False}
    behind = walk(evidence(**world, over_constant=(-0.03, 0.02)))
    assert (behind.action, behind.act_now.action, behind.instead and behind.instead.words) == (
        *("cannot-tell", "done"),
        "never act",
    )
    assert "no method is sure enough to win more" in behind.lead[0]
    assert "show whether recalibration wins more than never acting" in " ".join(behind.next_steps)
    equal = walk(evidence(**{**world, "lead": (0.02, 0.06)}, over_constant=(-0.02, 0.02)))
    assert equal.act_now.action == "done"
    dear = walk(evidence(**world, over_constant=(-0.03, 0.02), costs={"recalibrate": 0.001, "post-train": 0.001}))
    assert dear.action == "do-not-post-train"
    assert "no method wins more than that after its cost" in dear.lead[0] and "Free today" not in " ".join(dear.lead)


def test_a_model_that_costs_more_than_it_can_win_is_not_unknown() -> None:
    """Recalibrated, the score does no better than never acting; features win at most .0045 on top of it."""
    world = {"recalibration": (0.02, 0.04), "beyond": (-0.0005, 0.0145), "both": (0.022, 0.046), "lead": (0.025, 0.035)}
    asked = {**world, "over_constant": (-0.005, 0.001)}
    assert "is unknown: there are too few rows" in " ".join(walk(evidence(**asked)).next_steps)
    dear = walk(evidence(**asked, costs={"recalibrate": 0.005, "post-train": 0.03}))
    assert dear.action == "find-better-features" and "too few rows" not in " ".join(dear.next_steps)


def test_of_a_score_that_ranks_backwards_no_chance_is_told() -> None:
    """Curves that rise cannot win what turning it around would."""
    world = {"recalibration": (0.02, 0.04), "lead": (0.02, 0.04), "over_constant": (-0.001, 0.001), "features": False}
    lead = " ".join(walk(evidence(**world, auc=(0.2, 0.4))).lead)
    assert "the score ranks backwards: a method that keeps its order does no better" in lead and "chance" not in lead
    assert "The chance that no method wins" in " ".join(walk(evidence(**world)).lead)


FOUND: dict[str, Callable[[Advice], object]] = {
    "answers": lambda advice: " ".join(step.answer for step in advice.steps),
    "now": lambda advice: advice.act_now.action,
    "first": lambda advice: advice.lead[0],
    "last": lambda advice: advice.lead[-1],
    "reasons": lambda advice: " ".join(step.reason for step in advice.steps),
    "last_reason": lambda advice: advice.steps[-1].reason,
    "third_reason": lambda advice: advice.steps[2].reason,
    "next": lambda advice: " ".join(advice.next_steps),
    "constant": lambda advice: advice.constant and (advice.constant.decision, advice.constant.interval[0] > 0),
    "meanwhile": lambda advice: advice.interim.decision,
    "free": lambda advice: (advice.interim.threshold, advice.interim.gain),
}
SPOKEN = {"headline", *list(FOUND)[2:-3]}
"""Texts, of which a case names a part."""
BEATEN = {"lead": (0.01, 0.03), "over_constant": (-0.02, 0.005)}
BOTH = (0.02, 0.05)
ITSELF = 2**-7
"""A tolerance that floats hold exactly."""
LEANING = (-0.03, 0.02), DOUBTFUL, (-0.01, 0.05)
FREE = "For this decision the same is free today: act from a score of 0.25 [0.200, 0.300] on."


def priced(recalibrate: float | None, post_train: float | None) -> dict[str, float]:
    both = {"recalibrate": recalibrate, "post-train": post_train}
    return {name: cost for name, cost in both.items() if cost is not None}


def case(name: str, world: Evidence, **expected: object) -> Any:
    return pytest.param(world, expected, id=name)


CASES = [
    case(
        "nothing to win", evidence(), action="done", answers="no unknown", gain=None, method=None, constant=None,
        headline="Done: use the model as it is.", now="done", certainty="clear",
    ),
    case(
        "a loss from miscalibration", evidence(CLEAR, NOTHING, CLEAR), action="recalibrate", answers="yes yes unknown",
        method="isotonic", gain=pytest.approx(0.02), interval=CLEAR, last=FREE, now="recalibrate", certainty="clear",
    ),
    *(
        case(
            f"a loss beyond the score, whatever recalibration wins: {ends}", evidence(ends, CLEAR, BOTH),
            action="post-train", reasons="", method="blend", gain=pytest.approx(0.035),
        )
        for ends in (NOTHING, CLEAR, DOUBTFUL)
    ),
    case(
        "the shares of both causes and the free step are said", evidence((0.3, 0.36), (0.03, 0.054), (0.33, 0.414)),
        action="post-train", answers="yes no unknown",
        reasons="Of the gain, 89 % [86, 92] comes from recalibration.",
        lead=(
            "Post-train on the features with blend (a small model on score and features): wins 372 [330, 414] per "
            "1,000 decisions.",
            "The chance that it wins anything is over 99 %.",
            "Of that, 330 [300, 360] per 1,000 decisions is free today: act from a score of 0.25 [0.200, 0.300] on.",
        ),
    ),
    case("a free step that may win nothing is not said to win", evidence(DOUBTFUL, CLEAR, CLEAR),
         last="may win 10 [-10, 30]",
         reasons="On top of recalibration, the features clearly win; whether recalibration alone wins is unknown."),
    case("two clear gains have two intervals", evidence(CLEAR, CLEAR, CLEAR), action="post-train",
         reasons="using the features on top of recalibration win: both intervals lie above 0."),
    case(
        "a free step that may win next to nothing is not said", evidence((-0.009, 0.0092), CLEAR, CLEAR),
        lead=(
            "Post-train on the features with blend (a small model on score and features): wins 20 [10, 30] per 1,000 "
            "decisions.",
            "The chance that it wins anything is over 99 %.",
        ),
    ),
    case("only both together are clear", evidence(DOUBTFUL, DOUBTFUL, CLEAR), action="post-train"),
    case("features in doubt come second", evidence(CLEAR, DOUBTFUL, CLEAR), action="recalibrate",
         answers="yes unknown unknown"),
    # Gains that are clear and small.
    case("a small gain is never no", evidence(SMALL, NOTHING, NOTHING), action="recalibrate", small=True,
         headline="small", reasons="the tolerance"),
    case("of the features, beside a noisy recalibration", evidence(DOUBTFUL, SMALL, DOUBTFUL), action="post-train",
         small=True, headline="clear but small"),
    case("the cheapest method that wins it: features", evidence(NOTHING, SMALL, SMALL), action="post-train",
         answers="yes no unknown"),
    case("the cheapest method that wins it: recalibration", evidence(CLEAR, SMALL, CLEAR), action="recalibrate",
         answers="yes yes unknown", reasons="The features add only a small gain"),
    case("the method that wins both, where each is small", evidence(SMALL, SMALL, SMALL), action="post-train",
         answers="yes no unknown", small=True, reasons="The features clearly add to what recalibration wins."),
    # The features win .03 on top of a recalibration that may lose as much.
    *(
        case(f"a method that is worth taking by itself: {whole}", evidence((-0.09, 0.01), (0.01, 0.05), whole),
             action=action, now=now, answers="yes no unknown", next=then)
        for whole, action, now, then in (
            ((-0.05, 0.03), "cannot-tell", "done", "whether post-training wins"),
            ((-0.03, 0.044), "cannot-tell", "done", "whether post-training wins"),
            ((-0.02, 0.04), "post-train", "post-train", "fits it"),
        )
    ),
    case("of the sum alone", evidence(NOTHING, NOTHING, SMALL), action="post-train", small=True),
    case("the tolerance is a share of what is at stake", evidence(NOTHING, stakes=0.02), action="cannot-tell"),
    case("or given", evidence(DOUBTFUL, tolerance=0.03), action="done"),
    case("beyond the given one it is not small", evidence(SMALL, tolerance=0.002), small=False),
    # Constant decisions.
    case("features that win are still used", evidence(CLEAR, CLEAR, CLEAR, **BEATEN | {"lead": (0.005, 0.015)}),
         action="post-train", last="[5.0, 15.0] per 1,000 decisions less than never acting"),
    case("unless a constant decision wins as much", evidence(CLEAR, CLEAR, CLEAR, lead=(0.02, 0.03)),
         action="find-better-features", third_reason="By the estimates"),
    case("a cost below what a constant decision leaves",
         evidence(NOTHING, (0.1, 0.12), (0.1, 0.12), lead=(0.07, 0.09), costs=priced(None, 0.02)),
         action="post-train"),
    case("a cost above it", evidence(NOTHING, (0.1, 0.12), (0.1, 0.12), lead=(0.07, 0.09), costs=priced(None, 0.04)),
         action="do-not-post-train", headline="never act, which is free",
         third_reason="never acting wins 80 per 1,000 decisions"),
    case("features in doubt", evidence(CLEAR, DOUBTFUL, CLEAR, **BEATEN), action="cannot-tell",
         first="Never act: that wins 20", fallback_action="done"),
    case("whoever cannot wait takes what is likely", evidence(CLEAR, (-0.01, 0.07), (0.02, 0.08), **BEATEN),
         fallback_action="post-train"),
    case("after its cost", evidence(CLEAR, (-0.01, 0.07), (0.02, 0.08), **BEATEN, costs=priced(None, 0.04)),
         fallback_action="done"),
    # A constant decision wins .02; recalibration wins .03, .03 with more noise, and .024, hardly more.
    *(
        case(f"a constant decision is shrunken as methods are: {gain}",
             evidence(gain, NOTHING, gain, lead=(-0.01, 0.05), over_constant=(-0.01, 0.05)), now=action)
        for gain, action in (((0.0, 0.06), "recalibrate"), ((-0.05, 0.11), "done"), ((-0.001, 0.049), "done"))
    ),
    case("a model that a constant decision beats is not used as it is", evidence(lead=(0.01, 0.03)), action="done",
         constant=(0, True), headline="never acting is worth more"),
    case("one that may be beaten", evidence(lead=(-0.01, 0.03)), constant=(0, False)),
    case("one that is worth as much", evidence(lead=(-0.01, 0.01)), action="done",
         headline="never acting is worth as much"),
    *(
        case(f"a useless score is not recalibrated: {useless}",
             evidence(CLEAR, NOTHING, CLEAR, lead=(0.01, 0.03), auc=(0.40, 0.48), **useless),
             action="find-better-features", method=None, headline="until then never act", next="AUC below 0.5",
             meanwhile=0)
        for useless in ({"over_constant": (-0.02, 0.005)}, {"share": None})
    ),
    case("the step that is free is what the score allows", evidence((0.3, 0.36), (0.03, 0.054), (0.33, 0.414)),
         free=("0.25", pytest.approx(0.33))),
    # Beside a constant decision worth .015 more than the score, and beside recalibration that may be enough.
    case("clear beside nothing", evidence((0.005, 0.055)), action="recalibrate", certainty="clear"),
    case("not so beside a constant decision",
         evidence((0.005, 0.055), lead=(0.0, 0.03), over_constant=(-0.005, 0.035)), now="recalibrate",
         certainty="likely"),
    case("clear where their difference is",
         evidence((0.005, 0.055), lead=(0.0, 0.03), over_constant=(0.005, 0.025)), action="recalibrate",
         certainty="clear"),
    case("clear beside recalibration", evidence((-0.001, 0.043), (0.015, 0.02), (0.001, 0.06)), action="post-train",
         certainty="clear"),
    case("not so where it may be enough", evidence((-0.001, 0.043), (-0.006, 0.024), (0.001, 0.06)),
         action="post-train", certainty="likely"),
    # The gain of recalibration is .02 [.01, .03].
    case("clear after its cost", evidence(CLEAR, costs=priced(0.005, None)), now="recalibrate", certainty="clear"),
    case("likely after its cost", evidence(CLEAR, costs=priced(0.015, None)), now="recalibrate", certainty="likely"),
    case("about as dear as it wins", evidence(CLEAR, costs=priced(0.019, None)), now="recalibrate", certainty="open"),
    case("clearly too dear", evidence(CLEAR, costs=priced(0.03, None)), now="done", certainty="clear"),
    case("too dear by the estimate", evidence((0.001, 0.05), costs=priced(0.03, None)), now="done",
         certainty="likely"),
    # Doubt. The gain seems .01, its standard error .0102, which must come down to .01 / (1.96 + .84).
    case("the rows that would settle it", evidence(DOUBTFUL, NOTHING, NOTHING), action="cannot-tell",
         answers="unknown", rows_needed=17_000, next="17,000 rows like these"),
    case("settle it mostly", evidence(DOUBTFUL, NOTHING, NOTHING), next="4 of 5 cases"),
    case("no features, clear", evidence(CLEAR, features=False), action="recalibrate", answers="yes unknown unknown"),
    case("no features, nothing clear", evidence(NOTHING, features=False), action="cannot-tell", rows_needed=None,
         next="--features", reasons="none were named"),
    case("no features, harmless", evidence(NOTHING, worst=(0.001, 0.004), features=False), action="done"),
    case("leaning to recalibration", evidence(DOUBTFUL, NOTHING, NOTHING, stakes=0.19), fallback_action="recalibrate"),
    case("leaning to features", evidence(*LEANING), action="cannot-tell", fallback_action="post-train",
         certainty="likely", first="Post-train on the features with blend",
         act_now=ActNow("post-train", "blend", 0.02, pytest.approx(0.9044, abs=1e-4), (-0.01, 0.05))),
    case("leaning to nothing", evidence(*[(-0.03, 0.02)] * 3), fallback_action="done"),
    case("leaning to nothing at that cost",
         evidence(DOUBTFUL, NOTHING, NOTHING, costs=priced(0.02, 0.02)), fallback_action="done"),
    # The default tolerance is .01, and half of it counts; one that the user gave counts whole. Gains .0045 and .007.
    case("within half the tolerance", evidence((-0.0055, 0.0145), NOTHING, (-0.0055, 0.0145)), now="done",
         last="less than half the tolerance"),
    case("within the given tolerance", evidence((-0.0025, 0.0165), NOTHING, (-0.0025, 0.0165), tolerance=0.01),
         now="done", last="less than the tolerance"),
    case("beyond half the tolerance", evidence((-0.0025, 0.0165), NOTHING, (-0.0025, 0.0165)), now="recalibrate"),
    # The gain is .01, and half a standard error .0128.
    case("within noise", evidence((-0.04, 0.06), NOTHING, (-0.04, 0.06)), now="done", certainty="open",
         last="chance could explain that easily"),
    case("undefined", evidence(None, None, None), action="cannot-tell", rows_needed=None,
         reasons="it needs at least 10 rows"),
    case("no evidence", Evidence({}, 5, False), action="cannot-tell"),
    # Costs. Recalibration wins .02; where gain and cost cannot be told apart, the estimate decides.
    case("a cost above the gain", evidence(CLEAR, costs=priced(0.04, None)), action="do-not-post-train",
         answers="yes yes no unknown",
         last="Free today: act from a score of 0.25 [0.200, 0.300] on, which wins 20 [10, 30]"),
    case("a cost clearly below it", evidence(CLEAR, costs=priced(0.005, None)), answers="yes yes yes"),
    case("a cost below it", evidence(CLEAR, costs=priced(0.015, None)), action="recalibrate",
         answers="yes yes unknown"),
    case("a cost a little above it", evidence(CLEAR, costs=priced(0.025, None)), action="do-not-post-train",
         answers="yes yes unknown unknown"),
    case("the better buy, .035 for .01", evidence(CLEAR, DOUBTFUL, BOTH, costs=priced(0.002, 0.01)),
         action="post-train", answers="yes unknown no yes",
         third_reason="blend wins 25 per 1,000 decisions after its cost"),
    case("the better buy, .02 for .002", evidence(CLEAR, DOUBTFUL, BOTH, costs=priced(0.002, 0.018)),
         action="recalibrate", answers="yes unknown yes"),
    case("the better one costs too much", evidence(CLEAR, CLEAR, BOTH, costs=priced(0.001, 0.06)),
         action="recalibrate", answers="yes no no yes"),
    case("and the cheaper one wins nothing", evidence(NOTHING, CLEAR, CLEAR, costs=priced(0.001, 0.06)),
         action="do-not-post-train"),
    case("even the most in doubt is not worth it", evidence(DOUBTFUL, costs=priced(0.05, 0.05)),
         action="do-not-post-train"),
    case("one cost is not known", evidence(DOUBTFUL, costs=priced(0.05, None)), action="cannot-tell"),
    case("features are not known", evidence(DOUBTFUL, features=False, costs=priced(0.05, 0.05)),
         action="cannot-tell"),
    # Where an end is the tolerance, 0 or the cost itself.
    case("within the tolerance itself", evidence(*[(-0.004, ITSELF)] * 3, tolerance=ITSELF), answers="no unknown"),
    case("small as the tolerance itself", evidence((0.001, ITSELF), tolerance=ITSELF), small=True),
    case("an end at 0 is not clear", evidence((0.0, 0.03)), action="cannot-tell"),
    case("no features, harmless as the tolerance itself",
         evidence((-0.004, ITSELF), worst=(0.001, ITSELF), features=False, tolerance=ITSELF), action="done"),
    case("a cost at the upper end", evidence(CLEAR, costs=priced(0.03, None)), answers="yes yes unknown unknown"),
    case("a cost at the lower end", evidence(CLEAR, costs=priced(0.01, None)), answers="yes yes unknown"),
    case("a cost as high as the gain", evidence(CLEAR, costs=priced(0.02, None)), action="do-not-post-train"),
    case("good enough at the lower end", evidence(satisfied_at=-0.2), answers="no yes"),
    case("in doubt at the upper end", evidence(satisfied_at=-0.1), answers="no unknown"),
    # The utility is worth -.15 [-.2, -.1].
    case("not good enough", evidence(satisfied_at=-0.05), action="find-better-features"),
    case("good enough", evidence(satisfied_at=-0.3), action="done"),
    case("nearly", evidence(satisfied_at=-0.14), action="done", answers="no unknown", rows_needed=110_000),
    case("not good enough, and too dear", evidence(CLEAR, costs=priced(1, None), satisfied_at=-0.05),
         action="find-better-features"),
]  # fmt: skip


@pytest.mark.parametrize(("world", "expected"), CASES)
def test_the_walk_ends_where_the_numbers_say(world: Evidence, expected: dict[str, object]) -> None:
    advice = walk(world)
    for name, value in expected.items():
        found = FOUND.get(name, lambda advice, name=name: getattr(advice, name))(advice)
        assert value in found if name in SPOKEN else found == value, (name, found)


def test_the_evidence_is_made_of_metrics() -> None:
    assert set(EVIDENCE_KEYS) <= set(METRICS)


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
        assert advice.steps[1].answer == "unknown"
        assert walk(self.signed(0.0004, **doubtful | {"beyond": (-0.004, 0.013)})).action == "recalibrate"


def test_between_costs_the_gain_less_its_cost_and_half_an_error_decides() -> None:
    def priced(recalibrate: float, post_train: float) -> Advice:
        return walk(
            evidence(DOUBTFUL, DOUBTFUL, (-0.01, 0.06), costs={"recalibrate": recalibrate, "post-train": post_train})
        )

    # Recalibration wins .010 with a standard error of .0102, both .025 with one of .0179.
    assert priced(0.0, 0.0).fallback_action == "post-train"
    assert priced(0.0, 0.018).fallback_action == "recalibrate"  # .007 less half of .0179 is below 0
    assert priced(0.006, 0.03).fallback_action == "done"  # .004 less half of .0102 is below 0


def test_a_cost_never_turns_done_into_an_action() -> None:
    for gains in itertools.product((NOTHING, (-0.009, 0.01), (-0.02, -0.01)), repeat=3):
        assert walk(evidence(*gains)).action == "done"
        for cost in (0.0, 1e-6, 0.002, 0.5):
            for named in (("recalibrate",), ("post-train",), ("recalibrate", "post-train")):
                assert walk(evidence(*gains, costs=dict.fromkeys(named, cost))).action == "done"


def test_a_cost_never_turns_using_the_score_as_it_is_into_fitting_a_method() -> None:
    for gains in itertools.product((NOTHING, DOUBTFUL, SMALL, (-0.002, 0.005)), repeat=3):
        free = walk(evidence(*gains)).act_now
        for cost, named in itertools.product((0.0, 1e-6, 0.002), ({"recalibrate"}, {"post-train"}, set(GAINS))):
            costly = walk(evidence(*gains, costs=dict.fromkeys(named, cost))).act_now
            assert free.action != "done" or costly.action == "done", (gains, cost, named)
            assert costly.action != free.action or costly.gain <= free.gain, (gains, cost, named)


def test_a_constant_decision_whose_error_is_not_known_counts_in_full() -> None:
    """As in a study, which keeps no interval of it."""
    unsure = evidence((-0.05, 0.11), lead=(-0.1, 0.14))
    known = replace(unsure, items={**unsure.items, "external_regret": Item("external_regret", 0.02)})
    assert (unsure.now, known.now) == ("recalibrate", "done")


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


@pytest.mark.parametrize(("amount", "action"), [(0.0, "done"), (9.0, "cannot-tell")])
def test_nothing_is_at_stake_where_no_row_can_be_decided_wrongly(amount: float, action: str) -> None:
    """Not so where these rows are all decided rightly: others, which features tell apart, may not be."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 600)
    rows = {"p": np.where(label, 0.97, 0.02) + 0.01 * rng.random(600), "y": label, "amount": amount * rng.random(600)}
    advice = decal.recommend(rows, decal.Decision.per_row(fn="amount", fp=3), score="p", label="y")
    assert advice.to_dict()["recommendation"]["action"] == action
