"""Decisions counted: by hand, by an isotonic fit of another package, and as the gains have it."""

import re
from typing import Any

import numpy as np
import pytest

import decal_cli
from decal_cli.analysis.described import Decided, DecisionCounts, count_decisions
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.metrics.decisions import DecisionChange
from decal_cli.render.results.ways import Way, of_thousand
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from tests.helpers.command import BINARY, FOX, Decal
from tests.helpers.worlds import featured_rows

EXACT = 1e-12


def correlated_world(rows: int, weighted: bool = False) -> Rows:
    score, label, weight, features = featured_rows(rows)
    return Rows(score, label, weight if weighted else None, features=features)


def counted(rows: Rows, task: BinaryTask) -> tuple[Inputs, DecisionCounts]:
    inputs = Inputs(rows, task)
    counts = count_decisions(inputs)
    return inputs, counts


def worth(change: DecisionChange, task: BinaryTask) -> float:
    t = task.threshold
    return task.u_delta * (change.true_positives * (1 - t) - change.false_positives * t)


COUNTED_TASKS = (BinaryTask.of_threshold(0.3), BinaryTask.of_costs(3, 700, 0.4), BinaryTask.of_threshold(0.8, 0.0))


@pytest.mark.usefixtures("one_deal")
@pytest.mark.parametrize(("task", "weighted"), [*zip(COUNTED_TASKS, (False, True, False), strict=True)])
def test_a_gain_is_what_the_changed_counts_win(task: BinaryTask, weighted: bool) -> None:
    inputs, counts = counted(correlated_world(900, weighted), task)
    for name, key in (("recalibrate", "gain_recalibration"), ("post-train", "gain_beyond")):
        step = counts.steps[name]
        gain = value_of(parse(key), inputs)
        assert step.gain == gain
        assert abs(worth(step.change, task) / counts.total - gain) <= EXACT * task.u_delta


@pytest.mark.usefixtures("one_deal")
@pytest.mark.parametrize("weighted", [False, True])
def test_decisions_as_they_are_by_hand(weighted: bool) -> None:
    rows = correlated_world(400, weighted)
    _, counts = counted(rows, BinaryTask.of_threshold(0.3))
    act, weight = rows.score >= 0.3, rows.weights * 400 / rows.weights.sum()
    by_hand = [weight[where].sum() for where in (act & (rows.label == 1), act & (rows.label == 0))]
    by_hand += [weight[where].sum() for where in (~act & (rows.label == 1), ~act & (rows.label == 0))]
    as_is = counts.steps["now"]
    cells = (as_is.true_positives, as_is.false_positives, as_is.false_negatives, as_is.true_negatives)
    assert cells == pytest.approx(by_hand, rel=1e-12)
    assert as_is.ppv == pytest.approx(by_hand[0] / (by_hand[0] + by_hand[1]))
    assert as_is.sensitivity == pytest.approx(by_hand[0] / (by_hand[0] + by_hand[2]))


def test_what_cannot_be_estimated_is_not_counted() -> None:
    few = Rows(np.array([0.2, 0.8, 0.9]), np.array([0, 1, 0]))
    _, counts = counted(few, BinaryTask.of_threshold(0.5))
    assert counts.steps["now"].true_positives == 1 and len(counts.steps) == 1
    assert count_decisions(Inputs(few)) is None
    nobody = counted(few, BinaryTask.of_threshold(0.95))[1].steps["now"]
    assert nobody.ppv is None and nobody.sensitivity == 0


def test_text_json_and_the_page_say_the_same() -> None:
    """Two models; what they do, and what the one that is worth a change wins."""
    rows = decal_cli.Data(str(FOX), score=("p_hatesonar", "p_profanity"), label="y", missing="drop")
    answer = decal_cli.recommend(rows, cost_fp=300, cost_fn=700, unit="EUR", decisions="50000/year")
    text = answer.to_text(width=200)
    page = " ".join(re.sub("<[^>]*>", " ", answer.to_text("html")).split())
    for entry in answer.to_dict()["reports"]:
        as_is, total = entry["counts"]["as_is"], entry["counts"]["rows"]
        shown = [f"{1000 * as_is[key] / total:,.0f}" for key in ("acted", "false_positives", "false_negatives")]
        assert re.search(rf"^score as it is +-\d\.\d\d +{' +'.join(shown)}$", text, re.MULTILINE)
        assert re.search(rf"score as it is -\d\.\d+ {' '.join(shown)} ", page)
    assert re.search(r"^ +wins in million EUR\nmodel +do now +a year +how sure$", text, re.MULTILINE)
    assert re.search(r"^p_profanity +recalibrate with isotonic +0\.661 \[0\.003, 1\.320\] +clear$", text, re.MULTILINE)
    for written in (" ".join(text.split()), page):
        assert "wins 0.661 [0.003, 1.320] million EUR a year" in written


@pytest.mark.ci
def test_the_actions_have_the_names_that_the_user_gives(decal: Decal, tmp_path: Any) -> None:
    asked = (BINARY, "-s", "p", "-y", "y", "-t", ".3")
    plain, named = decal("recommend", *asked), decal("recommend", *asked, "--names", "reject,accept")
    assert re.search(r"acts on +false alarms +misses\nnever act +-221.6 +0 +0 +316", plain.out)
    words = named.text
    assert "'accept' at label 0 costs 0.3, 'reject' at label 1 0.7: 'accept' pays from" in words
    assert re.search(r"always decide 'reject' +-221.6 +0 +0 +316", named.out) and "false alarm" not in words
    assert "accept when score >= 0.3 (t*): reject is worth 0 at label 0, -0.7 at label 1; accept is worth" in words
    # So do two rows of a utility; a third that is best for no score is said to be never taken.
    decided = decal("recommend", *asked[:-2], "--utility", "reject,0,-.7;ask,-.4,-.5;accept,-.3,0")
    assert re.search(r"always decide 'reject' +-221.6 +0 +0 +316", decided.out)
    assert "accept when score >= 0.3 (t*); never ask: reject is worth 0" in decided.text
    (tmp_path / "decal.toml").write_text('names = ["reject", "accept"]\nunit = "EUR"\ndecisions = "20/day"\n')
    settled = decal("recommend", *asked)
    assert "always decide 'accept'" in settled.out and "EUR a day" in settled.out
    assert decal.json("recommend", *asked)["counts"]["names"] == ["reject", "accept"]


@pytest.mark.parametrize(
    ("least", "shown"),
    [*((1.0, "1"), (0.95, "1"), (0.94, "0.9"), (0.095, "0.1"), (0.094, "0.09"), (0.02, "0.02"), (0.0, "0"))],
)
def test_rows_of_a_thousand_are_whole_where_the_fewest_are_one(least: float, shown: str) -> None:
    way = Way("now", "", 0.0, None, Decided(500.0, 0.0, least, 500.0 - least))
    decimals = len(shown.partition(".")[2])
    assert of_thousand([way], 1000.0) == {way: [f"{500:.{decimals}f}", f"{0:.{decimals}f}", shown]}
