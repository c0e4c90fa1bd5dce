"""Fits that learn from earlier rows only: nothing later is seen, and gains are what a loop over time would win."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

import decal_cli as decal
from decal_cli.analysis.described import GainsOverTime
from decal_cli.learn.forward import Forward
from decal_cli.plot import panels
from decal_cli.tables.rows import Rows
from tests.helpers.command import Decal

ROWS, T = 900, 0.3
ABSTAIN = decal.Decision.abstain(0.3)
TREATED = decal.Decision.utility([[0, -20], [-2, -3], [-5, -1]], actions=["wait", "test", "treat"])


def stream(seed: int = 0, drift: float = 1.5, rows: int = ROWS) -> pd.DataFrame:
    """Calibrated scores whose label 1 gets rarer with time, by so much in log-odds; a feature; what rows cost."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.integers(0, 300, rows))
    z, x = rng.normal(size=rows), rng.normal(size=(rows, 2))
    label = rng.random(rows) < expit(z - drift * day / 300 + 0.8 * x[:, 0])
    shares = rng.dirichlet(np.ones(3), rows)
    return pd.DataFrame(
        {
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(day, "D"),
            "p": expit(z),
            "y": label.astype(int),
            "w": rng.uniform(0.5, 2, rows),
            "id": rng.integers(0, 200, rows),
            "fp": rng.uniform(1, 2, rows),
            "fn": rng.uniform(2, 4, rows),
            "x1": x[:, 0],
            "x2": x[:, 1],
            **{f"q_{k}": shares[:, k] for k in range(3)},
            "c": (shares.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1),
        }
    )


