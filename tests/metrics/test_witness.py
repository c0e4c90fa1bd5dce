"""The task of the agent that loses most, as it is printed, pasted back on the command line."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from html import unescape
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from decal_cli.commands.app import run
from decal_cli.metrics import METRICS, parse
from decal_cli.tables.table import Table
from tests.helpers.command import FIXTURES
from tests.helpers.worlds import random_table

Run = Callable[..., str]
TIES = FIXTURES / "ties_edges_n300.csv"
LINE = re.compile(
    r"worst agent of (?P<keys>.+?): (?P<many>(?P<actions>\d) actions, thresholds \S+ and \S+; the worst with two: )?"
    r"(?P<paste>--utility '[^']*') \(loses \S+, see (?P<shown>.+)\)"
)
EXACT = ("--metric", "cdl(levels=exact)", "--metric", "v_cdl(levels=exact)", "--metric", "u_cal", "--metric", "v_cal")
EDGES = {
    "kinks on scores of 0 and 1": "0,1\n0,1\n1,0\n1,0\n",
    "a kink at half": "0.5,1\n",
    "kinks on each score": "0.25,1\n0.5,0\n0.75,1\n",
    "two actions, Hu and Wu 2024, ex. 4.2a": "0.99,1\n0.99,1\n",
    "Hu and Wu 2024, ex. 4.3": "0.51,1\n0.49,0\n",
    "Hu and Wu 2024, ex. 4.5": "0.75,1\n0.25,0\n",
    "scores next to each other": "0.3,1\n0.30000000001,0\n0.29999999999,1\n",
}


@pytest.fixture
def decal(capsys: pytest.CaptureFixture[str]) -> Run:
    def called(*arguments: object) -> str:
        assert run([*map(str, arguments)]) == 0
        return capsys.readouterr().out

    return called


def value(decal: Run, path: Path, key: str, *more: str) -> float:
    shown = decal("evaluate", path, "-s", "p", "-y", "y", "--metric", key, "--no-intervals", "-f", "json", *more)
    return float(json.loads(shown)["metrics"][key]["value"])


def pasted_back(decal: Run, path: Path, *metrics: str) -> dict[str, int]:
    """Actions of the worst agent of each printed metric; every printed task loses what the metric says."""
    actions = {}
    for line in decal("evaluate", path, "-s", "p", "-y", "y", "--no-intervals", *metrics).splitlines():
        if not line.startswith("worst agent"):
            continue
        found = LINE.fullmatch(line)
        assert found, line
        for key in re.split(r", (?=\w)", found["keys"]):
            actions[key] = int(found["actions"] or 2)
            lost = key if actions[key] == 2 else re.sub("^(u_)?", "v_", key)
            seen = value(decal, path, found["shown"], *shlex.split(found["paste"]))
            assert seen == pytest.approx(value(decal, path, lost), abs=1e-8), line
    return actions


def test_the_printed_tasks_lose_what_was_said(decal: Run) -> None:
    """v_cdl and v_cal always; cdl and u_cal where two actions attain them, else the best two-action agent."""
    actions = pasted_back(decal, TIES, *EXACT, "--metric", "cdl")
    assert actions == {"cdl(levels=exact)": 3, "v_cdl(levels=exact)": 2, "u_cal": 3, "v_cal": 2, "cdl": 3}
    assert pasted_back(decal, FIXTURES / "binary_n2000.csv", "--metric", "cdl", "--metric", "v_cdl")["v_cdl"] == 2


@pytest.mark.parametrize("edge", EDGES)
def test_so_they_do_where_a_kink_sits_on_a_score(decal: Run, tmp_path: Path, edge: str) -> None:
    path = tmp_path / "edge.csv"
    path.write_text("p,y\n" + EDGES[edge])
    assert pasted_back(decal, path, *EXACT)["v_cdl(levels=exact)"] == 2


def written(t: Table, path: Path) -> Path:
    labels = np.concatenate([np.arange(n) < pos for n, pos in zip(t.n, t.pos, strict=True)]).astype(int)
    rows = zip(np.repeat(t.score, t.n).tolist(), labels.tolist(), strict=True)
    path.write_text("p,y\n" + "".join(f"{score!r},{label}\n" for score, label in rows))
    return path


def test_and_on_random_tables_cdl_too_where_it_has_two_actions(decal: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    found = [pasted_back(decal, written(random_table(rng), tmp_path / "r.csv"), *EXACT) for _ in range(8)]
    assert {each["cdl(levels=exact)"] for each in found} == {2, 3}, "both kinds were met"


def test_json_holds_the_whole_task(decal: Run) -> None:
    document = json.loads(decal("evaluate", TIES, "-s", "p", "-y", "y", "--no-intervals", "-f", "json"))
    jsonschema.validate(document, json.loads((FIXTURES.parent / "decal_cli" / "report.schema.json").read_text()))
    held = {key for key, result in document["metrics"].items() if "worst_agent" in result}
    assert held == {name for name, metric in METRICS.items() if metric.witness}
    worst = document["metrics"]["cdl"]["worst_agent"]
    assert len(worst["utility"]) == 3 and len(worst["thresholds"]) == 2
    assert worst["two_actions"]["loss"] == document["metrics"]["v_cdl"]["value"]
    for key in held:
        assert parse(document["metrics"][key]["worst_agent"]["two_actions"]["shown_by"])


def test_models_and_groups_are_named(decal: Run) -> None:
    lines = decal(
        "evaluate", FIXTURES / "binary_n2000.csv", "-s", "p", "-s", "q", "-y", "y", "--group", "group",
        "--metric", "v_cdl", "--no-intervals",
    )  # fmt: skip
    named = re.findall(r"worst agent of v_cdl on (.+?):", lines)
    assert named == ["p", "p, A", "p, B", "q", "q, A", "q, B"]


def test_where_nobody_loses_no_task_is_named(decal: Run, tmp_path: Path) -> None:
    path = tmp_path / "right.csv"
    path.write_text("p,y\n0,0\n1,1\n")
    assert "worst agent" not in decal("evaluate", path, "-s", "p", "-y", "y", *EXACT)


def test_the_other_texts_show_it_too(decal: Run, tmp_path: Path) -> None:
    printed = [
        line for line in decal("evaluate", TIES, "-s", "p", "-y", "y", *EXACT).splitlines() if "--utility" in line
    ]
    markdown = decal("evaluate", TIES, "-s", "p", "-y", "y", *EXACT, "-f", "markdown")
    assert all(f"- {line}" in markdown for line in printed)
    page = tmp_path / "page.html"
    decal("report", TIES, "-s", "p", "-y", "y", "-t", "0.3", "-o", page)
    assert re.search(r"worst agent of u_cal: .*--utility '[^']+'", unescape(page.read_text()))
