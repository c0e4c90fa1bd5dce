"""How numbers are rounded and written for people, in one place."""

from __future__ import annotations

import math
from collections.abc import Sequence

Interval = tuple[float, float]
DASH = "–"
MAX_DECIMALS = 12
PER_DECISION = "utility per decision"
"""What amounts in sentences are measured in; a user's unit takes the place of the first word."""


def short(value: float, decimals: int) -> str:
    """A number of at most this many decimals, without the zero before the point; large ones keep four digits."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.{max(0, decimals - 2)}f}"
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def apart(one: float, other: float, decimals: int) -> tuple[str, str]:
    """Two numbers with as many decimals as it takes to see that they differ, if they do."""
    for more in range(decimals, MAX_DECIMALS):
        texts = short(one, more), short(other, more)
        if texts[0] != texts[1]:
            break
    return texts


def span(interval: Interval | None, decimals: int) -> str:
    """'[low, high]', empty where there is no interval."""
    return "" if interval is None else f"[{short(interval[0], decimals)}, {short(interval[1], decimals)}]"


_BEYOND_READING = 1e15
"""From here on nobody counts digits: e-values reach 1e300."""


def plain(value: float) -> str:
    """Four significant digits, never in exponent form for everyday sizes."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if 10_000 <= abs(value) < _BEYOND_READING else f"{value:.4g}"


def percent(share: float) -> str:
    """A share of rows as '2 %', to three digits."""
    return f"{100 * share:.3g} %"


def alike(values: Sequence[float], digits: int = 3) -> list[str]:
    """Numbers with as many decimals as the largest of them needs for so many digits."""
    largest = max(map(abs, values), default=0.0)
    decimals = 0 if largest == 0 else min(max(digits - 1 - math.floor(math.log10(largest)), 0), MAX_DECIMALS)
    return [_unsigned_zero(f"{value:,.{decimals}f}") for value in values]


def with_ends(numbers: Sequence[str], words: str) -> str:
    """'0.059 utility per decision (0.037 to 0.081)', of a number and the ends of its interval, if it has one."""
    value, *ends = numbers
    return f"{value} {words}" + (f" ({' to '.join(ends)})" if ends else "")


def per_decision(value: float, interval: Interval | None = None) -> str:
    """A utility per decision with its interval, as it stands in a sentence."""
    return with_ends(alike((value, *(interval or ()))), PER_DECISION)


def counts(values: Sequence[float]) -> list[str]:
    """Numbers of rows: whole where that says enough, else with decimals, all alike."""
    sizes = [abs(value) for value in values if value]
    decimals = 0 if not sizes or min(sizes) >= 9.5 else 1 if max(sizes) >= 1 else 3
    return [_unsigned_zero(f"{value:,.{decimals}f}") for value in values]


def _unsigned_zero(text: str) -> str:
    return text if text.strip("-0.,") else text.lstrip("-")
