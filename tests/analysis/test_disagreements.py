"""Decisions of two models beside each other: by hand, and McNemar's test by scipy's binomial test."""

import numpy as np
import pytest
from scipy.stats import binomtest

from decal_cli.analysis.compare import disagreements, exact_sign_test
from decal_cli.tables.pairs import pair_up
from tests.helpers.command import FOX, Decal

PAIR = ("--score", "p_profanity", "--score", "p_hatesonar", "--label", "y", "--threshold", "0.3")


@pytest.mark.parametrize("weighted", [False, True])
def test_the_table_by_hand(weighted: bool) -> None:
    rng = np.random.default_rng(5)
    a, b, label = np.round(rng.random(300), 2), np.round(rng.random(300), 2), (rng.random(300) < 0.4).astype(int)
    weight = rng.gamma(2.0, size=300) if weighted else np.ones(300)
    counted = disagreements(pair_up(a, b, label, weight if weighted else None), 0.5)
    for by_a in (0, 1):
        for by_b in (0, 1):
            for at in (0, 1):
                which = ((a >= 0.5) == by_a) & ((b >= 0.5) == by_b) & (label == at)
                assert counted.rows[by_a][by_b][at] == pytest.approx(weight[which].sum(), rel=1e-12)
    only_a = (((a >= 0.5) == label) & ((b >= 0.5) != label)) * weight
    assert counted.a_right == pytest.approx(only_a.sum(), rel=1e-12)
    assert (counted.p_value is None) == weighted


@pytest.mark.parametrize(("one", "other"), [(0, 0), (1, 0), (3, 9), (10, 10), (883, 967), (40, 200)])
def test_the_exact_test_is_the_binomial_one(one: int, other: int) -> None:
    expected = binomtest(one, one + other).pvalue if one + other else 1.0
    assert exact_sign_test(one, other) == pytest.approx(expected, rel=1e-9)


def test_compare_shows_them_in_the_user_s_words(decal: Decal, tmp_path: object) -> None:
    named = decal("compare", FOX, *PAIR, "--names", "keep,remove", "--unit", "EUR", "--no-intervals")
    assert "remove" in named.out and "EUR per 1,000 decisions" in named.out
    document = decal.json("compare", FOX, *PAIR, "--no-intervals")
    (contest,) = document["comparison"]["contests"]
    counted = contest["disagreements"]
    cells = [counted[key] for key in ("both_0", "only_b_1", "only_a_1", "both_1")]
    assert sum(map(sum, cells)) == contest["rows"] and sum(cell[1] for cell in cells) == contest["positives"]
    for count in (counted["only_a_right"], counted["only_b_right"]):
        assert f"{count:,.0f}" in named.out
    without = decal.json("compare", FOX, *PAIR[:6], "--no-intervals")
    assert without["comparison"]["contests"][0]["disagreements"] is None


def test_compare_draws(decal: Decal, tmp_path: object) -> None:
    assert decal("compare", FOX, *PAIR, "--no-intervals", "--plot", "both.svg").code == 0
    assert "Decision curve" in (tmp_path / "both.svg").read_text()
    assert "treat all" in decal("compare", FOX, *PAIR, "--no-intervals", "--plot", "-").out
