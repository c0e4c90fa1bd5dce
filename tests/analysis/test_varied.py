"""Sweeps in which a number of the task varies: against row-wise loops, and the metrics of the task at each value."""

from pathlib import Path

import numpy as np
import pytest

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.sweep import COVERAGES, VariedSweep, series_for, sweep_tasks
from decal_cli.data import Columns, Dataset, from_arrays, read
from decal_cli.errors import DecalError
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.metrics.families.classes import area_influence, risk_at
from decal_cli.tables.table import tabulate
from decal_cli.task import ClassTask, parse_varied, task_of
from tests.helpers.command import BINARY, Decal

CLASSES = ("a", "b", "c")
COSTS = "a,0,2,2;b,5,0,2;c,5,1,0"


def write(path: Path, rows: int = 200) -> Path:
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.full(3, 0.8), rows)
    label = [CLASSES[rng.choice(3, p=each)] for each in score]
    lines = [",".join((label[k], "uv"[k % 2], *map(repr, score[k].tolist()))) for k in range(rows)]
    path.write_text("\n".join(["y,g,m:a,m:b,m:c", *lines]) + "\n")
    return path


def dataset(path: Path) -> Dataset:
    return read([str(write(path))], Columns(proba=("m:*",), label="y"))


def of_price(data: Dataset, text: str | None = None) -> VariedSweep:
    plan = Plan((), ClassTask(abstain=0.3))
    return sweep_tasks(data, plan, series_for(data, plan, None if text is None else parse_varied(text)))


def test_coverage_errors_and_utility_at_each_price_are_those_of_the_rows(tmp_path: Path) -> None:
    data = dataset(tmp_path / "rows.csv")
    sweep = of_price(data, "abstain=0.05,0.2,0.45,1")
    rows, report = data.models[0].rows, sweep.reports[0]
    assert sweep.series.values == (0.05, 0.2, 0.3, 0.45, 1.0)
    for k, price in enumerate(sweep.series.values):
        top, right = rows.score.max(axis=1), rows.score.argmax(axis=1) == rows.label
        accepted = top >= 1 - price - 1e-12
        assert report.done["coverage"].value[k] == pytest.approx(accepted.mean())
        assert report.done["accepted_error"].value[k] == pytest.approx((~right[accepted]).mean())
        worth = np.where(accepted, right, 1 - price).mean()
        assert report.worth["expected_utility"].value[k] == pytest.approx(worth, abs=1e-12)
        inputs = Inputs(rows, ClassTask(abstain=price).for_classes(CLASSES), 0)
        for name in ("external_regret", "gain_recalibration"):
            assert report.worth[name].value[k] == pytest.approx(value_of(parse(name), inputs), abs=1e-12), name


def test_an_entry_of_a_cost_matrix_varies_in_units_of_cost(tmp_path: Path) -> None:
    data = dataset(tmp_path / "rows.csv")
    plan = Plan((), task_of(cost_matrix=COSTS))
    sweep = sweep_tasks(data, plan, series_for(data, plan, parse_varied("c:a=1:9:4"), costs=True))
    rows, report = data.models[0].rows, sweep.reports[0]
    assert sweep.series.values == (1, 5, 9) and sweep.series.own == 5
    for k, cost in enumerate(sweep.series.values):
        matrix = np.array([[0, 2, 2], [5, 0, 2], [cost, 1, 0]])
        taken = np.argmin(rows.score @ matrix.T, axis=1)
        assert report.worth["expected_utility"].value[k] == pytest.approx(-matrix[taken, rows.label].mean(), abs=1e-9)
        for number, name in enumerate(CLASSES):
            assert report.done[f"share[{name}]"].value[k] == pytest.approx((taken == number).mean())


def test_an_entry_of_two_classes_and_three_actions_varies() -> None:
    rng = np.random.default_rng(1)
    score = rng.random(300)
    data = from_arrays({"p": score}, (rng.random(300) < score).astype(int))
    plan = Plan((), task_of(utility="wait,0,-20;test,-2,-3;treat,-5,-1"))
    sweep = sweep_tasks(data, plan, series_for(data, plan, parse_varied("test:1=-9,-3")))
    rows, report = data.models[0].rows, sweep.reports[0]
    for k, value in enumerate((-9.0, -3.0)):
        matrix = np.array([[0, -20], [-2, value], [-5, -1]])
        taken = np.argmax(np.outer(1 - score, matrix[:, 0]) + np.outer(score, matrix[:, 1]), axis=1)
        worth = matrix[taken, rows.label.astype(int)].mean()
        assert report.worth["expected_utility"].value[k] == pytest.approx(worth, abs=1e-12)
        assert report.done["share[test]"].value[k] == pytest.approx((taken == 1).mean())
    assert report.risk is None


