"""Several classes: published numbers, scikit-learn, loops over rows; two classes give the numbers of a score."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr
from sklearn.metrics import roc_auc_score, top_k_accuracy_score

import decal_cli
from decal_cli.analysis.described import select_rows
from decal_cli.learn.probe import build_class_probe, build_recalibrated
from decal_cli.metrics import METRICS, Inputs, MetricSpec, WorstCaseTask, gaps, interval_of, measure, parse, value_of
from decal_cli.metrics.families import agents
from decal_cli.metrics.regret_cells import ClassRegrets
from decal_cli.tables.classes import ClassLevels, ClassTable
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity
from decal_cli.task import ClassDecision
from tests.helpers.paper_examples import EPOCHS_18
from tests.helpers.seeded import seeded_columns
from tests.helpers.worlds import fixture_columns

THREE = ("0", "1", "2")
IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ABSTAINING = (*IDENTITY, (0.6, 0.6, 0.6))
COSTS = ((0.0, -5.0, -20.0), (-1.0, 0.0, -4.0), (-3.0, -1.0, 0.0), (-2.0, -2.0, -2.0))


def decision(utility: tuple[tuple[float, ...], ...]) -> ClassDecision:
    return ClassDecision(utility, tuple(map(str, range(len(utility)))))


def value(key: str, rows: Rows, utility: tuple[tuple[float, ...], ...] | None = None) -> float:
    return value_of(parse(key), Inputs(rows, decision=None if utility is None else decision(utility)))


@cache
def known() -> Rows:
    """The rows of three classes whose numbers are published."""
    columns = fixture_columns("multiclass_n1500_k3.csv")
    score = np.column_stack([columns[f"p_{k}"].astype(float) for k in range(3)])
    return Rows(score / score.sum(axis=1, keepdims=True), columns["y"].astype(int), classes=THREE)


PUBLISHED = [
    ("log_loss", None, 0.8353818231),
    ("brier", None, 0.4718157453),
    ("auc", None, 0.8264881449),
    ("accuracy", None, 0.6626666667),
    ("ece_top(bins=10,strategy=width)", None, 0.1140820041),
    ("ece_top(strategy=width)", None, 0.1135040417),
    ("auc_pairs", None, 0.8249962648),
    ("ece_classwise(bins=10,strategy=width)", None, 0.0770445143),
    ("expected_utility", IDENTITY, 0.6626666667),
    ("external_regret", IDENTITY, 0.4526666667 - 0.6626666667),
    ("swap_regret", IDENTITY, 0.0),
    ("utility_calibration", IDENTITY, 0.1130972544),
    ("expected_utility", ABSTAINING, 0.6897333333),
    ("external_regret", ABSTAINING, 0.6 - 0.6897333333),
    ("utility_calibration", ABSTAINING, 0.1043609571),
    ("expected_utility", COSTS, -1.1006666667),
    ("external_regret", COSTS, -1.3193333333 + 1.1006666667),
    ("swap_regret", COSTS, 0.1733333333),
    ("utility_calibration", COSTS, 0.4522338706),
]
"""Of scikit-learn 1.9, netcal 1.4, torchmetrics 1.9, probmetrics 1.3; those with a task computed apart, row by row."""


@pytest.mark.parametrize(("key", "utility", "expected"), PUBLISHED, ids=lambda case: str(case)[:40])
def test_published_values(key: str, utility: tuple[tuple[float, ...], ...] | None, expected: float) -> None:
    assert value(key, known(), utility) == pytest.approx(expected, abs=1e-9)


def regret_by_hand(rows: Rows, utility: tuple[tuple[float, ...], ...]) -> float:
    """A loop over pairs of the best action and the second-best one; rarer pairs are pooled by the action alone."""
    u = np.array(utility)
    worth = np.sort(rows.score @ u.T, axis=1)
    first, second = np.argsort(-(rows.score @ u.T), axis=1, kind="stable")[:, :2].T
    margin, pairs = worth[:, -1] - worth[:, -2], Counter(zip(first, second, strict=True))
    pair = np.array([a * 9 + (b if pairs[a, b] >= 30 else 8) for a, b in zip(first, second, strict=True)])
    lost = 0.0
    for each in np.unique(pair):
        here = margin[pair == each]
        edges = np.quantile(here, np.arange(1, bins := max(1, min(15, len(here) // 30))) / bins)
        cells = np.searchsorted(edges, here)
        for cell in np.unique(cells):
            won = u[:, rows.label[pair == each][cells == cell]].sum(axis=1)
            lost += won.max() - won[each // 9]
    return lost / len(rows)


@pytest.mark.parametrize("utility", [IDENTITY, ABSTAINING, COSTS])
def test_calibration_regret_is_that_of_a_loop_over_pairs_of_actions(utility: tuple[tuple[float, ...], ...]) -> None:
    assert value("regret_calibration", known(), utility) == pytest.approx(regret_by_hand(known(), utility), abs=1e-9)


def test_calibration_regret_sees_the_right_class_behind_one_action() -> None:
    """The top class has a probability of .5 and is right in .8 of the rows: abstaining at .7 always loses .1."""
    top = np.arange(900) % 3
    score = np.where(np.eye(3)[top] > 0, 0.5, 0.25)
    rows = Rows(score, np.where(np.arange(900) // 3 % 5 > 0, top, (top + 1) % 3), classes=THREE)
    assert value("regret_calibration", rows, (*IDENTITY, (0.7, 0.7, 0.7))) == pytest.approx(0.1, abs=1e-12)


def random_rows(seed: int, rows: int = 300, classes: int = 4, weighted: bool = False) -> Rows:
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(classes, 0.7), rows)
    label = np.array([rng.choice(classes, p=each) for each in truth])
    score = truth**0.6
    weight = rng.uniform(0.5, 2.0, rows) if weighted else None
    score /= score.sum(axis=1, keepdims=True)
    return Rows(score, label, weight, classes=tuple("abcdefgh"[:classes]), features=rng.standard_normal((rows, 2)))


@pytest.mark.parametrize("seed", range(3))
def test_ranking_is_that_of_scikit_learn(seed: int) -> None:
    rows = random_rows(seed)
    for key, average in (("auc", "macro"), ("auc_weighted", "weighted")):
        expected = roc_auc_score(rows.label, rows.score, multi_class="ovr", average=average)
        assert value(key, rows) == pytest.approx(expected, abs=1e-12)
    expected = roc_auc_score(rows.label, rows.score, multi_class="ovo", average="macro")
    assert value("auc_pairs", rows) == pytest.approx(expected, abs=1e-12)
    for k in (1, 2, 3):
        expected = top_k_accuracy_score(rows.label, rows.score, k=k, labels=range(4))
        assert value(f"top_accuracy(k={k})", rows) == pytest.approx(expected, abs=1e-12)
    assert value("top_accuracy", rows) == value("top_accuracy(k=2)", rows)


def test_scores_of_ranks_and_coverage_are_those_of_loops() -> None:
    rows = random_rows(4, rows=40)
    score = np.round(rows.score, 1) + 1e-3
    rows = Rows(score / score.sum(axis=1, keepdims=True), rows.label, classes=rows.classes)
    each = [
        sum((row[: j + 1].sum() - (y <= j)) ** 2 for j in range(3))
        for row, y in zip(rows.score, rows.label, strict=True)
    ]
    assert value("rps", rows) == pytest.approx(np.mean(each), abs=1e-12)
    # Ties by expectation: the mean over many orders of equals.
    rng, top, wrong = np.random.default_rng(0), rows.score.max(axis=1), rows.score.argmax(axis=1) != rows.label
    drawn = []
    for _ in range(4000):
        order = np.lexsort((rng.random(40), -top))
        drawn.append((np.cumsum(wrong[order]) / np.arange(1, 41)).mean())
    assert value("aurc", rows) == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / np.sqrt(4000) + 1e-12)


def test_debiased_squares_are_those_of_a_loop_over_bins() -> None:
    rows = random_rows(7)

    def squares(score: Any, own: Any) -> float:
        place, total = np.searchsorted(np.quantile(score, np.arange(1, 15) / 15), score), 0.0
        for here in (place == cell for cell in range(15)):
            rate, n = own[here].mean(), here.sum()
            total += n / 300 * ((rate - score[here].mean()) ** 2 - rate * (1 - rate) / (n - 1))
        return total

    of_classes = [squares(rows.score[:, k], rows.label == k) for k in range(4)]
    assert value("ece_classwise_debiased", rows) == pytest.approx(sum(of_classes) / 4, abs=1e-12)
    of_top = squares(rows.score.max(axis=1), rows.label == rows.score.argmax(axis=1))
    assert value("ece_top_debiased", rows) == pytest.approx(of_top, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_calibration_of_all_classes_is_that_of_levels(weighted: bool) -> None:
    rng = np.random.default_rng(6)
    levels = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    which, label = rng.integers(0, 3, 300), rng.integers(0, 3, 300)
    weight = rng.uniform(0.5, 2, 300) if weighted else np.ones(300)
    expected = 0.0
    for k, level in enumerate(levels):
        here = which == k
        rates = np.array([weight[here & (label == j)].sum() for j in range(3)]) / weight[here].sum()
        expected += weight[here].sum() / weight.sum() * np.abs(level - rates).sum()
    rows = Rows(levels[which], label, weight if weighted else None, classes=THREE)
    assert value("cal_l1", rows) == pytest.approx(expected, abs=1e-12)


PROGRAMS = {"u_cal": 1e-7, "cdl": 1e-7, "cdl_null": 0.03}
"""What linear programs are solved to; the draws of the null follow the order of the classes."""
DRAWN_IN_ORDER = {"regret_calibration_null": 0.02, "cfdl_null": 0.02}
PLACES = Capacity("0.1", 0.1, 1.0)


def with_places(rows: Rows, of_classes: ClassDecision) -> Inputs:
    """With places for a tenth of the rows, which metrics of a capacity ask for."""
    return Inputs(select_rows(rows, PLACES, of_classes, 0), decision=of_classes)


OF_CLASSES = [spec for spec in METRICS.specs() if spec.declared.takes(True)]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_folds_and_cells_of_rounded_probabilities_do_not_hang_on_any_order(order: tuple[int, ...]) -> None:
    # Rows whose probabilities are the same ones at other classes, or that differ in their label alone, are not alike.
    rng = np.random.default_rng(3)
    levels = np.array([*permutations((0.2, 0.3, 0.5)), (0.4, 0.4, 0.2), (0.25, 0.5, 0.25)])
    score = levels[rng.integers(0, 8, 200)]
    label = np.argmax(rng.random((200, 1)) < score.cumsum(axis=1) ** 2, axis=1)
    rows = Rows(score, label, classes=THREE, features=rng.normal(size=(200, 1)))
    names = tuple(rows.classes[k] for k in order)
    other = Rows(score[:, order], np.argsort(order)[label], classes=names, features=rows.features)
    found = []
    for each in (rows, other.take(rng.permutation(200))):
        recalibrated = build_recalibrated(each, seed=0)
        probed = build_class_probe(each, recalibrated, seed=0).score[:200]
        found.append([of[np.arange(200), each.label].mean() for of in (recalibrated.score, probed)])
        found[-1].append(each.class_table.in_cells(5).score.max(axis=1).sum())
    assert found[1] == pytest.approx(found[0], abs=1e-6)


@pytest.mark.parametrize("spec", OF_CLASSES, ids=lambda spec: spec.key)
def test_neither_the_order_of_rows_nor_that_of_classes_nor_rows_twice_change_a_value(spec: MetricSpec) -> None:
    rows = random_rows(7, rows=40 if spec.name in PROGRAMS else 200, classes=3)
    expected = value_of(spec, with_places(rows, decision(COSTS)))
    for order in ((1, 0, 2), (1, 2, 0)):  # all others are made of these two
        names = tuple(rows.classes[k] for k in order)
        other = Rows(rows.score[:, order], np.argsort(order)[rows.label], classes=names, features=rows.features)
        permuted = decision(tuple(tuple(row[k] for k in order) for row in COSTS))
        within = {**PROGRAMS, **DRAWN_IN_ORDER}.get(spec.name, 1e-12)
        if spec.name != "rps":  # for classes that stand in order
            assert value_of(spec, with_places(other, permuted)) == pytest.approx(expected, abs=within)
    shuffled = rows.take(np.random.default_rng(0).permutation(len(rows)))
    assert value_of(spec, with_places(shuffled, decision(COSTS))) == pytest.approx(expected, abs=1e-9)
    if spec.declared.form(True).size_free:
        twice = rows.take(np.tile(np.arange(len(rows)), 2))
        within = PROGRAMS.get(spec.name, 1e-12)
        assert value_of(spec, with_places(twice, decision(COSTS))) == pytest.approx(expected, abs=within)


WITH_INTERVAL = [spec for spec in OF_CLASSES if spec.declared.form(True).interval is not None]


@pytest.mark.parametrize("spec", WITH_INTERVAL, ids=lambda spec: spec.key)
def test_an_interval_holds_the_value(spec: MetricSpec) -> None:
    rows = random_rows(11, weighted=spec.name != "aurc")
    inputs = with_places(rows, decision((*map(tuple, np.eye(4).tolist()), (0.7,) * 4)))
    interval = interval_of(spec, inputs, 0.95)
    assert interval[0] <= value_of(spec, inputs) <= interval[1]


def test_the_error_of_an_interval_of_utility_is_no_more_than_the_high_end() -> None:
    """A loop over intervals: what the rows inside may lose, beyond their standard errors, the largest one may too."""
    rng = np.random.default_rng(6)
    proba, weight = rng.dirichlet((1, 2, 1), 100), rng.lognormal(0, 1, 100)
    told = proba**0.7 / (proba**0.7).sum(axis=1, keepdims=True)
    label = np.array([rng.choice(3, p=each) for each in told])
    frame = {**{f"m:{k}": proba[:, k] for k in range(3)}, "y": label, "w": weight}
    high = decal_cli.evaluate(frame, label="y", proba="m:*", weight="w", abstain=0.3, metrics="utility_calibration")[
        "utility_calibration"
    ].interval[1]
    won = np.where(proba.max(axis=1) > 0.7, proba.argmax(axis=1) == label, 0.7)
    predicted = np.maximum(proba.max(axis=1), 0.7)
    gap, most = weight * (predicted - won) / weight.sum(), 0.0
    for low in np.unique(predicted):
        for last in np.unique(predicted):
            inside = gap[(predicted >= low) & (predicted <= last)]
            most = max(most, abs(inside.sum()) + 1.959964 * np.sqrt((inside**2).sum()))
    assert high == pytest.approx(most, rel=1e-6)


NULLS = ["ece_top_null", "ece_classwise_null", "regret_calibration_null", "utility_calibration_null"]


@pytest.mark.parametrize("key", NULLS)
def test_a_null_is_the_mean_over_labels_drawn_from_the_probabilities(key: str) -> None:
    rows, rng = random_rows(3, rows=400, classes=3), np.random.default_rng(8)
    edges = np.cumsum(rows.score, axis=1)
    drawn = []
    for _ in range(150):
        label = (rng.random((len(rows), 1)) > edges[:, :2]).sum(axis=1)
        drawn.append(value(key.removesuffix("_null"), Rows(rows.score, label, classes=rows.classes), COSTS))
    within = 4 * np.std(drawn) / np.sqrt(150) + 0.02 * np.mean(drawn)
    assert value(key, rows, COSTS) == pytest.approx(np.mean(drawn), abs=within)


def test_each_class_may_be_calibrated_where_the_classes_together_are_not() -> None:
    """Kleinberg et al. 2023, theorem 18: nine equal epochs, in thirds."""
    rows = theorem_18()
    for k in range(3):
        t = rows.class_table.one_vs_rest(k)
        assert t.pos / t.n == pytest.approx(t.score)
    # An action for each prediction q, worth 2 q_y - |q|^2, the Brier rule: three epochs lose 2/3 each.
    levels = np.unique(rows.score, axis=0)
    rule = tuple(map(tuple, (2 * levels - (levels**2).sum(axis=1, keepdims=True)).tolist()))
    assert value("swap_regret", rows, rule) == pytest.approx(2 / 9)


SOLVED = 1e-7
"""How near two linear programs come to each other."""


def rounded_to_tenths() -> Rows:
    """The known rows as the reference has them: floor, then the largest remainders up, lowest class first on ties."""
    rows = known()
    tenths = np.floor(rows.score * 10 + 1e-9)
    rest = rows.score * 10 - tenths
    for row, missing in enumerate((10 - tenths.sum(axis=1)).astype(int)):
        tenths[row, np.argsort(-np.round(rest[row], 9), kind="stable")[:missing]] += 1
    return Rows(tenths / 10, rows.label, classes=THREE)


def theorem_18() -> Rows:
    labels, thirds = zip(*EPOCHS_18, strict=True)
    return Rows(np.array(thirds) / 3, np.array(labels), classes=THREE)


def of_levels(seed: int, levels: int, classes: int, rows: int = 400) -> Rows:
    """Overconfident levels."""
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.ones(classes), levels)[rng.integers(levels, size=rows)]
    truth = score**0.5 / (score**0.5).sum(axis=1, keepdims=True)
    label = np.array([rng.choice(classes, p=each) for each in truth])
    return Rows(score, label, classes=tuple("abcdefgh"[:classes]))


def dense(points: np.ndarray, gain: np.ndarray) -> float:
    """max sum gain * s over proper rules with payoffs in [0, 1], one constraint for every pair."""
    size, classes = points.shape
    proper = np.zeros((size, size, size, classes))
    for q in range(size):
        for r in range(size):
            proper[q, r, r] += points[q]
            proper[q, r, q] -= points[q]
    solved = linprog(-gain.ravel(), A_ub=proper.reshape(size * size, -1), b_ub=np.zeros(size * size), bounds=(0, 1))
    return -float(solved.fun)


def all_pairs(rows: Rows, key: str) -> float:
    score, which = np.unique(rows.score, axis=0, return_inverse=True)
    counts = np.zeros(score.shape)
    np.add.at(counts, (which.ravel(), rows.label), 1.0)
    share = counts / counts.sum()
    rate = share.sum(axis=0)[None] if key == "u_cal" else counts / counts.sum(axis=1, keepdims=True)
    gain = rate if key == "u_cal" else share
    return dense(np.vstack((score, rate)), np.vstack((-share, gain)))


def agent_value(key: str, rows: Rows) -> float:
    return value_of(parse(key), Inputs(rows))


@pytest.mark.parametrize(("seed", "levels", "classes"), [(1, 6, 3), (2, 12, 3), (3, 10, 4), (4, 25, 2), (5, 16, 3)])
def test_cuts_find_what_all_constraints_find(seed: int, levels: int, classes: int) -> None:
    rows = of_levels(seed, levels, classes)
    levels_of = rows.class_table.at_levels()
    assert agents.over_constant(levels_of).loss == pytest.approx(all_pairs(rows, "u_cal"), abs=SOLVED)
    assert agents.over_frequencies(levels_of).loss == pytest.approx(all_pairs(rows, "cdl"), abs=SOLVED)
    assert agents.most_over_frequencies(levels_of) == pytest.approx(all_pairs(rows, "cdl"), abs=SOLVED)


def test_published_values_of_agents() -> None:
    rows = rounded_to_tenths()
    assert rows.class_table.n_levels == 66
    assert agent_value("u_cal", rows) == pytest.approx(0.06, abs=SOLVED)
    assert agent_value("cdl(levels=exact)", rows) == pytest.approx(0.0605185185, abs=SOLVED)


def test_two_classes_in_clusters_have_the_intervals_of_a_score() -> None:
    columns: dict[str, Any] = {**seeded_columns(200)}
    columns |= {"m:0": 1 - np.array(columns["p"]), "m:1": columns["p"]}
    # Rows of a cluster share what the score misses.
    columns["c"] = np.argsort(np.argsort(columns["x2"], kind="stable")) // 5
    metrics = ["expected_utility", "external_regret", "log_loss", "swap_regret"]
    given = {"label": "y", "weight": "w", "cluster": "c", "utility": [[1.5, -2.0], [-0.25, 1.0]], "metrics": metrics}
    of_one, of_two = (decal_cli.evaluate(columns, **given, **each) for each in ({"score": "p"}, {"proba": "m:*"}))
    for name in metrics:
        assert of_two[name].interval == pytest.approx(of_one[name].interval, rel=1e-9), name


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_have_the_closed_forms(weighted: bool) -> None:
    rng = np.random.default_rng(3)
    score = np.round(rng.uniform(0.02, 0.98, 300), 1)
    weight = rng.uniform(0.5, 2, 300) if weighted else None
    rows = Rows(score, (rng.random(300) < score**1.6).astype(np.int64), weight)
    two = Rows(np.column_stack((1 - rows.score, rows.score)), rows.label, rows.weight, classes=("0", "1"))
    for key in ("u_cal", "cdl", "cdl(levels=exact)", "cdl_null"):
        assert agent_value(key, two) == pytest.approx(agent_value(key, rows), abs=1e-12)
    for each in (two, rows):
        assert len(measure(parse("u_cal"), Inputs(each)).worst_case_task.thresholds) in (1, 2)
    levels = two.class_table.at_levels()
    assert agents.over_constant(levels).loss == pytest.approx(agent_value("u_cal", rows), abs=SOLVED)
    assert agents.over_frequencies(levels).loss == pytest.approx(agent_value("cdl(levels=exact)", rows), abs=SOLVED)


def shown(rows: Rows, worst_case_task: WorstCaseTask) -> float:
    decision = ClassDecision(worst_case_task.utility, tuple(map(str, range(len(worst_case_task.utility)))))
    return value_of(parse(worst_case_task.shown_by), Inputs(rows, decision=decision))


CASES = {
    "tenths": rounded_to_tenths,
    "theorem 18": theorem_18,
    "few levels": lambda: of_levels(7, 20, 4),
    "every row a level": lambda: of_levels(8, 10_000, 3, rows=900),
}


@pytest.mark.parametrize("key", ["u_cal", "cdl", "cdl(levels=exact)"])
@pytest.mark.parametrize("case", CASES)
def test_the_worst_agent_loses_what_was_said(case: str, key: str) -> None:
    rows = CASES[case]()
    if case == "every row a level" and key == "cdl(levels=exact)":
        assert "333 are taken at most" in (measure(parse(key), Inputs(rows)).reason or "")
        return
    result = measure(parse(key), Inputs(rows))
    payoffs = np.array(result.worst_case_task.utility)
    assert payoffs.shape[1] == len(rows.classes) and payoffs.min() >= 0 and payoffs.max() <= 1
    assert shown(rows, result.worst_case_task) == pytest.approx(result.worst_case_task.loss, abs=1e-12)
    assert result.worst_case_task.loss == pytest.approx(result.value, abs=SOLVED)


@pytest.mark.parametrize(
    ("key", "by_draws"), [("swap_regret", 0.005), ("gain_recalibration", 1e-9), ("gain_over_constant", 1e-9)]
)
def test_an_action_that_is_worse_for_every_class_changes_no_interval(key: str, by_draws: float) -> None:
    rows = known().take(np.arange(300))
    without, with_it = (
        interval_of(parse(key), Inputs(rows, decision=decision(utility)), 0.95)
        for utility in (COSTS, (*COSTS, (-30.0, -30.0, -30.0)))
    )
    assert without is not None and with_it == pytest.approx(without, rel=by_draws)


def test_an_agent_keeps_only_the_actions_that_it_needs() -> None:
    rows = of_levels(7, 20, 4)
    levels = rows.class_table.at_levels()
    rule = agents.over_frequencies(levels)
    for action in range(len(rule.utility)):
        less = agents.lost_over_frequencies(levels, np.delete(rule.utility, action, axis=0))
        assert less < rule.loss - agents.VIOLATED


def test_where_nobody_loses_there_is_no_agent() -> None:
    rows = Rows(np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 0]), classes=THREE)
    for key in ("u_cal", "cdl(levels=exact)"):
        result = measure(parse(key), Inputs(rows))
        assert result.value == pytest.approx(0, abs=1e-9) and result.worst_case_task is None


def test_an_agent_looks_at_so_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    size = of_levels(7, 20, 4).class_table.n_levels * 4
    for most, taken in ((size, True), (size - 1, False)):
        monkeypatch.setattr(agents, "MAX_NUMBERS", most)
        rows = of_levels(7, 20, 4)
        assert (measure(parse("cdl(levels=exact)"), Inputs(rows)).reason is None) == taken
        assert agents._class_u_cal(rows.class_table)[1] == taken


def test_cells_are_as_many_as_asked_for_and_equally_full() -> None:
    c = of_levels(9, 10_000, 3, rows=1024).class_table
    cells: ClassLevels = c.in_cells(16)
    assert np.array_equal(np.bincount(cells.of_row), cells.counts.sum(axis=1))
    assert len(cells.score) == 16 and cells.counts.sum(axis=1) == pytest.approx(64, abs=8)
    assert cells.score.T @ cells.counts.sum(axis=1) == pytest.approx(c.score.sum(axis=0))
    # Of so many rows only, they lie evenly in the order of content, from the first to the last.
    assert np.array_equal(c.by_row(2).score, c.score[c.in_content_order()[[0, -1]]])


def test_the_probabilities_of_a_cell_are_the_weighted_means_of_its_rows() -> None:
    rng = np.random.default_rng(0)
    score, label, weight = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60), rng.exponential(size=60)
    number = np.sort(rng.integers(0, 4, 60))
    merged = ClassTable(score, label, weight, ("a", "b", "c"))._merged(number)
    for cell in range(4):
        inside = number == cell
        assert merged.score[cell] == pytest.approx(np.average(score[inside], axis=0, weights=weight[inside]))
        assert merged.counts[cell] == pytest.approx(np.bincount(label[inside], weight[inside], 3))


def test_copies_of_a_row_say_as_much_as_one_about_a_calibrated_model() -> None:
    rows, twice = random_rows(0, weighted=True), np.repeat(np.arange(300), 2)
    together = replace(rows.take(twice), cluster=twice)

    def spread(of: Rows) -> np.ndarray:
        """Of the class shares of three cells."""
        cell, rng = (of.score[:, 0] * 3).astype(np.int64), np.random.default_rng(1)
        counts = gaps.drawn_classes(of.units, of.score, cell, 4000, rng)
        return (counts / counts.sum(axis=2, keepdims=True)).std(axis=0)

    assert spread(together) == pytest.approx(spread(rows), rel=0.1)


def calibrated_clusters(rng: np.random.Generator, agreement: float) -> Callable[[], Rows]:
    """Draws labels of 60 clusters of 20 rows, where guesses are right or wrong together, in many cells."""
    unit, score = np.repeat(np.arange(60), 20), rng.dirichlet(np.full(3, 2.0), 1200)
    order = np.argsort(-score, axis=1)
    reached = np.cumsum(np.take_along_axis(score, order, axis=1), axis=1)

    def drawn() -> Rows:
        normal = np.sqrt(agreement) * rng.normal(size=60)[unit] + np.sqrt(1 - agreement) * rng.normal(size=1200)
        place = np.minimum((ndtr(normal)[:, None] > reached).sum(axis=1), 2)
        label = np.take_along_axis(order, place[:, None], axis=1)[:, 0]
        return Rows(score, label, None, unit, classes=("a", "b", "c"))

    return drawn


def test_chance_of_several_classes_counts_the_rows_of_a_cluster_that_share_a_cell() -> None:
    rng = np.random.default_rng(7)
    drawn = calibrated_clusters(rng, 0.2)
    utility = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.6, 0.6, 0.0))
    decision = ClassDecision(utility, ("a", "b", "c", "abstain"))

    def levels() -> Any:
        return ClassRegrets(drawn().class_table, decision).levels("bins")

    seen = np.mean([levels().value for _ in range(150)])
    assert np.mean([levels().null(rng).mean() for _ in range(4)]) == pytest.approx(seen, rel=0.2)


def test_a_calibrated_model_shows_the_utility_calibration_of_its_null_in_clusters() -> None:
    """Rows of a cluster have many predicted utilities, and what each is off by goes together."""
    drawn = calibrated_clusters(np.random.default_rng(3), 0.3)
    decision = ClassDecision(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), ("a", "b", "c"))

    def mean(name: str, times: int) -> float:
        samples = (drawn() for _ in range(times))
        values = [value_of(parse(name), Inputs.of(rows, rows.class_table, decision)) for rows in samples]
        return float(np.mean(values))

    assert mean("utility_calibration_null", 8) == pytest.approx(mean("utility_calibration", 200), rel=0.15)
