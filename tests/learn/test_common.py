"""What holds for every declared method, on rows that hypothesis draws and at the edges."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given

from decal_cli.errors import Undefined
from decal_cli.learn.method import Method, MethodSpec, Training, fit, fitted_folds, try_out
from decal_cli.learn.methods import METHODS, parse
from decal_cli.learn.models import Applied, Model
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.table import FEWEST_ROWS
from decal_cli.task import BinaryTask
from tests.helpers.training import (
    OF_THREE,
    OF_TWO,
    class_training,
    fit_method,
    gain_of,
    random_training,
    training_of,
    unlabelled,
)
from tests.helpers.worlds import any_rows, rows_by_level

FORMS = {
    "platt": ["platt(on=p)", "platt(targets=labels)"],
    "glar": ["glar(r=0)", "glar(r=-1)", "glar(r=-1,adjust=threshold)"],
}
"""Parameters under which a method is another method."""
KEYS = [key for name in OF_TWO for key in (name, *FORMS.get(name, []))]
CASES = [*((key, 2) for key in KEYS), *((key, 3) for key in OF_THREE)]
every_case = pytest.mark.parametrize(("key", "classes"), CASES)
SLOW = {"stack-forest", "stack-boosting", "blend", "probing"}
"""Many trees or many fits: one world says enough."""


def fitted_or_reason(key: str, rows: Training) -> Model | str:
    try:
        return fit_method(key, rows)
    except Undefined as undefined:
        assert undefined.reason
        return undefined.reason


def columns_of(applied: Applied) -> dict[str, np.ndarray]:
    return {name: values for name, values in applied._asdict().items() if values is not None}


def assert_sound(applied: Applied, rows: int) -> None:
    for name, values in columns_of(applied).items():
        assert len(values) == rows and np.isfinite(values).all()
        assert values.ndim == 1 or values.sum(axis=1) == pytest.approx(1, abs=1e-12)
        if name != "threshold":
            assert values.min() >= 0 and values.max() <= 1
    if applied.lower is not None and applied.upper is not None:
        assert (applied.lower <= applied.score).all() and (applied.score <= applied.upper).all()


def assert_equal(one: Applied, other: Applied, within: float = 0.0) -> None:
    assert columns_of(one).keys() == columns_of(other).keys()
    for name, values in columns_of(one).items():
        np.testing.assert_allclose(values, columns_of(other)[name], rtol=0, atol=within, err_msg=name)


ENDS = Unlabelled(np.array([0.0, 1.0]), groups={"half": np.array(["low", "high"])}, features=np.zeros((2, 2)))


def check_drawn(key: str, rows: Training) -> None:
    """Scores in [0, 1], 0 and 1 among what is scored; the rows' order changes no bit."""
    model = fitted_or_reason(key, rows)
    order = np.random.default_rng(0).permutation(len(rows))
    again = fitted_or_reason(key, rows.take(order))
    if isinstance(model, str) or isinstance(again, str):
        assert model == again
        return
    for new in (unlabelled(rows), ENDS):
        assert_sound(model(new), len(new))
        assert_equal(model(new), again(new))


@pytest.mark.ci
@given(rows=any_rows())
def test_drawn_rows_give_sound_scores_whatever_their_order(rows: Rows) -> None:
    for key in KEYS:
        if key not in SLOW:
            check_drawn(key, training_of(rows))


def world(classes: int, weighted: bool = False) -> Training:
    return random_training(150, 4, weighted) if classes == 2 else class_training(rows=300, weighted=weighted)


@cache
def fitted_to_the_world(key: str, classes: int) -> Model:
    return fit_method(key, world(classes))


NEW = {2: unlabelled(random_training(40, 99)), 3: unlabelled(class_training(99, 40))}


