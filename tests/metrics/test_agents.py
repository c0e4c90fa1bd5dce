"""The worst agents, against linear programs over all proper decision rules, and pasted back as tasks."""

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from decal_cli.errors import Undefined
from decal_cli.metrics import gaps
from decal_cli.metrics.families import agents
from decal_cli.metrics.families.agents import worst_task
from decal_cli.tables.table import Table, tabulate
from decal_cli.task import BinaryTask
from tests.helpers.worlds import (
    Rows,
    any_rows,
    interval_of,
    known_rows,
    random_table,
    table_of_levels,
    value_of,
)

SLACK = 1e-9


def best_rule(points: np.ndarray, at0: np.ndarray, at1: np.ndarray) -> float:
    """max over proper rules S(point, label) in [0, 1] of sum at0 S(., 0) + at1 S(., 1): one constraint a pair."""
    k = len(points)
    proper = np.zeros((k * k, 2 * k))
    true, reported = np.repeat(np.arange(k), k), np.tile(np.arange(k), k)
    for label, chance_of in ((0, 1 - points[true]), (1, points[true])):
        np.add.at(proper, (np.arange(k * k), reported + label * k), chance_of)
        np.add.at(proper, (np.arange(k * k), true + label * k), -chance_of)
    objective = -np.concatenate((at0, at1))
    return -float(linprog(objective, A_ub=proper, b_ub=np.zeros(k * k), bounds=(0, 1), method="highs").fun)


def cdl_program(t: Table) -> float:
    rate = t.pos / t.n
    points, which = np.unique(np.concatenate((t.score, rate)), return_inverse=True)
    at0, at1 = np.zeros((2, len(points)))
    for sign, index in ((-1, which[: len(t)]), (1, which[len(t) :])):
        np.add.at(at0, index, sign * (t.n - t.pos) / t.total)
        np.add.at(at1, index, sign * t.pos / t.total)
    return best_rule(points, at0, at1)


def u_cal_program(t: Table) -> float:
    points, which = np.unique(np.append(t.score, t.base_rate), return_inverse=True)
    at0, at1 = np.zeros((2, len(points)))
    np.add.at(at0, which, np.append(-(t.n - t.pos) / t.total, 1 - t.base_rate))
    np.add.at(at1, which, np.append(-t.pos / t.total, t.base_rate))
    return best_rule(points, at0, at1)


def test_cdl_and_u_cal_are_what_linear_programs_find() -> None:
    rng = np.random.default_rng(0)
    for _ in range(80):
        t = random_table(rng)
        assert value_of("cdl(levels=exact)", t) == pytest.approx(cdl_program(t), abs=1e-8)
        assert value_of("u_cal", t) == pytest.approx(u_cal_program(t), abs=1e-8)


EX_4_3 = table_of_levels((0.49, 1, 0), (0.51, 1, 1))
EX_4_5 = table_of_levels((0.25, 1, 0), (0.75, 1, 1))
EX_4_2A = table_of_levels((0.99, 1, 1))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Hu and Wu 2024.
        (EX_4_3, {"cdl(levels=exact)": 0.49, "v_cdl(levels=exact)": 0.4803921569}),
        (EX_4_5, {"cdl(levels=exact)": 0.25, "v_cdl(levels=exact)": 1 / 6, "u_cal": 0.0}),
        (EX_4_2A, {"cdl(levels=exact)": 1 / 99, "v_cdl(levels=exact)": 1 / 99}),
        # By hand: G = 1/2 - mu + mu/2 from .25 to 1/2, and mu/2 up to .75: .375 at both ends, over .75 in v_cal.
        (table_of_levels((0.25, 1, 1), (0.75, 1, 0)), {"v_cal": 0.5, "v_cal_kleinberg": 0.75}),
        # G = 1/2 - mu from .25 on: .25 at .25.
        (table_of_levels((0.25, 2, 1)), {"v_cal": 1 / 3, "v_cal_kleinberg": 0.5}),
        # Kleinberg et al. 2023, example 2: a perfect forecast has no regret.
        (table_of_levels((0.0, 1, 0), (1.0, 1, 1)), {"v_cal": 0.0, "v_cal_kleinberg": 0.0}),
    ],
)
def test_examples_of_the_papers_and_worked_by_hand(table: Table, expected: dict[str, float]) -> None:
    for key, value in expected.items():
        assert value_of(key, table) == pytest.approx(value, abs=1e-9 if "cdl" in key or key == "u_cal" else 1e-12)


@given(rows=any_rows())
def test_v_calibration_is_the_largest_regret_over_thresholds(rows: Rows) -> None:
    """Kleinberg et al. 2023, eq. 10, per row: every V-shaped rule at, just below and just above each score."""
    at = np.unique(np.concatenate((rows.score, [0.5]))) + np.array([[-1e-9], [0], [1e-9]])
    base = np.average(rows.label, weights=rows.weights)
    regrets = [
        max(base - mu, 0) - np.average((rows.score > mu) * (rows.label - mu), weights=rows.weights)
        for mu in at[(at > 0) & (at < 1)]
    ]
    assert value_of("v_cal_kleinberg", rows.table) == pytest.approx(2 * max([0, *regrets]), abs=1e-8)


