"""Rows to collect: what is planned is shown as often as planned, on samples like the pilot."""

import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as pacsv
from scipy.special import stdtrit
from scipy.stats import binom

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.plan import POWERS, RowsNeeded, made_up_pilot, plan_rows
from decal_cli.analysis.rules import parse_rule
from decal_cli.data import from_arrays
from decal_cli.metrics import Inputs, measure_all, parse
from decal_cli.metrics.confidence import Reach
from decal_cli.tables.rows import Rows
from decal_cli.tables.units import wilson, wilson_ends
from decal_cli.task import BinaryTask
from simulation.gates import share_shown
from tests.helpers.command import BINARY, Decal, valid_json

SAMPLES = 200


@pytest.mark.parametrize(
    ("auc", "prevalence", "threshold", "rule"),
    [
        (0.8, 0.3, 0.3, "brier<=0.19"),
        (0.75, 0.1, 0.1, "expected_utility>=-.075"),
        (0.8, 0.2, 0.3, "accuracy>=0.8"),
        (0.8, 0.05, 0.1, "gain_recalibration<=0.01"),
        # Its error falls as 1 / rows where the score is calibrated.
        (0.75, 0.2, 0.25, "ece_debiased<=0.002"),
    ],
)
@pytest.mark.long
def test_planned_rows_show_it_as_often_as_planned(auc: float, prevalence: float, threshold: float, rule: str) -> None:
    score, label = made_up_pilot(auc, prevalence)
    task, parsed = BinaryTask.of_threshold(threshold), parse_rule(rule)
    (first, _) = plan_rows(from_arrays({"p": score}, label), Plan((), task), [parsed], None, "made up").planned
    rng = np.random.default_rng(1)
    for power, rows in zip(POWERS, first.rows, strict=True):
        shown = share_shown(parsed, first, rows, (score, label), task, SAMPLES, rng)
        # Within .05, and two standard errors of the simulation.
        assert abs(shown - power) <= 0.05 + 2 * math.sqrt(power * (1 - power) / SAMPLES)


@pytest.mark.parametrize("pilot", [300, 30_000])
@pytest.mark.parametrize(("share", "bound"), [(0.9, 0.8), (0.1, 0.2), (0.97, 0.9), (0.7, 0.5), (0.6, 0.5)])
def test_rows_count_that_an_interval_is_longer_at_the_bound(share: float, bound: float, pilot: int) -> None:
    """Of a share of .97, samples near .9 have an interval almost twice as long; power by binomial numbers."""
    rows = Reach.to_bound(pilot, share, wilson(share, pilot, 0.95), bound, 0.95, math.inf).needed()
    assert rows is not None
    counts = np.arange(rows + 1)
    low, high = wilson_ends(counts / rows, rows, 0.95)
    assert 0.79 < binom.pmf(counts, rows, share) @ (low >= bound if share > bound else high <= bound) < 0.91


@pytest.mark.parametrize("rows", [30, 200])
def test_the_likely_rows_of_a_pilot_hold_those_of_all(rows: int) -> None:
    """Of samples of 30 rows the number itself goes from tens of rows to ten thousands."""
    score, label = made_up_pilot(0.8, 0.3)
    rng = np.random.default_rng(0)

    def planned(at: np.ndarray | slice, **more: bool) -> RowsNeeded:
        data = from_arrays({"p": score[at]}, label[at])
        return plan_rows(data, Plan(()), [parse_rule("brier<=0.19")], None, "rows", **more).planned[0]

    whole = planned(slice(None), made_up=True)
    assert whole.rows[0] is not None and whole.likely == ()
    pilots = [planned(rng.choice(len(score), rows, replace=False)) for _ in range(60)]
    ends = [(least or math.inf, most or math.inf) for least, most in (each.likely for each in pilots)]
    assert np.mean([least <= whole.rows[0] <= most for least, most in ends]) >= 0.85
    for each, (_, most) in zip(pilots, ends, strict=True):
        assert math.isinf(most) == (each.interval[0] <= 0.19 <= each.interval[1])


def test_a_plan_says_what_its_pilot_leaves_open(decal: Decal, tmp_path: Path) -> None:
    def plan(rows: int, *rules: str) -> str:
        (tmp_path / "pilot.csv").write_text("\n".join(["p,y", *(f".{3 + k % 5},{k % 2}" for k in range(rows))]) + "\n")
        done = decal("plan", "--pilot", "pilot.csv", *(part for rule in rules for part in ("-r", rule)))
        return " ".join((done.out + done.err).split())

    assert "a pilot of 29 rows does not say how much other rows vary; give a pilot of 30 rows or more" in plan(
        29, "brier<=.3"
    )
    assert "By the pilot's interval, which holds the bound, it may take" in plan(30, "brier<=.28")
    found = re.search("By the pilot's interval it may take ([0-9]+) to ([0-9]+) rows.", plan(60, "brier<=.35"))
    assert found is not None and int(found[1]) < int(found[2])


