"""What a method wins on rows held out: right where the truth is known, and nothing where only memory helps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from decal_cli.errors import Undefined
from decal_cli.learn.method import Applied, Method, MethodSpec, Training, fit, fitted_folds, judge, try_out, won
from decal_cli.learn.methods import parse
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import FEWEST_ROWS
from decal_cli.task import BinaryTask
from tests.helpers.training import random_training

TASK = BinaryTask.of_costs(2.0, 3.0)
"""t* = .4, u_delta = 5."""


@dataclass(frozen=True, eq=False)
class Memory:
    """Rows seen before and their labels; the score as it is for all others."""

    seen: dict[float, float]

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(np.array([self.seen.get(score, score) for score in rows.score.tolist()]))


def memorise(rows: Training) -> Memory:
    """Learns every row by heart and nothing else."""
    return Memory(dict(zip(rows.score.tolist(), rows.label.tolist(), strict=True)))


MEMORISE = MethodSpec(
    Method(
        name="memorise",
        title="Memory",
        source="this test",
        function=memorise,
        parameters=(),
        kind="recalibration",
        needs=(),
        uses=(),
    )
)


def overconfident(size: int, seed: int) -> Training:
    """Scores off by a known curve: the probability of label 1 at score p is p squared."""
    rng = np.random.default_rng(seed)
    score = rng.random(size)
    return Training(score, (rng.random(size) < score**2).astype(float), task=TASK)


def true_gain(acts: np.ndarray, score: np.ndarray) -> float:
    """Expected utility of decisions over those at t*, where the truth is score squared."""
    return float(TASK.u_delta * np.mean((acts.astype(float) - (score >= TASK.threshold)) * (score**2 - TASK.threshold)))


class TestMemory:
    """No in-sample optimism: what is only remembered is worth nothing on rows held out."""

    def test_a_method_that_memorises_rows_wins_nothing(self) -> None:
        rows = overconfident(400, seed=0)
        in_sample = judge(MEMORISE, fit(MEMORISE, rows), rows).gain
        assert in_sample is not None and in_sample.mean > 0.1 * TASK.u_delta, "it looks splendid on its own rows"
        assert try_out(MEMORISE, rows).gain == (0.0, 0.0)

    def test_noise_features_win_nothing(self) -> None:
        # Twenty features that mean nothing, and a score that is true already: every change of a decision costs.
        chosen, off, in_sample = parse("multicalibration"), [], []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            score = rng.random(300)
            label = (rng.random(300) < score).astype(float)
            rows = Training(score, label, features=rng.normal(size=(300, 20)), task=TASK)
            trial, flattered = try_out(chosen, rows), judge(chosen, fit(chosen, rows), rows)
            truth = won(trial.applied.acts(TASK), replace(rows, label=score), TASK).mean
            assert trial.gain is not None and flattered.gain is not None
            assert truth <= 0
            off.append(trial.gain.mean - truth)
            in_sample.append(flattered.gain.mean)
        assert np.mean(in_sample) > 0.0
        assert abs(np.mean(off)) <= 2 * np.std(off, ddof=1) / np.sqrt(len(off))


class TestKnownTruth:
    def test_the_interval_covers_what_the_method_wins_on_all_rows_there_are(self) -> None:
        covered, far = 0, np.random.default_rng(9).random(50_000)
        worlds = 60
        for seed in range(worlds):
            rows = overconfident(400, seed)
            gain = try_out(parse("platt"), rows).gain
            model = fit(parse("platt"), rows)
            truth = true_gain(model(Unlabelled(far)).acts(TASK), far)
            assert gain is not None
            covered += abs(gain.mean - truth) <= 1.96 * gain.error
        assert covered >= 0.9 * worlds

    def test_the_best_gain_there_is_bounds_the_mean_over_worlds(self) -> None:
        far = np.random.default_rng(9).random(50_000)
        best = true_gain(far**2 >= TASK.threshold, far)
        gains = [try_out(parse("isotonic"), overconfident(500, seed)).gain for seed in range(40)]
        means = np.array([gain.mean for gain in gains if gain is not None])
        error = means.std(ddof=1) / np.sqrt(len(means))
        assert best - 0.02 * TASK.u_delta < means.mean() < best + 2 * error

    def test_utilities_are_per_decision_in_the_users_unit(self) -> None:
        rows = Training(np.array([0.1, 0.9]), np.array([1.0, 1.0]), np.array([1.0, 3.0]), task=TASK)
        # The first row, a quarter of the weight, is a missed positive: each of those costs 3.
        gain = won(np.array([True, True]), rows, TASK)
        assert gain.mean == pytest.approx(3.0 / 4)
        assert won(rows.score >= TASK.threshold, rows, TASK) == (0.0, 0.0)
        assert won(np.array([True, True]), rows, TASK, widened=2.0).error == pytest.approx(2 * gain.error)

    def test_the_gain_is_counted_from_where_the_model_is_operated(self) -> None:
        rows = overconfident(400, seed=3)
        moved = replace(rows, task=BinaryTask.of_costs(2.0, 3.0, decision_threshold=0.9))
        assert moved.task is not None
        gain = won(rows.score >= TASK.threshold, moved, moved.task)
        back = won(rows.score >= 0.9, rows, TASK)
        assert gain.mean == pytest.approx(-back.mean)

    def test_a_model_on_rows_of_a_test_file(self) -> None:
        chosen, test = parse("platt"), overconfident(3000, seed=5)
        trial = judge(chosen, fit(chosen, overconfident(1000, seed=4)), test)
        truth = true_gain(trial.applied.acts(TASK), test.score)
        assert trial.gain is not None
        assert abs(trial.gain.mean - truth) <= 2.6 * trial.gain.error

    def test_without_a_task_there_are_scores_and_no_gain(self) -> None:
        trial = try_out(parse("isotonic"), replace(overconfident(200, seed=0), task=None))
        assert trial.gain is None
        assert trial.applied.score.shape == (200,)


class TestFolds:
    def test_each_row_is_scored_once_by_a_model_that_has_not_seen_it(self) -> None:
        rows = overconfident(103, seed=0)
        times = np.zeros(len(rows), dtype=int)
        for here, model, others in fitted_folds(MEMORISE, rows):
            times += here
            assert not set(rows.score[here]) & set(model.seen)
            assert sorted(others.score) == sorted(rows.score[~here])
            assert abs(here.sum() - len(rows) / FOLDS) < 1
        assert (times == 1).all()

    def test_the_seed_deals_the_folds(self) -> None:
        rows = overconfident(100, seed=0)
        folds = {
            tuple(np.concatenate([np.flatnonzero(here) for here, _, _ in fitted_folds(MEMORISE, each)]))
            for each in (rows, rows, replace(rows, seed=1))
        }
        assert len(folds) == 2

    def test_too_few_rows_are_not_judged(self) -> None:
        few = 2 * FEWEST_ROWS
        with pytest.raises(Undefined, match=f"needs at least {few} rows"):
            try_out(parse("isotonic"), overconfident(few - 1, seed=0))
        try_out(parse("isotonic"), overconfident(few, seed=0))

    def test_a_fold_that_cannot_be_fitted_says_why(self) -> None:
        rows = overconfident(100, seed=0)
        one = np.zeros(100)
        one[3] = 1
        with pytest.raises(Undefined, match="label"):
            try_out(parse("isotonic"), replace(rows, label=one))
        with pytest.raises(Undefined, match="needs features"):
            try_out(parse("glar"), rows)


@pytest.mark.parametrize("key", ["isotonic", "venn-abers", "threshold", "multicalibration", "stack"])
def test_the_order_of_rows_does_not_matter(key: str) -> None:
    """Fits do not depend on it (test_common.py), and neither do the folds and what is won on them."""
    rows = random_training(120, seed=2, weighted=True)
    order = np.random.default_rng(0).permutation(len(rows))
    first, second = (try_out(parse(key), each) for each in (rows, rows.take(order)))
    for one, other in zip(first.applied, second.applied, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            np.testing.assert_array_equal(one[order], other)
    assert first.gain is not None and second.gain is not None
    assert first.gain == pytest.approx(second.gain, rel=1e-9, abs=1e-15)