def blocks(frame: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Earlier rows, and the sixth that follows them; rows of one day stay together."""
    first = frame["day"].rank(method="min").to_numpy() - 1
    block = np.floor(6 * first / len(frame)).astype(int)
    for k in range(1, 6):
        yield frame[block < k], frame[block == k]


def test_the_gain_is_what_a_loop_over_time_wins() -> None:
    frame = stream()
    key = "gain_recalibration(method=isotonic)"
    answer = decal.evaluate(decal.Data(frame, score="p", time="day"), T, metrics=[key])
    won = []
    for earlier, later in blocks(frame):
        curve = IsotonicRegression(out_of_bounds="clip").fit(earlier["p"], earlier["y"])
        # decal's curve is constant from one level to the next, and scikit-learn's is a line.
        steps = np.maximum(np.searchsorted(curve.X_thresholds_, later["p"], side="right") - 1, 0)
        acts, now = curve.y_thresholds_[steps] >= T, later["p"] >= T
        won += [*((acts.astype(int) - now.astype(int)) * (later["y"] - T))]
    result = answer[key]
    assert result.value == pytest.approx(np.mean(won), abs=1e-12)
    assert result.interval[0] < result.value < result.interval[1]


@pytest.mark.ci
@pytest.mark.parametrize("with_features", [False, True])
def test_no_fit_sees_a_later_label(with_features: bool) -> None:
    frame = stream(rows=120)
    rng, time = np.random.default_rng(1), frame["day"].to_numpy().astype(np.int64)

    def scores(label: np.ndarray) -> tuple[Forward, np.ndarray]:
        rows = Rows(frame["p"].to_numpy(), label, features=frame[["x1", "x2"]].to_numpy(), time=time)
        forward = Forward(rows, 0)
        return forward, forward.with_features(1) if with_features else forward.recalibrated(1)

    label = frame["y"].to_numpy().astype(np.uint8)
    forward, before = scores(label)
    block = forward.block[forward.judged(1)]
    late = forward.block >= 3
    _, after = scores(np.where(late, rng.permutation(label), label).astype(np.uint8))
    same = block <= 3
    assert np.array_equal(before[same], after[same])
    assert not np.allclose(before[~same], after[~same])


WORLDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "two classes": (T, {}),
    "weights": (T, {"weight": "w"}),
    "clusters": (T, {"cluster": "id"}),
    "a known prevalence": (T, {"prevalence": 0.1}),
    "three actions": (TREATED, {}),
    "costs per row": (decal.Decision.per_row(fp="fp", fn="fn"), {"features": ("x1", "x2")}),
    "three classes": (ABSTAIN, {"proba": "q_*", "label": "c", "score": (), "features": ("x1", "x2")}),
}


@pytest.mark.ci
@pytest.mark.parametrize("world", WORLDS)
def test_every_world_has_gains_over_time_and_the_youngest_fits_are_those_of_the_report(world: str) -> None:
    decision, given = WORLDS[world]
    given = {"score": "p", "label": "y", "time": "day", **given}
    keys = ["gain_recalibration", *(["gain_post_training"] if "features" in given else [])]
    report = decal.evaluate(decal.Data(stream(rows=450), **given), decision, metrics=keys).result.evaluation.reports[0]
    over_time = report.find(GainsOverTime)
    assert over_time.unit == "days" and len(over_time.ages) == 5
    first = over_time.ages[0]
    for key in keys:
        won = getattr(first, key)
        assert won.value == pytest.approx(report.results[key].value, rel=1e-9)
        assert won.interval == pytest.approx(report.results[key].interval, rel=1e-9)
    assert [each.rows for each in over_time.ages] == sorted((each.rows for each in over_time.ages), reverse=True)
    assert over_time.rows == first.rows < report.rows


def test_the_rows_of_the_first_block_are_said_where_they_are_too_few() -> None:
    """All of them are enough: the same metric has a value without the time."""
    rows = decal.Data(stream(rows=42), score="p", time="day")
    gain = decal.evaluate(rows, T, metrics=["gain_recalibration"])["gain_recalibration"]
    reason, _, where = (gain.reason or "").partition("; ")
    assert reason == "needs at least 10 rows to learn from some and judge on others"
    assert where == "the fit to the first of 6 blocks of time has 7 rows"


def test_the_order_of_the_file_does_not_matter() -> None:
    frame = stream()
    values = [
        decal.evaluate(decal.Data(each, score="p", time="day"), T, metrics=["gain_recalibration"])["gain_recalibration"]
        for each in (frame, frame.sample(frac=1, random_state=0).reset_index(drop=True))
    ]
    assert values[0].value == pytest.approx(values[1].value, abs=1e-12)


@pytest.mark.parametrize(("high", "turn"), [(0.8, 0.0), (1.5, 4.0)], ids=["stays", "turns"])
def test_a_fit_lasts_where_the_world_stays_and_not_where_it_turns(high: float, turn: float) -> None:
    """The score begins too high in log-odds; where the world turns, it is too low in the end."""
    frame = stream(rows=6000)
    day = (frame["day"] - frame["day"].min()).dt.days.to_numpy() / 300
    rng, z = np.random.default_rng(2), np.log(frame["p"] / (1 - frame["p"]))
    frame["y"] = (rng.random(len(frame)) < expit(z - high + turn * day)).astype(int)
    in_time, at_random = (
        decal.evaluate(decal.Data(frame, score="p", time=time), T, metrics=["gain_recalibration"])
        for time in ("day", None)
    )
    over_time = in_time.result.evaluation.reports[0].find(GainsOverTime)
    gain, promised = in_time["gain_recalibration"].interval, at_random["gain_recalibration"].interval
    # Random folds promise a gain in both worlds; where the world turns, no fit can win it that knows no later row.
    assert promised[0] > 0
    if turn:
        assert gain[1] < 0 and over_time.recalibration_lasts is None
    else:
        assert gain[0] > 0 and over_time.recalibration_lasts == over_time.ages[-1].after


@pytest.mark.ci
def test_a_fit_lasts_as_long_as_its_gain_is_clear() -> None:
    """The score is right, and then off one way and the other: estimates above 0 are no gain that lasts."""
    frame = stream(rows=900)
    over_time, unclear = None, 0
    for seed in range(6):
        label = np.random.default_rng(seed).random(len(frame)) < frame["p"]
        answer = decal.evaluate(decal.Data(frame.assign(y=label.astype(int)), score="p", time="day"), T)
        over_time = answer.reports[0].find(GainsOverTime)
        gains = [each.gain_recalibration for each in over_time.ages]
        clear = list(itertools.takewhile(lambda each: each[1].interval[0] > 0, zip(over_time.ages, gains, strict=True)))
        assert over_time.recalibration_lasts == (clear[-1][0].after if clear else None)
        unclear += gains[0].value > 0 >= gains[0].interval[0]
    assert unclear


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stream") / "stream.csv"
    stream().to_csv(path, index=False)
    return path


def test_the_page_says_what_judged_what_and_how_long_a_fit_lasts(decal: Decal, file: Path) -> None:
    text = decal("recommend", file, "-s", "p", "-t", 0.3, "--time", "day").text
    assert "Over time. Gains are those of fits that learn from earlier rows only." in text
    assert "Gain by the age of the fit" in text and "days after" in text
    # After 125 days the gain is 9.6 [-2.1, 21.3], and after 226 it is 0.
    assert "is clearly above 0 up to 75.1 days after a fit, and not in the next block." in text.replace("\n", " ")
    assert "|time:day" in text


@pytest.mark.ci
def test_a_page_shows_gains_of_earlier_fits_alone(
    decal: Decal, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (file, "--score", "p", "--threshold", "0.3", "--time", "day")
    gain = decal.json("evaluate", *given, "-m", "gain_recalibration")["metrics"]["gain_recalibration"]["value"]
    pictured, drawn = [], panels.waterfall

    def seen(axes: Any, name: str, number: int, rungs: Any, *rest: Any, **more: Any) -> None:
        pictured.append(rungs["gain_recalibration"].value)
        drawn(axes, name, number, rungs, *rest, **more)

    monkeypatch.setattr(panels, "waterfall", lambda axes, **said: seen(axes, **said))
    decal("report", *given, "-o", "page.html")
    page = (tmp_path / "page.html").read_text()
    # Sliders would show gains of random folds from the start.
    assert "type='range'" not in page and "there are no sliders" in page
    assert pictured == [gain]


@pytest.mark.ci
def test_what_is_tried_and_fitted_learns_from_earlier_rows_too(decal: Decal, file: Path, tmp_path: Path) -> None:
    tried = decal("recommend", file, "-s", "p", "-t", 0.3, "--time", "day", "--method", "isotonic").text
    assert "Tried on p, fitted to earlier rows only" in tried
    fitted = decal("fit", "isotonic", file, "-s", "p", "-t", 0.3, "--time", "day", "-o", tmp_path / "m.json").text
    assert f"of {ROWS} rows, those after the first block" in fitted.replace("\n", " ")


def test_counts_and_sweeps_have_no_time(tmp_path: Path) -> None:
    frame = stream(rows=60)
    with pytest.raises(decal.DecalError, match="fits to random folds"):
        decal.sweep(decal.Data(frame, score="p", time="day"))
    counts = pd.DataFrame({"score": [0.2, 0.8], "n": [50, 50], "pos": [10, 40], "day": [1, 2]})
    with pytest.raises(decal.DecalError, match="time"):
        decal.evaluate(decal.Data(counts, time="day", aggregated=True), T)
