"""Forged states: every field of another type or kind is refused in one line, as is what contradicts itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.states import ABSENT, KINDS, SHORTER, TWICE, forged_state, places, true_state, value_at, write_rows
from tests.helpers.command import Decal, refusal

RUN = ("online", "later.csv", "-y", "y", "--state", "state.json")


def another(value: Any, number: int) -> Any:
    """What cannot stand in place of this value: by turns one of some."""
    if isinstance(value, dict):
        others = [[], "x", {"x": 1}]
    elif isinstance(value, list):
        others = [{}, "x", None, *([TWICE, SHORTER, []] if len(value) > 1 else [])]
    elif isinstance(value, str):
        others = [1, None, ["x"]]
    else:
        others = ["x", [], {}, 1e308, ABSENT, 10**400, -(10**6) - 0.5]
    return others[number % len(others)]


@pytest.mark.parametrize("kind", ["delay", "clusters"])
def test_every_field_of_a_state_is_held_to_what_it_can_be(decal: Decal, tmp_path: Path, kind: str) -> None:
    document = json.loads(true_state(kind))
    write_rows(tmp_path / "later.csv", 160, 240)
    state, tried = tmp_path / "state.json", 0
    for number, keys in enumerate(places(document)):
        if keys == ("decal",) or keys[:3] == ("task", "utility", 0):
            continue  # Any version, and any amount, is one.
        text = forged_state(document, keys, another(value_at(document, keys), number))
        state.write_text(text)
        done = decal(*RUN)
        assert done.code == 2, (keys, another(value_at(document, keys), number))
        assert refusal(done).startswith("decal: ") and state.read_text() == text
        tried += 1
    assert tried > 150
    # What is not forged goes on.
    state.write_text(forged_state(document, ("state", "rows"), 160))
    assert decal(*RUN).code == 0


FORGED = {
    "windows.n": ("plain", ("state", "windows", 0, "n", 3), 10**6),
    "windows.scores": ("plain", ("state", "windows", 0, "scores", 0), "x"),
    "windows.acts": ("plain", ("state", "windows", 0, "acts", "hedge"), [1, 10**6]),
    "windows.place": ("plain", ("state", "windows", 7, "place"), 8),
    "acts": ("plain", ("state", "tallies", "online-platt", "acts"), [1, 2, 3]),
    "course.row": ("plain", ("state", "course", "row", 5), 7),
    "warm": ("plain", ("state", "warm"), [50]),
    "no time": ("no time", ("state", "last_time"), 2**63),
    "a cluster": ("clusters", ("state", "clusters", "open"), 10**6),
    "a block": ("delay", ("state", "e_process", "held", 0, "size"), 10**6),
    "a pair": ("groups", ("state", "forecasters", "almost-one-step-ahead", "parts", "a", "pairs"), []),
    "confidence": ("plain", ("plan", "confidence"), 2.5),
    "names": ("plain", ("task", "names"), ["x"]),
    "horizon": ("plain", ("plan", "horizon"), 10**30),
    "another key": ("plain", ("state", "more"), 1),
}


@pytest.mark.parametrize("case", FORGED)
def test_what_a_state_says_twice_it_says_alike(decal: Decal, tmp_path: Path, case: str) -> None:
    kind, keys, value = FORGED[case]
    assert kind in KINDS
    write_rows(tmp_path / "later.csv", 160, 240)
    (tmp_path / "state.json").write_text(forged_state(json.loads(true_state(kind)), keys, value))
    assert "the state in it cannot be used" in refusal(decal(*RUN)) or case in ("confidence", "horizon")