@every_case
def test_a_world_gives_sound_scores_whatever_its_order(key: str, classes: int) -> None:
    for rows in (world(classes), world(classes, weighted=True)):
        order = np.random.default_rng(0).permutation(len(rows))
        score = fit_method(key, rows)(NEW[classes])
        assert_sound(score, 40)
        assert_equal(score, fit_method(key, rows.take(order))(NEW[classes]), within=0.0 if classes == 2 else 1e-6)


@every_case
def test_a_row_is_scored_alike_among_any_others(key: str, classes: int) -> None:
    model, new = fitted_to_the_world(key, classes), NEW[classes]
    whole = model(new)
    for rows in (np.arange(40)[::-1], np.arange(7, 19), np.array([3, 3, 3]), np.array([11]), np.array([], dtype=int)):
        assert_equal(model(new.take(rows)), Applied(*(None if v is None else v[rows] for v in whole)))


@every_case
def test_fitting_and_applying_leave_their_rows_as_they_were(key: str, classes: int) -> None:
    rows, new = world(classes), NEW[classes].take(np.arange(40))
    columns = [rows.score, rows.matrix, *rows.groups.values(), rows.label, new.score, new.matrix, *new.groups.values()]
    before = [np.array(column) for column in columns]
    assert_equal(fit_method(key, rows)(new), fitted_to_the_world(key, classes)(new))
    assert all(np.array_equal(old, now) for old, now in zip(before, columns, strict=True))


CUT_BY_ROWS = {
    "histogram": "quantiles of weighted rows invert the cumulative weight, of others they are interpolated",
    "scaling-binning": "as histogram",
    "meta-cal": "rows drawn at random set the cut",
    "glar": "halves of the rows are drawn at random, and a leaf holds a number of rows",
    "multicalibration": "rows held out are drawn at random",
    "stack-forest": "trees are grown on rows drawn at random",
    "stack-boosting": "a leaf holds a number of rows",
    "stack": "each row's score is recalibrated by folds of rows drawn at random",
    "blend": "as stack and stack-boosting",
    "probing": "as stack",
}
"""Where one row of weight 2 is not two rows, and why."""


CUT_OF_CLASSES = {"blend", "stack-forest", "stack-boosting"}
BY_WEIGHT = [case for case in CASES if parse(case[0]).name not in (CUT_BY_ROWS if case[1] == 2 else CUT_OF_CLASSES)]


@pytest.mark.parametrize(("key", "classes"), BY_WEIGHT)
def test_a_weight_of_two_is_two_rows(key: str, classes: int) -> None:
    rows, new = world(classes), NEW[classes]
    times = 1 + np.arange(len(rows)) % 2
    heavy, twice = replace(rows, weight=times.astype(float)), rows.take(np.repeat(np.arange(len(rows)), times))
    # Features of several classes are standardised by weights, and their penalty is one for both.
    assert_equal(fit_method(key, heavy)(new), fit_method(key, twice)(new), within=1e-6 if classes == 2 else 2e-5)


EDGES = {
    "two rows": rows_by_level({0.2: "0", 0.7: "1"}),
    "two rows, the wrong way": rows_by_level({0.2: "1", 0.7: "0"}),
    "one row": rows_by_level({0.3: "1"}),
    "one class": rows_by_level({0.1: "000", 0.7: "0"}),
    "all scores tied": rows_by_level({0.4: "0110" * 10}),
    "all scores tied at 1": rows_by_level({1.0: "0111" * 10}),
    "all scores tied at .5": rows_by_level({0.5: "01" * 20}),
    "scores 0 and 1, all right": rows_by_level({0.0: "0" * 20, 1.0: "1" * 20}),
    "scores 0 and 1, all wrong": rows_by_level({0.0: "1" * 20, 1.0: "0" * 20}),
    "scores 0 and 1, some wrong": rows_by_level({0.0: "0001" * 10, 0.5: "01" * 10, 1.0: "1110" * 10}),
    "separated": rows_by_level({0.2: "00" * 10, 0.4: "0" * 10, 0.7: "11" * 10}),
    "tiny weights": replace(rows_by_level({0.2: "0010" * 10, 0.7: "1011" * 10}), weight=np.full(80, 1e-9)),
    "huge weights": replace(rows_by_level({0.2: "0010" * 10, 0.7: "1011" * 10}), weight=np.full(80, 1e9)),
}


