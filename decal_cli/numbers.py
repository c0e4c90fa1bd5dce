"""How numbers are rounded and written for people, in one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

Interval = tuple[float, float]
DASH = "–"
MAX_DECIMALS = 12
PER_DECISION = "utility per decision"
"""What amounts in sentences are measured in; a user's unit takes the place of the first word."""


class Estimated(NamedTuple):
    """A number and its interval, None where there is none."""

    value: float
    interval: Interval | None


def settled(value: float) -> float:
    """A number by its first 13 digits: the last bit, which sums in another order move, decides no printed digit."""
    return float(f"{value:.13g}")


def decimal(value: float, decimals: int) -> str:
    """A number with so many decimals."""
    return f"{settled(value):z,.{decimals}f}"


def short(value: float, decimals: int) -> str:
    """A number with at most this many decimals; a large one keeps four digits."""
    return decimal(value, _fewer(value, decimals))


def _fewer(value: float, decimals: int) -> int:
    """How many of these decimals a number of this size keeps: two fewer from 10 on, none from 1,000 on."""
    return 0 if abs(value) >= 1000 else max(0, decimals - 2) if abs(value) >= 10 else decimals


def ends_of(interval: Interval | None, side: str | None) -> tuple[float, ...]:
    """The ends of an interval that say something.

    What is known to be at least so much is a loss, and none is below 0: such an interval reaches lower only to hold an
    estimate that noise took there.
    """
    if interval is None or side is None:
        return interval or ()
    return (max(interval[0], 0.0) if side == "at least" else interval[1],)


def pieces(value: float, interval: Interval | None, decimals: int, side: str | None = None) -> tuple[str, ...]:
    """A number and its '[low, high]', with the decimals that suit the largest of the three.

    side: 'at least' or 'at most' where that end alone says something.
    """
    ends = ends_of(interval, side)
    fewest = min((_fewer(each, decimals) for each in (value, *ends) if math.isfinite(each)), default=decimals)
    first, *others = (decimal(each, fewest) for each in (value, *ends))
    return (first, f"[{', '.join(others)}]" if side is None else f"[{side} {others[0]}]") if ends else (first,)


def rounded(value: float, interval: Interval | None, decimals: int, side: str | None = None) -> str:
    """A number of at most this many decimals, and its interval."""
    return " ".join(pieces(value, interval, decimals, side))


def bracketed(texts: Iterable[str]) -> str:
    """'721 [660, 782]' of a number and the ends of its interval as written; of a number alone nothing more."""
    first, *ends = texts
    return f"{first} [{', '.join(ends)}]" if ends else first


_BEYOND_READING = 1e15
"""From here on nobody counts digits: e-values reach 1e300."""


def plain(value: float) -> str:
    """Four significant digits, never in exponent form for everyday sizes."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if 9_999.5 <= abs(value) < _BEYOND_READING else f"{settled(value):,.4g}"


def p_value(value: float, equals: str = "") -> str:
    """A p-value to four decimals, and below that as '< 0.0001'. equals: what stands before it where it is a number."""
    return "< 0.0001" if value < 1e-4 else f"{equals}{plain(round(value, 4))}"


def percent(share: float) -> str:
    """A share of rows as '2 %', to three digits."""
    return f"{settled(100 * share):.3g} %"


def shares_text(shares: float | Mapping[str, float]) -> str:
    """The share of positives, or of each class, in words."""
    if isinstance(shares, Mapping):
        return ", ".join(f"{percent(share)} {name}" for name, share in shares.items())
    return f"{percent(shares)} positive"


def many(count: float, noun: str) -> str:
    """'1 row', '1,234 rows'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


LIKELY = 0.8
"""The chance from which what is not clear is called likely."""


def chance_words(chance: float) -> str:
    """A probability as '83 %'; as 'under 1 %' or 'over 99 %' where it would round to 0 or 100.

    One that is less than likely is not rounded to what is.
    """
    whole = "79" if chance < LIKELY <= round(100 * chance) / 100 else decimal(100 * chance, 0)
    return {"0": "under 1 %", "100": "over 99 %"}.get(whole, f"{whole} %")


def decimals_of(size: float, digits: int = 3) -> int:
    """Decimals that show so many digits of a number that is not negative; none of 0."""
    return 0 if size <= 0 else min(max(digits - 1 - math.floor(math.log10(size)), 0), MAX_DECIMALS)


