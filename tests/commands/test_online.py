"""`decal online` as a user meets it."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from simulation.late_labels import overlapping
from tests.helpers.command import Decal, refusal, valid_json
from tests.helpers.stream import ON_LINE, stream_columns, write_stream


@pytest.fixture
def drifting(tmp_path: Path) -> Path:
    return write_stream(tmp_path / "stream.csv", stream_columns())


def test_the_table_says_what_happened_and_what_to_do(decal: Decal, drifting: Path) -> None:
    done = decal("online", drifting, *ON_LINE)
    assert done.code == 0, done.err
    for words in (
        "1,500 rows from 2024-01-01 to 2024-10-26", "labels are known at any later time", "2024-06", "ForecastHedge *",
        "alarm. At 2024-0", "Recalibrate online with", "decisions a day",
    ):  # fmt: skip
        assert words in done.out, words


def test_json_agrees_with_evaluate_and_with_itself(decal: Decal, drifting: Path) -> None:
    document = valid_json(decal("online", drifting, *ON_LINE, "-f", "json").out)
    single = valid_json(
        decal("evaluate", drifting, "-s", "p", "-y", "y", "-t", ".5", "-f", "json", "--no-intervals", "--metric",
              "expected_utility", "--metric", "u_cal", "--metric", "cdl").out
    )["metrics"]  # fmt: skip
    methods = {each["method"]: each for each in document["methods"]}
    score = methods["as-it-is"]
    assert score["utility"] == pytest.approx(single["expected_utility"]["value"], abs=1e-12)
    # Predictions are counted in 2,000 cells.
    assert score["u_cal"] == pytest.approx(single["u_cal"]["value"], abs=1e-3)
    assert score["cdl"] == pytest.approx(single["cdl"]["value"], abs=1e-3)
    assert sum(window["rows"] for window in document["windows"]) == document["rows"] == 1500
    for name, each in methods.items():
        of_windows = sum(window["rows"] * window["utility"][name] for window in document["windows"])
        assert of_windows / 1500 == pytest.approx(each["utility"], abs=1e-12)
        if each["gain"] is not None:
            assert each["gain"] == pytest.approx(each["utility"] - score["utility"], abs=1e-12)
            assert each["interval"][0] <= each["gain"] <= each["interval"][1]
    assert document["alarm"]["row"] > document["alarm"]["likely_since_row"] >= 600
    assert document["advice"]["action"] == "recalibrate-online"


def test_calibrated_forecasts_whose_labels_come_late_raise_no_alarm(decal: Decal, tmp_path: Path) -> None:
    """Five-step and thirty-step forecasts: in ten streams at most one alarm; and none before a label is known."""
    line = ("-s", "p", "-y", "y", "-t", ".5", "--method", "running-mean")
    raised = 0
    for seed in range(5):
        for delay in (5, 30):
            drawn = overlapping(delay, 900, 0.0, np.random.default_rng([4, seed]))
            columns = {"p": [f"{each:.6f}" for each in drawn.score], "y": [str(each) for each in drawn.label]}
            path = write_stream(tmp_path / "late.csv", columns)
            document = valid_json(decal("online", path, *line, "--delay", str(delay), "-f", "json").out)
            raised += document["alarm"] is not None
            assert 0 < document["p_value"] <= 1
            assert document["p_value"] == pytest.approx(10 ** -document["log10_e"])
    assert raised <= 1
    wrong = {"p": ["0.01"] * 900, "y": ["1"] * 900}
    done = decal(
        "online", write_stream(tmp_path / "wrong.csv", wrong), *line, "--delay", "40", "-r", "e_calibration<20"
    )
    text = " ".join(done.out.split())
    assert done.code == 1
    # A block of one row, then blocks of 40: the fifth enters with all its labels when the seventh begins.
    assert "alarm. At row 202 the p-value reached 0.05, which that of a calibrated score ever does" in text
    assert "the p-value is 10^-" in text and "of every other block an e-process each" in text


def test_a_score_that_stays_calibrated_is_kept(decal: Decal, tmp_path: Path) -> None:
    calm = write_stream(tmp_path / "calm.csv", stream_columns(shift=0.0))
    document = valid_json(decal("online", calm, *ON_LINE, "-f", "json").out)
    assert document["alarm"] is None
    assert document["advice"] | {"action": "keep", "method": None} == document["advice"]


@pytest.mark.parametrize("horizon", [(), ("--horizon", "700")])
def test_no_figure_contradicts_another(decal: Decal, tmp_path: Path, horizon: tuple[str, ...]) -> None:
    """Distance within its bounds, the theorem's too; U-calibration at most CDL of the points of a grid."""
    rng = np.random.default_rng(0)
    columns = {
        "p": [f"{each:.3f}" for each in rng.random(700)],
        "y": [str(int(each < 0.35)) for each in rng.random(700)],
    }
    path = write_stream(tmp_path / "labels.csv", {**columns, "site": ["a", "b"] * 350})
    names = ("cdl-algorithm", "almost-one-step-ahead", "almost-one-step-ahead(bins=2)")
    line = ("-y", "y", "-t", ".5", "-f", "json", *horizon, *(part for name in names for part in ("--method", name)))
    for more in ((), ("--seed", "1"), ("--delay", "20"), ("--group", "site")):
        methods = valid_json(decal("online", path, *line, *more).out)["methods"]
        assert {*names} < {each["method"] for each in methods}
        for each in methods:
            if each["method"] in names:
                assert each["u_cal"] <= each["cdl"] + 1e-12
            assert each["dist_cal_lower"] <= each["dist_cal_upper"]
            if each["guarantee"] and each["guarantee"]["metric"] == "dist_cal":
                assert each["dist_cal_upper"] <= each["guarantee"]["bound"]


