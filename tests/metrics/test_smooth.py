"""Smooth calibration errors against linear programs, quadrature and brute force."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from decal_cli.metrics.families import smooth
from decal_cli.tables.table import Table
from tests.helpers.worlds import Rows, known_rows, random_table, table_of_levels, value_of


def sm_cal_program(t: Table) -> float:
    gap = (t.n * t.score - t.pos) / t.total
    steps = np.diff(np.eye(len(t)), axis=0)
    room = np.tile(np.diff(t.score), 2)
    return -float(linprog(-gap, A_ub=np.vstack((steps, -steps)), b_ub=room, bounds=(-1, 1), method="highs").fun)


def test_sm_cal_is_what_a_linear_program_finds() -> None:
    """On few levels, and on 400."""
    rng = np.random.default_rng(0)
    tables = [random_table(rng) for _ in range(200)]
    for power in (1.0, 1.25, 1.5):
        score = np.sort(rng.random(400))
        tables.append(Rows(score, (rng.random(400) < score**power).astype(int)).table)
    for t in tables:
        if len(t) > 1:
            assert value_of("sm_cal", t) == pytest.approx(sm_cal_program(t), abs=1e-9)


def test_examples() -> None:
    """Hu and Wu 2024, ex. 4.3 with eps = .01; and the one in which the distance lies below sm_cal.

    Values at 0, at a quarter of the way to 1, and at the last of three nodes, are shared by hand.
    """
    shared = smooth.shared_by_nodes(np.array([0.0, 0.25, 2.0]), np.array([1.0, 4.0, 8.0]), 3)
    assert shared.tolist() == [1 + 3, 1, 8]
    assert value_of("sm_cal", table_of_levels((0.49, 1, 0), (0.51, 1, 1))) == pytest.approx(0.0049, abs=1e-12)
    pair = table_of_levels((0.5, 1, 1), (0.6, 1, 0))
    assert value_of("sm_cal", pair) == pytest.approx(0.075, abs=1e-12)
    assert value_of("dist_cal_lower", pair) == pytest.approx(0.05, abs=1e-12)
    assert value_of("dist_cal_upper", pair) == pytest.approx(0.05, abs=1e-12)
    assert value_of("dist_cal_lower", known_rows("ties").table) <= 0.0464481284, "the program's value on a grid"
    calibrated = table_of_levels((0.25, 4, 1), (0.5, 2, 1), (0.75, 4, 3))
    assert value_of("dist_cal_lower", calibrated) == value_of("dist_cal_upper", calibrated) == 0


def coupling_program(t: Table, steps: int) -> float:
    """min E|p - g| over couplings of (p, y) with g on a grid and at the scores, E[y - g | g] = 0."""
    target = np.union1d(np.linspace(0, 1, steps + 1), t.score)
    k = len(target)
    cost, mass = [], []
    balance = np.zeros((k, 2 * len(t) * k))
    for i, (score, n, pos) in enumerate(zip(t.score, t.n, t.pos, strict=True)):
        for label, rows in ((0, n - pos), (1, pos)):
            at = (2 * i + label) * k
            cost.append(np.abs(score - target))
            mass.append(rows / t.total)
            balance[np.arange(k), at + np.arange(k)] = label - target
    moved = np.vstack((np.kron(np.eye(2 * len(t)), np.ones(k)), balance))
    to = np.concatenate((mass, np.zeros(k)))
    return float(linprog(np.concatenate(cost), A_eq=moved, b_eq=to, method="highs").fun)


@pytest.mark.ci
def test_the_lower_distance_is_what_the_program_over_couplings_finds() -> None:
    """The program's grid makes its value larger, our nodes make ours smaller: by 4e-5 at most between them."""
    rng = np.random.default_rng(0)
    for _ in range(25):
        t = random_table(rng)
        t = Table(t.score[:6], t.n[:6], t.pos[:6])
        program = coupling_program(t, 200)
        assert program - 4e-5 <= value_of("dist_cal_lower", t) <= program + 1e-9


def test_so_it_is_where_levels_are_no_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smooth, "_MAX_OWN_NODES", 0)
    ties = known_rows("ties").table
    assert 0.0464481284 - 2e-5 <= value_of("dist_cal_lower", ties) <= 0.0464481284


def test_any_functions_at_all_are_made_to_bound_the_distance() -> None:
    """Slopes up to 1, and (1 - g) u_0 + g u_1 never above 0, looked up at 100,000 places."""
    rng, at = np.random.default_rng(0), np.linspace(0, 1, 100_001)
    for _ in range(20):
        nodes = np.union1d([0.0, 1.0], rng.random(12))
        functions = smooth.valid(smooth.TestFunctions(nodes, *rng.normal(scale=0.3, size=(2, len(nodes)))))
        u0, u1 = functions.of(at)
        assert max(np.abs(np.diff(u0)).max(), np.abs(np.diff(u1)).max()) <= 1e-5 * (1 + 1e-9)
        assert -1e-5 <= ((1 - at) * u0 + at * u1).max() <= 1e-12
        t = random_table(rng)
        by_hand = float(((t.n - t.pos) @ functions.of(t.score)[0] + t.pos @ functions.of(t.score)[1]) / t.total)
        assert by_hand <= value_of("dist_cal_lower", t) + 2e-6


