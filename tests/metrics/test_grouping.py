"""What features know beyond the score: bounds against the moment problem, sufficiency, and witnesses against loops.

Of all true probabilities Q in [0, 1] with the frequency c of a bin as mean and its grouping loss as variance, those
that win most, and least, over knowing c: a linear program over the probabilities of a grid of values of Q.
"""

import json
import re
import shlex
from collections.abc import Callable
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
from tests.helpers.command import BINARY, FIXTURES, Decal, valid_json
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


def test_the_irreducible_loss_is_that_of_the_true_probability() -> None:
    """A score that averages over the sign of one feature: the trees find it, and what is left is E p (1 - p)."""
    rng = np.random.default_rng(4)
    inside = 0
    for _ in range(20):
        side, middle = rng.choice([-1.0, 1.0], 2000), rng.uniform(0.3, 0.7, 2000)
        chance = middle + 0.25 * side
        rows = Rows(middle, (rng.random(2000) < chance).astype(int), features=side[:, None])
        low, high = ends_of(parse("irreducible_loss"), Inputs(rows), 0.9) or (0.0, 0.0)
        # E (m + s/4)(1 - m - s/4) = E m (1 - m) - 1/16, for m uniform on [.3, .7].
        inside += low <= 0.25 - 0.4**2 / 12 - 0.0625 <= high
    assert inside >= 16


def test_a_calibrated_uniform_score_has_a_gap_of_66_ten_thousandths_at_1000_rows() -> None:
    score = (np.arange(1000) + 0.5) / 1000
    table = tabulate(score, (score % 0.5 > 0.25).astype(int))
    assert value_of("concavity_gap_null", table) == pytest.approx(0.0066, abs=2e-4)
    low, high = interval_of("concavity_gap_null", table) or (0.0, 0.0)
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
    low, high = ends_of(parse("spearman"), inputs, 0.95) or (0.0, 0.0)
    # tanh(atanh .8 -/+ 1.96 sqrt(1.32 / 2)) [Bonett and Wright 2000]
    assert (low, high) == pytest.approx((-0.457124, 0.990843), abs=1e-5)
    with pytest.raises(Undefined, match="the same on every row"):
        value_of_spec(parse("kendall"), probed([0.5, 0.5], [0.1, 0.2]))


@pytest.mark.parametrize("key", ["kendall", "spearman"])
def test_intervals_of_rank_correlations_hold_the_truth(key: str) -> None:
    """Normal pairs of correlation r: tau = 2/pi asin r, rho = 6/pi asin(r/2)."""
    rng, r = np.random.default_rng(2), 0.6
    truth = {"kendall": 2 / np.pi * np.arcsin(r), "spearman": 6 / np.pi * np.arcsin(r / 2)}[key]
    inside = 0
    for _ in range(60):
        x, y = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], 200).T
        low, high = ends_of(parse(key), probed(list(x), list(y)), 0.9) or (0.0, 0.0)
        inside += low <= truth <= high
    assert inside >= 48


Run = Callable[..., str]
TIES = FIXTURES / "ties_edges_n300.csv"
LINE = re.compile(
    r"worst agent of (?P<keys>.+?): ((?P<actions>\d) actions, the rule with kinks at \S+ and \S+, "
    r"|the V-shaped rule with its kink at \S+, )"
    r"(?P<paste>--utility '[^']*') \(loses \S+, see (?P<shown>.+)\)"
)
EXACT = ("--metric", "cdl(levels=exact)", "--metric", "v_cdl(levels=exact)", "--metric", "u_cal", "--metric", "v_cal")
EDGES = {
    "kinks on scores of 0 and 1": "0,1\n0,1\n1,0\n1,0\n",
    "a kink at half": "0.5,1\n",
    "kinks on each score": "0.25,1\n0.5,0\n0.75,1\n",
    "two actions, Hu and Wu 2024, ex. 4.2a": "0.99,1\n0.99,1\n",
    "Hu and Wu 2024, ex. 4.3": "0.51,1\n0.49,0\n",
    "Hu and Wu 2024, ex. 4.5": "0.75,1\n0.25,0\n",
    "scores next to each other": "0.3,1\n0.30000000001,0\n0.29999999999,1\n",
}


