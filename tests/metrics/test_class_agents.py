"""The worst agents of several classes: dense linear programs, published values, closed forms, and pasted back."""

import json

import numpy as np
import pytest
from scipy.optimize import linprog

from decal_cli.metrics import Inputs, Witness, measure, parse, value_of
from decal_cli.metrics.families import agents
from decal_cli.tables.classes import ClassLevels
from decal_cli.tables.rows import Rows
from decal_cli.task import ClassDecision
from tests.helpers.classes import THREE, as_two, known
from tests.helpers.command import FIXTURES, Decal
from tests.helpers.paper_examples import EPOCHS_18, FOLDER

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


def value(key: str, rows: Rows) -> float:
    return value_of(parse(key), Inputs(rows))


@pytest.mark.parametrize(("seed", "levels", "classes"), [(1, 6, 3), (2, 12, 3), (3, 10, 4), (4, 25, 2), (5, 16, 3)])
def test_cuts_find_what_all_constraints_find(seed: int, levels: int, classes: int) -> None:
    rows = of_levels(seed, levels, classes)
    levels_of = rows.class_table.at_levels()
    assert agents.over_constant(levels_of).loss == pytest.approx(all_pairs(rows, "u_cal"), abs=SOLVED)
    assert agents.over_frequencies(levels_of).loss == pytest.approx(all_pairs(rows, "cdl"), abs=SOLVED)
    assert agents.most_over_frequencies(levels_of) == pytest.approx(all_pairs(rows, "cdl"), abs=SOLVED)


def test_published_values() -> None:
    rows = rounded_to_tenths()
    assert rows.class_table.n_levels == 66
    assert value("u_cal", rows) == pytest.approx(0.06, abs=SOLVED)
    assert value("cdl(levels=exact)", rows) == pytest.approx(0.0605185185, abs=SOLVED)


def test_one_class_against_the_rest_is_not_enough() -> None:
    """Kleinberg et al. 2023, theorem 18: every class for itself is calibrated."""
    rows = theorem_18()
    assert value("ece_classwise(bins=3)", rows) == pytest.approx(0, abs=1e-12)
    assert value("u_cal", rows) == pytest.approx(2 / 9, abs=SOLVED)
    assert value("cdl(levels=exact)", rows) == pytest.approx(5 / 9, abs=SOLVED)


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_have_the_closed_forms(weighted: bool) -> None:
    rng = np.random.default_rng(3)
    score = np.round(rng.uniform(0.02, 0.98, 300), 1)
    weight = rng.uniform(0.5, 2, 300) if weighted else None
    rows = Rows(score, (rng.random(300) < score**1.6).astype(np.uint8), weight)
    two = as_two(rows)
    for key in ("u_cal", "cdl", "cdl(levels=exact)", "cdl_null"):
        assert value(key, two) == pytest.approx(value(key, rows), abs=1e-12)
    for witness in (measure(parse("u_cal"), Inputs(two)).witness, measure(parse("u_cal"), Inputs(rows)).witness):
        assert witness is not None and len(witness.thresholds) in (1, 2)
    levels = two.class_table.at_levels()
    assert agents.over_constant(levels).loss == pytest.approx(value("u_cal", rows), abs=SOLVED)
    assert agents.over_frequencies(levels).loss == pytest.approx(value("cdl(levels=exact)", rows), abs=SOLVED)


def shown(rows: Rows, witness: Witness) -> float:
    decision = ClassDecision(witness.utility, tuple(map(str, range(len(witness.utility)))))
    return value_of(parse(witness.shown_by), Inputs(rows, decision=decision))


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
    assert result.witness is not None and result.value is not None
    payoffs = np.array(result.witness.utility)
    assert payoffs.shape[1] == len(rows.classes) and payoffs.min() >= 0 and payoffs.max() <= 1
    assert shown(rows, result.witness) == pytest.approx(result.witness.loss, abs=1e-12)
    assert result.witness.loss == pytest.approx(result.value, abs=SOLVED)


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
        assert result.value == pytest.approx(0, abs=1e-9) and result.witness is None


def test_cells_are_as_many_as_asked_for_and_equally_full() -> None:
    c = of_levels(9, 10_000, 3, rows=1024).class_table
    cells: ClassLevels = c.in_cells(16)
    assert np.array_equal(np.bincount(cells.of_row), cells.counts.sum(axis=1))
    assert len(cells.score) == 16 and cells.counts.sum(axis=1) == pytest.approx(64, abs=8)
    assert cells.score.T @ cells.counts.sum(axis=1) == pytest.approx(c.score.sum(axis=0))


def test_a_calibrated_model_lies_about_its_null() -> None:
    rng = np.random.default_rng(5)
    score = rng.dirichlet(np.ones(3), 8)[rng.integers(8, size=400)]
    null = value("cdl_null", Rows(score, rng.integers(3, size=400), classes=THREE))
    drawn = []
    for _ in range(20):
        label = (rng.random((400, 1)) > np.cumsum(score, axis=1)[:, :2]).sum(axis=1)
        drawn.append(value("cdl", Rows(score, label, classes=THREE)))
    assert null == pytest.approx(np.mean(drawn), abs=5 * np.std(drawn) / np.sqrt(20))


def test_the_printed_line_pastes_back(decal: Decal) -> None:
    path = FOLDER / "kleinberg_18.csv"
    text = decal("evaluate", path, "--proba", "p_*", "-y", "y", "--metric", "u_cal", "--no-intervals").out
    line = next(line for line in text.splitlines() if line.startswith("worst agent of u_cal"))
    assert line.endswith("(loses 0.2222, see external_regret)")
    utility = line.split("'")[1]
    done = decal("evaluate", path, "--proba", "p_*", "-y", "y", "--utility", utility, "--metric", "external_regret",
                 "--no-intervals", "-f", "json")  # fmt: skip
    assert json.loads(done.out)["metrics"]["external_regret"]["value"] == pytest.approx(2 / 9, abs=SOLVED)


def test_long_agents_stand_in_json(decal: Decal) -> None:
    path = FIXTURES / "multiclass_n1500_k3.csv"
    line = [path, "--proba", "p_*", "-y", "y", "--metric", "cdl", "--no-intervals"]
    assert "actions, --utility in JSON, as worst_agent (loses" in decal("evaluate", *line).out
    worst = decal.json("evaluate", *line)["metrics"]["cdl"]["worst_agent"]
    assert worst["shown_by"] == "cfdl" and len(worst["utility"][0]) == 3 and worst["thresholds"] == []
