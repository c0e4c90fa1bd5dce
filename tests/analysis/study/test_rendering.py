"""A study as text and data: golden files of a made-up one, tables that keep to the width, JSON that the schema knows.

After a wanted change: GOLDEN=write python -m pytest tests/study/test_rendering.py, then read the difference.
"""

from __future__ import annotations

import csv
import io
import os
import re
from dataclasses import replace

import numpy as np
import pytest

from decal_cli.analysis.study import Summary, summarise
from decal_cli.render.format import Page
from decal_cli.render.formats.markdown import Markdown
from decal_cli.render.results.study import Studied, study_lines, study_tables
from tests.helpers.command import GOLDEN, valid_json
from tests.helpers.results import as_text
from tests.helpers.studies import made_up_study


@pytest.fixture(scope="module")
def summary() -> Summary:
    return replace(summarise(made_up_study()), reasons={"glar": "needs a task", "stack": "needs a task"})


def rendered(name: str, summary: Summary) -> str:
    if name.endswith(".md"):
        return Markdown(Page()).document(Studied(summary, {"beyond.png": "What is won"}))
    return as_text(Studied(summary), width=int(re.sub(r"\D", "", name)))


@pytest.mark.parametrize("name", ["study_80.txt", "study_100.txt", "study.md"])
def test_golden(name: str, summary: Summary) -> None:
    text, path = rendered(name, summary), GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
def test_tables_keep_to_the_width_and_lose_nothing(summary: Summary, width: int) -> None:
    text = as_text(Studied(summary), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for table in study_tables(summary):
        for row in table.rows:
            for cell in row.cells:
                assert cell.text in text


def test_the_first_lines_say_what_was_studied(summary: Summary) -> None:
    first, _, reasons = study_lines(summary)
    assert first == "6 files, 12 scores, 3 thresholds, 2 halvings: 72 points"
    assert reasons == "glar, stack: needs a task"
    one = summarise(made_up_study(files=1, scores=1, seeds=1))
    first, _, few, dash = study_lines(one)
    assert first == "1 file, 1 score, 3 thresholds, 1 halving: 3 points"
    assert few == "Too few scores for intervals: they need at least 5 files or 5 scores."
    assert dash == "–: fewer than 10 points in a halving, too few for a correlation."
    assert len(study_lines(summarise(made_up_study(files=4, scores=1)))) == 3
    assert len(study_lines(summarise(made_up_study(files=1, scores=5)))) == 2


def test_the_json_is_known_to_the_schema_and_holds_everything(summary: Summary) -> None:
    document = valid_json(as_text(Studied(summary), "json"))["study"]
    assert document["files"][0] == "file_0" and document["scores"][0] == ["file_0", "p_0"]
    assert (document["thresholds"], document["seeds"], document["points"]) == ([0.1, 0.5, 0.9], [0, 1], 72)
    assert document["notes"] == ["folder/file_0.csv, p_none: dropped"]
    assert len(document["relations"]) == len(summary.relations)
    relation = next(each for each in document["relations"] if (each["estimate"], each["target"]) == ("regret", "refit"))
    assert relation["r2"] == summary.relations["regret", "refit"].r2
    assert [each["multiple"] for each in document["policies"]] == [0.5, 1.0, 2.0, 4.0]


def test_what_is_undefined_is_null_in_json_and_a_dash_in_tables() -> None:
    """One file of one score: nothing to draw from, no error of a mean."""
    few = summarise(made_up_study(files=1, scores=1, seeds=1))
    document = valid_json(as_text(Studied(few), "json"))["study"]
    assert {each["interval"] for each in document["relations"]} == {None}
    assert {policy["error"] for each in document["policies"] for policy in each["policies"]} == {None}
    for text in (as_text(Studied(few)), as_text(Studied(few), "markdown")):
        assert "nan" not in text and "bootstrap" not in text
    (table,) = (each for each in study_tables(few) if each.title == "What predicts the gain of post-training")
    assert {cell.text for row in table.rows for cell in row.cells[1:]} == {"–"}


def test_points_are_written_with_every_number(summary: Summary) -> None:
    rows = list(csv.DictReader(io.StringIO(as_text(Studied(summary), "csv"))))
    points = summary.points
    assert len(rows) == 72
    for name in ("regret", "gain_beyond", "brier"):
        assert [float(row[name]) for row in rows] == points.estimates[name].tolist()
    assert [float(row["gain of refit"]) for row in rows] == points.gains["refit"].tolist()
    assert [float(row["gain_beyond high"]) for row in rows] == points.ends["gain_beyond"][1].tolist()
    assert {row["threshold_adjusted"] for row in rows} == {""}
    assert "nan" not in as_text(Studied(summary), "csv")


def test_recalibration_alone_has_the_tables_that_it_allows() -> None:
    few = summarise(made_up_study(methods=("isotonic", "platt")))
    titles = [table.title for table in study_tables(few)]
    assert titles == [
        "What predicts the gain of post-training",
        "Do the estimates have the right size?",
        "Time and gain of each method",
    ]
    assert np.isfinite([relation.r2 for relation in few.relations.values()]).all()
    assert [each.title for each in study_tables(summarise(made_up_study(methods=("platt",))))] == [
        "Time and gain of each method"
    ]
