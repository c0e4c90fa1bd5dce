"""The replay: it never looks ahead, and its sums are those of the rows."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t

from decal_cli.analysis.gate import MEANS, bounded_rows, holm
from decal_cli.analysis.online.judged import Judged, _prior_shift
from decal_cli.analysis.online.plan import Delay, OnlinePlan, Period, online_plan, unasked_period
from decal_cli.analysis.online.replay import N_CELLS, CellTally, Latest, Replay, count_in_cells, digests_of
from decal_cli.data import Stream
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.sequential import ONLINE
from decal_cli.sequential.anytime import RunningDifference, RunningMeans, utility_difference
from decal_cli.tables.rows import Rows
from decal_cli.tables.units import mean_over
from decal_cli.task import BinaryTask
from simulation.cluster_streams import runs_of
from tests.helpers.command import BINARY, Decal

ROWS, DAY = 240, 86_400_000_000_000
TASK = BinaryTask.of_threshold(0.4)
SHORT = ("rolling-isotonic(window=60)", "fading-isotonic(half_life=10)", "hedge(bins=3)")
"""Some that learn from fewer rows than there are here."""
DELAYS = {"none": "0", "rows": "15", "time": "6d", "column": "came", "longer than the stream": "900d"}


def stream_of_rows(seed: int, delay: str) -> Stream:
    rng = np.random.default_rng(seed)
    score = rng.random(ROWS).round(2)
    label = (rng.random(ROWS) < score**2).astype(np.uint8)
    # Three rows have the same time.
    time = np.arange(ROWS) // 3 * DAY
    arrival = time + rng.integers(0, 20, ROWS) * DAY if delay == "column" else time
    group = rng.choice(["a", "b"], ROWS)
    columns = {"score": ("p",), "label": "y", "group": ("g",)}
    of_rows = time, arrival, group, np.full(ROWS, ""), np.arange(ROWS)
    return Stream((), columns, (), (), "dates", score, label, ROWS, *of_rows)


def replay_of(stream: Stream, delay: str) -> Replay:
    late, every = Delay.parse(DELAYS[delay]), unasked_period(stream.time, "dates")
    cluster = stream.columns.get("cluster")
    plan = OnlinePlan(TASK, (), "dates", "p", "t", "g", cluster, delay=late, every=every, seed=3)
    return Replay(online_plan((*ONLINE, *SHORT), 50, plan))


def known_from(stream: Stream, delay: str) -> np.ndarray:
    """The first row of which each row's label may be known: by hand, row by row."""
    first = np.full(ROWS, ROWS)
    for row in range(ROWS):
        for later in range(row + 1, ROWS):
            if stream.time[later] == stream.time[row]:
                continue
            known = {
                "none": True,
                "rows": later - row > 15,
                "time": stream.time[later] - stream.time[row] >= 6 * DAY,
                "column": stream.arrival[: row + 1].max() <= stream.time[later],
                "longer than the stream": False,
            }[delay]
            if known:
                first[row] = later
                break
    return first


@pytest.mark.parametrize("delay", DELAYS)
def test_what_is_changed_after_a_time_changes_no_prediction_before_it_is_known(delay: str) -> None:
    stream, other = stream_of_rows(1, delay), stream_of_rows(2, delay)
    before = replay_of(stream, delay).advance(stream)
    assert set(before) == {*ONLINE, *SHORT, "frozen-isotonic(warm_up=50)"} - {"frozen-isotonic"}
    known = known_from(stream, delay)
    for row in np.random.default_rng(4).choice(ROWS, 4, replace=False).tolist():
        score, label = stream.score.copy(), stream.label.copy()
        score[row + 1 :], label[row:] = other.score[row + 1 :], 1 - stream.label[row:]
        changed = Stream(**{**vars(stream), "score": score, "label": label})
        after = replay_of(changed, delay).advance(changed)
        for method in before:
            # Rows up to this one have the score they had; later ones do, until the label of this row is known.
            assert after[method][: row + 1].tobytes() == before[method][: row + 1].tobytes(), method
        only_label = Stream(
            **{**vars(stream), "label": np.where(np.arange(ROWS) == row, 1 - stream.label, stream.label)}
        )
        after = replay_of(only_label, delay).advance(only_label)
        for method in before:
            first = known[row]
            assert after[method][:first].tobytes() == before[method][:first].tobytes(), method
        if known[row] < ROWS - 30:
            assert any((after[method] != before[method]).any() for method in ("running-mean", "online-platt"))


