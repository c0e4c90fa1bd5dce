"""Ways of acting: what each is worth, whom it acts on, and how a table and a picture call it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from decal_cli.analysis.described import Decided, DecisionCounts
from decal_cli.analysis.evidence import GAINS
from decal_cli.analysis.recommend import amounts_in
from decal_cli.metrics import Result, known_values
from decal_cli.numbers import Interval, decimal, decimals_for, times
from decal_cli.render import blocks as b
from decal_cli.render.terms import StatedTerms

OF_ROWS = 1000
"""Rows that printed counts are of."""
WAYS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "constant": ("best constant action", "take the best constant action", ("expected_utility", "external_regret")),
    "never": ("never act", "never act", ("eu_never",)),
    "always": ("always act", "always act", ("eu_always",)),
    "amount": ("large amounts alone", "act on large amounts alone", ("eu_by_amount",)),
    "now": ("score as it is", "act on the score as it is", ("expected_utility",)),
    "recalibrate": ("recalibrated", "act on the recalibrated score", ("expected_utility", "gain_recalibration")),
    "post-train": ("with features", "act on score and features", ("expected_utility", "gain_post_training")),
    "perfect": ("", "decide with every label known", ("expected_utility", "external_regret", "utility_at_stake")),
}
"""Ways of acting by their key: what a row of a table calls it, what is done, and the metrics whose sum it is worth.

The best constant action stands in place of the two constant decisions where there are more than two actions.
"""
CONSTANT_WAYS = ("never", "always", "constant")

KEYS: Mapping[str | None, str] = {
    None: "now",
    "recalibration": "recalibrate",
    "post-training": "post-train",
    "perfect": "perfect",
}
"""The way of acting on a score, by what makes the score; None: nothing does."""


class Way(NamedTuple):
    """A way of acting: what it is worth per decision, the interval of what it wins over the score as it is, and whom it
    acts on; None for what is not known.
    """

    key: str
    name: str
    worth: float
    interval: Interval | None = None
    decided: Decided | None = None


def ways_of(results: Mapping[str, Result], counts: DecisionCounts | None = None) -> list[Way]:
    """The ways of acting whose worth is known, from the constant decisions to perfect knowledge."""
    known, decided = known_values(results), _decided(counts) if counts else {}
    ways = []
    for key, (_, name, metrics) in WAYS.items():
        if all(metric in known for metric in metrics) and not (key == "constant" and "eu_never" in known):
            interval = results[metrics[-1]].interval if key in GAINS else None
            ways.append(Way(key, name, sum(known[each] for each in metrics), interval, decided.get(key)))
    return ways


def _decided(counts: DecisionCounts) -> dict[str, Decided]:
    """The cells of ways of acting by their key."""
    yes, no = counts.steps["now"].positives, counts.steps["now"].negatives
    return {
        "never": Decided(0.0, 0.0, yes, no),
        "always": Decided(yes, no, 0.0, 0.0),
        **counts.steps,
        "perfect": Decided(yes, 0.0, 0.0, no),
    }


def ladder(results: Mapping[str, Result], terms: StatedTerms, title: str = "") -> b.Bars:
    """What each way of acting is worth as bars, each from the lowest to its own, in the user's terms."""
    ways = named_ways(results)
    worths = [way.worth for way in ways]
    lowest, height = min(worths), max(worths) - min(worths)
    scale = terms.scale(*amounts_in([results]))
    bars = (
        b.Bar(way_name(way, terms), text, (way.worth - lowest) / height if height > 0 else 0.0)
        for way, text in zip(ways, amounts_alike(results, worths, scale.factor), strict=True)
    )
    title = title or f"Expected utility {scale.heading}"
    return b.Bars(title, "way of acting", f"expected utility {scale.heading}", bars)


def named_ways(results: Mapping[str, Result], counts: DecisionCounts | None = None) -> list[Way]:
    """The ways of acting that a table names."""
    return [way for way in ways_of(results, counts) if WAYS[way.key][0]]


def way_name(way: Way, terms: StatedTerms) -> str:
    return terms.worded(WAYS[way.key][0])


def amounts_alike(results: Mapping[str, Result], worths: Iterable[float], factor: float) -> list[str]:
    """What ways of acting are worth, with the decimals that the gains between them deserve."""
    amounts = [factor * worth for worth in worths]
    decimals = decimals_of_gains([results], amounts, factor)
    return [decimal(amount, decimals) for amount in amounts]


def decimals_of_gains(reports: Iterable[Mapping[str, Result]], amounts: Sequence[float], factor: float) -> int:
    """The decimals that the gains between ways of acting deserve, in all of these results."""
    keys = ("gain_recalibration", "gain_beyond", "external_regret")
    gains = (results[key] for results in reports for key in keys if key in results)
    return decimals_for([times(gain.interval, factor) for gain in gains], amounts)


def action_heads(terms: StatedTerms, quote: str) -> tuple[str, str, str]:
    """Headings of rows acted on, false alarms and misses; quote: around the names of the user's actions."""
    if not terms.names:
        return "acts on", "false alarms", "misses"
    off, on = (f"{quote}{name}{quote}" for name in terms.names)
    return on, f"{on} at label 0", f"{off} at label 1"


def of_thousand(ways: Sequence[Way], total: float, decimals: int | None = None) -> dict[Way, list[str]]:
    """Rows of 1,000 acted on, false alarms and misses, all alike: whole where the smallest is a row at least."""
    rows = {
        way: [OF_ROWS * each / total for each in (done.acted, done.false_positives, done.false_negatives)]
        for way in ways
        if (done := way.decided) is not None
    }
    if decimals is None:
        least = min((each for row in rows.values() for each in row if each > 0), default=1.0)
        decimals = 0 if least >= 0.95 else 1 if least >= 0.095 else 2
    return {way: [decimal(each, decimals) for each in row] for way, row in rows.items()}
