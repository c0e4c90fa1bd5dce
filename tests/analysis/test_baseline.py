"""Drops since a baseline: paired where its rows are kept, oriented so that a loss is above 0."""

import re

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from decal_cli.analysis.baseline import CountedAs
from decal_cli.errors import DecalError

T = 3000
RNG = np.random.default_rng(4)
TRUTH = RNG.uniform(0.05, 0.95, T)
LABEL = (RNG.uniform(size=T) < TRUTH).astype(int)
NOISY = np.clip(TRUTH + RNG.normal(0, 0.08, T), 0.001, 0.999)


def frame(score: np.ndarray, rows: slice = slice(None)) -> dict[str, list[float]]:
    return {"p": score[rows].tolist(), "y": LABEL[rows].tolist()}


def ends(baseline: object, metric: str = "brier") -> tuple[float, float, float]:
    """The drop from the truth to noisy scores, with its interval."""
    rules = [f"drop({metric})<=0.5", f"lower(drop({metric}))<=0.5", f"upper(drop({metric}))<=0.5"]
    answer = decal.gate(frame(NOISY), 0.3, rules=rules, baseline=baseline)
    value, low, high = (row.value for row in answer.outcomes)
    return value, low, high


@pytest.mark.parametrize("metric", ["brier", "auc", "expected_utility"])
def test_a_loss_is_above_0_and_paired_where_the_rows_are_kept(metric: str) -> None:
    report = decal.evaluate(frame(TRUTH), 0.3, metrics=metric)
    apart = ends(report.to_dict(), metric=metric)
    paired = ends(report, metric=metric)
    of_rows = ends(pd.DataFrame(frame(TRUTH)), metric=metric)
    assert paired == of_rows
    assert paired[0] == pytest.approx(apart[0], abs=1e-12) and paired[0] > 0
    assert apart[1] < paired[1] < paired[0] < paired[2] < apart[2]
    compared = decal.compare({"a": TRUTH.tolist(), **frame(NOISY)}, 0.3, score=["a", "p"], label="y", metrics=metric)
    sign = 1 if metric == "brier" else -1
    assert sorted(sign * end for end in compared[metric].interval) == pytest.approx(paired[1:], abs=1e-12)


def test_other_rows_are_not_paired_and_the_outcome_says_so() -> None:
    """Both samples count as independent: the half-widths add up as the sides of a right angle do."""
    half = pd.DataFrame(frame(TRUTH, slice(0, 1500)))
    answer = decal.gate(frame(NOISY), 0.3, rules=["drop(brier)<=0.5", "lower(drop(brier))<=0.5"], baseline=half)
    before = decal.evaluate(half, 0.3, score="p", label="y", metrics="brier")["brier"]
    now = decal.evaluate(frame(NOISY), 0.3, metrics="brier")["brier"]
    assert answer.outcomes[0].value == pytest.approx(now.value - before.value)
    apart = np.hypot(now.value - now.interval[0], before.interval[1] - before.value)
    assert answer.outcomes[1].value == pytest.approx(now.value - before.value - apart)
    rules = ["drop(brier)<=0.5", "brier<=baseline+0.5"]
    for baseline, unpaired in ((half, 1), (decal.evaluate(half, 0.3, score="p", label="y").to_dict(), 0)):
        notes = decal.gate(frame(NOISY), 0.3, rules=rules[:1], baseline=baseline).result.outcome.evaluation.notes
        assert sum("computed on other data" in note for note in notes) == 1
        assert sum("not paired" in note for note in notes) == unpaired
        assert decal.gate(frame(NOISY), 0.3, rules=rules, baseline=baseline).result.outcome.evaluation.notes == notes


@pytest.mark.parametrize(
    ("before", "now", "lost", "shown"),
    [(1.3, 1.5, 0.2, True), (0.8, 0.7, 0.1, True), (0.9, 1.05, -0.05, False), (1.02, 1.06, 0.04, False)],
)
def test_a_metric_that_is_best_at_1_loses_by_its_distance(before: float, now: float, lost: float, shown: bool) -> None:
    """The labels are half 1, so that observed over expected is 1 / (2 p).

    There is an interval where both ratios lie on one side of 1 beyond their noise, of a twentieth.
    """
    rows = {"p": [1 / (2 * now)] * 400, "y": [0, 1] * 200}
    then = {**rows, "p": [1 / (2 * before)] * 400}
    report = decal.evaluate(then, metrics="observed_expected")
    (row,) = decal.gate(rows, rules="drop(observed_expected)<=0.5", baseline=report).outcomes
    assert row.value == pytest.approx(lost) and (row.interval is not None) == shown


WITH_WEIGHTS = {**frame(TRUTH), "w": [1.0, 2.0] * (T // 2)}


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        *[("no", "yes", False), ("no", "no", True), ("no", "1", True), (None, "no", True)],
        *[(None, "TRUE", True), (None, "0", False), ("false", "0", True)],
    ],
)
def test_labels_that_count_as_1_are_compared_where_both_are_words_or_both_0_or_1(
    before: str | None, now: str | None, same: bool
) -> None:
    columns = [{} if label is None else {"positive": label} for label in (before, now)]
    assert CountedAs.of("", "", columns[0]).same(CountedAs.of("", "", columns[1])) is same


