"""A slice of what `make fuzz` does."""

import random
from pathlib import Path

import pytest

from tests.fuzz.__main__ import FUZZERS
from tests.fuzz.harness import one
from tests.fuzz.kills import SIGNALS, Command, moment, prepared

pytestmark = pytest.mark.usefixtures("one_deal")


@pytest.mark.ci
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", FUZZERS)
def test_hostile_input_is_judged_or_refused_in_one_line(name: str, part: int, tmp_path: Path) -> None:
    for seed in range(20):
        assert one(FUZZERS[name].case, 1_000_000 + 20 * part + seed, str(tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("name", ["evaluate", "fit"])
def test_a_run_that_is_ended_leaves_the_old_output_or_the_new_one(name: str, tmp_path: Path) -> None:
    prepared(tmp_path)
    command, rng = Command(name, tmp_path), random.Random(1)
    for number in SIGNALS * 2:
        assert command.killed(number, moment(rng))
