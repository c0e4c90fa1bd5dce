"""What features know beyond the score: bounds against the moment problem, sufficiency, and witnesses against loops.

Of all true probabilities Q in [0, 1] with the frequency c of a bin as mean and its grouping loss as variance, those
that win most, and least, over knowing c: a linear program over the probabilities of a grid of values of Q.
"""

import json
import re
import shlex
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog

from decal_cli.errors import Undefined
from decal_cli.learn.probe import Probed
from decal_cli.metrics import METRICS, Inputs, parse
from decal_cli.metrics import interval_of as ends_of
from decal_cli.metrics import value_of as value_of_spec
from decal_cli.metrics.families import ranking
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import tabulate
from tests.helpers.command import FIXTURES, Decal
from tests.helpers.worlds import featured_rows, interval_of, value_of

THRESHOLDS = (0.01, 0.04, 0.1, 0.3, 0.5, 0.8, 0.97)


def grouped_rows(path: Path, seed: int) -> Path:
    """Rows whose features say much beyond the score, and as much everywhere on it: bins of every frequency and loss."""
    rng = np.random.default_rng(seed)
    score, x, strength = rng.random(3000), rng.normal(size=3000), rng.choice([0.3, 1.5, 4.0], 3000)
    chance = 1 / (1 + np.exp(-(4 * score - 2.5 + seed + strength * np.sign(x))))
    label = (rng.random(3000) < chance).astype(int)
    np.savetxt(path, np.column_stack([score, label, x, strength]), "%.9g", ",", header="p,y,x1,x2", comments="")
    return path


def most_and_least(mean: float, variance: float, t: float) -> tuple[float, float]:
    """What knowing Q wins over knowing its mean, per u_delta: the largest and the smallest value."""
    m, n = mean**2 + variance, (1 - mean) ** 2 + variance
    reach = np.sqrt(variance + (mean - t) ** 2)
    # A grid, and where the optimum may have its mass, so that the grid costs no precision.
    exact = [t, mean, m / max(mean, 1e-9), 1 - n / max(1 - mean, 1e-9), t - reach, t + reach]
    q = np.unique(np.clip([*np.linspace(0, 1, 201), *exact], 0, 1))
    won = np.maximum(q - t, 0) - max(mean - t, 0)
    moments = {"A_eq": np.vstack([np.ones_like(q), q, q**2]), "b_eq": [1, mean, m]}
    high, low = (linprog(sign * won, **moments, bounds=(0, None), method="highs") for sign in (-1, 1))
    assert high.status == low.status == 0
    return -high.fun, low.fun


@pytest.mark.ci
@pytest.mark.parametrize(
    ("seed", "given"), [(0, ()), (1, ("--decision-threshold", "0.4"))], ids=["t*", "another threshold in use"]
)
def test_the_bounds_of_each_bin_are_those_of_the_moment_problem(
    decal: Decal, tmp_path: Path, seed: int, given: tuple[str, ...]
) -> None:
    rows, unlike_published, largest = grouped_rows(tmp_path / "rows.csv", seed), 0, 0.0
    for t in THRESHOLDS:
        metrics = ("-m", "regret_grouping", "-m", "regret_grouping_upper_sharp", "--no-intervals")
        asked = ("-s", "p", "-y", "y", "--features", "x*", "--regimes", *metrics, "-f", "json", *given)
        report = json.loads(decal("evaluate", rows, *asked, "--cost-fp", 5 * t, "--cost-fn", 5 * (1 - t)).out)
        middle, sharp = 0.0, 0.0
        for each in report["regimes"]:
            c, u_delta = each["rate"], 5 * each["share"]
            variance = min(max(each["grouping_loss"], 0.0), c * (1 - c))
            high, low = (u_delta * bound for bound in most_and_least(c, variance, t))
            assert each["regret_grouping_upper_sharp"] == pytest.approx(high, abs=1e-6)
            assert each["regret_grouping_lower"] == pytest.approx(low, abs=1e-6)
            assert each["regret_grouping"] == pytest.approx((high + low) / 2, abs=1e-6)
            assert each["regret_grouping_upper"] >= each["regret_grouping_upper_sharp"] - 1e-12
            unlike_published += each["regret_grouping_upper"] > high + 1e-4
            middle, sharp, largest = middle + (high + low) / 2, sharp + high, max(largest, variance)
        assert report["metrics"]["regret_grouping_upper_sharp"]["value"] == pytest.approx(sharp, abs=1e-5)
        assert report["metrics"]["regret_grouping"]["value"] == pytest.approx(middle, abs=1e-5)
    assert unlike_published > 20 and largest > 0.1