def test_a_sample_without_an_interval_shows_nothing() -> None:
    """Rows of one label have no AUC."""
    pilot, rule, rng = (np.full(50, 0.5), np.zeros(50, dtype=int)), parse_rule("auc<=.9"), np.random.default_rng(0)
    planned = RowsNeeded("", "auc", 0.5, (0.4, 0.6), True, 0.4, (20, 30), ())
    assert share_shown(rule, planned, 20, pilot, BinaryTask.of_threshold(0.5), 5, rng) == 0


def test_a_made_up_pilot_is_as_asked_and_calibrated() -> None:
    score, label = made_up_pilot(0.8, 0.05)
    results = measure_all(
        [parse_rule(f"{key}<=1").choice for key in ("auc", "ece", "ece_null")], Inputs(Rows(score, label))
    )
    auc, ece, null = (result.value or 0.0 for result in results.values())
    assert label.mean() == pytest.approx(0.05, abs=1e-4) and auc == pytest.approx(0.8, abs=1e-3)
    assert ece < 1.5 * null
    frequent, rare = (made_up_pilot(0.8, share)[0] for share in (0.99, 0.01))
    assert len(frequent) == len(rare) == 2000 / 0.01


def test_more_rows_show_more_and_a_narrower_interval_takes_more(decal: Decal) -> None:
    line = ("plan", "--pilot", BINARY, "-s", "p", "-y", "y", "-r", "auc>=.7", "-f", "json")
    done, document = decal.text_and_json(*line[:-2])
    assert done.out.startswith("Collect ") and "How often so many rows show that auc>=.7 holds" in done.out
    (planned,) = document["plans"]
    assert planned["rows"] == sorted(planned["rows"]) and planned["holds"] is True
    powers = [power for _, power in planned["curve"]]
    assert powers == sorted(powers) and powers[3] == pytest.approx(0.8, abs=0.03)
    wide, narrow = (
        valid_json(decal(*line, "--half-width", width).out)["plans"][1]["rows"][0] for width in (".04", ".01")
    )
    assert narrow == pytest.approx(16 * wide, rel=0.1)
    # 2,000 rows give [.7198, .7647], .0225 to either side.
    assert narrow == pytest.approx(2000 * (0.02245 / 0.01) ** 2, rel=0.1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_weights_and_clusters_of_the_pilot_take_more_rows(
    decal: Decal, tmp_path: Path, weighted: bool, clustered: bool
) -> None:
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(200), 5)
    score = rng.choice([0.2, 0.5, 0.8], 200)[unit]
    label = rng.random(1000) < np.clip(score + rng.choice([-0.2, 0.2], 200)[unit], 0, 1)
    weight = rng.gamma(2, size=1000)
    columns = {"p": score, "y": np.where(label, "yes", "no"), "w": weight, "c": unit}
    pacsv.write_csv(pa.table(columns), tmp_path / "pilot.csv")
    line = ("plan", "--pilot", "pilot.csv", "-s", "p", "-y", "y", "--positive", "yes", "--half-width", ".01")
    named = ("--weight", "w") * weighted + ("--cluster", "c") * clustered
    (planned,) = valid_json(decal(*line, "-r", "brier<=.5", "-r", "brier>=0", *named, "-f", "json").out)["plans"][-1:]
    by = unit if clustered else np.arange(1000)
    weights, lost = weight if weighted else np.ones(1000), (label - score) ** 2
    off = np.bincount(by, weights * (lost - np.average(lost, weights=weights)))
    sizes = np.bincount(by, weights)
    error, effective = math.sqrt(off @ off) / sizes.sum(), sizes.sum() ** 2 / (sizes**2).sum()
    rows = planned["rows"][0]
    reach = [stdtrit(effective * n / 1000 - 1, 0.975) * error * math.sqrt(1000 / n) for n in (rows, rows / 1.12)]
    # Two digits of a number of rows, rounded up; and a row that could have been missed.
    assert reach[0] <= 0.01 <= reach[1]