def alike(values: Sequence[float], digits: int = 3) -> list[str]:
    """Numbers with as many decimals as the largest of them needs for so many digits."""
    decimals = decimals_of(max(map(abs, values), default=0.0), digits)
    return [decimal(value, decimals) for value in values]


def counts(values: Sequence[float]) -> list[str]:
    """Numbers of rows: whole where that says enough, else with decimals, all alike."""
    sizes = [abs(value) for value in values if value]
    whole = all(settled(value).is_integer() for value in values)
    decimals = 0 if whole or min(sizes) >= 9.5 else 1 if max(sizes) >= 1 else 3
    return [decimal(value, decimals) for value in values]


def decimals_for(intervals: Sequence[Interval | None], values: Sequence[float] = (), most: int = 6) -> int:
    """Decimals that show two digits of the narrowest half-width; without intervals, three of the largest value."""
    widths = [(high - low) / 2 for low, high in filter(None, intervals) if high > low]
    decimals = decimals_of(min(widths), 2) if widths else decimals_of(max(map(abs, values), default=0.0))
    return min(decimals, most)


def fixed(value: float, decimals: int) -> str:
    """A number of so many decimals; 0 where it rounds to that."""
    text = decimal(value, decimals)
    return text if text.strip("0.") else "0"


def within(value: float, interval: Interval | None = None, like: Interval | None = None) -> str:
    """'721 [660, 782]' with two digits of the half-width; without an interval, three digits of the number.

    An end that would be written as 0 and is not 0 gets a digit more.
    like: the interval that a number without one has the digits of.
    """
    if interval is None and like is None:
        text = decimal(value, decimals_for((), (value,)))
        return text.rstrip("0").rstrip(".") if "." in text else text
    decimals = decimals_for((interval, like), (value,))
    decimals += any(each and abs(each) <= 0.5 / 10**decimals for each in interval or ())
    return bracketed(decimal(each, decimals) for each in (value, *(interval or ())))


MOST_ROUNDED = 0.05
"""By what part of itself a number that is acted on is rounded at most."""


def around(exact: str, interval: Interval) -> str:
    """'about 0.0481 [0.0422, 0.0512]': a decimal with two digits of the half-width, and ends that hold it as written.

    Where the decimal has no more digits than that, it stands as it is; and alone where so few would be another number.
    """
    value = float(exact)
    decimals = decimals_for((interval,), (value,))
    shown = f"{value:.{decimals}f}"
    if abs(float(shown) - value) > MOST_ROUNDED * abs(value):
        return exact
    text, value = (exact, value) if float(shown) == value else (f"about {shown}", float(shown))
    unit = 10.0**decimals
    low = math.floor(min(interval[0], value) * unit + 1e-9) / unit
    high = math.ceil(max(interval[1], value) * unit - 1e-9) / unit
    return f"{text} [{low:.{decimals}f}, {high:.{decimals}f}]"


def times(interval: Interval | None, factor: float) -> Interval | None:
    """An interval in another unit, or with the other sign."""
    if interval is None:
        return None
    low, high = sorted(factor * end for end in interval)
    return low, high


def shifted(interval: Interval | None, by: float) -> Interval | None:
    """The interval of a number to which another one, which is known, is added."""
    return None if interval is None else (interval[0] + by, interval[1] + by)


def bounds(interval: Interval | None) -> Interval:
    """The ends between which a number lies; without an interval, anywhere."""
    return (-math.inf, math.inf) if interval is None else interval


def sized(value: float, interval: Interval | None) -> Estimated:
    """The size of an amount and its interval; both change sign where the amount is negative."""
    return Estimated(value, interval) if value >= 0 else Estimated(-value, times(interval, -1))


class Say(Protocol):
    """How a page writes a utility per decision, and its interval. like: an interval whose digits it has."""

    def __call__(self, value: float, interval: Interval | None = None, like: Interval | None = None) -> str: ...


def saying(factor: float, after: str = "") -> Say:
    """What writes a utility per decision as '721 [660, 782] per 1,000 decisions': times a factor, with words after."""

    return partial(_say, factor, after)


def _say(
    factor: float, after: str, value: float, interval: Interval | None = None, like: Interval | None = None
) -> str:
    return f"{within(factor * value, times(interval, factor), times(like, factor))} {after}".rstrip()


per_thousand = saying(1000.0, "per 1,000 decisions")
