"""A table of many groups shows the worst and says where the rest is; data formats hold them all."""

from __future__ import annotations

import json

import pytest

from tests.helpers.command import Decal

N_GROUPS = 1000


@pytest.fixture(scope="module")
def rows() -> bytes:
    """Two rows in each group, whose score is off by the more the higher the number of the group."""
    lines = [f"{0.5 + sign * k / (2 * N_GROUPS):.4f},{int(sign < 0)},g{k}" for k in range(N_GROUPS) for sign in (1, -1)]
    return "\n".join(["p,y,g", *lines]).encode() + b"\n"


def test_the_worst_groups_are_shown(decal: Decal, rows: bytes) -> None:
    done = decal("evaluate", "--group", "g", "-m", "brier", "-m", "auc", "--no-intervals", stdin=rows)
    assert "p: the table shows the 20 worst of 1,000 groups by Brier score; --format json or csv has all" in done.out
    shown = {word for word in done.out.split() if word[:1] == "g" and word[1:].isdigit()}
    assert shown == {f"g{k}" for k in range(N_GROUPS - 20, N_GROUPS)}
    by_auc = decal("evaluate", "--group", "g", "-m", "auc", "--no-intervals", stdin=rows).out
    assert "worst of 1,000 groups by AUC" in by_auc and " g0 " not in by_auc


def test_data_formats_hold_all(decal: Decal, rows: bytes) -> None:
    line = ("evaluate", "--group", "g", "-m", "brier", "--no-intervals")
    assert len(json.loads(decal(*line, "-f", "json", stdin=rows).out)["reports"]) == N_GROUPS + 1
    assert len(decal(*line, "-f", "csv", stdin=rows).out.splitlines()) == N_GROUPS + 2