EXTREMES: dict[str, Callable[[Stream], Stream]] = {
    "rows": lambda stream: stream,
    "clusters": lambda stream: in_clusters(stream, 3),
    **{
        f"label {y} at score {p}": lambda stream, y=y, p=p: replace(
            stream, label=np.full(ROWS, y, dtype=np.uint8), score=np.full(ROWS, float(p))
        )
        for y in (0, 1)
        for p in (0, 1)
    },
}


@pytest.mark.ci
@pytest.mark.parametrize(
    ("kind", "delay"),
    [(kind, delay) for kind in EXTREMES for delay in (DELAYS if kind in ("rows", "clusters") else ("none", "rows"))],
)
def test_every_row_is_a_place_to_stop(kind: str, delay: str) -> None:
    """The first rows with the first clusters, and those about the end of the warm-up."""
    stream = EXTREMES[kind](stream_of_rows(1, delay))
    whole, going, row = replay_of(stream, delay), replay_of(stream, delay), np.arange(ROWS)
    for start, end in pairwise([*range(9), *range(48, 53), 60]):
        going.advance(stream.only((row >= start) & (row < end)))
        state = json.dumps(going.state())
        going = replay_of(stream, delay)
        going.restore(json.loads(state))
        assert json.dumps(going.state()) == state
    whole.advance(stream.only(row < 60))
    assert whole.state() == going.state()


def acts_and_result(stream: Stream) -> tuple[dict[str, np.ndarray], Judged]:
    """On which rows each method acts, and what is said of it."""
    replay = replay_of(stream, "none")
    acts = {name: each >= 0.4 for name, each in replay.advance(stream).items()}
    replay.close()
    return acts, Judged(replay)


def test_rows_that_hold_the_same_have_the_same_digest_and_no_others() -> None:
    """0 and -0 are one score; files may write either."""
    rows = [
        (0.0, 0, "a", "b"),
        (0.5, 0, "a", "b"),
        (0.0, 1, "a", "b"),
        (0.0, 0, "b", "b"),
        (0.0, 0, "a", "a"),
        (-0.0, 0, "a", "b"),
    ]
    plan = replay_of(in_clusters(stream_of_rows(1, "none"), 3), "none").plan
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    digests = digests_of(plan, *columns).tolist()
    assert digests[-1] == digests[0] and len(set(digests)) == len(rows) - 1
    assert digests[0] not in digests_of(replace(plan, cluster=None), *columns).tolist()


@pytest.mark.parametrize(("overlap", "taken"), [(12, 0), (13, 13)])
def test_rows_that_overlap_were_taken_where_chance_would_have_it_less_often_than_once_in_a_million(
    overlap: int, taken: int
) -> None:
    """7 rows c, then a, b, a, b, .. of which the next rows are the same: p^12 = 1.6e-6 and p^13 = 7e-7.

    p is the chance that two of all rows are equal: of 12 rows a, 12 rows b and 7 rows c, 306 of 930 pairs are.
    """
    turns = np.arange(overlap, dtype=np.uint64) % 2
    latest = Latest(np.int64)
    latest.then(np.zeros(7 + overlap, np.int64), np.append(np.full(7, 2, np.uint64), turns))
    assert latest.among(np.zeros(overlap, np.int64), turns, 7 + overlap) == taken


@pytest.mark.parametrize(("values", "overlap", "taken"), [(2000, 1, 1), (2, 1, 0), (2, 2, 2), (2, 600, 600)])
def test_rows_at_times_of_their_own_are_known_by_going_back_or_by_values_that_seldom_come_twice(
    values: int, overlap: int, taken: int
) -> None:
    """1,000 rows, one at each time, then more from `overlap` of them on; one row of the last time goes not back."""
    time = np.arange(2000, dtype=np.int64)
    digest = (time % values).astype(np.uint64)
    latest, more = Latest(np.int64), slice(1000 - overlap, 2000 - overlap)
    latest.then(time[:1000], digest[:1000])
    assert latest.among(time[more], digest[more], 1000) == taken


