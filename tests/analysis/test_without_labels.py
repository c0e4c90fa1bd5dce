"""Rows without a label: what they leave open is what every labelling of them gives, by brute force."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from decal_cli.analysis.described import WithoutLabels
from decal_cli.render.results.sections import without_labels_text
from decal_cli.render.terms import PLAIN
from tests.helpers.page import printed_as

ROWS, MISSING = 60, 4
ABSTAIN = decal.Decision.abstain(0.3)
TREATED = decal.Decision.utility([[0, -20], [-2, -3], [-5, -1]], actions=["wait", "test", "treat"])


def table(seed: int, classes: int = 2, weighted: bool = False) -> pd.DataFrame:
    """Scores, labels of which the last rows have none, and costs of each row."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(classes), ROWS)
    label = (shares.cumsum(axis=1) < rng.random((ROWS, 1))).sum(axis=1).astype(float)
    label[:classes] = np.arange(classes)
    label[-MISSING:] = np.nan
    columns: dict[str, Any] = {"y": label, "fp": rng.uniform(1, 2, ROWS), "fn": rng.uniform(2, 4, ROWS)}
    scores = {"p": shares[:, 1]} if classes == 2 else {f"p_{k}": shares[:, k] for k in range(classes)}
    return pd.DataFrame({**columns, **scores, **({"w": rng.uniform(0.5, 2, ROWS)} if weighted else {})})


def worths(frame: pd.DataFrame, decision: Any, **given: Any) -> list[float]:
    """What acting on all rows is worth with every labelling of those without a label."""
    classes = sorted(set(frame["y"].dropna()))
    found = []
    for labels in itertools.product(classes, repeat=MISSING):
        whole = frame.copy()
        whole.loc[whole["y"].isna(), "y"] = labels
        answer = decal.evaluate(
            decal.Data(whole, label="y", **given), decision, metrics=["expected_utility"],
            statistics=decal.Statistics(intervals=False),
        )  # fmt: skip
        found.append(answer["expected_utility"].value)
    return found


@pytest.mark.parametrize(
    ("decision", "given"),
    [
        (0.4, {"score": "p"}),
        (0.4, {"score": "p", "weight": "w"}),
        (TREATED, {"score": "p"}),
        (decal.Decision.per_row(fp="fp", fn="fn"), {"score": "p"}),
        (ABSTAIN, {"proba": "p_*"}),
    ],
    ids=["two classes", "weights", "three actions", "costs per row", "three classes"],
)
def test_the_worth_lies_between_that_of_the_worst_and_the_best_labels(decision: Any, given: dict[str, Any]) -> None:
    frame = table(3, 3 if "proba" in given else 2, weighted="weight" in given)
    answer = decal.evaluate(decal.Data(frame, label="y", missing="drop", **given), decision)
    unknown = answer.reports[0].find(WithoutLabels)
    every = worths(frame, decision, **given)
    assert unknown.rows == MISSING and unknown.expected_utility == pytest.approx((min(every), max(every)))


def test_the_gain_moves_as_rows_between_the_thresholds_do() -> None:
    frame = table(5)
    frame["p"] = frame["p"] ** 3  # too low, so that acting pays from a lower score on
    answer = decal.evaluate(decal.Data(frame, score="p", label="y", missing="drop"), 0.3, metrics="all")
    low, high = sorted((0.3, answer["threshold_adjusted"].value))
    apart = frame["y"].isna()
    between = int((apart & (frame["p"] >= low) & (frame["p"] < high)).sum())
    known = (ROWS - MISSING) * answer["gain_recalibration"].value
    acts_less = answer["threshold_adjusted"].value > 0.3
    ends = sorted((known + between * (0.3 if acts_less else -0.3), known - between * (0.7 if acts_less else -0.7)))
    assert between and answer.reports[0].find(WithoutLabels).gain_recalibration == pytest.approx(np.array(ends) / ROWS)


