"""Decision curves: the numbers that dcurves publishes, and what a sweep shows of them."""

import re

import numpy as np
import pytest

from decal_cli.curves import Grid, curves_of
from decal_cli.tables.table import Table
from tests.helpers.command import BINARY, FOX, Decal

FAMILY_HISTORY = Table.of_counts([0.0, 1.0], [554 + 81, 91 + 24], [81, 24])
"""df_binary of dcurves: 750 patients by family history (the test) and cancer (the label)."""
PUBLISHED = {
    # net benefit, of treating all, net interventions avoided per row: r_case1_results.csv of dcurves 1.1.7, by R
    0.05: (0.025614035088, 0.094736842105, -1.313333333333),
    0.10: (0.018518518519, 0.044444444444, -0.233333333333),
    0.15: (0.010588235294, -0.011764705882, 0.126666666667),
    0.20: (0.001666666667, -0.075000000000, 0.306666666667),
    0.30: (-0.020000000000, -0.228571428571, 0.486666666667),
    0.50: (-0.089333333333, -0.720000000000, 0.630666666667),
}
TASK = ("--cost-fp", 300, "--cost-fn", 577)


def test_the_numbers_that_dcurves_publishes() -> None:
    curves = curves_of(FAMILY_HISTORY, None, Grid(np.array(list(PUBLISHED))))
    names = ("net_benefit", "net_benefit_all", "interventions_avoided")
    for k, published in enumerate(PUBLISHED.values()):
        values = [curves[name].value[k] for name in names]
        assert values[:2] == pytest.approx(published[:2], abs=1e-11)
        assert values[2] == pytest.approx(100 * published[2], abs=1e-9)


def test_a_row_stands_at_the_user_s_threshold(decal: Decal) -> None:
    done = decal("sweep", BINARY, "-s", "p", "-y", "y", *TASK, "--thresholds", "0.1:0.9:0.1", "--no-intervals")
    assert len(re.findall(r"^→ 0\.3421 ", done.out, re.MULTILINE)) == 4
    document = decal.json("sweep", BINARY, "-s", "p", "-y", "y", *TASK, "--no-intervals")
    at = document["sweep"]["thresholds"]
    assert document["task"]["threshold"] in at and len(at) == 100


def test_several_models_stand_against_treating_all_and_none(decal: Decal) -> None:
    asked = (FOX, "-s", "p_profanity", "-s", "p_hatesonar", "-y", "y", "-t", ".3", "--no-intervals")
    out = decal("sweep", *asked, "--thresholds", "0.1:0.5:0.1", "--plot", "-").out
    head = out[out.index("Net benefit of all models") :].splitlines()
    assert head[1].split() == ["t*", "treat", "none", "treat", "all", "p_profanity", "p_hatesonar"]
    assert head[4].startswith("→ 0.3")
    axis = [line for line in out.splitlines() if re.fullmatch(r" +0\.1 +0\.3 +0\.5", line)]
    assert len(axis) == 2