def monotone_by_brute_force(values: np.ndarray, weights: np.ndarray) -> float:
    fits = itertools.combinations_with_replacement(np.unique(values), len(values))
    return min(float((weights * np.abs(values - fit)).sum()) for fit in fits)


def test_the_monotone_fit_of_several_parts_at_once() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        lengths = rng.integers(1, 6, 5)
        values, weights = rng.integers(0, 5, lengths.sum()) / 4, rng.random(lengths.sum())
        starts = np.cumsum(lengths) - lengths
        each = [
            monotone_by_brute_force(values[a : a + k], weights[a : a + k]) for a, k in zip(starts, lengths, strict=True)
        ]
        assert smooth.monotone_cost(values, weights, starts) == pytest.approx(each, abs=1e-12)


@pytest.mark.parametrize("low", [0.1, np.nextafter(0.1, 1)])
def test_the_fit_of_neighbouring_floats_ends(low: float) -> None:
    """Nothing lies between them, whichever of both their middle is rounded to: bisection must end all the same."""
    high = np.nextafter(low, 1)
    assert smooth.monotone_cost(np.array([high, low]), np.array([2.0, 3.0]), np.array([0])) == 2 * (high - low)


@pytest.mark.parametrize("power", [1.0, 1.3])
def test_parts_fitted_in_groups_cost_what_the_whole_does(power: float) -> None:
    rng = np.random.default_rng(0)
    score = np.sort(rng.random(80_000))
    walk = np.cumsum(score - (rng.random(80_000) < score**power)) / 80_000
    value, weight = np.clip(walk[:-1], 0, abs(walk[-1])), np.diff(score)
    whole = smooth.monotone_cost(value, weight, np.array([0]))
    assert smooth._by_groups(value, weight) == pytest.approx(float(whole[0]), rel=1e-12, abs=1e-15)


def smoothed_error(t: Table, width: float) -> float:
    """int |sum (p - y) K(t, p) / T| dt, the reflected kernel as a sum over images, by the midpoint rule."""
    at = (np.arange(20_000) + 0.5) / 20_000
    gap = (t.n * t.score - t.pos) / t.total
    total = np.zeros_like(at)
    for period in range(-6, 7):
        for image in (t.score, -t.score):
            for center, one in zip(image + 2 * period, gap, strict=True):
                total += one * np.exp(-(((at - center) / width) ** 2) / 2)
    return float(np.abs(total).mean() / (width * np.sqrt(2 * np.pi)))


@pytest.mark.parametrize("name", ["hand", "ties"])
def test_the_width_of_sm_ece_is_its_value(name: str) -> None:
    t = known_rows(name).table
    assert smoothed_error(t, value_of("sm_ece", t)) == pytest.approx(value_of("sm_ece", t), abs=1e-7)


def test_the_peers_narrow_widths() -> None:
    """relplot 1.0.3 on these rows: .0012499998437194907, at the width 2 / 1024."""
    nearly = table_of_levels((0.25, 400, 101), (0.75, 400, 300))
    assert value_of("sm_ece(method=relplot)", nearly) == pytest.approx(0.0012499998437194907, abs=1e-15)


def test_sm_ece_at_the_ends_of_its_range() -> None:
    assert value_of("sm_ece", table_of_levels((0.0, 5, 0), (1.0, 5, 5))) == 0
    assert value_of("sm_ece", table_of_levels((0.0, 5, 5))) == pytest.approx(1, abs=1e-9)
    assert value_of("sm_ece", table_of_levels((0.3, 5, 2))) == pytest.approx(0.1, abs=1e-6), (
        "one gap, smoothed to one of a sign"
    )
    assert value_of("sm_ece", table_of_levels((0.4, 500_000, 200_001))) == pytest.approx(2e-6, abs=1e-9)


def merged_by_brute_force(t: Table) -> float:
    best = np.inf
    for cuts in itertools.product((False, True), repeat=len(t) - 1):
        runs = np.split(np.arange(len(t)), np.flatnonzero(cuts) + 1)
        moved = sum(float((t.n[r] * np.abs(t.score[r] - t.pos[r].sum() / t.n[r].sum())).sum()) for r in runs)
        best = min(best, moved / t.total)
    return best


def test_the_upper_distance_is_the_cheapest_of_all_merges() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        t = random_table(rng)
        t = Table(t.score[:8], t.n[:8], t.pos[:8])
        assert value_of("dist_cal_upper", t) == pytest.approx(merged_by_brute_force(t), abs=1e-12)


def test_on_cells_they_change_by_less_than_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    score = rng.beta(0.7, 1.6, 70_000)
    rows = Rows(score, (rng.random(70_000) < 0.1 + 0.7 * score).astype(int))
    keys = ("sm_cal", "sm_ece", "dist_cal_lower", "dist_cal_upper")
    exact = [value_of(key, rows.table) for key in keys]
    monkeypatch.setattr(smooth, "_MAX_EXACT", 1000)
    on_cells = [value_of(key, rows.table) for key in keys]
    assert on_cells[0] == pytest.approx(exact[0], abs=1 / 65_536)
    assert on_cells[1] == pytest.approx(exact[1], abs=1e-6)
    assert exact[2] - 2 / 65_536 <= on_cells[2] <= exact[2]
    assert exact[3] - 1e-6 <= on_cells[3] <= exact[3] + 2 / 65_536