def test_predictions_are_counted_in_cells_of_equal_width() -> None:
    n, positives, sums = np.zeros(4, int), np.zeros(4, int), np.zeros(4)
    count_in_cells(n, positives, sums, np.array([0.0, 0.25, 0.75, 1.0]), np.array([0, 1, 0, 1]))
    assert (n.tolist(), positives.tolist(), sums.tolist()) == ([1, 1, 0, 2], [0, 1, 0, 1], [0.0, 0.25, 0.0, 1.75])


@pytest.mark.parametrize(("cells", "taken"), [(4.4, False), (4.6, True), (7.4, True), (7.6, False)])
def test_predictions_of_a_state_lie_in_their_cell_but_for_rounding(cells: float, taken: bool) -> None:
    """Two of cell 5: between 5 and 6 cells from 0 each, and a cell for rounding."""
    state = [[5], [2], [1], [2 * (cells - 0.5) / N_CELLS]]
    with nullcontext() if taken else pytest.raises(ValueError):
        CellTally().restore(state)


def test_sums_are_those_of_the_rows() -> None:
    stream = stream_of_rows(1, "none")
    acts, result = acts_and_result(stream)
    for report in result.methods:
        acting = acts[report.spec.key]
        utility = np.where(acting, np.where(stream.label == 1, 0.0, -0.4), np.where(stream.label == 1, -0.6, 0.0))
        assert report.utility == pytest.approx(utility.mean(), abs=1e-12)
        if report.gain is not None and report.interval is not None:
            ends = RunningDifference(TASK).advance(acts["as-it-is"], acting, stream.label).sequence(0.05)
            assert report.interval == pytest.approx((ends.low[-1], ends.high[-1]), abs=1e-12)
    assert result.rows_per_day == pytest.approx(ROWS / 79)
    assert sum(window.rows for window in result.windows) == ROWS


@pytest.mark.parametrize("warm, before, now, shifted", [
    (100, 100, 0.5, True), (99, 100, 0.5, None), (100, 99, 0.5, None),
    # Two errors of the difference: 1.96 sqrt(.3 x .7 / 100 + .42 x .58 / 200) = .1129, with .41 .1128.
    (100, 100, 0.42, True), (100, 100, 0.41, False), (100, 100, 1.0, False), (100, 100, 0.0, False),
])  # fmt: skip
def test_where_the_share_of_label_1_clearly_changed_the_threshold_follows_it(
    warm: int, before: int, now: float, shifted: bool | None
) -> None:
    """A score of the threshold has a chance of t*, once its odds are those of the new share."""
    windows = [SimpleNamespace(rows=before), SimpleNamespace(rows=200, base_rate=now)]
    plan = SimpleNamespace(warm_up=100, confidence=0.95, task=TASK)
    shift = _prior_shift(SimpleNamespace(warm=[warm, 0.3 * warm], windows=windows, plan=plan, clusters=None))
    assert (None if shift is None else shift.threshold is not None) is shifted
    if shift is not None and shift.threshold is not None:
        odds = shift.threshold / (1 - shift.threshold) * (now / (1 - now)) / (0.3 / 0.7)
        assert odds / (1 + odds) == pytest.approx(TASK.threshold)


