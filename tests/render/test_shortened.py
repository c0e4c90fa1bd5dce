"""A table of many groups shows the worst and says where the rest is; data formats hold them all."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from decal_cli.analysis.gate import GateOutcome, GateRow
from decal_cli.metrics import Result
from decal_cli.render.results.gates import Gated
from decal_cli.render.results.recommendation import Recommended
from tests.helpers.command import Decal
from tests.helpers.results import as_text, made_up_evaluation, with_advice

N_GROUPS = 300
WORST = [f"g{k}" for k in reversed(range(N_GROUPS - 20, N_GROUPS))]


@pytest.fixture(scope="module")
def rows() -> bytes:
    """Two rows in each group, whose score is off by the more the higher the number of the group."""
    lines = [
        f"{0.5 + sign * k / (2 * N_GROUPS):.4f},.5,{int(sign < 0)},g{k}" for k in range(N_GROUPS) for sign in (1, -1)
    ]
    return "\n".join(["p,q,y,g", *lines]).encode() + b"\n"


def groups_in(text: str) -> list[str]:
    """The groups that it names, each once, in its order."""
    return list(dict.fromkeys(re.findall(r"\bg\d+\b", text)))


@pytest.mark.ci
@pytest.mark.parametrize(
    ("line", "by"),
    [
        ("evaluate -s p -m brier -m auc", "Brier score; --format json or csv has all"),
        ("sweep -s p --thresholds 0.3,0.5", "Brier score; --format json or csv has all"),
        ("compare -s q -s p -m brier", "Brier score, B - A; --format json or csv has all"),
    ],
)
def test_the_worst_groups_are_shown(decal: Decal, rows: bytes, line: str, by: str) -> None:
    words = (*line.split(), "--group", "g", "--no-intervals")
    done, document = decal.text_and_json(*words, stdin=rows)
    assert f"the table shows the 20 worst of 300 groups by {by}" in done.text
    assert groups_in(done.out) == WORST
    assert len(groups_in(json.dumps(document))) == N_GROUPS


def test_the_worst_are_those_by_the_metric_that_is_shown(decal: Decal, rows: bytes) -> None:
    by_auc = decal("evaluate", "-s", "p", "--group", "g", "-m", "auc", "--no-intervals", stdin=rows).out
    assert "p: the table shows the 20 worst of 300 groups by AUC" in by_auc and " g0 " not in by_auc


@pytest.mark.ci
def test_a_gate_shows_what_fails_by_most(decal: Decal, rows: bytes) -> None:
    line = ("gate", "-s", "p", "--group", "g", "-r", "brier<=0.9", "-r", "auc>=0.5")
    done, document = decal.text_and_json(*line, stdin=rows)
    assert done.code == 1
    text = done.text
    assert "20 worst of 300 groups by outcome (0 cannot be judged, 30 failed, 270 passed)" in text
    first = [line for line in done.out.splitlines() if "brier<=0.9 [" in line]
    assert len(first) == 21 and groups_in("\n".join(first)) == WORST
    assert len(document["gates"]) == 2 * (N_GROUPS + 1)


def test_a_group_on_the_wrong_side_comes_before_one_within_by_less_where_both_pass() -> None:
    rule = GateRow("auc>=0.5", "p", "", bound=0.5, passed=True, answer="not shown")
    distances = [(k - 150) / 1000 for k in range(N_GROUPS)]
    rows = [replace(rule, group=f"g{k}", value=0.5 + each, distance=each) for k, each in enumerate(distances)]
    text = as_text(Gated(GateOutcome(made_up_evaluation([("p", None), ("p", "g0")]), tuple(rows))))
    assert groups_in(text) == [f"g{k}" for k in range(20)]


def test_what_cannot_be_judged_comes_first(decal: Decal) -> None:
    lines = [f"{p},{y},g{k}" for k in range(101) for p, y in ((0.2, 0), (0.4, int(k != 7)))]
    done = decal("gate", "--group", "g", "-r", "auc>=0.5", stdin="\n".join(["p,y,g", *lines, ""]).encode())
    assert done.code == 2 and "(1 cannot be judged, 0 failed, 100 passed)" in done.text
    assert groups_in(done.out)[0] == "g7"


def test_advice_is_shown_for_the_worst() -> None:
    evaluation = made_up_evaluation([("p", None)])
    (report,) = evaluation.reports
    groups = (
        replace(report, group=f"g{k}", results={**report.results, "regret_calibration": Result(k / N_GROUPS)})
        for k in range(N_GROUPS)
    )
    text = as_text(Recommended(with_advice(replace(evaluation, reports=(report, *groups)))))
    assert "p: the table shows the 20 worst of 300 groups by Calibration regret" in text
    assert groups_in(text) == WORST


@pytest.mark.ci
@pytest.mark.usefixtures("undrawn")
def test_a_report_of_many_groups_says_that_it_takes_long_and_where_the_rest_is(
    decal: Decal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five groups where three are many: a hundred would take half a minute."""
    for module in ("render.results.source", "plot.report"):
        monkeypatch.setattr(f"decal_cli.{module}.MAX_GROUPS", 3)
    monkeypatch.setattr("decal_cli.render.results.source.N_WORST", 2)
    lines = [f"{0.1 + 0.8 * (k % 7) / 6:.3f},{k % 2},g{k % 5}" for k in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["p,y,g", *lines]) + "\n")
    done = decal("report", "rows.csv", "-s", "p", "-y", "y", "--group", "g", "-o", "page.html")
    assert done.code == 0
    assert done.err.startswith("decal: 5 groups: a report has every metric and the advice of each, which may take")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    cut = "p: the table shows the 2 worst of 5 groups by"
    assert page.count(cut) == 1 and "; decal evaluate --format json or csv has all of them" in page
    assert page.index(cut) < page.index("<table>")
    assert len(groups_in(page)) == 2
