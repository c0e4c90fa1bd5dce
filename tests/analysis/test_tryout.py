"""Methods tried: the best after its cost comes first, each start-over begins where the last one ended, and it ends."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from decal_cli.analysis import recommend
from decal_cli.analysis.evaluate import Plan, Report, Result
from decal_cli.analysis.recommend import (
    EVIDENCE,
    ROUNDS,
    Preferences,
    Recommendation,
    Trial,
    TriedOn,
    best,
    candidates,
    try_methods,
)
from decal_cli.api.asking import preferences_of
from decal_cli.api.nouns import Costs
from decal_cli.data import Columns, Dataset, read
from decal_cli.learn.method import Training, folds_of, training_rows, try_out
from decal_cli.learn.methods import parse
from decal_cli.render.terms import StatedTerms
from decal_cli.task import BinaryTask
from tests.helpers.command import FIXTURES, Decal
from tests.helpers.training import FIFTH, OF_TWO, gain_of, random_training

pytestmark = pytest.mark.usefixtures("seen_rows_only")

PREDICTED = {"gain_recalibration": Result(0.01, (0.0, 0.02)), "gain_post_training": Result(0.03, (0.02, 0.04))}
REPORT = Report("p", None, 200, 100, PREDICTED, 200, 0, True)
CHEAP = tuple(map(parse, ("isotonic", "platt", "threshold", "multicalibration")))


def trials_of(rows: Training, costs: dict[str, float] | None = None) -> tuple[Trial, ...]:
    return TriedOn(REPORT, rows, costs or {}, 0.95).trials(CHEAP, lambda text: None)


class TestTrials:
    def test_the_best_comes_first_with_what_was_predicted_of_its_kind(self) -> None:
        rows = random_training(300, seed=1)
        trials = trials_of(rows)
        assert {one.chosen for one in trials} == set(CHEAP)
        gains = [one.achieved.value for one in trials]
        assert gains == sorted(gains, key=lambda gain: -(gain or 0.0))
        for one in trials:
            kind = one.chosen.declared.kind
            assert one.predicted == PREDICTED["gain_recalibration" if kind == "recalibration" else "gain_post_training"]
            assert one.achieved.value == gain_of(rows, try_out(one.chosen, rows).applied).value
            low, high = one.achieved.interval
            assert low <= one.achieved.value <= high

    def test_nothing_is_achieved_on_rows_of_one_label(self) -> None:
        rows = random_training(60, seed=1)
        trials = trials_of(replace(rows, label=np.ones_like(rows.label)))
        assert [each.achieved.value for each in trials] == [None] * 4

    def test_each_is_compared_with_the_best_on_the_same_rows(self) -> None:
        rows, costs = random_training(300, seed=1), {"recalibrate": 0.002, "post-train": 0.01}
        trials = trials_of(rows, costs)
        first = best(trials)
        for one in trials:
            apart = first.applied.acts(rows.task).astype(float) - one.applied.acts(rows.task)
            won = rows.task.u_delta * apart * (rows.label - rows.task.threshold)
            assert one.behind.value == pytest.approx(won.mean() - (first.cost - one.cost), abs=1e-12)
            reach = 1.959964 * 1.2 * won.std() / np.sqrt(len(won))
            assert one.behind.interval[1] - one.behind.value == pytest.approx(reach, abs=1e-6)

    def test_costs_enter_by_the_kind_of_method(self) -> None:
        rows = random_training(300, seed=1)
        free, costly = trials_of(rows), trials_of(rows, {"post-train": 0.5, "recalibrate": 0.001})
        assert costly[-1].chosen.key == "multicalibration", "worth less than it costs"
        gains = {one.chosen.key: one.achieved.value or 0.0 for one in free}
        for one in costly:
            assert one.achieved.value == gains[one.chosen.key], "a cost changes no gain"
            cost = 0.5 if one.chosen.key == "multicalibration" else 0.001
            assert one.net == pytest.approx(gains[one.chosen.key] - cost)

    def test_what_the_user_gave_nothing_for_is_no_candidate(self) -> None:
        rows = replace(random_training(100, seed=1), features=None)
        assert [one.key for one in candidates(random_training(100, seed=1))] == OF_TWO
        assert {one.declared.kind for one in candidates(rows)} == {"recalibration"}
        assert parse("threshold") in candidates(rows)
        assert parse("threshold") not in candidates(replace(rows, task=None))

    def test_but_whoever_names_it_hears_why(self) -> None:
        *_, last = trials_of(replace(random_training(100, seed=1), features=None))
        assert last.chosen.key == "multicalibration"
        assert last.achieved.reason == "needs features: name the columns with --features"

    def test_what_cannot_be_fitted_stands_last_with_its_reason(self) -> None:
        rows = replace(random_training(100, seed=1), score=np.full(100, 0.4))
        *others, last = trials_of(rows)
        assert last.chosen.key == "platt"
        assert (last.achieved.value, last.net, last.applied) == (None, None, None)
        assert "distinct scores" in last.achieved.reason
        assert all(one.achieved.value is not None for one in others)


class TestPicked:
    """What choosing by cross-validation picks and wins: a loop over rows says the same."""

    def test_each_fold_is_decided_by_what_wins_most_on_the_others(self) -> None:
        rows, costs = random_training(300, seed=4, weighted=True), {"post-train": 0.004}
        usual = tuple(map(parse, ("isotonic", "sigmoid", "stack", "boosting", "quadratic")))
        tried = TriedOn(REPORT, rows, costs, 0.95)
        trials = tried.trials(usual, lambda text: None)
        found = tried.picked(trials)
        assert set(found.among) == {"isotonic", "platt", "stack", "stack-boosting"}
        fold, options = folds_of(rows), [trial for trial in trials if trial.chosen.key in found.among]

        def won(trial: Trial, row: int) -> float:
            before, after = rows.score[row] >= 0.2, trial.applied.score[row] >= 0.2
            return (rows.label[row] - 0.2) * (float(after) - float(before)) - trial.cost

        total = 0.0
        for k in range(5):
            others, here = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            sums = [sum(rows.weights[i] * won(trial, i) for i in others) for trial in options]
            if max(sums) > 0:
                total += sum(rows.weights[i] * won(options[int(np.argmax(sums))], i) for i in here)
        assert found.gain.value == pytest.approx(total / rows.weights.sum(), abs=1e-12)
        best_of = max(options, key=lambda trial: trial.net or 0.0)
        assert found.method == (best_of.chosen.key if (best_of.net or 0.0) > 0 else None)

    def test_one_choice_in_all_folds_wins_what_its_method_wins(self) -> None:
        tried = TriedOn(REPORT, random_training(300, seed=4), {"recalibrate": 0.01}, 0.95)
        (isotonic,) = tried.trials([parse("isotonic")], lambda text: None)
        found, net = tried.picked([replace(isotonic, cost=-1.0)]), isotonic.achieved.value + 1
        assert found.method == "isotonic" and found.gain.value == pytest.approx(net)
        ends = [end + 1 for end in isotonic.achieved.interval]
        assert found.gain.interval == pytest.approx(ends, abs=1e-12)

    def test_of_several_classes(self, decal: Decal) -> None:
        named = [word for name in ("isotonic", "temperature", "vector") for word in ("--method", name)]
        given = ("--proba", "p_*", "--label", "y", "--abstain", "0.3", *named)
        path = FIXTURES / "multiclass_n1500_k3.csv"
        first = decal.json("recommend", path, *given)["recommendation"]["tried"][0]
        by_cv, gains = (
            first["cross_validation"],
            {each["method"]: each["achieved"]["value"] for each in first["attempts"]},
        )
        best_of = max(by_cv["among"], key=lambda name: gains[name])
        assert set(by_cv["among"]) == {"isotonic", "temperature"}, "the usual ones"
        assert by_cv["method"] == (best_of if gains[best_of] > 0 else None)
        assert by_cv["gain"]["value"] <= gains[best_of] + 1e-12


@pytest.mark.parametrize(
    ("gains", "chosen"),
    [
        ({"isotonic": 0.02, "platt": 0.01}, "isotonic"),
        ({"isotonic": 0.0, "platt": -0.01}, None),
        ({"isotonic": (0.02, 0.02), "beta": None}, None),
        ({}, None),
        ({"threshold": 0.03, "isotonic": 0.02}, "isotonic"),  # a moved threshold leaves nothing new to evaluate
    ],
)
def test_the_best_wins_something_after_its_cost(gains: dict[str, Any], chosen: str | None) -> None:
    trials = []
    for key, gain in gains.items():
        value, cost = gain if isinstance(gain, tuple) else (gain, 0.0)
        applied = None if value is None else try_out(parse(key), random_training(60, seed=0)).applied
        trials.append(Trial(parse(key), Result(0.0), Result(value), cost, applied))
    found = best(trials)
    assert (found and found.chosen.key) == chosen


def score_off_by_a_power(folder: Path, rows: int = 800, power: float = 3.0) -> Dataset:
    """A score whose truth is a power of it, in a file."""
    rng = np.random.default_rng(5)
    score = rng.random(rows)
    label = (rng.random(rows) < score**power).astype(int)
    pacsv.write_csv(pa.table({"p": score, "y": label}), folder / "p.csv")
    return read([str(folder / "p.csv")], Columns(score=("p",), label="y"))


def started_over(dataset: Dataset, *costs: str, at: float | None = None) -> Recommendation:
    plan = Plan(EVIDENCE, BinaryTask.of_threshold(0.5, at))
    return try_methods(dataset, plan, preferences_of(Costs(costs or None), StatedTerms()), methods=CHEAP[:3])


class TestRounds:
    def test_the_flowchart_is_entered_again_with_the_best_until_it_ends(self, tmp_path: Path) -> None:
        whole = started_over(score_off_by_a_power(tmp_path))
        rounds = whole.rounds["p"]
        assert 1 <= len(rounds) <= ROUNDS
        first = rounds[0]
        assert first.score == "p"
        assert first.best.net == max(one.net or 0.0 for one in first.trials if one.chosen.key != "threshold")
        assert first.report.model == f"p_{first.best.chosen.key}"
        before = whole.evaluation.reports[0].results["expected_utility"].value
        after = first.report.results["expected_utility"].value
        assert after - before == pytest.approx(first.best.achieved.value)
        for earlier, later in itertools.pairwise(rounds):
            assert later.score == earlier.report.model
            assert earlier.advice.action in ("recalibrate", "post-train")

    def test_it_ends_at_once_where_nothing_is_won(self, tmp_path: Path) -> None:
        (only,) = (started_over(score_off_by_a_power(tmp_path, power=1.0), "0.5").rounds or {})["p"]
        assert (only.best, only.report, only.advice) == (None, None, None)
        assert len(only.trials) == 3

    @pytest.mark.ci
    def test_it_ends_where_the_advice_is_of_a_kind_that_nobody_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        walked = recommend.walk
        monkeypatch.setattr(recommend, "walk", lambda evidence: replace(walked(evidence), action="recalibrate"))
        rows = random_training(300, seed=3)
        pacsv.write_csv(pa.table({"p": rows.score, "y": rows.label, "x": rows.features[:, 1]}), tmp_path / "x.csv")
        dataset = read([str(tmp_path / "x.csv")], Columns(score=("p",), label="y", features=("x",)))
        verdict = recommend.try_methods(dataset, Plan(EVIDENCE, FIFTH), Preferences(), methods=[parse("stack")])
        assert [[one.chosen.key for one in each.trials] for each in (verdict.rounds or {})["p"]] == [["stack"]]

    def test_the_new_score_is_operated_at_t_star(self, tmp_path: Path) -> None:
        # The model was operated at .9; a gain is counted from there, the next report from t*.
        first = (started_over(score_off_by_a_power(tmp_path), at=0.9).rounds or {})["p"][0]
        rows = training_rows(score_off_by_a_power(tmp_path).models[0], BinaryTask.of_threshold(0.5, 0.9), 0)
        applied = try_out(first.best.chosen, rows).applied
        utility = float(np.mean(-0.5 * ((applied.score >= 0.5) != rows.label)))
        assert first.report.results["expected_utility"].value == pytest.approx(utility)


class TestCommandLine:
    def test_a_reason_in_the_table_and_in_markdown(self, decal: Decal, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        score = rng.choice([0.3, 0.6], 200)
        pacsv.write_csv(pa.table({"p": score, "y": (rng.random(200) < score**2).astype(int)}), tmp_path / "two.csv")
        for form, start in (("table", "– beta: "), ("markdown", "- – beta: ")):
            methods = ("--method", "beta", "--method", "isotonic", "-f", form)
            out = decal("recommend", "two.csv", "-t", "0.4", *methods).out
            assert f"\n{start}needs at least 3 distinct scores; there are 2" in out, out

    @pytest.mark.ci
    def test_each_model_has_its_own_rounds_and_groups_have_none(self, decal: Decal) -> None:
        named = (FIXTURES / "binary_n2000.csv", "-s", "p", "-s", "q", "-y", "y", "--group", "group", "-t", "0.3")
        out = decal("recommend", *named, "--method", "isotonic").out
        assert [line for line in out.splitlines() if line.startswith("Tried on ")] == [
            f"Tried on {model}, cross-fitted in 5 folds: each gain is on held-out rows, in utility per 1,000 decisions"
            for model in "pq"
        ]


@pytest.mark.ci
def test_rows_of_one_label_promise_nothing_and_try_nothing(decal: Decal, tmp_path: Path) -> None:
    table = pacsv.read_csv(FIXTURES / "binary_n2000.csv")
    pq.write_table(table.filter(pa.compute.equal(table["y"], 1)), tmp_path / "ones.parquet")
    named = ("ones.parquet", "--score", "p", "--label", "y", "--threshold", "0.3", "--try")
    done = decal("recommend", *named)
    assert done.code == 0, done.err
    text = done.text
    assert "Whether any method wins more is open" in text and "needs rows of more than one label" in text
    assert "No method could be fitted to these rows" in text and "keep the score as it is" not in text
    assert text.count("needs rows of more than one label; every label is 1") == 1
    assert "Always act: that wins 213 [188, 239] per 1,000 decisions over acting on the score" in text
    assert "recalibrated 0 " not in text and "score as it is -213" in text
    advice = decal.json("recommend", *named)["recommendation"]
    assert (advice["act_now"]["decision"], advice["interim"]["decision"], advice["gain"]) == (1, 1, None)
