"""The task of the agent that loses most, as it is printed, pasted back on the command line."""

import json
import re
import shlex
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from decal_cli.metrics import METRICS, parse
from tests.helpers.command import BINARY, FIXTURES, Decal, valid_json

Run = Callable[..., str]
TIES = FIXTURES / "ties_edges_n300.csv"
LINE = re.compile(
    r"worst agent of (?P<keys>.+?): ((?P<actions>\d) actions, the rule with kinks at \S+ and \S+, "
    r"|the V-shaped rule with its kink at \S+, )"
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
def printed(decal: Decal) -> Run:
    """What a run prints that comes to a result."""

    def ran(*arguments: object) -> str:
        done = decal(*arguments)
        assert done.code == 0, done.err
        return done.out

    return ran


def printed_value(printed: Run, path: Path, key: str, *more: str) -> float:
    text = printed("evaluate", path, "-s", "p", "-y", "y", "--metric", key, "--no-intervals", "-f", "json", *more)
    return float(json.loads(text)["metrics"][key]["value"])


def pasted_back(printed: Run, path: Path, *metrics: str) -> dict[str, int]:
    """Actions of the worst agent of each printed metric; every printed task loses what the metric says."""
    actions = {}
    for line in printed("evaluate", path, "-s", "p", "-y", "y", "--no-intervals", *metrics).splitlines():
        if not line.startswith("worst agent"):
            continue
        match = LINE.fullmatch(line)
        assert match, line
        for key in re.split(r", (?=\w)", match["keys"]):
            actions[key] = int(match["actions"] or 2)
            assert match["paste"].count(";") + 1 == actions[key]
            seen = printed_value(printed, path, match["shown"], *shlex.split(match["paste"]))
            assert seen == pytest.approx(printed_value(printed, path, key), abs=1e-8), line
    return actions


def test_the_printed_tasks_lose_what_was_said(printed: Run) -> None:
    """Those of two actions and those of three."""
    actions = pasted_back(printed, TIES, *EXACT, "--metric", "cdl")
    assert actions == {"cdl(levels=exact)": 3, "v_cdl(levels=exact)": 2, "u_cal": 3, "v_cal": 2, "cdl": 3}
    assert pasted_back(printed, BINARY, "--metric", "cdl", "--metric", "v_cdl")["v_cdl"] == 2


@pytest.mark.parametrize("edge", EDGES)
def test_so_they_do_where_a_kink_sits_on_a_score(printed: Run, tmp_path: Path, edge: str) -> None:
    path = tmp_path / "edge.csv"
    path.write_text("p,y\n" + EDGES[edge])
    assert pasted_back(printed, path, *EXACT)["v_cdl(levels=exact)"] == 2


def test_json_holds_the_whole_task(printed: Run) -> None:
    document = valid_json(printed("evaluate", TIES, "-s", "p", "-y", "y", "--no-intervals", "-f", "json"))
    held = {key for key, result in document["metrics"].items() if "worst_agent" in result}
    assert held == {name for name, metric in METRICS.items() if metric.witness}
    worst = document["metrics"]["cdl"]["worst_agent"]
    assert len(worst["utility"]) == 3 and len(worst["thresholds"]) == 2
    assert worst["loss"] == document["metrics"]["cdl"]["value"]
    assert worst["two_actions"]["loss"] == document["metrics"]["v_cdl"]["value"]
    for key in held:
        assert parse(document["metrics"][key]["worst_agent"]["two_actions"]["shown_by"])


def test_models_and_groups_are_named(printed: Run) -> None:
    lines = printed(
        "evaluate", BINARY, "-s", "p", "-s", "q", "-y", "y", "--group", "group",
        "--metric", "v_cdl", "--no-intervals",
    )  # fmt: skip
    named = re.findall(r"worst agent of v_cdl on (.+?):", lines)
    assert named == ["p", "p, A", "p, B", "q", "q, A", "q, B"]


def test_where_nobody_loses_no_task_is_named(printed: Run, tmp_path: Path) -> None:
    path = tmp_path / "right.csv"
    path.write_text("p,y\n0,0\n1,1\n")
    assert "worst agent" not in printed("evaluate", path, "-s", "p", "-y", "y", *EXACT)


@pytest.mark.usefixtures("undrawn")
def test_the_other_texts_show_it_too(printed: Run, tmp_path: Path) -> None:
    text = printed("evaluate", TIES, "-s", "p", "-y", "y", *EXACT)
    lines = [line for line in text.splitlines() if "--utility" in line]
    markdown = printed("evaluate", TIES, "-s", "p", "-y", "y", *EXACT, "-f", "markdown")
    assert all(f"- {line}" in markdown for line in lines)
    page = tmp_path / "page.html"
    printed("report", TIES, "-s", "p", "-y", "y", "-t", "0.3", "-o", page)
    assert re.search(r"worst agent of u_cal: .*--utility '[^']+'", unescape(page.read_text()))