@pytest.fixture
def printed(decal: Decal) -> Run:
    """What a run prints that comes to a result."""

    def ran(*arguments: object) -> str:
        done = decal(*arguments)
        assert done.code == 0, done.err
        return done.out

    return ran


def printed_value(printed: Run, path: Path, key: str, *more: str) -> float:
    text = printed("evaluate", path, "-s", "p", "-y", "y", "--metric", key, "--no-intervals", "-f", "json", *more)
    return float(json.loads(text)["metrics"][key]["value"])


def pasted_back(printed: Run, path: Path, *metrics: str) -> dict[str, int]:
    """Actions of the worst agent of each printed metric; every printed task loses what the metric says."""
    actions = {}
    for line in printed("evaluate", path, "-s", "p", "-y", "y", "--no-intervals", *metrics).splitlines():
        if not line.startswith("worst agent"):
            continue
        match = LINE.fullmatch(line)
        assert match, line
        for key in re.split(r", (?=\w)", match["keys"]):
            actions[key] = int(match["actions"] or 2)
            assert match["paste"].count(";") + 1 == actions[key]
            seen = printed_value(printed, path, match["shown"], *shlex.split(match["paste"]))
            assert seen == pytest.approx(printed_value(printed, path, key), abs=1e-8), line
    return actions


def test_the_printed_tasks_lose_what_was_said(printed: Run) -> None:
    """Those of two actions and those of three."""
    actions = pasted_back(printed, TIES, *EXACT, "--metric", "cdl")
    assert actions == {"cdl(levels=exact)": 3, "v_cdl(levels=exact)": 2, "u_cal": 3, "v_cal": 2, "cdl": 3}
    assert pasted_back(printed, BINARY, "--metric", "cdl", "--metric", "v_cdl")["v_cdl"] == 2


@pytest.mark.parametrize("edge", EDGES)
def test_so_they_do_where_a_kink_sits_on_a_score(printed: Run, tmp_path: Path, edge: str) -> None:
    path = tmp_path / "edge.csv"
    path.write_text("p,y\n" + EDGES[edge])
    assert pasted_back(printed, path, *EXACT)["v_cdl(levels=exact)"] == 2


def test_json_holds_the_whole_task(printed: Run) -> None:
    document = valid_json(printed("evaluate", TIES, "-s", "p", "-y", "y", "--no-intervals", "-f", "json"))
    held = {key for key, result in document["metrics"].items() if "worst_agent" in result}
    assert held == {name for name, metric in METRICS.items() if metric.witness}
    worst = document["metrics"]["cdl"]["worst_agent"]
    assert len(worst["utility"]) == 3 and len(worst["thresholds"]) == 2
    assert worst["loss"] == document["metrics"]["cdl"]["value"]
    assert worst["two_actions"]["loss"] == document["metrics"]["v_cdl"]["value"]
    for key in held:
        assert parse(document["metrics"][key]["worst_agent"]["two_actions"]["shown_by"])


def test_models_and_groups_are_named(printed: Run) -> None:
    lines = printed(
        "evaluate", BINARY, "-s", "p", "-s", "q", "-y", "y", "--group", "group",
        "--metric", "v_cdl", "--no-intervals",
    )  # fmt: skip
    named = re.findall(r"worst agent of v_cdl on (.+?):", lines)
    assert named == ["p", "p, A", "p, B", "q", "q, A", "q, B"]


def test_where_nobody_loses_no_task_is_named(printed: Run, tmp_path: Path) -> None:
    path = tmp_path / "right.csv"
    path.write_text("p,y\n0,0\n1,1\n")
    assert "worst agent" not in printed("evaluate", path, "-s", "p", "-y", "y", *EXACT)


@pytest.mark.usefixtures("undrawn")
def test_the_other_texts_show_it_too(printed: Run, tmp_path: Path) -> None:
    text = printed("evaluate", TIES, "-s", "p", "-y", "y", *EXACT)
    lines = [line for line in text.splitlines() if "--utility" in line]
    markdown = printed("evaluate", TIES, "-s", "p", "-y", "y", *EXACT, "-f", "markdown")
    assert all(f"- {line}" in markdown for line in lines)
    page = tmp_path / "page.html"
    printed("report", TIES, "-s", "p", "-y", "y", "-t", "0.3", "-o", page)
    assert re.search(r"worst agent of u_cal: .*--utility '[^']+'", unescape(page.read_text()))