def test_without_a_score_the_base_rate_is_forecast(decal: Decal, drifting: Path) -> None:
    line = ("-y", "y", "--time", "t", "--threshold", "0.5", "-f", "json", "--method", "hedge")
    document = valid_json(decal("online", drifting, *line).out)
    assert "score" not in document["columns"]
    assert [each["method"] for each in document["methods"]] == ["running-mean", "hedge"]
    refusal(decal("online", drifting, "--method", "nosuch", "-t", ".5"))


def test_csv_has_a_line_for_each_window_and_method(decal: Decal, drifting: Path) -> None:
    out = decal("online", drifting, *ON_LINE, "-f", "csv", "--every", "500", "--method", "online-platt").out
    lines = list(csv.DictReader(io.StringIO(out)))
    assert [(line["window"], line["method"]) for line in lines] == [
        (window, method) for window in ("1–500", "501–1,000", "1,001–1,500") for method in ("as-it-is", "online-platt")
    ]


def test_predictions_are_written_for_every_row(decal: Decal, tmp_path: Path) -> None:
    columns = stream_columns(300)
    columns["y"][-20:] = [""] * 20
    path = write_stream(tmp_path / "new.csv", columns)
    done = decal("online", path, *ON_LINE, "--method", "online-platt", "-o", "scored.parquet")
    assert done.code == 0, done.err
    assert "the labels of the last 20 rows are not known yet" in done.out
    table = pq.read_table(tmp_path / "scored.parquet")
    assert table.column_names == ["row", "t", "p", "y", "p_online_platt"]
    assert table["y"].null_count == 20
    assert table["p_online_platt"].null_count == 0


def test_rules_over_time_set_the_exit_code(decal: Decal, drifting: Path) -> None:
    line = ("online", drifting, *ON_LINE, "--method", "online-platt", "--method", "running-mean")
    done = decal(*line, "--rule", "e_calibration<20", "--rule", "lower(gain)<0.01", "-r", "rows>=100", "-f", "json")
    document = valid_json(done.out)
    by_rule = {each["rule"]: each for each in document["gates"]}
    assert done.code == 1
    assert by_rule["e_calibration<20"]["passed"] is False
    assert by_rule["e_calibration<20"]["value"] == pytest.approx(10 ** document["log10_e"])
    platt = next(each for each in document["methods"] if each["method"] == "online-platt")
    assert by_rule["lower(gain)<0.01"]["value"] == pytest.approx(platt["interval"][0], abs=1e-12)
    assert by_rule["lower(gain)<0.01"]["passed"] is (platt["interval"][0] < 0.01)
    assert by_rule["rows>=100"]["passed"] is True
    assert decal(*line, "--rule", "gain@method=running-mean<0").code == 0
    assert "rows" in decal(*line, "-f", "junit", "-r", "rows>=1").out
    for rule, words in (
        ("e_calibrated<20", "there is no e_calibrated"),
        ("lower(rows)<3", "rows goes without lower"),
        ("gain@method=hedge<0", "hedge is not among the forecasters"),
        ("lower(gain<3", "does not parse"),
    ):
        assert words in refusal(decal(*line, "--rule", rule))
    assert "decal online --rule" in refusal(decal("gate", drifting, "-s", "p", "-y", "y", "--rule", "e_calibration<20"))


