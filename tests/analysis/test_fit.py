"""A method fitted for another population, and judged where so many rows can be acted on only."""

from pathlib import Path

import numpy as np
import pytest

from decal_cli import Data, Decision, compare, fit, recommend
from decal_cli.learn.model_file import Saved, from_text, to_text
from decal_cli.tables.rows import Unlabelled

NEGATIVES_COUNT = 4
"""How many times each row of label 0 stands in the population, for once of label 1."""


def drawn(seed: int = 0, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident scores and their labels."""
    rng = np.random.default_rng(seed)
    score = rng.beta(2, 3, rows).round(3)
    return score, (rng.random(rows) < 0.2 + 0.5 * score).astype(int)


def scored(model: Saved, score: np.ndarray) -> np.ndarray:
    """What a model file of this model gives to scores as they come."""
    return from_text(to_text(model), "m.json").model(Unlabelled(score)).score


@pytest.mark.parametrize("method", ["isotonic", "platt(targets=labels)"])
def test_it_is_the_fit_to_rows_that_are_really_drawn_there(method: str) -> None:
    score, label = drawn()
    times = np.where(label == 1, 1, NEGATIVES_COUNT)
    there = np.repeat(score, times), np.repeat(label, times)
    of_rows = fit(Data((score, label)).at_prevalence(float(there[1].mean())), 0.3, method=method).model
    of_population = fit(there, 0.3, method=method).model
    at = np.unique(score)
    np.testing.assert_allclose(scored(of_rows, at), scored(of_population, at), atol=1e-7)
    assert of_rows.fitted_on["prevalence"] == pytest.approx(there[1].mean())


def test_kept_scores_are_not_moved() -> None:
    score, label = drawn()
    moved, kept = (
        fit(Data((score, label)).at_prevalence(0.1, keep_scores=keep), 0.3, method="temperature").model
        for keep in (False, True)
    )
    assert scored(kept, np.array([0.5])) == 0.5
    assert scored(moved, np.array([label.mean()])) != pytest.approx(scored(kept, np.array([label.mean()])), abs=0.05)


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_a_moved_threshold_decides_scores_as_they_come(share: float) -> None:
    score, label = drawn()
    fitted = [fit(Data((score, label)).at_prevalence(share), 0.1, method=name) for name in ("threshold", "isotonic")]
    by_threshold, by_curve = (each.model.model(Unlabelled(np.unique(score))) for each in fitted)
    np.testing.assert_array_equal(by_threshold.score, np.unique(score))
    acts = by_threshold.score >= by_threshold.threshold
    assert 0 < acts.sum() < len(acts)
    np.testing.assert_array_equal(acts, by_curve.score >= 0.1)


def test_classes_have_a_share_each() -> None:
    rng = np.random.default_rng(1)
    proba = rng.dirichlet((2, 2, 2), 400)
    label = np.array([rng.choice(3, p=p) for p in proba])
    rows = {
        **{f"p:{name}": column for name, column in zip("abc", proba.T, strict=True)},
        "y": np.array(list("abc"))[label],
    }
    source = Data(rows, proba="p:*", label="y")
    model = fit(source.at_prevalence({"a": 0.7, "b": 0.2}), method="temperature").model
    # A model of right probabilities stays right: what it gives has the shares of the population.
    weight = np.array([0.7, 0.2, 0.1])[label] / np.bincount(label)[label]
    given = model.model(Unlabelled(proba, classes=tuple("abc"))).score
    np.testing.assert_allclose(weight @ given, [0.7, 0.2, 0.1], atol=0.05)


def test_a_capacity_changes_the_gain_and_not_the_model(tmp_path: Path) -> None:
    score, label = drawn()
    at = Decision(0.4).at_capacity(0.1)
    fitted, free = (fit((score, label), each, method="isotonic") for each in (at, Decision(0.4)))
    assert fitted.model.model.value.tolist() == free.model.model.value.tolist()  # type: ignore[attr-defined]
    (row,) = (each for each in recommend((score, label), at).result.recommendation.ranked["score"][1:-1])
    gain = fitted.result.fitting.gain
    assert free.result.fitting.gain is not None and gain.before < 0
    assert (gain.after, gain.after - gain.before) == (row.utility, pytest.approx(row.gain))
    assert gain.before < free.result.fitting.gain.before


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_of_classes_gain_at_the_capacity_what_the_advice_shows(classes: int) -> None:
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.ones(classes), 300)
    label = np.array([rng.choice(classes, p=(0.5 + p) / (0.5 + p).sum()) for p in proba])
    rows = Data({**{f"p:{k}": proba[:, k] for k in range(classes)}, "y": label}, proba="p:*", label="y")
    decision = Decision(0.4) if classes == 2 else Decision.abstain(0.4)
    at = decision.at_capacity(60)
    advised = recommend(rows, at).result.recommendation
    (row,) = advised.ranked["p"][1:-1]
    gain = fit(rows, at, method=row.method).result.fitting.gain
    assert (gain.after, gain.after - gain.before) == (row.utility, pytest.approx(row.gain))
    # There is no threshold of one score that the advice could hold for.
    assert not recommend(rows, decision).result.recommendation.holds


def test_at_a_capacity_several_classes_are_recalibrated_as_fit_would() -> None:
    """A class that is foretold too often is nothing that a temperature mends."""
    rng = np.random.default_rng(0)
    right = rng.dirichlet([0.5, 1, 1], 800)
    label = np.array([rng.choice(3, p=p) for p in right])
    given = right * [4, 1, 1]
    given /= given.sum(1, keepdims=True)
    rows = Data({**{f"p:{k}": given[:, k] for k in range(3)}, "y": label}, proba="p:*", label="y")
    at = Decision.abstain(0.3).at_capacity(80)
    fitted = fit(rows, at, method="auto").result.fitting
    (row,) = recommend(rows, at).result.recommendation.ranked["p"][1:-1]
    assert row.method == fitted.chosen.key != "temperature"
    assert (row.utility, row.gain) == (fitted.gain.after, pytest.approx(fitted.gain.after - fitted.gain.before))


def test_few_rows_are_compared_at_the_capacity() -> None:
    score, label = drawn(3, 900)
    why = fit((score**4, label), Decision(0.4).at_capacity(0.6), method="auto").result.fitting.why
    assert "is worth most at the capacity on held-out rows" in why


def test_a_test_file_says_of_costs_of_each_row_what_it_says_of_costs_that_all_share() -> None:
    """On rows that no fold learned from, no interval is widened, whoever the costs are of."""
    learned, unseen = (
        {"p": score, "y": label, "a": np.where(np.arange(400) == 0, 4.001, 4.0)} for score, label in (drawn(), drawn(1))
    )
    ends = []
    for decision in (Decision.costs(fp=1, fn=4), Decision.per_row(fn="a", fp=1)):
        gain = fit(learned, decision, score="p", label="y", method="isotonic", test=unseen).result.fitting.gain
        assert gain is not None and gain.interval is not None
        ends.append(gain.interval)
    assert ends[0] == pytest.approx(ends[1], abs=1e-3)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("decision", "columns"),
    [
        (Decision(0.4), {}),
        (Decision(0.4), {"weight": "w"}),
        (Decision(0.4), {"cluster": "c"}),
        (Decision(0.4), {"prevalence": 0.2, "keep_scores": True}),
        (Decision.per_row(fn="a", fp=1), {}),
        (Decision.utility("0,-5;-1,0;-.6,-1.5"), {}),
    ],
    ids=["rows", "weights", "clusters", "prevalence", "costs of each row", "three actions"],
)
def test_on_a_test_file_the_gain_is_the_difference_of_both_scores(decision: Decision, columns: dict[str, str]) -> None:
    """No fold learned from these rows: `compare` has the same number of them, with the same interval."""
    rows = []
    for seed in range(2):
        rng, (score, label) = np.random.default_rng(seed), drawn(seed)
        own = {"w": rng.uniform(0.2, 3, len(label)), "a": rng.uniform(1, 6, len(label))}
        rows.append(
            {"p": score, "y": label, "c": np.char.add(f"{seed} ", rng.integers(0, 30, len(label)).astype(str)), **own}
        )
    fitting = fit(rows[0], decision, score="p", label="y", method="platt", test=rows[1], **columns).result.fitting
    new = {**rows[1], "new": fitting.scores.models[1].rows.score}
    contest = compare(new, decision, score=["p", "new"], label="y", **columns).result.comparison.contests[0]
    difference = contest.headline["expected_utility"].difference
    assert fitting.gain.value == pytest.approx(difference.value, abs=1e-12)
    assert fitting.gain.interval == pytest.approx(difference.interval, abs=1e-12)


def test_where_no_decision_changes_the_gain_is_not_sure_to_be_0() -> None:
    rows = [dict(zip("py", drawn(seed), strict=True)) for seed in range(2)]
    fitting = fit(rows[0], Decision(0.001), score="p", label="y", method="platt", test=rows[1]).result.fitting
    low, high = fitting.gain.interval
    assert fitting.gain.value == 0 and low < 0 < high


@pytest.mark.parametrize(
    ("decimals", "shared", "said"), [(9, 0, 0), (9, 1, None), (9, 40, 40), (3, 0, None), (1, 0, None)]
)
def test_rows_that_equal_training_rows_by_chance_are_not_called_the_same(
    decimals: int, shared: int, said: int | None
) -> None:
    """With three digits a third of the scores have a twin among others as well, and with one digit all of them.

    One row that equals another may be a copy or not.
    """
    rng = np.random.default_rng(5)
    score = rng.beta(2, 3, 800).round(decimals)
    rows = {"p": score, "y": (rng.random(800) < score).astype(int)}
    training = {name: values[:400] for name, values in rows.items()}
    test = {name: values[400 - shared : 800 - shared] for name, values in rows.items()}
    answer = fit(training, score="p", label="y", method="platt", test=test)
    assert answer.result.fitting.shared == said
    assert ("in the training file too" in str(answer)) == bool(said)