def test_rows_of_few_clusters_are_as_many_as_an_interval_needs(decal: Decal, tmp_path: Path) -> None:
    """Of seven clusters 170 rows would show it by the normal quantile, and are one cluster and a half."""
    rng = np.random.default_rng(0)
    score = rng.random(1000)
    columns = {"p": score, "y": rng.random(1000) < score, "c": np.arange(1000) % 7}
    pacsv.write_csv(pa.table({**columns, "y": columns["y"].astype(int)}), tmp_path / "pilot.csv")
    line = ("plan", "--pilot", "pilot.csv", "-s", "p", "-y", "y", "-r", "brier<=.3", "-f", "json")
    alone, clustered = (valid_json(decal(*line, *more).out)["plans"][0] for more in ((), ("--cluster", "c")))
    assert alone["rows"][0] < 200 and clustered["rows"][0] >= 5 * 1000 / 7
    assert all(power == 0 for rows, power in clustered["curve"] if rows < 5 * 1000 / 7)
    out = decal(*line[:-2], "--cluster", "c").out
    assert "under 1 %" in out and "Rows of fewer than 5 clusters of equal size have no interval" in out


@pytest.mark.ci
@pytest.mark.usefixtures("few_samples")
def test_rows_of_few_uneven_clusters_show_it_as_often_as_planned() -> None:
    """Five of them have no interval at all, and the utilities of clusters are skewed: by the formula .63 showed it."""
    bound = -0.22

    def drawn(clusters: int) -> tuple[np.ndarray, ...]:
        unit = np.repeat(np.arange(clusters), 1 + rng.poisson(14, clusters))
        z = rng.normal(-1, 1.2, len(unit))
        label = rng.random(len(unit)) < 1 / (1 + np.exp(-z - rng.normal(0, 1, clusters)[unit]))
        return 1 / (1 + np.exp(-z)), label, unit

    rng, plan = np.random.default_rng(0), Plan((), BinaryTask.of_threshold(0.3))
    rule = parse_rule(f"expected_utility>={bound}")
    score, label, unit = drawn(1000)
    pilot = from_arrays({"p": score}, label, cluster=unit)
    (first, _) = plan_rows(pilot, plan, [rule], None, "pilot").planned
    assert rule.choice is not None and first.rows[0] is not None
    shown = 0
    for _ in range(SAMPLES):
        score, label, unit = drawn(round(first.rows[0] / len(pilot.models[0].rows) * 1000))
        rows = Rows(score, label.astype(int), None, unit)
        interval = measure_all([rule.choice], plan.inputs(rows), rows.adjusted_confidence(0.95))[rule.choice].interval
        shown += interval is not None and interval[0] > bound
    assert shown / SAMPLES >= 0.72


@pytest.mark.ci
def test_the_likely_rows_of_a_half_width_hold_those_of_all() -> None:
    score, label = made_up_pilot(0.8, 0.1)
    rng, rule = np.random.default_rng(0), parse_rule("brier<=1")

    def planned(at: np.ndarray | slice, **more: bool) -> RowsNeeded:
        data = from_arrays({"p": score[at]}, label[at])
        return plan_rows(data, Plan(()), [rule], 0.02, "rows", **more).planned[1]

    whole = planned(slice(None), made_up=True)
    assert whole.rows[0] is not None and whole.likely == ()
    pilots = [planned(rng.choice(len(score), 150, replace=False)).likely for _ in range(30)]
    held = [(least or math.inf) <= whole.rows[0] <= (most or math.inf) for least, most in pilots]
    assert sum(held) >= 24 and all(least != most for least, most in pilots)


@pytest.mark.ci
def test_a_plan_is_the_same_whatever_the_order_of_the_pilot() -> None:
    """Errors of a gain are measured on samples of the pilot: the same rows, as the file or an engine lists them."""
    rng = np.random.default_rng(0)
    score, label = np.round(rng.random(400), 2), rng.random(400) < 0.2
    pilots = (from_arrays({"p": score[rows]}, label[rows]) for rows in (np.arange(400), rng.permutation(400)))
    plans = [plan_rows(pilot, Plan((), BinaryTask.of_threshold(0.3)), [], None, "rows").planned for pilot in pilots]
    assert plans[0] == plans[1]


def test_a_made_up_pilot_has_no_interval_of_its_rows(decal: Decal) -> None:
    line = ("plan", "-r", "brier<=.3", "--half-width", ".01")
    made_up, pilot = decal(*line, "--auc", ".8", "--prevalence", ".2").out, decal(*line, "--pilot", BINARY).out
    assert "expected  rows, 80 %" in made_up and "[" not in made_up
    assert "in the pilot" in pilot and "[" in pilot