@pytest.mark.parametrize(
    ("before", "now", "theirs"),
    [
        ({"prevalence": 0.05}, {}, "ours are rows as they are; .* a population with 5 % positive, scores moved"),
        ({"prevalence": 0.05}, {"prevalence": 0.06}, "with 6 % positive, scores moved; .* with 5 % positive"),
        ({"prevalence": 0.05, "keep_scores": True}, {"prevalence": 0.05}, "scores moved; .* scores kept"),
        ({"weight": "w"}, {}, "ours are rows as they are; the baseline's are weighted rows as they are"),
        ({"positive": "0"}, {}, "ours are rows as they are; the baseline's are rows as they are, with label '0' as 1"),
    ],
)
@pytest.mark.parametrize("rule", ["brier<=baseline+1", "drop(auc)<=1"])
def test_a_baseline_whose_rows_are_counted_otherwise_is_not_compared(
    before: dict[str, object], now: dict[str, object], theirs: str, rule: str
) -> None:
    """In 5 % of label 1 a Brier score is several times smaller: every rule passed, or failed, for that alone."""
    report = decal.evaluate(WITH_WEIGHTS, 0.3, score="p", label="y", metrics="brier,auc", **before)
    (row,) = decal.gate(frame(NOISY), 0.3, rules=rule, baseline=report.to_dict(), **now).outcomes
    assert row.passed is None and re.search(f"rows are counted differently: .*{theirs}", row.reason)
    assert decal.gate(WITH_WEIGHTS, 0.3, score="p", label="y", rules=rule, baseline=report.to_dict(), **before).passed


def test_counts_of_weighted_rows_are_compared_with_such_rows() -> None:
    rows = pd.DataFrame(WITH_WEIGHTS).assign(n2=lambda row: row.w**2, rows=1)
    sums = rows.assign(pos=rows.w * rows.y, pos2=rows.n2 * rows.y, rows_pos=rows.y).groupby("p", as_index=False).sum()
    counts = decal.Data(sums.drop(columns="y").rename(columns={"p": "score", "w": "n"}), aggregated=True)
    for given, passed in ({"weight": "w"}, True), ({}, None):
        report = decal.evaluate(WITH_WEIGHTS, 0.3, score="p", label="y", metrics="brier", **given).to_dict()
        (row,) = decal.gate(counts, 0.3, rules="brier<=baseline+0.001", baseline=report).outcomes
        assert row.passed is passed


def test_shares_that_rows_tell_differ_by_chance_and_are_compared() -> None:
    half = frame(TRUTH, slice(0, 1500))
    report = decal.evaluate(half, 0.3, metrics="brier", sampled_negatives=0.1).to_dict()
    rules = {"rules": "brier<=baseline+1", "baseline": report}
    assert decal.gate(frame(NOISY), 0.3, sampled_negatives=0.1, **rules).passed
    assert decal.gate(frame(NOISY), 0.3, sampled_negatives=0.1, keep_scores=True, **rules).passed is None


def test_a_baseline_of_another_model_is_named() -> None:
    old, two = ({f"p_{name}": TRUTH.tolist() for name in names} | frame(NOISY) for names in ("a", "ab"))
    for rule in ("brier<=baseline+1", "drop(brier)<=1"):
        kept = decal.evaluate(old, score="p_a", label="y", metrics="brier")
        for baseline in (kept, kept.to_dict()):
            answer = decal.gate(frame(NOISY), score="p", label="y", rules=rule, baseline=baseline)
            (note,) = (each for each in answer.to_dict()["notes"] if "model" in each)
            assert note == "p is compared with p_a, the only model of baseline given"
        several = decal.evaluate(two, score="p_*", label="y", metrics="brier").to_dict()
        (row,) = decal.gate(frame(NOISY), score="p", label="y", rules=rule, baseline=several).outcomes
        assert row.passed is None and row.reason.endswith("the baseline has no model 'p' (there are: p_a, p_b)")


def test_why_a_drop_has_no_interval_is_said() -> None:
    for given, why in (({"confidence": 0.9}, "is of another confidence"), ({"intervals": False}, "holds none of this")):
        report = decal.evaluate(frame(TRUTH), 0.3, metrics="brier", **given).to_dict()
        rules = ["drop(brier)<=0.5", "upper(drop(brier))<=0.5"]
        answer = decal.gate(frame(NOISY), 0.3, rules=rules, baseline=report)
        value, end = answer.outcomes
        assert value.passed and end.passed is None and why in end.reason
        assert any(why in note for note in answer.to_dict()["notes"])


def test_why_a_drop_has_no_interval_is_said_once_also_beside_groups_that_the_baseline_lacks() -> None:
    report = decal.evaluate(frame(TRUTH), 0.3, metrics="brier", confidence=0.9).to_dict()
    two = {**frame(NOISY), "q": TRUTH.tolist(), "g": ["a", "b"] * (T // 2)}
    rules = {"rules": "drop(brier)<=0.5", "baseline": report}
    notes = decal.gate(two, 0.3, score=["p", "q"], label="y", group="g", **rules).to_dict()["notes"]
    assert sum("that of the baseline is of another confidence" in note for note in notes) == 1


def test_a_rule_that_lacks_features_or_a_decision_names_one_that_can_be_judged() -> None:
    (row,) = decal.gate(frame(NOISY), 0.3, rules="regret<=0.02").outcomes
    assert row.passed is None and row.reason.endswith("'gain_recalibration<=0.02' asks what recalibration would win")
    (row,) = decal.gate(frame(NOISY), rules="gain_recalibration<=0.02").outcomes
    assert row.passed is None and row.reason.endswith("without one 'brier<=0.2' can be judged")
    with pytest.raises(DecalError, match=r"'gain_recalibration<=0\.01'"):
        decal.gate(frame(NOISY), 0.3)