def test_pictures_are_drawn_and_stand_on_the_page(decal: Decal, drifting: Path, tmp_path: Path) -> None:
    line = ("online", drifting, *ON_LINE, "--method", "online-platt")
    assert decal(*line, "--plot", "replay.svg", "-o", "replay.html").code == 0
    picture = (tmp_path / "replay.svg").read_text()
    for words in ("Utility over as it is, added up", "Evidence against calibration", "Reliability by period"):
        assert words in picture
    page = (tmp_path / "replay.html").read_text()
    assert page.count("data:image/svg") == 3
    assert "Recalibrate online" in page or "Keep the score" in page
    assert "png, svg or pdf" in refusal(decal(*line, "--plot", "replay.txt"))


DAY = "2024-01-01"


def test_small_and_late_streams_are_replayed(decal: Decal, tmp_path: Path) -> None:
    def replayed(content: str, *line: str) -> dict:
        (tmp_path / "s.csv").write_text(content)
        return valid_json(decal("online", "s.csv", "-y", "y", "-t", ".3", *line, "-f", "json").out)

    one = replayed("p,y\n.4,1\n")
    assert (one["rows"], one["advice"]["action"]) == (1, "keep")
    rows = "".join(f"2024-01-0{day},.{day}5,{day % 2}\n" for day in range(1, 9))
    # A delay longer than the file: nothing is ever learned, so that every recalibrator leaves the score as it is.
    late = replayed(f"t,p,y\n{rows}", "--time", "t", "--delay", "90d")
    platt = next(each for each in late["methods"] if each["method"] == "online-platt")
    assert platt["gain"] == 0
    equal = replayed("t,p,y\n" + "2024-01-01,.4,1\n" * 30, "--time", "t")
    assert next(each for each in equal["methods"] if each["method"] == "running-mean")["worst_v_regret"] > 0
    dropped = replayed("p,y\n.4,1\n.5,\n,0\n.2,0\n", "--missing", "drop")
    assert dropped["rows"] == 2
    assert len(dropped["notes"]) == 2


def clustered(path: Path, of_row: Sequence[str]) -> Path:
    columns = stream_columns()
    return write_stream(path, {**columns, "game": list(of_row)})


def test_clusters_enter_as_one_step(decal: Decal, tmp_path: Path) -> None:
    games = clustered(tmp_path / "games.csv", [f"game {row // 10}" for row in range(1500)])
    line = ("online", games, *ON_LINE, "--cluster", "game")
    done = decal(*line)
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    for words in (
        "labels are known when the next cluster comes",
        "every cluster counted once",
        "confidence sequences of the mean over clusters, of which there are 150",
    ):
        assert words in text, words
    document = valid_json(decal(*line, "-f", "json").out)
    by_row = valid_json(decal("online", games, *ON_LINE, "-f", "json").out)
    assert document["clusters"] == {"clusters": 150, "apart_at": None}
    assert document["log10_e"] < by_row["log10_e"]
    ours, theirs = (next(each for each in of["methods"] if each["gain"] is not None) for of in (document, by_row))
    assert ours["interval"][1] - ours["interval"][0] > theirs["interval"][1] - theirs["interval"][0]


def test_rows_of_a_cluster_that_come_apart_leave_one_look(decal: Decal, tmp_path: Path) -> None:
    games = clustered(tmp_path / "games.csv", [f"game {row % 50}" for row in range(1500)])
    line = ("online", games, *ON_LINE, "--cluster", "game", "--rule", "e_calibration<20", "--rule", "lower(gain)<1")
    done = decal(*line)
    assert done.code == 2  # a rule cannot be judged
    text = " ".join(done.out.split())
    for words in (
        "Intervals hold at the 95 % level for one look after the last row, and count 50 clusters",
        "the first that comes back is 'game 0', in row 51",
        "there is no e-value: it needs the rows of a cluster to follow each other",
        "cannot judge: rows of a cluster come apart, and no e-value holds then",
        "PASS lower(gain)<1",
    ):
        assert words in text, words
    document = valid_json(decal(*line, "-f", "json").out)
    assert document["clusters"] == {"clusters": 50, "apart_at": 51}
    assert document["log10_e"] is document["alarm"] is None
    assert all(each["since"] is None for each in document["methods"])


@pytest.mark.parametrize(
    ("of_row", "more", "words"),
    [
        (["a"] * 1500, (), "column 'game': the cluster of every row is 'a'"),
        (["a", "", "b"] * 500, (), "cluster missing in 500 of 1,500 rows (rows 2, 5, 8, 11, 14, ...)"),
        (["a", "b"] * 750, ("--group", "gaem"), "no column 'gaem'"),
    ],
)
def test_clusters_that_cannot_be_are_one_line(
    decal: Decal, tmp_path: Path, of_row: list[str], more: tuple[str, ...], words: str
) -> None:
    games = clustered(tmp_path / "games.csv", of_row)
    assert words in refusal(decal("online", games, *ON_LINE, "--cluster", "game", *more))
