"""Gates that may be asked again after every batch: wrong failures over all looks, power, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from decal_cli.analysis.gate import Bounded, holm, look, sequence_interval
from tests.helpers.command import BINARY, Decal

NAMED = (BINARY, "--score", "p", "--label", "y", "--threshold", ".3")


def coins(rng: np.random.Generator, chance: float, rows: int) -> Bounded:
    return Bounded((rng.uniform(size=rows) < chance).astype(float), 0.0, 1.0)


@pytest.mark.long
def test_a_good_model_fails_at_some_of_20_looks_at_most_as_often_as_promised() -> None:
    """400 streams at the bound itself. What fails at a look fails at all later ones, so that the last one tells all."""
    rng, streams, looks, batch = np.random.default_rng(7), 400, 20, 100
    failed = 0
    for _ in range(streams):
        rows = coins(rng, 0.2, looks * batch)
        since = look(rows, 0.2, True, 0.95).since
        first = look(Bounded(rows.values[: batch * 5], 0.0, 1.0), 0.2, True, 0.95).since
        assert first is None or first == since
        failed += since is not None
    # .05 of 400, and two standard errors.
    assert failed <= 400 * 0.05 + 2 * np.sqrt(400 * 0.05 * 0.95)


def test_a_bad_model_fails_soon_and_a_good_one_is_shown() -> None:
    rng = np.random.default_rng(3)
    since = [look(coins(rng, 0.25, 4000), 0.2, True, 0.95).since or 4001 for _ in range(40)]
    assert np.median(since) < 1000 and max(since) <= 4000
    good = look(coins(rng, 0.15, 4000), 0.2, True, 0.95)
    assert good.shown and good.since is None and good.chance > 0.05
    mirrored = look(coins(rng, 0.25, 4000), 0.3, False, 0.95)
    assert mirrored.since is not None and not mirrored.shown


def test_the_interval_holds_the_mean_and_shrinks() -> None:
    rng, missed = np.random.default_rng(5), 0
    for _ in range(60):
        low, high = sequence_interval(coins(rng, 0.3, 600), 0.9)
        missed += not low <= 0.3 <= high
    # .1 of 60, and two standard errors.
    assert missed <= 10
    rows = coins(rng, 0.3, 8000)
    wide, narrow = (sequence_interval(Bounded(rows.values[:size], 0.0, 1.0), 0.95) for size in (500, 8000))
    assert narrow[1] - narrow[0] < 0.5 * (wide[1] - wide[0])
    # The fixed one is 1.96 standard errors to either side.
    assert 1.96 < (narrow[1] - narrow[0]) / 2 / (0.3 * 0.7 / 8000) ** 0.5 < 4


def test_holm_by_hand() -> None:
    """Holm 1979: .01 <= .05 / 4, .015 <= .05 / 3, .03 > .05 / 2; then none."""
    assert holm([0.03, 0.01, 0.04, 0.015], 0.05) == [False, True, False, True]


def anytime_rows(decal: Decal, *more: str) -> list[dict]:
    return decal.json("gate", *NAMED, "--anytime", *more)["gates"]


def test_three_answers_and_what_is_no_sequence(decal: Decal) -> None:
    rules = ("brier<=0.2", "brier<=0.19", "accuracy>=.9", "auc>=.7", "gain_recalibration<=.01", "upper(brier)<=.2")
    rows = {row["rule"]: row for row in anytime_rows(decal, *(part for rule in rules for part in ("-r", rule)))}
    assert [rows[rule]["answer"] for rule in rules[:3]] == ["passed", "not shown", "failed"]
    assert [rows[rule]["passed"] for rule in rules[:3]] == [True, True, False]
    assert rows["accuracy>=.9"]["since"] > 1 and rows["accuracy>=.9"]["chance"] < 0.05
    for rule, why in (
        ("auc>=.7", "no mean"),
        ("gain_recalibration<=.01", "came after"),
        ("upper(brier)<=.2", "no mean"),
    ):
        assert rows[rule]["passed"] is None and why in rows[rule]["reason"]
    strict = {row["rule"]: row for row in anytime_rows(decal, "-r", "brier<=0.19", "--undecided", "fail")}
    assert strict["brier<=0.19"]["passed"] is False


def test_the_text_says_what_is_promised(decal: Decal) -> None:
    done = decal("gate", *NAMED, "--anytime", "--family", "holm", "-r", "brier<=.2", "-r", "accuracy>=.9")
    text = done.text
    assert "the chance that any rule that holds fails clearly at any look" in text and "is at most 5 %" in text
    assert done.code == 1 and "clearly so from row" in text


def test_weights_are_refused_with_the_reason(decal: Decal) -> None:
    done = decal("gate", *NAMED, "--anytime", "-r", "brier<=.2", "--weight", "weight")
    assert done.code == 2 and "without weights" in done.text


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


def test_holm_keeps_what_is_clear_by_itself_only_where_all_are(decal: Decal) -> None:
    """Beside many rules at the bound, a rule that fails with a chance of one in a hundred is not clear."""
    more = tuple(part for k in range(40) for part in ("-r", f"brier<={0.21 + k / 1000:.3f}"))
    line = ("gate", *NAMED, "-r", "auc>=0.772", *more, "-f", "json")
    alone, together = (
        next(row for row in json.loads(decal(*line, *family).out)["gates"] if row["rule"] == "auc>=0.772")
        for family in ((), ("--family", "holm"))
    )
    assert alone["answer"] == "failed" and together["answer"] == "not shown"
    assert 0.05 / 41 < together["chance"] < 0.025