def test_a_gain_takes_as_many_rows_as_can_be_learned_from() -> None:
    """By the normal quantile six rows would show it, and of fewer than ten nothing is learned."""
    score = np.arange(200) % 20 / 20
    data = from_arrays({"p": score}, np.arange(200) % 100 == 0)
    (gain,) = plan_rows(data, Plan((), BinaryTask.of_threshold(0.3)), [], None, "rows").planned
    assert gain.rows == (10, 10)
    assert all((power == 0) == (rows < 10) for rows, power in gain.curve)


def test_a_gate_and_a_plan_of_its_rows_name_as_many_rows_beyond_them(decal: Decal, tmp_path: Path) -> None:
    """What learns from half of the rows wins less, so that a plan by such halves named fewer."""
    rng = np.random.default_rng(11)
    z = rng.normal(-0.6, 1.3, 1000)
    label = rng.random(1000) < 1 / (1 + np.exp(-z - 0.35))
    pacsv.write_csv(pa.table({"p": 1 / (1 + np.exp(-z)), "y": label.astype(int)}), tmp_path / "rows.csv")
    asked = ("rows.csv", "-t", ".3", "--rule", "gain_recalibration<=.01")
    (rule,) = decal.json("gate", *asked)["gates"]
    planned = decal.json("plan", "--pilot", *asked)["plans"][0]
    assert rule["rows_needed"] == planned["rows"][0] > 1000


def test_the_interval_of_a_gain_is_as_short_as_planned() -> None:
    """Of the made-up pilot's 20,000 rows it is shorter than the rows alone explain: 13 rows were named for 2,000."""
    (score, label), task, half_width = made_up_pilot(0.8, 0.05), BinaryTask.of_threshold(0.1), 0.002
    made_up = from_arrays({"p": score}, label)
    (planned, _) = plan_rows(made_up, Plan((), task), [], half_width, "made up", made_up=True).planned
    gain, rng, halves = parse("gain_recalibration"), np.random.default_rng(3), []
    for _ in range(100):
        at = rng.integers(len(score), size=planned.rows[0])
        interval = measure_all([gain], Inputs(Rows(score[at], label[at]), task), 0.95)[gain].interval
        assert interval is not None
        halves.append((interval[1] - interval[0]) / 2)
    assert 0.8 < np.mean(halves) / half_width < 1.2


def test_a_pilot_of_one_label_does_not_say_what_recalibration_wins(decal: Decal, tmp_path: Path) -> None:
    rows = [f"{k % 20 / 20},1" for k in range(200)]
    (tmp_path / "ones.csv").write_text("\n".join(["p,y", *rows]) + "\n")
    out = decal("plan", "--pilot", "ones.csv", "-s", "p", "-y", "y", "-t", "0.3").out
    assert out.startswith("– show what recalibration wins: needs rows of more than one label")


def test_rows_of_few_clusters_are_the_least_that_are_enough() -> None:
    """Of few rows their number is exact: their interval is by the t quantile of as many clusters as they hold."""
    rng = np.random.default_rng(0)
    score = rng.random(70)
    data = from_arrays(score, (rng.random(70) < score).astype(int), cluster=np.arange(70) % 7)
    (*_, planned) = plan_rows(data, Plan(()), [parse_rule("brier<=1")], 0.0495, "pilot").planned
    wide = (planned.interval[1] - planned.interval[0]) / 2

    def half_width(rows: int) -> float:
        return float(wide * stdtrit(rows / 10 - 1, 0.975) / stdtrit(6, 0.975) * math.sqrt(70 / rows))

    least = next(rows for rows in range(50, 100) if half_width(rows) <= 0.0495)
    assert planned.rows[0] == least == 61


def test_a_half_width_is_half_of_the_width_of_an_interval_that_reaches_further_on_one_side() -> None:
    """Of a metric that depends on the number of rows too: n (w / h)^2 of independent rows, in two digits upwards."""
    rng = np.random.default_rng(0)
    score = rng.random(1000)
    data = from_arrays(score, (rng.random(1000) < score).astype(int))
    plan = Plan((), BinaryTask.of_threshold(0.3))
    (*_, planned) = plan_rows(data, plan, [parse_rule("regret_calibration<=1")], 0.002, "pilot").planned[:2]
    low, high = planned.interval
    assert high - planned.value > 1.2 * (planned.value - low) and planned.rows[0] is not None
    assert planned.rows[0] == pytest.approx(1000 * ((high - low) / 2 / 0.002) ** 2, rel=0.1)
