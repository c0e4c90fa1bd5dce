"""Expected utility from the constant decisions up, rung by rung, as bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from decal_cli.metrics import Result
from decal_cli.numbers import alike, short
from decal_cli.render.blocks import Bar, Bars
from decal_cli.render.terms import Terms


class Rung(NamedTuple):
    """A value of the ladder: a metric, and the gain that is added to it."""

    name: str
    base: str
    gain: str = ""


CHAIN = (
    Rung("always decide 0", "eu_never"),
    Rung("always decide 1", "eu_always"),
    Rung("act on large amounts alone", "eu_by_amount"),
    Rung("act on the score as it is", "expected_utility"),
    Rung("act on the recalibrated score", "expected_utility", "gain_recalibration"),
    Rung("act on score and features", "expected_utility", "gain_post_training"),
)
"""From the constant decisions to post-training; the last rungs add gains on held-out rows to what the score yields."""


MORE_ACTIONS = Rung("take the best constant action", "expected_utility", "external_regret")
"""In place of the two constant decisions, where there are more than two actions."""


def ladder(results: Mapping[str, Result], terms: Terms, title: str = "") -> Bars:
    """The rungs that are defined, in the user's terms, each bar from the lowest rung to its own."""
    two = results["eu_never"].value is not None if "eu_never" in results else False
    chain = CHAIN if two else (MORE_ACTIONS, *CHAIN)
    values = {rung.name: value for rung in chain if (value := _value(rung, results)) is not None}
    lowest, highest = min(values.values()), max(values.values())
    height = highest - lowest
    factor, unit = terms.scale(*values.values())
    amounts = [value * factor for value in values.values()]
    texts = alike(amounts) if terms.with_amounts else [short(amount, 3) for amount in amounts]
    bars = tuple(
        Bar(terms.worded(name), text, (value - lowest) / height if height > 0 else 0.0)
        for (name, value), text in zip(values.items(), texts, strict=True)
    )
    measured_in = terms.measured_in(unit)
    return Bars(title or f"Expected utility {measured_in}", "decisions", f"expected utility {measured_in}", bars)


def _value(rung: Rung, results: Mapping[str, Result]) -> float | None:
    if rung.base not in results or (rung.gain and rung.gain not in results):
        return None
    base = results[rung.base].value
    gain = 0.0 if not rung.gain else results[rung.gain].value
    return None if base is None or gain is None else base + gain
