"""The task: every spelling of it, exact thresholds, and an error that helps for every one that cannot be."""

import contextlib
import json
import math
from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from decal_cli.errors import DecalError
from decal_cli.limits import MAX_THRESHOLDS, MAX_UTILITY
from decal_cli.task import BinaryTask, Task, few_names, parse_odds, parse_utility, parse_varied, task_of
from tests.helpers.command import Decal

inside = st.floats(1e-30, 1, exclude_max=True)
cost = st.floats(1e-6, 1e6)


@given(threshold=inside)
@example(threshold=1e-30)
@example(threshold=0.3)
@example(threshold=1 - 2**-53)
def test_the_threshold_of_a_threshold_task_is_the_given_one(threshold: float) -> None:
    task = BinaryTask.of_threshold(threshold)
    assert task.threshold == task.decision_threshold == threshold
    assert task.u_delta == 1


@given(fp=cost, fn=cost)
@example(fp=1e15, fn=0.5)  # 1 to nine digits
def test_costs_make_the_threshold_of_claim_1(fp: float, fn: float) -> None:
    """t* = A / (A + B) (Gao et al. 2017, claim 1)."""
    threshold = BinaryTask.of_costs(fp, fn).threshold
    assert threshold == pytest.approx(fp / (fp + fn), rel=1e-14) and threshold < 1


def test_a_decimal_threshold_is_the_same_to_the_last_bit_however_it_is_spelled() -> None:
    """A score of .007 acts at t* = .007, whether that is 7 : 993, .7 : 99.3 or [[1, 0], [0, 1/t* - 1]]."""
    for thousandths in range(1, 1000):
        t = thousandths / 1000
        assert BinaryTask.of_threshold(t).threshold == t
        assert parse_odds(f"{thousandths}:{1000 - thousandths}").threshold == t
        for scale in (0.1, 1, 3, 100):
            assert BinaryTask.of_costs(scale * t, scale * (1 - t)).threshold == t
        # The task of the regret paper [R, section 4].
        paper = BinaryTask.of_utility([[1, 0], [0, 1 / t - 1]])
        assert paper.threshold == t and paper.u_delta == pytest.approx(1 / t)