@given(rows=any_rows())
def test_the_inequalities_between_them(rows: Rows) -> None:
    """Hu and Wu 2024, thm. 4.1, prop. 3.10, prop. 4.4."""
    t = rows.table
    cdl, v_cdl = value_of("cdl(levels=exact)", t), value_of("v_cdl(levels=exact)", t)
    u_cal, v_cal, ece, k2 = (value_of(key, t) for key in ("u_cal", "v_cal", "ece_exact", "k2"))
    assert k2 - SLACK <= cdl <= 2 * ece + SLACK
    assert ece**2 <= cdl + SLACK
    assert v_cdl - SLACK <= cdl <= 2 * v_cdl + SLACK
    assert u_cal <= cdl + SLACK
    assert v_cal - SLACK <= u_cal <= 2 * v_cal + SLACK


def lost_in(t: Table, utility: tuple[tuple[float, float], ...]) -> float:
    """Loss of acting best for the score instead of best for the frequency, whatever the number of actions."""
    payoff = np.array(utility)

    def expected(chance_of: np.ndarray) -> np.ndarray:
        return payoff[:, :1] * (1 - chance_of) + payoff[:, 1:] * chance_of

    rate = t.pos / t.n
    action = expected(t.score).argmax(axis=0)
    return float((t.n * (expected(rate).max(axis=0) - expected(rate)[action, np.arange(len(t))])).sum() / t.total)


SHOWN_BY = {"cdl": "cfdl", "v_cdl": "cfdl", "u_cal": "external_regret", "v_cal": "external_regret"}


@given(rows=any_rows())
def test_the_worst_task_pasted_back_shows_the_loss(rows: Rows) -> None:
    t = rows.table
    for key, shown in SHOWN_BY.items():
        exact = "(levels=exact)" if shown == "cfdl" else ""
        loss = value_of(f"{key}{exact}", t)
        try:
            worst = worst_task(t, key, levels="exact")
        except Undefined:
            assert loss <= 1e-11
            continue
        assert worst.loss == loss
        assert all(0 <= payoff <= 1 for row in worst.utility for payoff in row)
        assert all(0 < threshold < 1 for threshold in worst.thresholds)
        assert shown != "cfdl" or lost_in(t, worst.utility) == pytest.approx(loss, abs=1e-8)
        assert not key.startswith("v_") or len(worst.utility) == 2
        if len(worst.utility) == 2:
            task = BinaryTask.of_utility(worst.utility)
            assert value_of(f"{shown}{exact}", t, task) == pytest.approx(loss, abs=1e-8)


def test_where_nobody_loses_there_is_no_worst_agent() -> None:
    calibrated = table_of_levels((0.25, 4, 1), (0.5, 2, 1))
    assert value_of("cdl(levels=exact)", calibrated) == 0
    with pytest.raises(Undefined, match="no agent loses anything"):
        value_of("cdl_threshold(levels=exact)", calibrated)
    with pytest.raises(Undefined, match="no agent loses anything"):
        worst_task(calibrated, levels="exact")


def many(m: int, seed: int) -> Table:
    """Many levels."""
    rng = np.random.default_rng(seed)
    score = np.unique(rng.random(m))
    n = rng.integers(1, 9, len(score))
    return Table(score, n, rng.binomial(n, np.clip(score**1.4 + 0.2 * np.sin(20 * score), 0, 1)))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kinks", [1, 2])
def test_a_curve_finds_what_all_kinks_at_once_find(seed: int, kinks: int) -> None:
    t = many(1500, seed)
    for curve, at_once in (
        (agents.of_levels, agents.losses_of_levels),
        (agents.of_constant, agents.losses_of_constant),
    ):
        worst = curve(t).one_kink() if kinks == 1 else curve(t).any_kinks()
        expected = float(at_once(t.score, t.n * 1.0, t.pos * 1.0, kinks))
        assert worst.loss == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("key", ["cdl_null", "v_cdl_null"])
def test_a_null_is_the_mean_over_drawn_tables(key: str) -> None:
    binary, rng = known_rows("binary").table, np.random.default_rng(0)
    bins = binary.bins()
    plain = [value_of(f"{key.removesuffix('_null')}(levels=exact)", drawn) for drawn in bins.null(rng, 300)]
    assert value_of(key, binary) == pytest.approx(np.mean(plain), abs=5 * float(np.std(plain)) / np.sqrt(300))
    low, high = interval_of(key, binary)
    assert low < value_of(key, binary) < high < value_of(key.removesuffix("_null"), binary)
    assert value_of(f"{key}(levels=exact)", many(100, 0)) > 0, "more levels than are drawn at once"


def test_chance_adds_more_to_the_u_cal_of_a_score_that_is_off() -> None:
    """Its extreme scores alone say that labels hardly vary; in samples they vary as they do at the true chance."""

    def world(rows: int, seed: int) -> Table:
        rng = np.random.default_rng(seed)
        chance = rng.random(rows)
        odds = chance / (1 - chance)
        return tabulate(odds**1.5 / (1 + odds**1.5), rng.random(rows) < chance)

    def u_cal(t: Table) -> float:
        return value_of("u_cal", t)

    samples = [world(1000, seed) for seed in range(1, 41)]
    added = np.mean([u_cal(t) for t in samples]) - u_cal(world(200_000, 0))
    rng = np.random.default_rng(0)
    told = np.mean([gaps.added_by_chance(t, u_cal, rng) for t in samples[:6]])
    assert 0.3 < told / added < 1.2
