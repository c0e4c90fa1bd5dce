"""Faults are seeded where they are meant to be: one line of a function differs, and still parses."""

import ast
from pathlib import Path

import pytest

from tests.helpers.command import ROOT
from tests.helpers.mutants import chosen_faults, faults_in, mirrors, users

SOURCE = """
def mean(values, weight, start=0):
    if start < 1:
        return sum(weight * values) / (len(values) - 1)
    raise ValueError(start + 1)
"""


def test_every_kind_of_fault_is_found_in_a_function_and_none_in_what_is_raised() -> None:
    faults = list(faults_in(Path("mean.py"), SOURCE))
    assert {(fault.kind, fault.after.strip()) for fault in faults} == {
        ("comparison", "if start <= 1:"),
        ("dropped weight", "return sum((values)) / (len(values) - 1)"),
        ("sign", "return sum(weight * values) / (len(values) + 1)"),
        ("off by one", "return sum(weight * values) / (len(values) - 2)"),
    }


@pytest.mark.ci
def test_seeded_faults_parse_are_spread_over_the_rooms_and_have_tests() -> None:
    faults = chosen_faults(40, seed=0)
    assert faults == chosen_faults(40, seed=0)
    assert len({fault.path.parts[1] for fault in faults}) >= 10
    for fault in faults:
        lines = (ROOT / fault.path).read_text(encoding="utf-8").splitlines()
        assert lines[fault.line - 1] == fault.before != fault.after
        lines[fault.line - 1] = fault.after
        ast.parse("\n".join(lines))
    assert "tests/metrics/test_capacity.py" in mirrors(Path("decal_cli/metrics/families/capacity.py"))
    assert "tests/api/test_online.py" in users(Path("decal_cli/sequential/forecasters.py"))