def test_the_risk_of_ties_is_the_mean_over_their_orders() -> None:
    t = tabulate(np.array([0.9, 0.9, 0.9, 0.5]), np.array([1, 1, 0, 0]))
    risk, rows = risk_at(t, np.array([0.25, 0.5, 0.75, 1.0]))
    assert risk == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.5])
    assert rows == pytest.approx([1, 2, 3, 4])
    weighted = tabulate(np.array([0.9, 0.5]), np.array([1, 0]), np.array([1.0, 3.0]))
    assert risk_at(weighted, np.array([0.25, 0.5, 1.0]))[0] == pytest.approx([0, 0.5, 0.75])


def test_the_error_of_the_area_is_that_of_redrawn_rows() -> None:
    rng = np.random.default_rng(2)
    score = rng.beta(4, 1, 600)
    right = rng.random(600) < score
    t = tabulate(score, right)
    good, bad = area_influence(t)
    each = np.where(right, good[np.searchsorted(t.score, score)], bad[np.searchsorted(t.score, score)])
    assert abs(each.mean()) < 1e-3

    def area(which: np.ndarray) -> float:
        order = np.argsort(-score[which], kind="stable")
        return float((np.cumsum(~right[which][order]) / np.arange(1, 601)).mean())

    drawn = [area(rng.integers(0, 600, 600)) for _ in range(400)]
    assert each.std() / np.sqrt(600) == pytest.approx(np.std(drawn), rel=0.12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abstain", "does not say what takes which values"),
        ("a:b=", "are no values"),
        ("a:b=3:1", "are no values"),
        ("a:b=1:nan", "are no values"),
        ("a:b=0:1:1e-9", "more than 1000 values"),
        ("x:y=1:2", "names no action and class"),
        ("abstain=0.1:2", "the price 1.05 is not in [0, 1]"),
    ],
)
def test_what_does_not_vary_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    data = dataset(tmp_path / "rows.csv")
    plan = Plan((), task_of(cost_matrix=COSTS)) if ":" in text.partition("=")[0] else Plan(())
    with pytest.raises(DecalError, match=said.replace("[", r"\[")):
        series_for(data, plan, parse_varied(text))


def test_the_command_prints_writes_and_draws_it(decal: Decal, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv")
    line = ("sweep", path, "--proba", "m:*", "--label", "y")
    ran = decal(*line, "--abstain", ".3", "--group", "g", "--plot", "-", COLUMNS="100")
    assert ran.code == 0, ran.err
    assert max(map(len, ran.out.splitlines())) <= 100
    assert "AURC" in ran.out and "→ 0.3" in ran.out
    document = decal.json(*line, "--vary", "abstain=0.1,0.2")
    risk = document["vary"]["risk_coverage"]
    assert document["vary"]["at"] == [0.1, 0.2] and risk["coverage"] == COVERAGES.tolist()
    assert risk["area_interval"][0] < risk["area"] < risk["area_interval"][1]
    rows = decal(*line, "--cost-matrix", COSTS, "--vary", "a:b=1,2", "-f", "csv").out.splitlines()
    assert rows[0] == "model,group,curve,at,value,low,high,unit" and len(rows) == 1 + 2 * 6
    picture = tmp_path / "curves.svg"
    assert decal(*line, "--abstain", ".3", "--plot", picture, "--picture", "all").code == 0
    assert "Risk-coverage curve" in picture.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--cost-matrix", COSTS), "nothing says which of its entries varies"),
        (("--abstain", ".3", "--thresholds", "0.1:0.9:0.1"), "--thresholds is of t*"),
        (("--abstain", ".3", "--prior", "beta:1,2"), "--prior is of t*"),
        (("--vary", "a:b=1:2"), "none is given"),
        (("--abstain", ".3", "--plot", "-", "--picture", "brier"), "--picture brier is not drawn"),
    ],
)
def test_options_that_do_not_fit_are_one_line(
    decal: Decal, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    ran = decal("sweep", write(tmp_path / "rows.csv"), "--proba", "m:*", "--label", "y", *options)
    assert ran.code == 2 and said in ran.err and ran.err.count("\n") == 1, ran.err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--prevalence-range", "0.1:0.2"), "--threshold"),
        (("--threshold", "0.3", "--prevalence-range", "0:0.2"), "not a share"),
        (("--threshold", "0.3", "--prevalence-range", "low:high"), "no values"),
        (("--threshold", "0.3", "--prevalence-range", "0.1:0.2", "--prevalence", "0.1"), "give one of them"),
        (("--threshold", "0.3", "--prevalence-range", "0.1:0.2", "--vary", "abstain=0:1"), "give one of them"),
        (("--threshold", "0.3", "--prevalence-range", "0.1:0.2", "--prior", "beta:1,2"), "drop it"),
    ],
)
def test_a_range_of_shares_that_cannot_be_swept_is_one_line(decal: Decal, more: tuple[str, ...], words: str) -> None:
    done = decal("sweep", BINARY, "--score", "p", "--label", "y", *more)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1