def in_clusters(stream: Stream, size: int, seed: int = 6) -> Stream:
    """Rows in clusters of this size, one after the other; size 0: ten clusters that come back again and again."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(ROWS // size), size) if size else rng.integers(0, 10, ROWS)
    columns = {**stream.columns, "cluster": "c"}
    return replace(stream, cluster=cluster.astype(str), columns=columns)


def test_no_prediction_learns_from_its_own_cluster() -> None:
    stream = in_clusters(stream_of_rows(1, "rows"), 12)
    before = replay_of(stream, "none").advance(stream)
    for cluster in (3, 11):
        rows = np.arange(12 * cluster, 12 * cluster + 12)
        label = stream.label.copy()
        label[rows] = 1 - label[rows]
        other = replace(stream, label=label)
        after = replay_of(other, "none").advance(other)
        for method in before:
            assert after[method][: rows[-1] + 1].tobytes() == before[method][: rows[-1] + 1].tobytes(), method
        assert (after["running-mean"][rows[-1] + 1 :] != before["running-mean"][rows[-1] + 1 :]).any()


def test_gains_in_clusters_are_means_over_clusters() -> None:
    stream = in_clusters(stream_of_rows(1, "none"), 8)
    acts, result = acts_and_result(stream)
    assert len(result.clusters.size) == ROWS // 8
    for report in result.methods[1:]:
        difference = utility_difference(acts["as-it-is"], acts[report.spec.key], stream.label, TASK)
        by_cluster = RunningMeans(TASK).advance(np.append(difference, 0.0), runs_of(np.append(np.full(30, 8), 1)))
        ends = by_cluster.sequence(0.05)
        assert report.gain == pytest.approx(difference.reshape(-1, 8).mean(), abs=1e-12)
        assert report.interval == pytest.approx((ends.low[-1], ends.high[-1]), abs=1e-12)


def test_clusters_that_come_back_have_the_intervals_of_one_look() -> None:
    stream = in_clusters(stream_of_rows(1, "none"), 0)
    acts, result = acts_and_result(stream)
    assert not result.has_e_value and result.alarm is None
    for report in result.methods[1:]:
        difference = utility_difference(acts["as-it-is"], acts[report.spec.key], stream.label, TASK)
        unit = np.unique(stream.cluster, return_inverse=True)[1]
        size = np.bincount(unit).astype(np.float64)
        # A cluster is what could have been missed, and not one row.
        mean, error = mean_over(np.bincount(unit, difference) / size, size, None)
        reach = t.ppf(0.975, size.sum() ** 2 / (size**2).sum() - 1) * error
        assert report.gain == pytest.approx(mean, abs=1e-12) and report.since is None
        assert report.interval == pytest.approx((mean - reach, mean + reach), rel=1e-9)


NAMED = (BINARY, "--score", "p", "--label", "y", "--threshold", ".3")


@pytest.mark.parametrize(
    ("every", "name", "first", "after"),
    [
        ("hour", "2024-02-29 23", "2024-02-29T23", "2024-03-01T00"),
        ("day", "2024-02-29", "2024-02-29", "2024-03-01"),
        ("week", "2024-02-26", "2024-02-26", "2024-03-04"),
        ("week", "1969-12-29", "1969-12-29", "1970-01-05"),
        ("month", "2024-02", "2024-02-01", "2024-03-01"),
        ("quarter", "2023 Q4", "2023-10-01", "2024-01-01"),
        ("quarter", "1969 Q4", "1969-10-01", "1970-01-01"),
        ("year", "2023", "2023-01-01", "2024-01-01"),
    ],
)
def test_a_window_of_the_calendar_is_called_by_its_start_and_ends_before_the_next(
    every: str, name: str, first: str, after: str
) -> None:
    """Weeks begin on Mondays; a nanosecond before its start is another window, as is the start of the next."""
    start, end = (int(np.datetime64(each, "ns").astype(np.int64)) for each in (first, after))
    period = Period.parse(every)
    before, at, last, following = period.places(np.array([start - 1, start, end - 1, end]), 0).tolist()
    assert (before, last, following) == (at - 1, at, at + 1) and period.name(at, 1) == name


def test_windows_of_so_many_rows_are_called_by_their_rows() -> None:
    period = Period.parse("20")
    assert period.places(np.zeros(3, dtype=np.int64), 1_999).tolist() == [99, 100, 100]
    assert period.name(99, 20) == "1,981–2,000" and period.name(99, 7) == "1,981–1,987"


def test_holm_by_hand() -> None:
    """Holm 1979: .01 <= .05 / 4, .015 <= .05 / 3, .03 > .05 / 2; then none."""
    assert holm([0.03, 0.01, 0.04, 0.015], 0.05) == [False, True, False, True]


def anytime_rows(decal: Decal, *more: str) -> list[dict]:
    return decal.json("gate", *NAMED, "--anytime", *more)["gates"]


def test_three_answers_and_what_is_no_sequence(decal: Decal) -> None:
    rules = ("brier<=0.2", "brier<=0.19", "accuracy>=.9", "auc>=.7", "gain_recalibration<=.01", "upper(brier)<=.2")
    rules += ("upper(gain_recalibration)<=.01",)
    rows = {row["rule"]: row for row in anytime_rows(decal, *(part for rule in rules for part in ("-r", rule)))}
    assert [rows[rule]["answer"] for rule in rules[:3]] == ["passed", "not shown", "failed"]
    assert [rows[rule]["passed"] for rule in rules[:3]] == [True, True, False]
    assert rows["accuracy>=.9"]["since"] > 1 and rows["accuracy>=.9"]["chance"] < 0.05
    for rule, why in (
        ("auc>=.7", "no mean"),
        ("gain_recalibration<=.01", "came after"),
        ("upper(brier)<=.2", "an interval of its own, so write 'brier'"),
        ("upper(gain_recalibration)<=.01", "came after"),
    ):
        assert rows[rule]["passed"] is None and why in rows[rule]["reason"]
    strict = {row["rule"]: row for row in anytime_rows(decal, "-r", "brier<=0.19", "--undecided", "fail")}
    two = ("-r", "upper(delta(brier))<=.1", "-r", "gap(brier)<=.1", "--group", "group", "--score", "q")
    reasons = {row["rule"]: row["reason"] for row in anytime_rows(decal, *two)}
    assert reasons["upper(delta(brier))<=.1"].endswith("so write 'delta(brier)'")
    assert reasons["gap(brier)<=.1"].endswith("every group is a sequence of its own, so write 'brier'")
    assert strict["brier<=0.19"]["passed"] is False
    (weighted,) = anytime_rows(decal, "-r", "brier<=.2", "--weight", "weight")
    assert weighted["passed"] is None and "without weights" in weighted["reason"]


def test_what_a_test_of_one_side_shows_is_said_beside_an_interval_of_two_that_holds_the_bound(decal: Decal) -> None:
    """Each side may be wrong with the whole risk, and each end of the interval with half of it."""
    (row,) = anytime_rows(decal, "-r", "brier<=1")
    assert row["interval"] is not None
    bounds = np.linspace(row["value"], row["interval"][1], 60)[:-1]
    rules = [f"brier<={bound:.9f}" for bound in bounds]
    rows = anytime_rows(decal, *(part for rule in rules for part in ("-r", rule)))
    lines = decal("gate", *NAMED, "--anytime", *(part for rule in rules for part in ("-r", rule))).out
    shown = [row["rule"] for row in rows if row["shown"]]
    assert 0 < len(shown) < len(rules)
    for rule in rules:
        (line,) = (each for each in " ".join(lines.split()).split("PASS ") if each.startswith(f"{rule} "))
        assert ("rows show it by a test of one side" in line) == (rule in shown)


def test_the_text_says_what_is_promised(decal: Decal) -> None:
    done = decal("gate", *NAMED, "--anytime", "--family", "holm", "-r", "brier<=.2", "-r", "accuracy>=.9")
    text = done.text
    assert "the chance that any rule that holds fails clearly at any look" in text and "is at most 5 %" in text
    assert done.code == 1 and "clearly so from row" in text


def test_a_rule_that_failed_and_holds_by_now_says_both(decal: Decal, tmp_path: Path) -> None:
    path = tmp_path / "better.csv"
    rows = ["p,y,c", *(f"0.6,0,a{k // 5}" for k in range(100)), *(f"0.6,1,b{k // 5}" for k in range(900))]
    path.write_text("\n".join(rows) + "\n")
    line = ("gate", path, "-s", "p", "-y", "y", "-t", "0.5", "--anytime", "-r", "accuracy>=.7")
    done = decal(*line)
    said = "0.9: within by 0.20 now, but the first 5 rows clearly failed; the mean changed along the way, so that"
    assert done.code == 1 and said in done.text and "counts once" not in done.text
    assert "values are means of clusters, each of which counts once" in decal(*line, "--cluster", "c").text


def test_rows_are_only_added(decal: Decal, tmp_path: Path) -> None:
    header, *lines = Path(BINARY).read_text().splitlines()
    earlier, moved = tmp_path / "earlier.csv", tmp_path / "moved.csv"
    earlier.write_text("\n".join([header, *lines[:500]]) + "\n")
    line = ("gate", *NAMED, "--anytime", "-r", "brier<=.2")
    assert decal(*line, "--baseline", earlier).code == 0
    label = header.split(",").index("y")
    first = next(k for k, row in enumerate(lines) if row.split(",")[label] != lines[0].split(",")[label])
    moved.write_text("\n".join([header, lines[first], *lines[1:first], lines[0], *lines[first + 1 : 500]]) + "\n")
    done = decal(*line, "--baseline", moved)
    assert done.code == 2 and "are not the first rows of these: row 1 differs" in done.err
    scored = tmp_path / "scored.csv"
    column, cells = header.split(",").index("p"), lines[3].split(",")
    scored.write_text("\n".join([header, *lines[:3], ",".join([*cells[:column], "0.5", *cells[column + 1 :]])]) + "\n")
    done = decal(*line, "--baseline", scored)
    assert done.code == 2 and "are not the first rows of these: row 4 differs" in done.err
    with_drop = decal(*line, "--baseline", scored, "-r", "drop(brier)<=.1")
    assert "first rows" not in with_drop.err, "where rules compare with them, the scores are those of an earlier model"


@pytest.mark.parametrize("rule", ["auc>=0.772", "lower(auc)>=0.772"])
def test_holm_keeps_what_is_clear_by_itself_only_where_all_are(decal: Decal, rule: str) -> None:
    """Beside many rules at the bound, a rule that fails with a chance of one in a hundred is not clear.

    However far the end of the interval lies that the rule is about.
    """
    more = tuple(part for k in range(40) for part in ("-r", f"brier<={0.21 + k / 1000:.3f}"))
    line = ("gate", *NAMED, "-r", rule, *more, "-f", "json")
    alone, together = (
        next(row for row in json.loads(decal(*line, *family).out)["gates"] if row["rule"] == rule)
        for family in ((), ("--family", "holm"))
    )
    assert alone["answer"] == "failed" and together["answer"] == "not shown"
    assert 0.05 / 41 < together["chance"] < 0.025
    said = " ".join(decal(*line[:-2], "--family", "holm").out.split())
    (line_of_rule,) = said.split(f"FAIL {rule} ")[1:]
    assert " short by " in line_of_rule[:80] and "; 2,000 rows show it by itself, but not beside" in line_of_rule[:120]


def test_holm_names_what_it_does_not_count(decal: Decal) -> None:
    """Of many groups that are alike the worst is often over a bound that holds for each."""
    rules = ("-r", "max(brier)<=.9", "-r", "rows>=1", "-r", "brier<=.9")
    (note,) = json.loads(decal("gate", *NAMED, "--group", "group", *rules, "--family", "holm", "-f", "json").out)[
        "notes"
    ]
    assert note.endswith("; max(brier)<=.9 is judged by its value, which this does not count")


def test_what_a_sequence_watches_is_each_rows_part_of_the_metric() -> None:
    """A loop over rows says the same; the range is the one that was known before the rows."""
    rng = np.random.default_rng(2)
    score, label = rng.random(50).round(2), rng.integers(0, 2, 50).astype(np.uint8)
    ((u00, u01), (u10, u11)) = task = ((0.5, -3.0), (-1.0, 2.0))
    inputs = Inputs(Rows(score, label), BinaryTask.of_utility(task))
    odds = (u00 - u10) / (u11 - u01)
    acts = score >= odds / (1 + odds)
    by_hand = {
        "brier": ((score - label) ** 2, 0, 1),
        "expected_utility": (np.array(task)[acts.astype(int), label], -3, 2),
        "accuracy": (acts == label, 0, 1),
        "selection_rate": (acts, 0, 1),
        "net_benefit": (np.where(acts, np.where(label == 1, 1.0, -odds), 0.0), -odds, 1),
        "eu_never": (np.array((u00, u01))[label], -3, 0.5),
        "eu_always": (np.array((u10, u11))[label], -1, 2),
    }
    assert set(by_hand) == set(MEANS)
    for name, (values, low, high) in by_hand.items():
        watched = bounded_rows(parse(name), inputs)
        assert watched.values == pytest.approx(values.astype(float), abs=1e-12), name
        assert (watched.low, watched.high) == pytest.approx((low, high)), name
        assert watched.values.mean() == pytest.approx(value_of(parse(name), inputs)), name
