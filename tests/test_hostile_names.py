"""A slice of what `make fuzz` does with hostile names."""

from tests.helpers.hostile_runs import OFTEN, run_cases


def test_hostile_names_through_every_command() -> None:
    outcomes, failures = run_cases(20261122, [*OFTEN], lambda number: number < 2 * len(OFTEN))
    assert not failures, "\n".join(failures)
    assert sum(count for outcome, count in outcomes.items() if outcome.endswith("written")) > 6