SPELLINGS = [
    {"threshold": 0.05},
    {"odds": "1:19"},
    {"cost_fp": 1, "cost_fn": 19},
    {"utility": "0,-19;-1,0"},
    {"utility": [[0, -19], [-1, 0]]},
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
def test_five_spellings_of_one_threshold(spelling: dict) -> None:
    task = task_of(**spelling)
    assert task.threshold == pytest.approx(0.05, abs=1e-15)
    assert task.decision_threshold == task.threshold


def test_a_task_may_be_none_and_the_model_operated_elsewhere() -> None:
    assert task_of() is None
    task = task_of(threshold=0.3, decision_threshold=0.5)
    assert (task.threshold, task.decision_threshold) == (0.3, 0.5)


@pytest.mark.parametrize(
    ("utility", "classes", "unit", "u_delta"),
    [
        # The best action beyond the worst is worth 5 at label 0 and 19 at label 1.
        ("0,-20;-2,-3;-5,-1", (), 5 + 19, 5 + 19),
        ("0,-20;-2,-3;-5,-1", ("no", "yes"), 19, 2 * (5 + 19) / 2),
        ("1,-2,-3;-5,0,-1", ("a", "b", "c"), 6, 2 * (6 + 2 + 2) / 3),
    ],
)
def test_what_is_at_stake_by_hand(utility: str, classes: tuple[str, ...], unit: float, u_delta: float) -> None:
    decision = task_of(utility=utility).for_classes(classes)
    assert (decision.unit, decision.u_delta) == pytest.approx((unit, u_delta))


@pytest.mark.parametrize(
    "utility",
    ["a,0,-1;b,0,-1;c,-1,0", "a,0,-1;b,-.5,-.5;c,-1,0", "a,0,-1;c,-1,0;b,-.5,-.5", "b,-1,-1;a,0,-1;c,-1,0",
     "a,0,-7.1;b,-3.5,11.275;c,-4.9,18.625", "a,0,-2.6;b,-1.4,-.5;c,-6,6.4", "a,0,-1e15;b,-1e-310,0;c,-1,1"],
    ids=["two are alike", "three lines meet", "in another order", "one is never better", "they meet but for rounding",
         "two meet the third at one float", "one is overtaken at 0, but for rounding"],
)  # fmt: skip
def test_of_actions_that_are_best_together_those_are_taken_that_are_best_alone(utility: str) -> None:
    assert parse_utility(utility).taken == ("a", "c")


def test_of_many_names_the_first_are_told() -> None:
    assert few_names("abcdefgh") == "a, b, c, d, e, f, g, h"
    assert few_names("abcdefghi") == "a, b, c, d, e, f, g, h, ... (9)"


FILES = {
    "utility.json": json.dumps([[0, -19], [-1, 0]]),
    "named.json": json.dumps({"utility": [[0, -19], [-1, 0]]}),
    "utility.toml": "utility = [[0, -19], [-1, 0]]\n",
    "utility.csv": "0,-19\n-1,0\n",
    "spaced.csv": "\ufeff0, -19\n\n-1, 0\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_utility_may_stand_in_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    assert parse_utility(str(path)).utility == ((0.0, -19.0), (-1.0, 0.0))


BAD_FILES: dict[str, tuple[str | bytes | None, str]] = {
    "broken.json": ("[[0, -19], [-1", "2 x 2"),
    "broken.toml": ("utility = [[0", "2 x 2"),
    "empty.toml": ("", "2 x 2"),
    "other.json": ('{"matrix": 1}', "2 x 2"),
    "number.json": ("3", "2 x 2"),
    "words.csv": ("a,b\nc,d\n", "2 x 2"),
    "ragged.csv": ("1,0,0\n0,1\n", "not equally long"),
    "header.csv": ("a,b\n1,0\n0,1\n", "2 x 2"),
    "empty.csv": ("", "2 x 2"),
    "null.json": ("[[0, null], [1, 0]]", "2 x 2"),
    "nan.json": ("[[0, NaN], [1, 0]]", "finite"),
    "bytes.json": (b"\xff\xfe\x00\x01", "2 x 2"),
    "missing.json": (None, "name a readable file"),
    "folder.csv": (None, "name a readable file"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_utility_file_is_named(name: str, tmp_path: Path) -> None:
    content, message = BAD_FILES[name]
    (tmp_path / "folder.csv").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DecalError, match=message) as caught:
        parse_utility(str(tmp_path / name))
    assert "\n" not in str(caught.value)


@given(u=st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4))
def test_any_matrix_is_a_task_or_an_error(u: list[float]) -> None:
    try:
        task = BinaryTask.of_utility([u[:2], u[2:]])
    except DecalError:
        return
    assert 0 < task.threshold < 1
    assert task.u_delta > 0


@given(text=st.text(max_size=20))
def test_any_text_is_a_task_or_an_error(text: str) -> None:
    for parse in (parse_odds, parse_utility):
        with contextlib.suppress(DecalError):
            task = parse(text)
            assert not isinstance(task, Task) or all(0 < threshold < 1 for threshold in task.thresholds)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3,1,3", (1, 3)),
        ("0.05:0.35:0.05", (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35)),
        ("0:1:0.4", (0, 0.4, 0.8)),
        ("-1:1", tuple(k / 10 for k in range(-10, 11))),
        (f"{-MAX_UTILITY},{MAX_UTILITY}", (-MAX_UTILITY, MAX_UTILITY)),
        (f"1:{MAX_THRESHOLDS}:1", tuple(range(1, MAX_THRESHOLDS + 1))),
    ],
)
def test_what_varies_takes_the_values_that_are_named_ends_included(text: str, values: tuple[float, ...]) -> None:
    assert parse_varied(f"a:b={text}").values == values


@pytest.mark.parametrize("road", ["rows", "counts", "engine"])
def test_a_threshold_decides_to_the_last_bit(decal: Decal, tmp_path: Path, road: str) -> None:
    """Rows score just below a short decimal, at it and just above it; a score equal to the threshold acts."""
    for number, middle in enumerate((0.25, 0.3, 0.5, 0.07)):
        scores = [math.nextafter(middle, 0), middle, math.nextafter(middle, 1)]
        rows, counts = tmp_path / f"{number}.csv", tmp_path / f"{number}-counts.csv"
        rows.write_text("p,y\n" + "".join(f"{score!r},1\n{score!r},0\n" for score in scores))
        counts.write_text("score,n,pos\n" + "".join(f"{score!r},2,1\n" for score in scores))
        store = tmp_path / f"{number}.db"
        with duckdb.connect(str(store)) as connection:
            connection.execute(f"create table t as select * from '{rows}'")
        engine = ["--engine", f"duckdb:{store}?table=t", "-s", "p", "-y", "y"]
        source = {"rows": [rows], "counts": [counts, "--aggregated"], "engine": engine}[road]
        for acting, t in zip((3, 2, 1), scores, strict=True):
            for task in (["-t", repr(t)], ["--cost-fp", repr(t), "--cost-fn", repr(1 - t)]):
                done = decal("evaluate", *source, *task, "-m", "selection_rate", "-f", "json")
                found = json.loads(done.out)["reports"][0]["metrics"]["selection_rate"]["value"]
                assert found == pytest.approx(acting / 3), (t, task)


@pytest.mark.parametrize(("operated_at", "then"), [(None, 0.5), (0.2, 0.5), (0.3, 0.3)])
def test_a_task_that_moves_keeps_the_sum_of_its_costs(operated_at: float | None, then: float) -> None:
    """Costs of 1 and 4 have t* = .2; at .5 they are 2.5 each. Who operates elsewhere stays there."""
    moved = BinaryTask.of_costs(1, 4, operated_at).moved_to(0.5)
    assert moved.costs == (2.5, 2.5) and (moved.threshold, moved.decision_threshold) == (0.5, then)
