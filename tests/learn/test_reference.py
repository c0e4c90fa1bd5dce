"""Recalibration against released peers: fitted on one half of the shipped file, scored on the other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.training import fit_method, shipped_training, unlabelled

PEER = "scikit-learn 1.9.1, "
BRIER = {
    "isotonic": (0.1976744936, 1e-9, PEER + "IsotonicRegression(out_of_bounds=clip)"),
    "platt(on=p)": (0.2006604450, 1e-9, PEER + "_SigmoidCalibration on p"),
    "platt": (0.1969548927, 1e-9, PEER + "_SigmoidCalibration on logit(p)"),
    "platt(targets=labels)": (0.1969811899, 1e-9, PEER + "LogisticRegression(C=inf) on logit(p)"),
    "temperature": (0.1962045987, 1e-9, PEER + "_TemperatureScaling on logit(p)"),
    "beta": (0.1967413892, 1e-9, PEER + "LogisticRegression(C=inf) on log p, -log(1 - p): a, b come out above 0"),
    "venn-abers": (0.1973815767, 1e-9, PEER + "IsotonicRegression refitted twice for every scored row"),
    "histogram(bins=10)": (0.1968162, 1e-9, "frequencies between numpy's quantiles, by hand"),
    "scaling-binning(bins=10)": (0.1972894533, 5e-4, "uncertainty-calibration 0.1.4, which cuts bins otherwise"),
}
COEFFICIENTS = {
    "platt(on=p)": ({"slope": 3.0774959774, "intercept": -2.0576454766}, "as above; its A and B have the other sign"),
    "platt": ({"slope": 0.5089667642, "intercept": -0.4849766633}, "as above; its A and B have the other sign"),
    "platt(targets=labels)": ({"slope": 0.5124642840, "intercept": -0.4832463228}, "as above"),
    "temperature": ({"slope": 1 / 1.6591871014, "intercept": 0.0}, "as above; half of 1 / beta_, it has two logits"),
    "beta": ({"a": 0.5285384882, "b": 0.4887644791, "c": -0.4449289530}, "as above"),
}


@pytest.mark.parametrize("key", BRIER)
def test_the_brier_score_on_the_other_half_is_the_peers(key: str) -> None:
    test = shipped_training("test")
    value, within, origin = BRIER[key]
    score = fit_method(key, shipped_training("cal"))(unlabelled(test)).score
    assert np.mean((score - test.label) ** 2) == pytest.approx(value, abs=within), origin


@pytest.mark.parametrize("key", COEFFICIENTS)
def test_the_coefficients_are_the_peers(key: str) -> None:
    expected, origin = COEFFICIENTS[key]
    model = fit_method(key, shipped_training("cal"))
    for name, value in expected.items():
        assert getattr(model, name) == pytest.approx(value, abs=1e-6), origin


def test_isotonic_returns_the_peers_zeros_and_ones() -> None:
    score = fit_method("isotonic", shipped_training("cal"))(unlabelled(shipped_training("test"))).score
    assert (int((score == 0).sum()), int((score == 1).sum())) == (24, 3)  # scikit-learn 1.9.1, IsotonicRegression
