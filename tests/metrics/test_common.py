"""What holds for every declared metric, on rows that hypothesis draws and at the edges."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import decal_cli.tables.table as table_module
from decal_cli.declarations.spec import Spec
from decal_cli.errors import Undefined
from decal_cli.metrics import METRICS, Inputs, Metric, interval_of, paired, parse, value_of
from decal_cli.metrics.confidence import wilson
from decal_cli.metrics.inputs import row_stakes
from decal_cli.tables.estimate import MISSED_ROWS
from decal_cli.tables.pairs import pair_up
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask, ClassDecision, RowTask
from simulation.few_positives import PROMISED, WITHOUT_FEATURES, covered, few, intervals
from tests.helpers.command import Decal
from tests.helpers.pairs import difference_of
from tests.helpers.worlds import TASKS, any_rows, any_task, known_rows, needs_seed, rows_by_level


def value_or_reason(metric: Metric, inputs: Inputs) -> float | str:
    try:
        return value_of(Spec(metric), inputs)
    except Undefined as undefined:
        assert undefined.reason
        return undefined.reason


def bounds(metric: Metric, task: BinaryTask) -> tuple[float, float]:
    unit = task.u_delta if metric.bounds_in_u_delta else 1.0
    return metric.range[0] * unit - 1e-9, metric.range[1] * unit + 1e-9


def assert_in_bounds(metric: Metric, inputs: Inputs, task: BinaryTask, confidence: float) -> float | str:
    """Of the value, which is given back, and of the interval."""
    low, high = bounds(metric, task)
    value = value_or_reason(metric, inputs)
    assert isinstance(value, str) or low <= value <= high, metric.name
    interval = interval_of(Spec(metric), inputs, confidence)
    assert interval is None or low <= interval[0] <= interval[1] <= high, metric.name
    return value


@pytest.mark.ci
@given(rows=any_rows(), task=any_task)
def test_of_any_rows_a_metric_is_in_its_bounds_in_any_order_and_when_all_are_doubled(
    rows: Rows, task: BinaryTask
) -> None:
    """The order changes no bit, and doubling none of the values that do not depend on the number of rows."""
    orders = np.arange(len(rows)), np.random.default_rng(0).permutation(len(rows)), np.repeat(np.arange(len(rows)), 2)
    same, shuffled, twice = (Inputs.of(rows.take(order).table, task) for order in orders)
    for metric in METRICS.values():
        value = assert_in_bounds(metric, same, task, 0.9)
        assert value_or_reason(metric, shuffled) == value, metric.name
        if metric.size_free:
            assert_same(metric, value_or_reason(metric, twice), value)


def assert_same(metric: Metric, first: float | str, second: float | str) -> None:
    """Values that agree but for rounding, or reasons on both sides."""
    assert isinstance(first, str) == isinstance(second, str), metric.name
    if isinstance(first, float):
        assert first == pytest.approx(second, rel=1e-7, abs=1e-9), metric.name


@pytest.mark.parametrize("name", ["hand", "ties", "binary weighted"])
def test_a_metric_never_writes_into_its_table(name: str) -> None:
    table = known_rows(name).table
    columns = [column for column in (table.score, table.n, table.pos, table.n2, table.pos2) if column is not None]
    before = [column.copy() for column in columns]
    for column in columns:
        column.flags.writeable = False
    for metric in METRICS.values():
        assert_in_bounds(metric, Inputs.of(table, TASKS[0]), TASKS[0], 0.95)
    assert all(np.array_equal(old, new) for old, new in zip(before, columns, strict=True))


EDGES = {
    "one row": rows_by_level({0.3: "1"}),
    "one row of score 0": rows_by_level({0.0: "0"}),
    "one row of score 1, wrong": rows_by_level({1.0: "0"}),
    "one row, weighted": replace(rows_by_level({0.3: "1"}), weight=np.array([2.5])),
    "only label 0": rows_by_level({0.1: "00", 0.6: "0"}),
    "only label 1": rows_by_level({0.1: "11", 0.6: "1"}),
    "all scores tied": rows_by_level({0.4: "0110"}),
    "all scores tied at 1": rows_by_level({1.0: "0111"}),
    "scores 0 and 1, all right": rows_by_level({0.0: "000", 1.0: "11"}),
    "scores 0 and 1, all wrong": rows_by_level({0.0: "11", 1.0: "000"}),
    "two rows": rows_by_level({0.2: "0", 0.7: "1"}),
    "scores far too low": rows_by_level({0.0: "000", 0.05: "000000111"}),
    "separated": rows_by_level({0.2: "00", 0.4: "0", 0.7: "11"}),
    "twelve rows": Rows(np.linspace(0, 1, 12), np.arange(12) % 2),
    "many tied": rows_by_level({0.4: "01" * 30}),
    "many of label 1": Rows(np.linspace(0, 1, 60), np.ones(60, dtype=int)),
}


@pytest.mark.ci
@pytest.mark.usefixtures("one_deal")
@pytest.mark.parametrize("edge", EDGES)
def test_at_the_edges_a_metric_has_a_finite_value_or_a_reason(edge: str) -> None:
    """With a feature, which is the score."""
    rows = replace(EDGES[edge], features=EDGES[edge].score[:, None])
    for task in TASKS:
        inputs = Inputs(rows, task)
        for metric in METRICS.values():
            assert_in_bounds(metric, inputs, task, 0.95)


def test_without_a_task_what_needs_one_says_so() -> None:
    for metric in METRICS.values():
        if BinaryTask in metric.needs:
            with pytest.raises(Undefined, match=r"needs a task|needs features|needs a capacity"):
                value_of(Spec(metric), Inputs.of(known_rows("hand").table))


QUANTILE_EDGES = {"ece", "cl", "rmsce", "mce", "ece_debiased", "cfdl", "cdl", "v_cdl", "cdl_threshold", "rule_cfdl"}
"""Weighted quantiles invert the cumulative weight, unweighted ones are interpolated: other edges, other bins."""

SAMPLING = {"spiegelhalter_z", "c_bound", "c_emp_pvalue", "ece_exact_null", "k2_null"}
"""These know that one row of weight 3 says less than three rows."""


@pytest.mark.ci
@given(rows=any_rows(weights="whole"), task=any_task)
def test_a_whole_weight_counts_as_that_many_rows(rows: Rows, task: BinaryTask) -> None:
    copies = replace(rows, weight=None).take(np.repeat(np.arange(len(rows.score)), rows.weight.astype(int)))
    tables = rows.table, copies.table
    for metric in METRICS.values():
        if not needs_seed(metric) and metric.name not in QUANTILE_EDGES | SAMPLING and metric.family != "regret":
            assert_same(metric, *(value_or_reason(metric, Inputs.of(table, task)) for table in tables))


SYMMETRIC = (
    "brier",
    "log_loss",
    "auc",
    "corp_unc",
    "calibration_slope",
    "accuracy",
    "expected_utility",
    "external_regret",
)
SYMMETRIC_BUT_FOR_DRAWS = (
    *("corp_mcb", "corp_dsc", "refinement_lower", "refinement_upper", "concavity_gap", "spiegelhalter_z", "u_cal"),
    *("v_cal", "k2", "ece_exact", "sm_cal", "sm_ece", "c_emp", "atb", "ks", "swap_regret"),
)
EXCHANGED = {"sensitivity": "specificity", "ppv": "npv", "eu_never": "eu_always"}


@given(rows=any_rows(least=2))
def test_labels_and_scores_may_be_mirrored_with_their_costs(rows: Rows) -> None:
    """y -> 1 - y, p -> 1 - p, t* -> 1 - t*, which is no score. Of drawn intervals only the value is compared."""
    mirrored = replace(rows, score=1 - rows.score, label=1 - rows.label)
    here, there = (
        Inputs.of(each.table, BinaryTask.of_threshold(at)) for each, at in ((rows, 0.3127), (mirrored, 0.6873))
    )
    exchanged = EXCHANGED | {other: name for name, other in EXCHANGED.items()}
    for key in (*SYMMETRIC, *SYMMETRIC_BUT_FOR_DRAWS, *exchanged):
        spec, other = parse(key), parse(exchanged.get(key, key))
        value, expected = value_or_reason(spec.declared, here), value_or_reason(other.declared, there)
        if isinstance(value, str) or isinstance(expected, str):
            assert isinstance(value, str) and isinstance(expected, str), key
            continue
        assert value == pytest.approx(expected, rel=1e-6, abs=1e-9), key
        if key not in SYMMETRIC_BUT_FOR_DRAWS:
            ends = interval_of(spec, here, 0.9)
            assert ends == (
                None if ends is None else pytest.approx(interval_of(other, there, 0.9), rel=1e-6, abs=1e-9)
            ), key


@pytest.mark.ci
def test_a_large_table_gives_what_a_small_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """10^5 distinct scores are walked in four blocks: as one block they must come to the same.

    The regret family is left out: its folds are not sums over blocks.
    """
    rng = np.random.default_rng(7)
    score = rng.permutation(np.arange(1, 100_001)) / 100_002
    rows = Rows(score, (rng.random(100_000) < score**1.3).astype(int))
    metrics = [metric for metric in METRICS.values() if metric.family != "regret"]
    by_blocks = Inputs.of(rows.table, TASKS[0])
    values = {metric.name: value_or_reason(metric, by_blocks) for metric in metrics}
    monkeypatch.setattr(table_module, "BLOCK", 1 << 20)
    at_once = Inputs.of(rows.table, TASKS[0])
    for metric in metrics:
        expected = value_or_reason(metric, at_once)
        assert values[metric.name] == (
            pytest.approx(expected, rel=1e-9, abs=1e-12) if isinstance(expected, float) else expected
        ), metric.name


REPLICATES = 16


@cache
def simulated() -> dict[str, np.ndarray]:
    """Of every metric at once, in a world where 6 of 150 rows are expected to have label 1."""
    return intervals(few(6, 1.0, 150), WITHOUT_FEATURES, REPLICATES, seed=4, rows=150)


@pytest.mark.long
@pytest.mark.parametrize("name", WITHOUT_FEATURES)
def test_every_interval_holds_the_truth_where_few_rows_have_label_1(name: str) -> None:
    """Nominal .95; a share of .9 is below 11 in 16 one time in 50. simulation/few_positives.py counts it closely."""
    share, there = covered(simulated()[name])
    assert there == 0 or share * there * REPLICATES >= there * REPLICATES - 5
    assert there == 1 or name not in PROMISED


def test_from_5_rows_of_a_label_on_what_decisions_rest_on_has_an_interval(decal: Decal, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    label = np.arange(200) < 5
    score = 1 / (1 + np.exp(4 - 1.5 * label - rng.normal(size=200)))
    lines = "\n".join(f"{p:.6f},{int(y)}" for p, y in zip(score, label, strict=True))
    (tmp_path / "few.csv").write_text(f"score,label\n{lines}\n")
    chosen = [part for name in PROMISED for part in ("-m", name)]
    report = decal.json("evaluate", "few.csv", "--threshold", "0.05", *chosen)
    metrics = report["metrics"]
    assert all(len(metrics[name]["interval"]) == 2 for name in PROMISED)
    auc = metrics["auc"]
    assert auc["interval"] == pytest.approx(wilson(auc["value"], 5, 0.95), abs=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_rows_of_one_label_leave_no_number_beyond_doubt(label: int) -> None:
    """That all labels seen are alike does not say that all are."""
    score = np.random.default_rng(1).beta(1, 4, 400)
    inputs = Inputs(Rows(score, np.full(400, label)), BinaryTask.of_threshold(0.3))
    intervals_of = {name: interval_of(Spec(metric), inputs, 0.95) for name, metric in METRICS.items()}
    assert [name for name, ends in intervals_of.items() if ends and ends[0] >= ends[1]] == []


RIGHT = np.arange(100) < 5
"""Of 100 rows, those of label 1, on which alone the score acts: no decision is wrong."""
SCORE = np.where(RIGHT, 0.9, 0.1)
TASK = BinaryTask.of_utility([[0.0, -0.7], [-0.3, 0.0]])


def rows(**more: object) -> Rows:
    return Rows(SCORE, RIGHT.astype(np.int64), **more)  # type: ignore[arg-type]


ROUND = ClassDecision(((0.0, -0.3, -0.1), (-0.3, 0.0, -0.7), (-0.1, -0.2, 0.0)), ("a", "b", "c"))
CERTAIN = np.eye(3)[np.arange(100) % 2] * 0.7 + 0.1
WORLDS = {
    "rows": Inputs(rows(), TASK),
    "weights": Inputs(rows(weight=np.full(100, 3.0)), TASK),
    "clusters": Inputs(rows(cluster=np.arange(100) // 2 * 7), TASK),
    "utilities of each row": Inputs(
        rows(amounts={"amount": np.full(100, 0.7), "cost_fp_column": np.full(100, 0.3)}),
        decision=RowTask(("amount", "cost_fp_column")),
    ),
    "classes": Inputs(Rows(CERTAIN, np.arange(100) % 2, classes=("a", "b", "c")), decision=ROUND),
}


@pytest.mark.parametrize("world", WORLDS)
def test_a_mistake_of_which_none_was_seen_is_in_the_error(world: str) -> None:
    """A missed row of label 1 costs .7, where no row with that action has label 1; so does one of class c."""
    inputs = WORLDS[world]
    ends = interval_of(parse("expected_utility"), inputs, 0.95)
    effect = inputs.rows.table.design.effect if world == "clusters" else 1.0
    assert ends == pytest.approx((-1.959964 * math.sqrt(MISSED_ROWS) * 0.7 * effect / 100, 0.0), abs=1e-7)


def test_two_models_that_decide_one_row_differently() -> None:
    """The change is worth .3 on that row; on a missed one like it, of label 1, it loses .7."""
    other = SCORE.copy()
    other[50] = 0.9
    pairs = pair_up(other, SCORE, RIGHT.astype(np.int64))
    change = difference_of(parse("expected_utility"), pairs, TASK)
    seen = (0.297**2 + 99 * 0.003**2) / 100**2
    assert change.mean == pytest.approx(0.003)
    assert change.error == pytest.approx(math.sqrt(seen + MISSED_ROWS * 0.703**2 / 100**2))


@pytest.mark.parametrize("world", WORLDS)
def test_two_models_that_decide_every_row_alike(world: str) -> None:
    """On a missed row they may differ, which is worth .7; one score is never worth more than itself."""
    a = WORLDS[world]
    b = Inputs(replace(a.rows, score=a.rows.score * 0.99 + 0.005), a.decision)
    classes, utilities = bool(a.rows.classes), isinstance(a.decision, RowTask)
    effect = a.rows.table.design.effect if world == "clusters" else 1.0
    for other, far in ((b, 0.7 * effect), (a, 0.0)):
        pairs = None
        if not classes:
            columns = a.rows.score, other.rows.score, a.rows.label, a.rows.weight, a.rows.unit
            pairs = pair_up(*columns)
        stakes = [row_stakes(each.rows, a.decision) for each in (a, other)] if utilities else []
        change = paired.difference(parse("expected_utility"), *paired.of_pairs(a, other, pairs, *stakes), pairs)
        assert change.value == 0
        assert change.error == pytest.approx(math.sqrt(MISSED_ROWS) * far / 100, abs=1e-9)
