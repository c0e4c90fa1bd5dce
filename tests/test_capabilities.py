"""Every two capabilities go together, or are refused in the one line that the page of them shows; three never crash."""

from pathlib import Path

import pytest

from tests.helpers.capabilities import (
    COSTLY_VERBS,
    N_CAPABILITY_ROWS,
    WALKED_VERBS,
    WORKS,
    every_single_and_pair,
    outcome,
    random_triples,
    read_outcomes,
)
from tests.helpers.seeded import write_seeded

pytestmark = pytest.mark.usefixtures("one_deal")

PARTS = 2
QUICK_VERBS = [verb for verb in WALKED_VERBS if verb not in COSTLY_VERBS]


@pytest.mark.ci
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(
    ("verb", "first", "step"),
    [
        *(pytest.param(verb, 0, 4, marks=pytest.mark.long) for verb in COSTLY_VERBS),
        *((verb, 0, 3) for verb in QUICK_VERBS),
        *(pytest.param(verb, first, 3, marks=pytest.mark.long) for verb in QUICK_VERBS for first in (1, 2)),
    ],
)
def test_pairs_work_or_are_refused_as_listed(verb: str, first: int, step: int, part: int, tmp_path: Path) -> None:
    """All refusals; of the runs that work a third, in the long run all, and of verbs that take a second each fourth."""
    write_seeded(tmp_path, N_CAPABILITY_ROWS, utilities=True)
    listed = {each: came for each, came in read_outcomes().items() if each.verb == verb}
    asked = [each for each, came in listed.items() if came == WORKS][first::step]
    asked = [*asked, *(each for each, came in listed.items() if came != WORKS and first == 0)][part::PARTS]
    assert {each: outcome(tmp_path, each) for each in asked} == {each: listed[each] for each in asked}


def test_every_pair_is_listed_and_none_crashes() -> None:
    listed = read_outcomes()
    assert list(listed) == every_single_and_pair()
    assert not [each for each, came in listed.items() if came.startswith("CRASH")]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("seed", "n_quick", "n_costly"),
    [(0, 20, 1), *(pytest.param(seed, 60, 8, marks=pytest.mark.long) for seed in (1, 2, 3))],
)
def test_triples_do_not_crash(seed: int, n_quick: int, n_costly: int, tmp_path: Path) -> None:
    write_seeded(tmp_path, N_CAPABILITY_ROWS, utilities=True)
    triples = random_triples(n_quick, seed, QUICK_VERBS) + random_triples(n_costly, seed, COSTLY_VERBS)
    crashed = {each: came for each in triples if (came := outcome(tmp_path, each)).startswith("CRASH")}
    assert not crashed