def test_three_parts_add_up_to_the_brier_score() -> None:
    """Tasche 2021, prop. 2.6: brier = irreducible + grouping + miscalibration, to rounding."""
    score, label, weight, features = featured_rows(600)
    for rows in (Rows(score, label, features=features), Rows(score, label, weight, features=features)):
        inputs = Inputs(rows)
        whole, *parts = (
            value_of_spec(parse(key), inputs) for key in ("brier", "irreducible_loss", "grouping_loss", "corp_mcb")
        )
        assert sum(parts) == pytest.approx(whole, rel=0, abs=1e-12)


def test_a_calibrated_uniform_score_has_a_gap_of_66_ten_thousandths_at_1000_rows() -> None:
    score = (np.arange(1000) + 0.5) / 1000
    table = tabulate(score, (score % 0.5 > 0.25).astype(int))
    assert value_of("concavity_gap_null", table) == pytest.approx(0.0066, abs=2e-4)
    low, high = interval_of("concavity_gap_null", table)
    assert value_of("concavity_gap", table) > high > low > 0.003


COLUMNS = st.integers(2, 30).flatmap(
    lambda size: st.tuples(*(st.lists(st.integers(0, 6), min_size=size, max_size=size) for _ in range(3)))
)


@given(columns=COLUMNS)
def test_rank_correlations_are_those_of_scipy(columns: tuple[list[int], ...]) -> None:
    """A whole weight stands for as many copies of its row."""
    x, y, copies = (np.array(column, dtype=float) for column in columns)
    copies += 1
    often = copies.astype(int)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(ranking.rank_spearman(x, y, copies)) and np.isnan(ranking.rank_kendall(x, y, copies))
        return
    one = np.ones(len(x))
    assert ranking.rank_kendall(x, y, one) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-9)
    assert ranking.rank_spearman(x, y, one) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    repeated = np.repeat(x, often), np.repeat(y, often)
    assert ranking.rank_kendall(x, y, copies) == pytest.approx(stats.kendalltau(*repeated).statistic, abs=1e-9)
    assert ranking.rank_spearman(x, y, copies) == pytest.approx(stats.spearmanr(*repeated).statistic, abs=1e-9)


def probed(score: list[float], probe: list[float]) -> Inputs:
    x, y = np.array(score), np.array(probe)
    return Inputs.of(Probed(x, np.zeros(len(x)), np.ones(len(x)), x, x, y, y, y, np.zeros(len(x), dtype=np.int64)))


def test_rank_correlations_by_hand() -> None:
    inputs = probed([0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.1, 0.3, 0.5, 0.4])
    assert value_of_spec(parse("kendall"), inputs) == pytest.approx(0.6)  # 8 pairs in order, 2 not
    assert value_of_spec(parse("spearman"), inputs) == pytest.approx(0.8)  # 1 - 6 x 4 / (5 x 24)
    low, high = ends_of(parse("spearman"), inputs, 0.95)
    # tanh(atanh .8 -/+ 1.96 sqrt(1.32 / 2)), and of tau tanh(atanh .6 -/+ 1.96 sqrt(.437 / 1)) [Bonett and Wright 2000]
    assert (low, high) == pytest.approx((-0.457124, 0.990843), abs=1e-5)
    assert ends_of(parse("kendall"), inputs, 0.95) == pytest.approx((-0.538830, 0.963228), abs=1e-5)
    with pytest.raises(Undefined, match="the same on every row"):
        value_of_spec(parse("kendall"), probed([0.5, 0.5], [0.1, 0.2]))