@pytest.mark.parametrize("key", KEYS)
def test_at_the_edges_a_method_fits_or_says_what_it_needs(key: str) -> None:
    for edge, rows in EDGES.items():
        learned = training_of(rows)
        model = fitted_or_reason(key, learned)
        if isinstance(model, str):
            assert model.startswith("needs "), edge
            continue
        for new in (unlabelled(learned), ENDS):
            assert_sound(model(new), len(new))


def test_what_a_method_needs_it_says_where_it_is_missing() -> None:
    for name, method in ((name, METHODS[name]) for name in OF_TWO):
        for need in method.needs:
            with pytest.raises(Undefined, match=f"^needs .*{need.rstrip('s')}"):
                fit_method(name, replace(world(2), **{need: None}))


def test_a_method_is_described() -> None:
    for name, method in METHODS.items():
        assert method.summary.endswith(".") and len(method.summary) <= 120, name
        assert method.source and method.title and len(method.text.splitlines()) > 2, name
        assert all(parameter.text for parameter in method.parameters), name


def test_recalibration_comes_first() -> None:
    kinds = [method.kind for method in METHODS.values()]
    assert kinds == sorted(kinds, key=["recalibration", "post-training"].index)
    assert next(iter(METHODS)) == "isotonic"


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


class TestMemory:
    """No in-sample optimism: what is only remembered is worth nothing on rows held out."""

    def test_a_method_that_memorises_rows_wins_nothing(self) -> None:
        rows = overconfident(400, seed=0)
        in_sample = gain_of(rows, fit(MEMORISE, rows)(rows))
        assert in_sample.value > 0.1 * TASK.u_delta, "it looks splendid on its own rows"
        held_out = gain_of(rows, try_out(MEMORISE, rows).applied)
        assert held_out.value == 0
        assert 0 < held_out.error < 0.01, "no decision changes, and that of one more row might"


class TestKnownTruth:
    def test_utilities_are_per_decision_in_the_users_unit(self) -> None:
        rows = Training(np.array([0.1, 0.9]), np.array([1.0, 1.0]), np.array([1.0, 3.0]), task=TASK)
        # The first row, a quarter of the weight, is a missed positive: each of those costs 3.
        assert gain_of(rows, Applied(np.ones(2))).value == pytest.approx(3.0 / 4)
        assert gain_of(rows, Applied(rows.score)).value == 0

    def test_the_gain_is_counted_from_where_the_model_is_operated(self) -> None:
        rows = overconfident(400, seed=3)
        moved = replace(rows, task=BinaryTask.of_costs(2.0, 3.0, decision_threshold=0.9))
        gain, back = gain_of(moved, Applied(rows.score)), gain_of(rows, Applied(rows.score, np.full(400, 0.9)))
        assert gain.value == pytest.approx(-back.value)

    def test_without_a_task_there_are_scores(self) -> None:
        trial = try_out(parse("isotonic"), replace(overconfident(200, seed=0), task=None))
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


@pytest.mark.parametrize("key", ["venn-abers", "stack"])
def test_the_order_of_rows_does_not_matter(key: str) -> None:
    """Fits do not depend on it (test_common.py), and neither do the folds and what is won on them."""
    rows = random_training(120, seed=2, weighted=True)
    order = np.random.default_rng(0).permutation(len(rows))
    first, second = (try_out(parse(key), each) for each in (rows, rows.take(order)))
    for one, other in zip(first.applied, second.applied, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            np.testing.assert_array_equal(one[order], other)
    one, other = gain_of(rows, first.applied), gain_of(rows.take(order), second.applied)
    assert (one.value, one.error) == pytest.approx((other.value, other.error), rel=1e-9, abs=1e-15)
