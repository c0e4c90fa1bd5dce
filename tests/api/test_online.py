"""`decal.online` and the forecaster that predicts one row and learns one label."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from decal_cli.api.words import InputError
from decal_cli.sequential import ONLINE
from tests.helpers.command import Decal
from tests.helpers.stream import ON_LINE, stream_columns, write_stream

GIVEN = {"time": "t", "label": "y", "score": "p", "threshold": 0.5, "warm_up": 200}


def frame() -> dict[str, np.ndarray]:
    columns = stream_columns()
    return {"t": np.array(columns["t"], "M8[D]"), "p": np.array(columns["p"], float), "y": np.array(columns["y"], int)}


@pytest.mark.ci
def test_arrays_frames_and_files_give_what_the_command_prints(decal_line: dict, tmp_path: Path) -> None:
    columns = frame()
    of_frame = decal.online(columns, **GIVEN)
    of_arrays = decal.online(columns["p"], columns["y"], time=columns["t"], threshold=0.5, warm_up=200)
    of_file = decal.online(str(write_stream(tmp_path / "s.csv", stream_columns())), **GIVEN)
    for answer in (of_frame, of_arrays, of_file):
        assert answer.to_dict()["methods"] == decal_line["methods"]
        assert answer.judged.advice.action == "recalibrate-online"
    site = np.arange(1500) % 3
    named = decal.online({**columns, "site": site}, group="site", **GIVEN)
    by_array = decal.online(columns, group=site, **GIVEN)
    assert by_array.to_dict()["methods"] == named.to_dict()["methods"] != decal_line["methods"]
    assert "recalibrate-online with" in repr(of_frame)
    assert "Recalibrate online" in str(of_frame)


@pytest.fixture
def decal_line(decal: Decal, tmp_path: Path) -> dict:
    path = write_stream(tmp_path / "stream.csv", stream_columns())
    return decal.json("online", path, *ON_LINE)


def test_rules_and_predictions() -> None:
    answer = decal.online(frame(), **GIVEN, methods="online-platt", rules=["e_calibration<20", "rows>=100"])
    assert not answer.passed
    assert [row.passed for row in answer.rules] == [False, True]
    predicted = answer.predictions("pandas")
    assert list(predicted.columns) == ["row", "t", "p", "y", "p_online_platt"]
    assert len(predicted) == 1500
    for library in ("pandas", "polars", "pyarrow"):
        times = np.asarray(answer.predictions(library)["t"])
        np.testing.assert_array_equal(times, frame()["t"].astype("M8[ns]"))
    with pytest.raises(InputError, match="not one of 'pandas', 'polars', 'pyarrow'"):
        answer.predictions("excel")


def test_a_rule_that_cannot_be_judged_is_no_failure() -> None:
    apart = {**frame(), "site": np.arange(1500) % 7}
    answer = decal.online(apart, **GIVEN, cluster="site", methods="online-platt", rules="e_calibration<20")
    assert answer.passed is None and [row.passed for row in answer.rules] == [None]
    assert "no e-value: " in repr(answer)


@pytest.mark.parametrize("method", ONLINE)
def test_one_by_one_is_the_replay(method: str) -> None:
    columns = {name: values[:300] for name, values in frame().items() if name != "t"}
    answer = decal.online(columns, label="y", score="p", threshold=0.5, methods=method, seed=3)
    forecaster = decal.OnlineForecaster(method, seed=3)
    predicted = []
    for score, label in zip(columns["p"].tolist(), columns["y"].tolist(), strict=True):
        predicted.append(forecaster.predict_one(score))
        forecaster.learn_one(score, label)
        if len(predicted) == 150:
            state = json.loads(json.dumps(forecaster.state()))
            forecaster = decal.OnlineForecaster(method, seed=3)
            forecaster.restore(state)
    name = f"p_{method.replace('-', '_')}" if method != "as-it-is" else "p"
    np.testing.assert_allclose(predicted, answer.predictions("pandas")[name], rtol=1e-12)


def test_what_a_forecaster_refuses() -> None:
    forecaster = decal.OnlineForecaster("online-platt")
    with pytest.raises(InputError, match="predict it first"):
        forecaster.learn_one(0.3, 1)
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        forecaster.predict_one(1.3)
    forecaster.predict_one(0.3)
    with pytest.raises(InputError, match="neither 0 nor 1"):
        forecaster.learn_one(0.3, 2)
    with pytest.raises(InputError, match="no state of online-platt"):
        forecaster.restore({})
    with pytest.raises(InputError, match="did you mean"):
        decal.OnlineForecaster("online-plat")
    with pytest.raises(InputError, match="delay"):
        decal.online(frame(), **{**GIVEN, "time": None}, delay="7d")


def test_each_picture_is_drawn_into_axes() -> None:
    answer = decal.online(frame(), **GIVEN, methods="online-platt")
    pictures = {"gain": "Utility over", "evidence": "Evidence against", "reliability": "Reliability by"}
    for picture, title in pictures.items():
        assert answer.plot(picture).get_title(loc="left").startswith(title)
    assert answer.plot().get_title(loc="left").startswith(pictures["gain"])
    written = answer.plot("evidence").yaxis.get_major_formatter()
    assert [written(power) for power in (-1, 3, 60, 300)] == ["0.1", "1,000", "10^60", "10^300"], "as the text has them"
    with pytest.raises(InputError, match="picture='roc' is not one of 'gain', 'evidence', 'reliability'"):
        answer.plot("roc")


@pytest.mark.parametrize(
    ("delay", "text"),
    [
        (timedelta(days=2), "2d"),
        (pd.Timedelta("36h"), "129600s"),
        (timedelta(microseconds=3), "0.000003s"),
        ("2 days", "2 days"),
        (np.timedelta64(48, "h"), "48 hours"),
        ("1 week", "1 week"),
    ],
)
def test_a_delay_is_a_span_of_time(delay: Any, text: str) -> None:
    days = {"2d": 2, "129600s": 1.5, "0.000003s": 3e-6 / 86_400, "2 days": 2, "48 hours": 2, "1 week": 7}[text]
    plan = decal.online(frame(), **GIVEN, delay=delay, methods="online-platt").judged.plan
    assert (plan.delay.kind, plan.delay.amount, plan.delay.text) == ("time", round(days * 86_400e9), text)


@pytest.mark.ci
def test_scores_that_are_certain_and_wrong_are_named() -> None:
    """Beside them stands a certain score that is right: row 3, which is no reason for a note."""
    rows = frame()
    told = [note for note in decal.online(rows, **GIVEN).to_dict()["notes"] if "certain" in note]
    assert told == []
    for row, score in ((2, 1.0 * rows["y"][2]), (800, 1.0 - rows["y"][800]), (1200, 1.0 - rows["y"][1200])):
        rows["p"][row] = score
    (told,) = (note for note in decal.online(rows, **GIVEN).to_dict()["notes"] if "certain" in note)
    assert "in 2 rows, first in row 801:" in told