def test_a_gain_that_no_label_can_change_is_one_number() -> None:
    frame = table(5)
    frame.loc[frame["y"].isna(), "p"] = 0.999
    answer = decal.recommend(decal.Data(frame, score="p", label="y", missing="drop"), 0.3)
    low, high = answer.reports[0].find(WithoutLabels).gain_recalibration
    assert low == high and "What recalibration wins there is " in " ".join(str(answer).split())


def test_how_scores_differ_is_the_auc_of_having_no_label() -> None:
    from sklearn.metrics import roc_auc_score

    frame = table(8)
    unknown = decal.evaluate(decal.Data(frame, score="p", label="y", missing="drop")).reports[0].find(WithoutLabels)
    assert unknown.above == pytest.approx(roc_auc_score(frame["y"].isna(), frame["p"]))
    assert unknown.interval[0] < unknown.above < unknown.interval[1]
    assert unknown.expected_utility is None and unknown.gain_recalibration is None


@pytest.mark.parametrize(
    ("above", "interval", "way"),
    [
        *((0.5, None, "not clearly another one"), (0.51, None, "higher"), (0.49, None, "lower")),
        *((0.6, (0.5, 0.7), "not clearly another one"), (0.4, (0.3, 0.5), "not clearly another one")),
        *((0.6, (0.51, 0.7), "higher"), (0.4, (0.3, 0.49), "lower")),
    ],
)
def test_scores_differ_clearly_where_the_interval_leaves_out_one_half(above: float, interval: Any, way: str) -> None:
    report = decal.evaluate(decal.Data(table(8), score="p", label="y", missing="drop")).reports[0]
    said = without_labels_text(WithoutLabels(4, above, interval, None, None), report, False, PLAIN, False).text
    assert f"Their score is {way}:" in said and ("its inverse" in said) == (way in ("higher", "lower"))


def test_rows_that_lack_more_than_a_label_are_not_counted() -> None:
    frame = table(8)
    frame.loc[ROWS - 1, "p"] = np.nan
    report = decal.evaluate(decal.Data(frame, score="p", label="y", missing="drop"), 0.3).reports[0]
    assert (report.dropped, report.find(WithoutLabels).rows) == (MISSING, MISSING - 1)
    frame.loc[ROWS - MISSING : ROWS - 3, "p"] = np.nan
    alone = " ".join(str(decal.evaluate(decal.Data(frame, score="p", label="y", missing="drop"), 0.3)).split())
    assert re.search(r"1 row has a score and no label, .* count it\. Its score is .*: it lies above", alone)
    whole = decal.evaluate(decal.Data(frame.dropna(), score="p", label="y"), 0.3).reports[0]
    assert whole.find(WithoutLabels) is None


@pytest.mark.parametrize("verb", [decal.evaluate, decal.recommend])
def test_pages_say_what_is_open(verb: Callable[..., Any]) -> None:
    rng = np.random.default_rng(1)
    score = rng.random(400)
    frame = pd.DataFrame({"p": score, "y": np.where(rng.random(400) < 1 - score, rng.random(400) < score, np.nan)})
    answer = verb(decal.Data(frame, score="p", label="y", missing="drop"), 0.3)
    text, known = " ".join(str(answer).split()), answer.to_dict()["without_labels"]
    assert f"Missing labels. {known['rows']} rows have a score and no label" in text
    assert "Their score is higher" in text and known["interval"][0] > 0.5 and "weight" in text
    said = re.search(r"probability (\S+) \[(\S+), (\S+)\]\. .* worth between (\S+) and (\S+) per 1,000", text)
    expected = known["above"], *known["interval"], *(1000 * end for end in known["expected_utility"])
    assert said and all(map(printed_as, said.groups(), expected))
    assert "Missing labels." in answer.to_text("html")
    labels = frame["y"].dropna().astype(int)
    share = f"{labels.sum()} positive of {len(labels)} with a label ({100 * labels.mean():.1f} %)"
    assert share in text
    moved = verb(decal.Data(frame, score="p", label="y", missing="drop").at_prevalence(0.1), 0.3)
    assert f"nothing is said of the {known['rows']} rows with a score and no label" in " ".join(str(moved).split())