TIES = FIXTURES / "ties_edges_n300.csv"
LINE = re.compile(
    r"worst agent of (?P<keys>.+?): ((?P<actions>\d) actions, the rule with kinks at \S+ and \S+, "
    r"|the V-shaped rule with its kink at \S+, )"
    r"(?P<paste>--utility '[^']*') \(loses \S+, see (?P<shown>.+)\)"
)
EXACT = ("-m", "cdl(levels=exact)", "-m", "v_cdl(levels=exact)", "-m", "u_cal", "-m", "v_cal")
LABELLED = ("-s", "p", "-y", "y", "--no-intervals")
ROWS = {
    "ties": (None, {"cdl(levels=exact)": 3, "v_cdl(levels=exact)": 2, "u_cal": 3, "v_cal": 2}),
    "kinks on scores of 0 and 1": ("0,1\n0,1\n1,0\n1,0\n", {"v_cdl(levels=exact)": 2}),
    "a kink at half": ("0.5,1\n", {"v_cdl(levels=exact)": 2}),
    "scores next to each other": ("0.3,1\n0.30000000001,0\n0.29999999999,1\n", {"v_cdl(levels=exact)": 2}),
    "nobody loses": ("0,0\n1,1\n", {}),
}
"""Rows, and how many actions the worst agent of a metric has."""


@pytest.mark.parametrize("rows", ROWS)
def test_every_printed_task_loses_what_was_said(decal: Decal, tmp_path: Path, rows: str) -> None:
    text, expected = ROWS[rows]
    path = TIES if text is None else tmp_path / "rows.csv"
    if text is not None:
        path.write_text(f"p,y\n{text}")
    actions, known = {}, decal.json("evaluate", path, *LABELLED, *EXACT)["metrics"]
    for line in decal("evaluate", path, *LABELLED, *EXACT).out.splitlines():
        if line.startswith("worst agent"):
            match = LINE.fullmatch(line)
            assert match, line
            pasted = decal.json("evaluate", path, *LABELLED, "-m", match["shown"], *shlex.split(match["paste"]))
            for key in re.split(r", (?=\w)", match["keys"]):
                actions[key] = int(match["actions"] or 2)
                assert match["paste"].count(";") + 1 == actions[key]
                assert pasted["metrics"][match["shown"]]["value"] == pytest.approx(known[key]["value"], abs=1e-8), line
    assert actions.items() >= expected.items() and bool(actions) == bool(expected)


def test_json_holds_the_whole_task(decal: Decal) -> None:
    metrics = decal.json("evaluate", TIES, *LABELLED)["metrics"]
    held = {key: result["worst_agent"] for key, result in metrics.items() if "worst_agent" in result}
    assert held.keys() == {name for name, metric in METRICS.items() if metric.worst_case_task}
    assert len(held["cdl"]["utility"]) == 3 and len(held["cdl"]["thresholds"]) == 2
    assert held["cdl"]["loss"] == metrics["cdl"]["value"]
    assert held["cdl"]["two_actions"]["loss"] == metrics["v_cdl"]["value"]
    assert all(parse(worst["two_actions"]["shown_by"]) for worst in held.values())


@pytest.mark.ci
@pytest.mark.usefixtures("undrawn")
def test_the_other_texts_show_it_too(decal: Decal, tmp_path: Path) -> None:
    text, markdown = (decal("evaluate", TIES, *LABELLED, *EXACT, *form).out for form in ((), ("-f", "markdown")))
    lines = [line for line in text.splitlines() if "--utility" in line]
    assert lines and all(f"- {line}" in markdown for line in lines)
    assert decal("report", TIES, *LABELLED[:4], "-t", "0.3", "-o", "page.html").code == 0
    assert re.search(r"worst agent of u_cal: .*--utility '[^']+'", unescape((tmp_path / "page.html").read_text()))
