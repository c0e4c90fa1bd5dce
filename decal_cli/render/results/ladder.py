"""Expected utility from the constant decisions up, rung by rung, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from decal_cli.metrics import Result
from decal_cli.render.blocks import Bar, Bars
from decal_cli.render.numbers import short


class Rung(NamedTuple):
    """A value of the ladder: a metric and what another adds to it, and a third if that is above 0."""

    name: str
    base: str
    added: str = ""
    added_if_positive: str = ""


HELD_OUT = (
    Rung("always decide 0", "eu_never"),
    Rung("always decide 1", "eu_always"),
    Rung("by the score as it is", "expected_utility"),
    Rung("by the score recalibrated", "expected_utility", "gain_recalibration"),
    Rung("by score and features", "expected_utility", "gain_post_training"),
)
"""To what post-training may reach: the last rungs add gains judged on held-out rows to what the score yields."""
ORACLE = (
    *HELD_OUT[:3],
    Rung("recalibrated", "expected_utility", "gain_recalibration"),
    Rung("oracle, at least", "expected_utility", "regret_grouping_lower", "gain_recalibration"),
    Rung("oracle, at most", "expected_utility", "regret_grouping_upper", "gain_recalibration"),
)
"""To the bounds of what the best probability would reach; it is not below the score as it is."""


def ladder(
    rungs: Sequence[Rung], results: Mapping[str, Result], title: str = "Expected utility per 1,000 decisions"
) -> Bars:
    """The rungs that are defined, per 1,000 decisions, each bar from the lowest rung to its own."""
    values = {rung.name: value for rung in rungs if (value := _value(rung, results)) is not None}
    lowest, highest = min(values.values()), max(values.values())
    height = highest - lowest
    bars = tuple(
        Bar(name, short(1000 * value, 3), (value - lowest) / height if height > 0 else 0.0)
        for name, value in values.items()
    )
    return Bars(title, "decisions", "expected utility per 1,000", bars)


def _value(rung: Rung, results: Mapping[str, Result]) -> float | None:
    base = results[rung.base].value
    added = 0.0 if not rung.added else results[rung.added].value
    if base is None or added is None:
        return None
    more = 0.0 if not rung.added_if_positive else max(results[rung.added_if_positive].value or 0.0, 0.0)
    return base + more + added
