"""fit, apply and study from Python: the same numbers as the command, in the user's own frames."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import decal_cli as decal
from tests.helpers.command import BINARY, FIXTURES

FRAME = pd.read_csv(BINARY)
FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": pa.Table.from_pandas,
    "mapping": lambda frame: frame.to_dict("list"),
}


@pytest.fixture(scope="module")
def fitted() -> decal.FitAnswer:
    return decal.fit(FRAME, score="p", label="y", features="x*", method="stack", threshold=0.3)


@pytest.mark.parametrize("kind", FRAMES)
def test_apply_adds_the_same_column_to_any_frame(fitted: decal.FitAnswer, kind: str) -> None:
    frame = FRAMES[kind](FRAME)
    scored = fitted.apply(frame)
    assert type(scored) is type(frame)
    scored = scored.collect() if kind == "lazy" else scored
    expected = decal.apply(fitted, FRAME)["p_stack"].to_numpy()
    assert np.array_equal(np.asarray(scored["p_stack"]), expected)
    assert not np.array_equal(expected, FRAME["p"].to_numpy())
    if kind in ("pandas", "polars", "pyarrow"):  # rows without a score have no new one
        frame = FRAMES[kind](FRAME.assign(p=FRAME["p"].where(FRAME["p"] < 0.5)))
        with pytest.raises(decal.DecalError, match="missing='drop'"):
            fitted.apply(frame)
        new = np.asarray(fitted.apply(frame, missing="drop")["p_stack"], dtype=np.float64)
        assert np.array_equal(np.isnan(new), FRAME["p"] >= 0.5)


def test_a_saved_model_scores_frames_and_files(fitted: decal.FitAnswer, tmp_path: Path) -> None:
    fitted.save_model(tmp_path / "m.json")
    of_file = decal.apply(tmp_path / "m.json", BINARY)
    assert isinstance(of_file, pa.Table) and of_file.num_rows == len(FRAME)
    expected = fitted.apply(FRAME, name="again")["again"].to_numpy()
    assert np.array_equal(of_file["p_stack"].to_numpy(), expected)


def test_what_is_shown_of_a_fit_is_its_gain(fitted: decal.FitAnswer) -> None:
    shown = re.search(r"gain per 1,000 decisions on held-out rows: (\S+) \[", repr(fitted))
    assert shown is not None
    assert float(shown[1]) == pytest.approx(1000 * fitted.to_dict()["fit"]["gain"]["value"], rel=0.01)


def test_arrays_are_fitted_and_applied_by_the_names_of_their_roles() -> None:
    p, y, x = FRAME["p"].to_numpy(), FRAME["y"].to_numpy(), FRAME[["x1", "x2"]].to_numpy()
    answer = decal.fit(p, y, features=x, method="stack")
    scored = decal.apply(answer, {"score": p, "features": x})
    assert scored["score_stack"].shape == p.shape
    with pytest.raises(decal.DecalError, match=r"name them: apply\(model, \{'score': scores\}\)"):
        decal.apply(answer, p)


def test_a_test_set_is_one_that_the_model_was_not_fitted_to() -> None:
    first, second = FRAME.iloc[:1000], FRAME.iloc[1000:]
    answer = decal.fit(first, score="p", label="y", method="isotonic", test=second)
    assert answer.to_dict()["fit"]["judged"] == "test" and answer.result.fitting.judged.rows == 1000
    with pytest.raises(decal.DecalError, match="holds the rows that the model is fitted to"):
        decal.fit(first, score="p", label="y", method="isotonic", test=first)


def test_a_study_has_points_and_a_picture(tmp_path: Path) -> None:
    matplotlib.use("agg")
    fox = FIXTURES / "fox_news.parquet"
    answer = decal.study(
        fox, score="p_hatesonar", label="y", methods=["isotonic"], thresholds=[0.1, 0.3], seeds=1, folder=tmp_path / "s"
    )
    points = answer.to_frame()
    assert len(points) == 2 and "gain of isotonic" in points.columns
    assert answer.plot().get_ylabel() == "gain (other half)"
    gains = answer.to_dict()["study"]["mean_gains"]
    assert gains == pytest.approx({name: np.nanmean(each) for name, each in answer.summary.points.gains.items()})
    assert f"{1000 * gains['isotonic']:.2f}" in str(answer)
    with pytest.raises(decal.DecalError, match="did you mean gain_recalibration"):
        answer.plot("gain_recalibratoin")


@pytest.mark.ci
def test_a_fit_speaks_in_the_units_of_its_user_and_draws_both_scores() -> None:
    matplotlib.use("agg")
    terms: dict[str, Any] = {"unit": "EUR", "decisions": "100000/year"}
    answer = decal.fit(FRAME, score="p", label="y", method="platt", threshold=0.3, **terms)
    gain = answer.result.fitting.gain
    assert gain is not None
    assert "Expected utility in EUR a year" in str(answer) and f"{100_000 * gain.before:,.0f}" in str(answer)
    assert answer.plot("waterfall").get_xlabel().startswith("expected utility in EUR a year")
    labels = answer.plot("brier").get_legend_handles_labels()[1]
    assert any(label.startswith("p_platt") for label in labels)
