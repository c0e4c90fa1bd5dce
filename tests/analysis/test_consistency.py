"""A page of advice follows from its own numbers, on real scores and in random worlds."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from tests.helpers.command import BINARY, FIXTURES, FOX, Decal
from tests.helpers.consistency import contradictions

SPELLED_TASKS = (("-t", ".1"), ("-t", ".3"), ("--odds", "1:19"), ("--odds", "1:49"))
FOX_SCORES = ("-s", "p_profanity", "-s", "p_hatesonar", "-s", "p_svm_waseem")


def pages(decal: Decal, *arguments: object) -> list[tuple[dict[str, Any], str]]:
    """Of each model, its entry of the JSON and its text; no line is wrapped."""
    document = json.loads(decal("recommend", *arguments, "-f", "json").out)
    text = decal("recommend", *arguments, COLUMNS="1000").out
    parts = re.split(r"^(\S+) ─{3,}.*$", text, flags=re.MULTILINE)[1:]
    text_of = dict(zip(parts[::2], parts[1::2], strict=True))
    return [(entry, text_of[entry["model"]]) for entry in document.get("reports", [document])]


def wrong(decal: Decal, *arguments: object) -> list[str]:
    return [
        f"{entry['model']}: {each}" for entry, text in pages(decal, *arguments) for each in contradictions(entry, text)
    ]


@pytest.mark.parametrize("task", SPELLED_TASKS, ids=" ".join)
def test_real_scores_with_features(decal: Decal, task: tuple[str, str]) -> None:
    assert not wrong(decal, FOX, *FOX_SCORES, "-y", "y", "--features", "x*", *task, "--missing", "drop")


@pytest.mark.parametrize("task", SPELLED_TASKS, ids=" ".join)
def test_real_scores_without_features(decal: Decal, task: tuple[str, str]) -> None:
    assert not wrong(decal, FOX, *FOX_SCORES, "-y", "y", *task, "--missing", "drop")
    assert not wrong(decal, FIXTURES / "ties_edges_n300.csv", "-s", "p", "-y", "y", *task)


@pytest.mark.parametrize("task", SPELLED_TASKS, ids=" ".join)
def test_simulated_scores(decal: Decal, task: tuple[str, str]) -> None:
    assert not wrong(decal, BINARY, "-s", "p", "-y", "y", "--features", "x*", *task)


@pytest.mark.parametrize("seed", range(12))
def test_random_worlds(decal: Decal, tmp_path: Path, seed: int) -> None:
    """Calibrated, distorted, backward and useless scores, rare and common labels, with and without a useful feature."""
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([150, 600, 3000]))
    features = rng.normal(size=(rows, 2))
    signal = rng.choice([-1.0, 0.0, 1.0, 2.0]) * features[:, 0] + rng.choice([-4.0, -1.0, 0.0])
    chance = 1 / (1 + np.exp(-signal - rng.choice([0.0, 1.5]) * features[:, 1]))
    score = 1 / (1 + np.exp(-rng.choice([0.5, 1.0, 2.0]) * signal))
    label = (rng.random(rows) < chance).astype(int)
    label[:2] = 0, 1
    table = pa.table({"p": score, "y": label, "x0": features[:, 0], "x1": features[:, 1]})
    pacsv.write_csv(table, tmp_path / "world.csv")
    t = ("-t", str(rng.choice([0.05, 0.3, 0.5])))
    assert not wrong(decal, "world.csv", "-s", "p", "-y", "y", *t)
    assert not wrong(decal, "world.csv", "-s", "p", "-y", "y", "--features", "x*", *t)


def changed(document: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    """A copy of the document in which one value is another."""
    copied = copy.deepcopy(document)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]  # type: ignore[index]
    inner[path[-1]] = to  # type: ignore[index]
    return copied


class TestTheReader:
    """It finds what it is there to find."""

    @pytest.fixture
    def page(self, decal: Decal) -> tuple[dict[str, Any], str]:
        ((entry, text),) = pages(decal, FOX, "-s", "p_hatesonar", "-y", "y", "--features", "x0*", "-t", ".3")
        assert not contradictions(entry, text) and entry["recommendation"]["action"] == "post-train"
        return entry, text

    @pytest.mark.parametrize(
        ("path", "value", "problem"),
        [
            (("metrics", "gain_beyond", "value"), 0.2, "gains do not add up"),
            (("recommendation", "action"), "done", "done beside a gain above 0"),
            (("recommendation", "method"), "stack", "names the method stack"),
            (("recommendation", "gain"), 0.3, "not the gain of the chain"),
            (("recommendation", "small"), True, "small disagrees"),
            (("metrics", "gain_recalibration", "interval"), [0.01, 0.02], "does not follow from the numbers"),
            (("metrics", "eu_always", "value"), 0.0, "constant None beside"),
            (("metrics", "expected_utility", "value"), -0.15, "bar act on the score as it is"),
        ],
    )
    def test_a_changed_number(
        self, page: tuple[dict[str, Any], str], path: tuple[str, ...], value: Any, problem: str
    ) -> None:
        entry, text = page
        assert any(problem in each for each in contradictions(changed(entry, *path, to=value), text))

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("Using the features clearly wins", "Using the features may win"),
            ("of the estimated gain, the features 9", "of the estimated gain, the features 1"),
            ("Post-train on the features with blend", "Post-train on the features with stack"),
            ("which may win", "which wins"),
            ("ECE is .", "ECE is .9"),
        ],
    )
    def test_a_changed_sentence(self, page: tuple[dict[str, Any], str], old: str, new: str) -> None:
        entry, text = page
        assert old in text and contradictions(entry, text.replace(old, new))
