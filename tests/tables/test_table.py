"""The table against brute force: rows to levels, bins, merging, resampling, and large tables in blocks."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given

from decal_cli.errors import Undefined
from decal_cli.learn.method import Training
from decal_cli.tables import threads
from decal_cli.tables.memo import OnDemand
from decal_cli.tables.rows import Rows, Unlabelled, row_hashes
from decal_cli.tables.table import CELLS, Table, tabulate
from decal_cli.tables.units import Dealt, Units, ones, units_of_rows, with_zeros
from tests.helpers.worlds import any_rows, known_rows, rows_by_level

pytestmark = pytest.mark.usefixtures("seen_rows_only")


@given(rows=any_rows())
def test_tabulate_sums_weights_and_their_squares(rows: Rows) -> None:
    """Without weights, rows and positives of each score."""
    table = rows.table
    assert table.score.tolist() == sorted(set(rows.score.tolist())) and table.weighted == (rows.weight is not None)
    for i, score in enumerate(table.score):
        here = rows.score == score
        weight, positive = rows.weights[here], rows.weights[here] * rows.label[here]
        expected = weight.sum(), positive.sum(), (weight**2).sum(), (positive**2).sum()
        assert (table.n[i], table.pos[i], table.n2[i], table.pos2[i]) == pytest.approx(expected)
    assert table.effective_rows == pytest.approx(rows.weights.sum() ** 2 / (rows.weights**2).sum())


def test_minus_zero_is_zero_and_the_smallest_and_the_largest_scores_keep_their_place() -> None:
    table = tabulate(np.array([-0.0, 0.0, 0.5]), np.array([1, 0, 1]))
    assert [*zip(table.score.tolist(), table.n.tolist(), table.pos.tolist(), strict=True)] == [(0, 2, 1), (0.5, 1, 1)]
    score = np.array([1.0, 5e-324, np.nextafter(1, 0), 0.0])
    assert tabulate(score, np.array([0, 1, 1, 0])).score.tolist() == sorted(score.tolist())


@given(first=any_rows(), second=any_rows())
def test_merging_tables_is_tabulating_all_their_rows(first: Rows, second: Rows) -> None:
    merged = Table.merge([first.table, second.table])
    weight = [each.weight if each.weight is not None else np.ones(len(each.score)) for each in (first, second)]
    plain = first.weight is None and second.weight is None
    together = Rows(
        np.concatenate([first.score, second.score]),
        np.concatenate([first.label, second.label]),
        None if plain else np.concatenate(weight),
    ).table
    for ours, theirs in zip(columns_of_table(merged), columns_of_table(together), strict=True):
        assert ours == pytest.approx(theirs)


def columns_of_table(table: Table) -> list[list[float]]:
    return [column.tolist() for column in (table.score, table.n, table.pos, table.n2, table.pos2)]


@given(rows=any_rows(weights="none"))
def test_quantiles_are_numpys(rows: Rows) -> None:
    for k in (4, 15):
        assert rows.table.quantiles(k).tolist() == np.quantile(rows.score, np.arange(k + 1) / k).tolist()


def test_half_way_between_two_rows_the_quantile_is_numpys_to_the_last_bit() -> None:
    for low, high in np.random.default_rng(0).random((50, 2)):
        assert Rows(np.array([low, high]), np.array([0, 1])).table.quantiles(2)[1] == np.quantile([low, high], 0.5)


@given(rows=any_rows())
def test_bins_never_split_ties_and_lose_no_row(rows: Rows) -> None:
    table = rows.table
    for strategy in ("mass", "width"):
        binned = table.bins(7, strategy)
        assert len(binned) <= 7
        assert binned.total == pytest.approx(table.total)
        assert binned.positives == pytest.approx(table.positives)
        assert (np.diff(binned.score) > 0).all()
        assert float(binned.n @ binned.score) == pytest.approx(float(np.asarray(table.n, float) @ table.score))


@pytest.mark.parametrize(
    ("levels", "bins", "rows_of_bins"),
    [
        # A score on an edge goes to the lower bin by mass and to the upper by width; 1 belongs to the last.
        ({0.2: "0", 0.5: "1", 0.8: "0"}, (2, "mass"), [2, 1]),
        ({0.2: "0", 0.5: "1", 0.8: "0"}, (2, "width"), [1, 2]),
        ({0.95: "0", 1.0: "1"}, (10, "width"), [2]),
        # Quartiles .2, .2, .5 are two edges; one at the smallest score is like any other, one at the largest is none.
        ({0.2: "000000", 0.5: "01", 0.9: "1"}, (4,), [6, 2, 1]),
        ({0.2: "00000000", 0.9: "1"}, (4,), [8, 1]),
        ({0.2: "0", 0.9: "11111111"}, (4,), [9]),
    ],
)
def test_edges_of_bins_by_hand(levels: dict[float, str], bins: tuple[int, str], rows_of_bins: list[int]) -> None:
    assert rows_by_level(levels).table.bins(*bins).n.tolist() == rows_of_bins


def drawn_mean_and_variance(tables: list[Table]) -> tuple[np.ndarray, np.ndarray]:
    """Of the summed weight of positives at each score, over draws in which a score may be missing."""
    scores = sorted({score for table in tables for score in table.score.tolist()})
    sums = np.array(
        [[dict(zip(t.score.tolist(), t.pos.tolist(), strict=True)).get(s, 0) for s in scores] for t in tables]
    )
    return sums.mean(axis=0), sums.var(axis=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_resample_has_the_mean_of_its_table_and_the_variance_of_its_weights(weighted: bool) -> None:
    hand, rng = rows_by_level({0.2: "00110", 0.6: "1011", 0.9: "111"}), np.random.default_rng(0)
    if weighted:
        hand = replace(hand, weight=rng.exponential(size=12) + 0.2)
    table = hand.table
    mean, variance = drawn_mean_and_variance([table.resample(rng) for _ in range(4000)])
    assert mean == pytest.approx(np.asarray(table.pos, float), rel=0.06)
    assert variance == pytest.approx(np.asarray(table.pos2, float), rel=0.12)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_null_table_keeps_its_scores_and_draws_labels_from_them(weighted: bool) -> None:
    hand, rng = rows_by_level({0.2: "00110", 0.6: "1011", 0.9: "111"}), np.random.default_rng(0)
    if weighted:
        hand = replace(hand, weight=np.full(12, 0.5))
    table = hand.table
    tables = [*table.null(rng, 4000)]
    assert all(each.score is table.score and (each.pos <= each.n).all() for each in tables)
    mean, variance = drawn_mean_and_variance(tables)
    weight = np.asarray(table.n, float)
    assert mean == pytest.approx(weight * table.score, rel=0.03)
    unit = 0.5 if weighted else 1.0
    assert variance == pytest.approx(weight * unit * table.score * (1 - table.score), rel=0.12)


def large(size: int = 100_000) -> Rows:
    rng = np.random.default_rng(3)
    score = rng.permutation(np.arange(1, size + 1)) / (size + 2)
    return Rows(score, (rng.random(size) < score).astype(int))


def test_a_large_table_has_equal_mass_cells() -> None:
    table = large().table
    assert table.n.dtype == np.int8, "distinct scores keep one byte a level"
    assert len(table.cells) == CELLS
    assert table.cells.total == 100_000
    assert table.cells.positives == table.positives
    assert int(table.cells.n.max()) <= 2
    for few in (known_rows("binary").table, large(CELLS).table):
        assert few.cells is few


def test_a_table_of_one_class_says_so() -> None:
    with pytest.raises(Undefined, match="every label is 1"):
        rows_by_level({0.3: "11"}).table.need_both_classes()


def some(size: int = 60, seed: int = 0) -> Rows:
    """Rows with ties in every column."""
    rng = np.random.default_rng(seed)
    return Rows(
        rng.integers(0, 4, size) / 4,
        rng.integers(0, 2, size),
        rng.integers(1, 3, size) / 2,
        rng.integers(0, 5, size),
        rng.integers(0, 3, size),
        amounts={"amount": rng.exponential(size=size)},
        groups={"site": rng.choice(["a", "b"], size), "year": rng.choice(["1", "2", "3"], size)},
        features=rng.integers(0, 2, (size, 2)).astype(float),
        time=rng.integers(0, 2, size),
    )


def arrays(rows: Rows) -> dict[str, np.ndarray]:
    named = {
        field.name: getattr(rows, field.name)
        for field in fields(Rows)
        if field.name not in ("groups", "features", "classes", "amounts", "selection", "share_known", "counted")
    }
    return {**named, **rows.groups, **rows.amounts, "features": rows.matrix}


@pytest.mark.parametrize("which", [np.array([3, 3, 0]), np.arange(60) % 7 == 0, np.zeros(60, dtype=bool)])
def test_every_array_is_cut_alike(which: np.ndarray) -> None:
    cut = some().take(which)
    for name, values in arrays(some()).items():
        np.testing.assert_array_equal(arrays(cut)[name], values[which], err_msg=name)
    assert len(cut) == len(np.arange(60)[which])


def test_features_are_read_and_cut_only_when_they_are_needed() -> None:
    reads = []

    def read() -> np.ndarray:
        reads.append(1)
        return np.arange(12.0).reshape(6, 2)

    rows = Rows(np.linspace(0, 1, 6), np.arange(6) % 2, features=read)
    cut = rows.take(np.array([4, 2, 1])).take(np.array([True, False, True]))
    assert not reads
    assert cut.matrix.tolist() == [[8, 9], [2, 3]] and len(reads) == 1


def test_the_order_depends_on_content_alone() -> None:
    rows = replace(some(3000), amounts={})  # which tie nowhere, so that no other column would decide
    shuffled = rows.take(np.random.default_rng(1).permutation(3000))
    for name, values in arrays(rows.in_order()).items():
        np.testing.assert_array_equal(arrays(shuffled.in_order())[name], values, err_msg=name)
    np.testing.assert_array_equal(np.lexsort((rows.in_order().label, rows.in_order().score)), np.arange(3000))


def test_weights_that_sum_to_the_number_of_levels_are_not_one_row_each() -> None:
    t = Table(np.array([0.2, 0.4, 0.6]), np.array([0.75, 1.5, 0.75]), np.array([0.75, 0.75, 0.0]))
    assert t.isotonic.n.tolist() == [3.0] and t.isotonic.pos.tolist() == [1.5]
    assert t.merge_levels(np.array([0, 2])).n.tolist() == [2.25, 0.75]


def test_equal_rows_have_equal_hashes_whatever_their_type_and_sign_of_zero() -> None:
    matrix = np.array([[0.0, 1.5], [-0.0, 1.5], [1.5, 0.0]])
    first, second, swapped = row_hashes(matrix).tolist()
    assert first == second != swapped
    assert row_hashes(matrix.astype(np.float32)).tolist() == [first, second, swapped]


def test_all_rows_then_those_of_every_value_of_every_group() -> None:
    rows = some()
    parts = dict(rows.by_group())
    assert list(parts) == [None, "site=a", "site=b", "year=1", "year=2", "year=3"]
    np.testing.assert_array_equal(parts["year=2"].score, rows.score[rows.groups["year"] == "2"])
    assert parts[None].score is rows.score and not any(part.groups for part in parts.values())
    one = replace(rows, groups={"site": rows.groups["site"]})
    assert [name for name, _ in one.by_group()] == [None, "a", "b"]


def test_a_kind_of_rows_stays_what_it_is() -> None:
    training = Training(np.array([0.2, 0.4]), np.array([0.0, 1.0]), seed=7)
    training.cached("key", lambda: 1)
    cut = training.take(np.array([1]))
    assert type(cut) is Training and cut.seed == 7
    assert cut.cached("key", lambda: 2) == 2, "what was computed of all rows is not of these"
    assert type(Unlabelled(np.array([0.2])).take(np.array([0]))) is Unlabelled


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000])
def test_two_threads_sort_as_one(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MANY", 2)
    values = np.random.default_rng(count).integers(500, size=count).astype(np.uint64)
    expected = np.sort(values)
    threads.sort(values)
    assert np.array_equal(values, expected)


def test_what_is_wrong_beside_is_raised_where_it_is_waited_for() -> None:
    result = threads.beside(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        result()


def test_what_is_asked_for_is_computed_then_and_once() -> None:
    computed: list[str] = []

    def of(key: str) -> int:
        computed.append(key)
        return len(key)

    lengths = OnDemand(["a", "bb", "ccc"], of)
    assert list(lengths) == ["a", "bb", "ccc"] and "bb" in lengths and "d" not in lengths and not computed
    assert lengths["bb"] == lengths["bb"] == 2 and computed == ["bb"]
    assert lengths.get("d") is None and dict(lengths) == {"a": 1, "bb": 2, "ccc": 3}


@pytest.mark.parametrize("worth", [False, True])
def test_work_taken_from_both_ends_is_all_done_and_its_errors_are_raised(worth: bool) -> None:
    done: list[int] = []
    threads.from_both_ends([partial(done.append, k) for k in range(50)], worth)
    assert sorted(done) == list(range(50)) and (worth or done == sorted(done))
    assert threads.from_both_ends([partial(pow, k, 2) for k in range(50)], worth) == [k**2 for k in range(50)]
    for at in (0, 49):
        wrong = [list[int]().pop if k == at else partial(done.append, k) for k in range(50)]
        with pytest.raises(IndexError, match="pop from empty list"):
            threads.from_both_ends(wrong, worth)


def test_cells_of_many_rows_vary_as_their_rows_do_over_deals() -> None:
    """Rows dealt into folds several times: known row by row, and by the cells that they are of."""
    rng, n, deals, folds = np.random.default_rng(3), 40_000, 3, 5
    cell, fold, worth = rng.integers(0, 4, n), rng.integers(0, folds, (deals, n)), rng.normal(size=(deals, folds, 4))
    rows = units_of_rows(np.zeros(n, dtype=np.int64), None, None).dealt(deals)
    of_rows = rows.mean(np.concatenate([worth[k, fold[k], cell] for k in range(deals)]))
    counts = np.stack([np.bincount(fold[k] * 4 + cell, minlength=folds * 4).reshape(folds, 4) for k in range(deals)])
    deal, _, origin = (at.ravel() for at in np.indices(counts.shape))
    weight = counts.ravel() / deals
    sampling = Dealt(origin, deal, deals, square=weight)
    cells = Units(np.zeros(len(weight), dtype=np.int64), weight, sampling, rows=float(n))
    of_cells = cells.mean(worth.ravel())
    assert of_cells.value == pytest.approx(of_rows.value, abs=1e-12)
    assert of_cells.seen == pytest.approx(of_rows.seen, rel=0.01)
    assert cells.effective_rows == pytest.approx(rows.effective_rows) == n


def test_some_of_the_units_are_as_many_rows_as_their_weights_say() -> None:
    """(sum of w)^2 / sum of w^2; where the rows are counted, their share of them."""
    weight, some = np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, True, False])
    units = units_of_rows(np.array([0, 1, 0, 1]), weight, None)
    assert units.rows_of(some) == pytest.approx(25 / 13)
    assert replace(units, rows=20.0).rows_of(some) == pytest.approx(20 * (25 / 13) / (100 / 30))


def test_a_row_that_could_have_been_missed_is_as_far_in_several_deals_as_in_one() -> None:
    units = units_of_rows(np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0]), None)
    influence = np.array([0.5, -0.25, 0.125, 1.0])
    # Label 0: (1^2 .5^2 + 3^2 .125^2) / (1^2 + 3^2), times 10^2; label 1: (2^2 .25^2 + 4^2) / (2^2 + 4^2), times 10^2.
    assert units.farthest(influence) == pytest.approx(100 * 16.25 / 20)
    assert units.dealt(2).farthest(np.tile(influence, 2)) == pytest.approx(100 * 16.25 / 20)


def test_deals_that_disagree_make_an_estimate_less_sure() -> None:
    """All that varies is the deal: the variance of a mean of two numbers that are 1 apart."""
    rows = units_of_rows(np.array([0, 1, 0, 1]), None, None).dealt(2)
    assert rows.mean(np.repeat((0.0, 1.0), 4)).seen == pytest.approx(0.5)
    assert rows.mean(np.tile((0.0, 0.0, 1.0, 1.0), 2)).seen == pytest.approx(0.25)


@pytest.mark.parametrize("values", [ones(3), np.broadcast_to(np.float64(0.7), 3), np.array([0.5, 2.0, 1.0])])
def test_zeros_after_numbers_change_none_of_them(values: np.ndarray) -> None:
    assert with_zeros(values, 2).tolist() == [*values.tolist(), 0, 0]
