"""`decal online` as a user meets it: late labels, pictures, times, and states; answers.txt has what it prints."""

import fcntl
import importlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz.states import ABSENT, KINDS, SHORTER, TWICE, forged_state, places, true_state, value_at, write_rows
from tests.helpers.command import Decal, refusal, valid_json
from tests.helpers.stream import ON_LINE, stream_columns, write_stream


@pytest.fixture
def losses() -> None:
    """For tests that look at what predictions lose."""


@pytest.fixture(autouse=True)
def without_losses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What predictions lose is printed and is no part of a state; it takes most of a short run."""
    if "losses" not in request.fixturenames:
        judged = importlib.import_module("decal_cli.analysis.online.judged")
        monkeypatch.setattr(judged, "value_of", lambda loss, inputs: 0.0)


@pytest.fixture
def drifting(tmp_path: Path) -> Path:
    return write_stream(tmp_path / "stream.csv", stream_columns())


@pytest.mark.ci
@pytest.mark.usefixtures("losses")
@pytest.mark.parametrize("horizon", [(), pytest.param(("--horizon", "700"), marks=pytest.mark.long)])
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


def test_predictions_are_written_for_every_row(decal: Decal, tmp_path: Path) -> None:
    columns = stream_columns(300)
    columns["y"][-20:] = [""] * 20
    path = write_stream(tmp_path / "new.csv", columns)
    done = decal("online", path, *ON_LINE, "--method", "online-platt", "-o", "scored.parquet")
    assert done.code == 0, done.err
    assert "the labels of the last 20 rows are not known yet" in done.out
    table = pq.read_table(tmp_path / "scored.parquet")
    assert table.column_names == ["row", "t", "p", "y", "p_online_platt"]
    assert table["row"].to_pylist() == list(range(1, 301)) and table["y"].null_count == 20
    assert table["p_online_platt"].null_count == 0


@pytest.mark.ci
@pytest.mark.parametrize(
    ("delay", "most"), [pytest.param((), "10^300", marks=pytest.mark.long), (("--delay", "2"), "10^299")]
)
def test_evidence_stands_on_a_logarithmic_axis_that_says_where_it_is_capped(
    decal: Decal, tmp_path: Path, delay: tuple[str, ...], most: str
) -> None:
    """1,500 rows of label 1 at .001 are worth 1000 to the power of 1,500; 40 of them far less than the cap."""
    for rows, capped in ((1500, True), (40, False)):
        (tmp_path / "wrong.csv").write_text("p,y,t\n" + "".join(f"0.001,1,{row}\n" for row in range(rows)))
        line = ("online", "wrong.csv", "-s", "p", "-y", "y", "--time", "t", "-t", "0.3", *delay, "-o", "wrong.html")
        assert decal(*line, "--plot", "wrong.svg").code == 0
        picture, text = (tmp_path / "wrong.svg").read_text(), (tmp_path / "wrong.html").read_text()
        assert "(logarithmic axis)" in picture and "The axis is logarithmic" in text
        assert bool(re.search(r"10\^[23]\d\d", picture)) is capped
        assert (f"It is counted up to about {most} and is flat from there on." in text) is capped


def test_a_gain_that_was_lost_again_is_not_clear(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "turns.csv").write_text("p,y\n" + "0.9,0\n" * 1000 + "0.9,1\n" * 4000)
    asked = ("online", "turns.csv", "--score", "p", "--label", "y", "--threshold", "0.5", "--warm-up", "100")
    frozen = next(each for each in decal.json(*asked)["methods"] if each["method"].startswith("frozen-isotonic"))
    assert frozen["since"] and frozen["interval"][1] < 0
    text = decal(*asked).out
    (line,) = (line for line in text.splitlines() if "frozen isotonic" in line and "[" in line)
    assert "row " not in line


def test_where_no_label_is_known_in_time_nothing_is_learned(decal: Decal, tmp_path: Path) -> None:
    rows = "".join(f"2024-01-0{day},.{day}5,{day % 2}\n" for day in range(1, 9))
    (tmp_path / "s.csv").write_text(f"t,p,y\n{rows}")
    for delay in ("90d", "99999999999w"):
        late = decal.json("online", "s.csv", "-y", "y", "-t", ".3", "--time", "t", "--delay", delay)
        platt = next(each for each in late["methods"] if each["method"] == "online-platt")
        assert platt["gain"] == 0 and late["p_value"] is None
    asked = ("-y", "y", "-t", ".3", "--time", "t", "--delay", "90d", "-r", "e_calibration<20")
    done = decal("online", "s.csv", *asked)
    assert done.code == 2
    said = " ".join(done.out.split())
    assert "there is no p-value: the rows end before any label enters it" in said
    assert "No label is known in time to learn from for these" in said
    assert "???? e_calibration<20 cannot judge: the rows end before any label enters the p-value" in said


ROWS, PER_DAY = 900, 300
LINE = ("-s", "p", "-y", "y", "-t", ".5", "--method", "online-platt")


def games(rows: int = ROWS, seed: int = 1) -> dict[str, list[str]]:
    """Scores of two digits, three hundred of them a day: many rows are alike. n: a time of its own for each row."""
    rng = np.random.default_rng(seed)
    score = rng.random(rows).round(2)
    days = np.datetime64("2024-01-01") + np.arange(rows) // PER_DAY
    label = (rng.random(rows) < score).astype(int)
    columns = {"t": days, "n": range(rows), "p": score, "y": label}
    return {name: [str(value) for value in values] for name, values in columns.items()}


def rows_of(folder: Path) -> int:
    return json.loads((folder / "s.json").read_text())["state"]["rows"]


@pytest.mark.parametrize("time", [("--time", "t"), ("--time", "n"), ()])
def test_rows_that_come_again_count_once(decal: Decal, tmp_path: Path, time: Sequence[str]) -> None:
    columns = games()

    def sent(start: int, end: int, *more: str, name: str = "games.csv") -> tuple[int, str]:
        done = decal(
            "online", write_stream(tmp_path / name, columns, start, end), *LINE, *time, "--state", "s.json", *more
        )
        return done.code, refusal(done) if done.code else done.text

    for start, end in ((0, 450), (450, 600)):
        assert sent(start, end)[0] == 0
    before = (tmp_path / "s.json").read_bytes()
    for start, end in ((0, 450), (450, 600)):
        code, text = sent(start, end, name="again.csv")
        assert (
            code == 0 and "again.csv was taken before, and is skipped" in text and "had 600 rows, and has 600" in text
        )
        assert (tmp_path / "s.json").read_bytes() == before
    for start, end, words in (
        (300, 600, "has these 300 rows already"),
        (480, 580, "has these 100 rows already"),
        (400, 700, "has the first 200 of these 300 rows already"),
        (596, 700, "has the first 4 of these 104 rows already"),
        (0, 900, "has the first 600 of these 900 rows already"),
    ):
        code, text = sent(start, end)
        assert code == 2 and words in text and "--skip-known takes the rest" in text, text
        assert (tmp_path / "s.json").read_bytes() == before
    code, text = sent(480, 580, "--skip-known")
    assert code == 0 and rows_of(tmp_path) == 600
    code, text = sent(400, 900, "--skip-known")
    assert code == 0 and "skipped the first 200 of 500 rows, which the state has" in text
    whole = write_stream(tmp_path / "whole.csv", columns)
    assert "is named twice" in refusal(decal("online", whole, whole, *LINE, *time, "--state", "whole.json"))
    assert decal("online", whole, *LINE, *time, "--state", "once.json").code == 0
    states = [json.loads((tmp_path / name).read_text())["state"] for name in ("s.json", "once.json")]
    assert states[0] == states[1]


def test_new_rows_that_look_like_old_ones_are_taken(decal: Decal, tmp_path: Path) -> None:
    """Some of them begin as the rows before them ended, by chance: of scores of one digit on one day, many do."""
    rng, rows, alike = np.random.default_rng(2), 0, 0
    last: tuple[str, str] = ("", "")
    for night in range(12):
        score = rng.integers(1, 4, 40) / 10
        columns = {
            "t": ["2024-01-01"] * 40,
            "p": [str(p) for p in score],
            "y": [str(y) for y in rng.integers(0, 2, 40)],
        }
        alike += (columns["p"][0], columns["y"][0]) == last
        last = columns["p"][-1], columns["y"][-1]
        path = write_stream(tmp_path / f"{night}.csv", columns)
        done = decal("online", path, *LINE, "--time", "t", "--state", "s.json")
        assert done.code == 0, done.err
        rows += 40
        assert rows_of(tmp_path) == rows
    assert alike


NEVER, START, N_TIMES = 2**63 - 1, 1_700_000_000, 1500
"""What Spark has for never; a second; rows."""
TIMED = ("online", "times.parquet", "-s", "p", "-y", "y", "-t", ".5", "--time", "t", "--method", "running-mean")


def write(folder: Path, **times: pa.Array) -> None:
    rng = np.random.default_rng(1)
    score = rng.random(len(times["t"]))
    label = (rng.random(len(score)) < score).astype(int)
    pq.write_table(pa.table({**times, "p": score, "y": label}), folder / "times.parquet")


def seconds(unit: str, *last: int, rows: int = N_TIMES) -> pa.Array:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    first = [(START + row) * per_second for row in range(rows - len(last))]
    return pa.array([*first, *last], pa.timestamp(unit))


FAR = {
    "never in microseconds": (seconds("us", NEVER), 1500, "in the year 294247"),
    "never in milliseconds": (seconds("ms", NEVER), 1500, "in the year 292278994"),
    "the last day that is written with four digits": (seconds("s", 253_402_300_799), 1500, "in the year 9999"),
    "never in all rows": (pa.array(range(NEVER - N_TIMES, NEVER), pa.timestamp("us")), 1, "in the year 294247"),
    "the least of all": (pa.array([-NEVER, *range(N_TIMES)], pa.timestamp("us")), 1, "in the year -290308"),
    "a number for never": (pa.array([*range(N_TIMES - 1), NEVER]), 1500, "beyond 2^53"),
    "nanoseconds as numbers": (pa.array(range(START * 10**9, START * 10**9 + 50)), 1, "beyond 2^53"),
    "a label that never comes": (seconds("us", NEVER), 1500, "the time lies in the year 294247"),
}


@pytest.mark.parametrize("case", FAR)
def test_a_time_that_stands_for_never_is_named_with_its_row(decal: Decal, tmp_path: Path, case: str) -> None:
    time, row, words = FAR[case]
    column, late = ("came", ("--delay", "came")) if "label" in case else ("t", ())
    write(tmp_path, **{"t": seconds("us"), column: time})
    error = refusal(decal(*TIMED, *late, "--state", "s.json"))
    assert words in error and f"column '{column}', row {row}:" in error
    assert not (tmp_path / "s.json").exists()


@pytest.mark.parametrize("written", ["timestamps", "texts"])
def test_times_a_nanosecond_apart_are_not_one_instant(decal: Decal, tmp_path: Path, written: str) -> None:
    first = np.datetime64("2024-01-01T00:00:00", "ns") + np.arange(N_TIMES)
    write(tmp_path, t=pa.array(first if written == "timestamps" else [str(each) for each in first]))
    by_time = decal.json(*TIMED, "--every", "500")
    assert by_time["last_time"] == "2024-01-01 00:00:00.000001499"
    by_row = decal.json(*TIMED[:8], *TIMED[10:], "--every", "500")
    assert [each["utility"] for each in by_time["methods"]] == [each["utility"] for each in by_row["methods"]]
    late = decal.json(*TIMED, "--delay", "0.0000001s")
    in_rows = decal.json(*TIMED[:8], *TIMED[10:], "--delay", "99")
    assert [each["utility"] for each in late["methods"]] == [each["utility"] for each in in_rows["methods"]]


N_STATE = 600
DELAYS = {"none": (), "rows": ("--delay", "40"), "time": ("--delay", "9d"), "column": ("--delay", "came")}


def columns_of(rows: int = N_STATE) -> dict[str, list[str]]:
    columns = stream_columns(rows)
    days = np.array(columns["t"], dtype="M8[D]") + np.random.default_rng(2).integers(0, 30, rows)
    groups = [str(each) for each in np.random.default_rng(3).choice(["north", "south"], rows)]
    whole = [f"patient {number // 7}" for number in range(rows)]
    back = [f"patient {number % 11}" for number in range(rows)]
    return {**columns, "came": [str(day) for day in days], "site": groups, "whole": whole, "back": back}


def in_pieces(decal: Decal, folder: Path, columns: dict, cuts: Sequence[int], line: Sequence[str]) -> str:
    """The state after these pieces, apart from what they were."""
    state = folder / f"{len(cuts)}.json"
    for start, end in zip(cuts, [*cuts[1:], None], strict=True):
        piece = write_stream(folder / "piece.csv", columns, start, end)
        # What is written beside the state changes nothing in it.
        beside = ("-o", folder / "predicted.parquet") if start else ()
        done = decal("online", piece, *ON_LINE, *line, *beside, "--state", state)
        assert done.code == 0, done.err
    document = json.loads(state.read_text())
    assert len(document.pop("files")) == len(cuts)
    del document["sha256"]
    return json.dumps(document)


@pytest.mark.ci
@pytest.mark.parametrize("delay", DELAYS)
def test_any_cutting_into_days_gives_the_same_bytes(decal: Decal, tmp_path: Path, delay: str) -> None:
    columns = columns_of()
    for line in ((*DELAYS[delay], "--horizon", "600"), (*DELAYS[delay], "--group", "site", "--every", "70")):
        folder = tmp_path / str(len(line))
        folder.mkdir()
        once = in_pieces(decal, folder, columns, [0], line)
        cuts = [0, *sorted(np.random.default_rng(7).choice(np.arange(1, N_STATE), 3, replace=False).tolist())]
        assert in_pieces(decal, folder, columns, cuts, line) == once


@pytest.mark.parametrize("cluster", ["whole", "back"])
def test_any_cutting_of_clusters_gives_the_same_bytes(decal: Decal, tmp_path: Path, cluster: str) -> None:
    columns, line = columns_of(), ("--cluster", cluster, "--method", "online-platt", "--method", "running-mean")
    once = in_pieces(decal, tmp_path, columns, [0], line)
    cuts = [0, 70, 73, 300]
    assert in_pieces(decal, tmp_path, columns, cuts, line) == once
    done = decal("online", "piece.csv", "-y", "y", "--state", "4.json", "--cluster", "site")
    assert f"cluster {cluster}, not site" in refusal(done)
    new = {name: values for name, values in columns.items() if name != "y"}
    ahead = write_stream(tmp_path / "new.csv", {**new, "t": [columns["t"][-1]] * N_STATE})
    assert decal("apply", "4.json", ahead, "-o", "scored.parquet").code == 0


def test_what_goes_on_says_the_confidence_and_seed_it_was_begun_with(decal: Decal, tmp_path: Path) -> None:
    columns = columns_of()
    first, later = (write_stream(tmp_path / f"{at}.csv", columns, at, at + 300) for at in (0, 300))
    begun = ("--state", "state.json", "--confidence", "0.9", "--seed", "7")
    assert "conf:0.9|seed:7|" in decal("online", first, *ON_LINE, *begun).text
    assert "conf:0.9|seed:7|" in decal("online", later, "-y", "y", "--state", "state.json").text
    alone = decal("online", later, *ON_LINE, "--method", "as-it-is").text
    assert "not calibrated: no recalibrator without random numbers was replayed." in alone


def test_rows_without_labels_are_scored_as_the_replay_later_does(decal: Decal, tmp_path: Path) -> None:
    columns = columns_of()
    first = write_stream(tmp_path / "first.csv", columns, 0, 400)
    later = write_stream(tmp_path / "later.csv", columns, 400)
    new = {name: values for name, values in columns.items() if name != "y"}
    line = (*ON_LINE, "--delay", "60d")
    assert decal("online", first, *line, "--state", "state.json").code == 0
    before = (tmp_path / "state.json").read_bytes()
    done = decal("apply", "state.json", write_stream(tmp_path / "new.csv", new, 400), "-o", "scored.parquet")
    assert done.code == 0, done.err
    assert "after 400 rows" in done.err and "no prediction" not in done.err
    assert (tmp_path / "state.json").read_bytes() == before
    named = ("apply", "state.json", "new.csv", "-o", "named.parquet", "--name", "v")
    assert "names one column, and the state has" in refusal(decal(*named))
    assert decal("online", first, *line, "--method", "online-platt", "--state", "one.json").code == 0
    assert decal(named[0], "one.json", *named[2:]).code == 0
    assert pq.read_schema(tmp_path / "named.parquet").names == [*new, "v"]
    assert decal("online", later, "-y", "y", "--state", "state.json", "-o", "replayed.parquet").code == 0
    scored, replayed = pq.read_table(tmp_path / "scored.parquet"), pq.read_table(tmp_path / "replayed.parquet")
    assert scored.column_names == [*new, *(name for name in replayed.column_names if name.startswith("p_"))]
    for name in scored.column_names[len(new) :]:
        # All labels are known 60 days later, which is after the last row: none of the new rows' labels was.
        assert scored[name].to_pylist() == replayed[name].to_pylist(), name


def test_labels_that_are_not_known_yet_lack_the_time_at_which_they_came(decal: Decal, tmp_path: Path) -> None:
    """As a file has them that is written before they come: their rows are predicted as if they came at the very end."""
    known = columns_of()
    known["y"] = [*known["y"][:400], *[""] * (N_STATE - 400)]
    columns = {}
    for name, never in (("open", ""), ("never", "2200-01-01")):
        path = write_stream(tmp_path / f"{name}.csv", {**known, "came": [*known["came"][:400], *[never] * 200]})
        assert decal("online", path, *ON_LINE, "--delay", "came", "-o", f"{name}.parquet").code == 0
        columns[name] = pq.read_table(tmp_path / f"{name}.parquet").to_pydict()
    assert columns["open"] == columns["never"]
    lacking = {**known, "came": ["", *known["came"][1:]]}
    error = refusal(decal("online", write_stream(tmp_path / "first.csv", lacking), *ON_LINE, "--delay", "came"))
    assert "column 'came', row 1 (line 2): the time is missing" in error


def test_times_of_another_zone_are_said_to_be_shown_in_utc(decal: Decal, tmp_path: Path) -> None:
    """Midnight of one zone is the evening before in UTC, where a window then ends."""
    rows = [[f"2024-01-{day:02}T00:00", f".{day:02}", f"{day % 2}"] for day in range(1, 29)]
    note, said = "times of t are shown, and cut into windows, in UTC", {}
    for zone in ("", "Z", "+00:00", "+02:00"):
        (tmp_path / "s.csv").write_text("t,p,y\n" + "".join(f"{t}{zone},{p},{y}\n" for t, p, y in rows))
        said[zone] = decal.json("online", "s.csv", *ON_LINE, "--method", "online-platt")
    assert [note in each["notes"] for each in said.values()] == [False, False, False, True]
    assert [each["first_time"] for each in said.values()] == [*["2024-01-01"] * 3, "2023-12-31 22:00:00"]


def test_an_interval_holds_no_gain_beyond_what_a_row_can_win(decal: Decal, tmp_path: Path) -> None:
    """On few rows a confidence sequence alone reaches further: on one row to 6,394 per 1,000 decisions."""
    for rows in (1, 2, 30):
        path = write_stream(tmp_path / "s.csv", stream_columns(), 0, rows)
        platt = next(
            each for each in decal.json("online", path, *ON_LINE)["methods"] if each["method"] == "online-platt"
        )
        assert -1 <= platt["interval"][0] <= platt["gain"] <= platt["interval"][1] <= 1


def test_a_state_is_refused_where_it_does_not_fit(decal: Decal, tmp_path: Path) -> None:
    columns = columns_of()
    first = write_stream(tmp_path / "first.csv", columns, 0, 400)
    later = write_stream(tmp_path / "later.csv", columns, 400)
    assert decal("online", first, *ON_LINE, "--state", "state.json").code == 0
    whole = (tmp_path / "state.json").read_text()
    on_state = ("online", later, "-y", "y", "--state", "state.json")
    early = write_stream(tmp_path / "early.csv", {**columns, "p": columns["p"][::-1]}, 0, 300)
    assert "time goes back" in refusal(decal("online", early, "-y", "y", "--state", "state.json"))
    for line, words in (
        (("--threshold", "0.3"), "another decision; leave the decision as it was"),
        (("--score", "came"), "score p, not came"),
        (("--delay", "7d"), "delay 0, not 7d"),
        (("--horizon", "5000"), "no horizon, not 5000"),
        (("--method", "hedge"), "other forecasters; leave --method as it was"),
        (("--group", "site"), "no group, not site"),
        (("--seed", "4"), "seed 0, not 4"),
    ):
        assert words in refusal(decal(*on_state, *line))
    for text, words in (
        (whole.replace('"decal_state": 3', '"decal_state": 2'), "is a state of version 2"),
        (whole.replace('"positives": ', '"positives": 1', 1), "was changed after it was written"),
        ("{}", "is not a state"),
        ("", "is not JSON"),
    ):
        (tmp_path / "state.json").write_text(text)
        assert words in refusal(decal(*on_state))
        assert (tmp_path / "state.json").read_text() == text


def test_two_runs_on_one_state_are_refused(decal: Decal, tmp_path: Path) -> None:
    first = write_stream(tmp_path / "first.csv", columns_of(), 0, 300)
    with (tmp_path / ".state.json.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another run is using it" in refusal(decal("online", first, *ON_LINE, "--state", "state.json"))
        assert not (tmp_path / "state.json").exists()
    # What a killed run leaves behind is locked by nobody.
    assert decal("online", first, *ON_LINE, "--state", "state.json").code == 0
    assert not os.path.exists(tmp_path / ".state.json.lock")


RUN = ("online", "later.csv", "-y", "y", "--state", "state.json")


def another(value: Any, number: int) -> Any:
    """What cannot stand in place of this value: by turns one of some."""
    if isinstance(value, dict):
        others = [[], "x", {"x": 1}]
    elif isinstance(value, list):
        others = [{}, "x", None, *([TWICE, SHORTER, []] if len(value) > 1 else [])]
    elif isinstance(value, str):
        others = [1, None, ["x"]]
    else:
        others = ["x", [], {}, 1e308, ABSENT, 10**400, -(10**6) - 0.5]
    return others[number % len(others)]


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["delay", "clusters"])
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in (1, 2))])
def test_every_field_of_a_state_is_held_to_what_it_can_be(decal: Decal, tmp_path: Path, kind: str, part: int) -> None:
    document = json.loads(true_state(kind))
    write_rows(tmp_path / "later.csv", 160, 240)
    state, tried = tmp_path / "state.json", 0
    for number, keys in [*enumerate(places(document))][part::3]:
        if keys == ("decal",) or keys[:3] == ("task", "utility", 0):
            continue  # Any version, and any amount, is one.
        text = forged_state(document, keys, another(value_at(document, keys), number))
        state.write_text(text)
        done = decal(*RUN)
        assert done.code == 2, (keys, another(value_at(document, keys), number))
        assert refusal(done).startswith("decal: ") and state.read_text() == text
        tried += 1
    assert tried > 50
    # What is not forged goes on.
    state.write_text(forged_state(document, ("state", "rows"), 160))
    assert decal(*RUN).code == 0


FORGED = {
    "windows.n": ("plain", ("state", "windows", 0, "n", 3), 10**6),
    "windows.scores": ("plain", ("state", "windows", 0, "scores", 0), "x"),
    "windows.score of 1 row": ("plain", ("state", "windows", 0, "scores", 0), 1.01),
    "windows.acts": ("plain", ("state", "windows", 0, "acts", "hedge"), [1, 10**6]),
    "windows.place": ("plain", ("state", "windows", 7, "place"), 8),
    # The least is -ln 22 after 20 rows; what is won over the first row is 1 at most, and 6 over the first cluster's,
    # and 1 for rounding.
    "windows.log_e": ("plain", ("state", "windows", 0, "log_e"), -3.11),
    "course.total": ("plain", ("state", "course", "total", "hedge", 0), 2.5),
    "of_clusters": ("clusters", ("state", "tallies", "hedge(bins=2)", "of_clusters", 0), 7.5),
    "acts": ("plain", ("state", "tallies", "online-platt", "acts"), [1, 2, 3]),
    "course.row": ("plain", ("state", "course", "row", 5), 7),
    "warm": ("plain", ("state", "warm"), [50]),
    "no time": ("no time", ("state", "last_time"), 2**63),
    "a cluster": ("clusters", ("state", "clusters", "open"), 10**6),
    "a block": ("delay", ("state", "e_process", "held", 0, "size"), 10**6),
    "a pair": ("groups", ("state", "forecasters", "almost-one-step-ahead", "parts", "a", "pairs"), []),
    "confidence": ("plain", ("plan", "confidence"), 2.5),
    "names": ("plain", ("task", "names"), ["x"]),
    "horizon": ("plain", ("plan", "horizon"), 10**30),
    "another key": ("plain", ("state", "more"), 1),
}


@pytest.mark.parametrize("wrong", [{}, {"start": 161}, {"start": 0}, {"row": 161}, {"row": 100}], ids=str)
def test_an_alarm_of_a_state_began_at_a_row_before_it(decal: Decal, tmp_path: Path, wrong: dict[str, int]) -> None:
    """Of 160 rows, the 101st began what row 150 told; rows are counted from 1."""
    document = json.loads(true_state("plain"))
    last = document["state"]["last_time"]
    alarm = {"row": 150, "time": last, "start": 101, "start_time": last, **wrong}
    write_rows(tmp_path / "later.csv", 160, 240)
    (tmp_path / "state.json").write_text(forged_state(document, ("state", "alarm"), [*alarm.values()]))
    done = decal(*RUN)
    assert done.code == 0 if not wrong else "the state in it cannot be used" in refusal(done)


@pytest.mark.parametrize("case", FORGED)
def test_what_a_state_says_twice_it_says_alike(decal: Decal, tmp_path: Path, case: str) -> None:
    kind, keys, value = FORGED[case]
    assert kind in KINDS
    write_rows(tmp_path / "later.csv", 160, 240)
    (tmp_path / "state.json").write_text(forged_state(json.loads(true_state(kind)), keys, value))
    assert "the state in it cannot be used" in refusal(decal(*RUN)) or case in ("confidence", "horizon")


def test_times_may_be_numbers_in_a_column_of_texts(decal: Decal, tmp_path: Path) -> None:
    """As scores and labels may; CSV files have no such columns."""
    rng = np.random.default_rng(0)
    columns = {"p": rng.random(60), "y": rng.integers(0, 2, 60), "t": [f"{t / 4:g}" for t in range(60)]}
    pq.write_table(pa.table(columns), tmp_path / "texts.parquet")
    pq.write_table(pa.table(columns | {"t": np.arange(60) / 4}), tmp_path / "numbers.parquet")
    texts, numbers = (
        decal.json("online", f"{name}.parquet", "--time", "t", "-t", ".3") for name in ("texts", "numbers")
    )
    assert texts["windows"] == numbers["windows"] and texts["windows"][0]["first_time"] == "0"
    pq.write_table(pa.table(columns | {"t": ["1"] * 59 + ["later"]}), tmp_path / "word.parquet")
    assert "row 60: 'later' is no time" in refusal(decal("online", "word.parquet", "--time", "t", "-t", ".3"))
