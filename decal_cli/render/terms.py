"""The user's terms for utility and decisions: the unit, how many decisions in which time, names of the two actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from decal_cli.declarations.option import Declaring, option
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_UTILITY
from decal_cli.numbers import PER_DECISION, Interval, Say, alike, bracketed, plain, saying
from decal_cli.task import constant_words

PER_THOUSAND = 1000.0
"""Decisions that amounts speak of, where the user does not say how many there are."""
_CONSTANT = re.compile(r"\b(never|always) act(ing)?\b(?! on)", re.IGNORECASE)
_LEAST = 0.1
"""The smallest share of a million, or a billion, that is still written in that size."""
_SIZES = ((1e9, "billion "), (1e6, "million "), (1.0, ""))


@dataclass(frozen=True)
class Scale:
    """How amounts of a page are written: the factor of utilities per decision, their unit, such as 'million EUR', the
    decisions that they are of, and decimals.
    """

    factor: float
    unit: str
    span: str
    decimals: int = 0

    def __call__(self, value: float, sign: str = "") -> str:
        """A utility per decision as an amount; sign: '+' to write that of a gain."""
        text = f"{self.factor * value:{sign},.{self.decimals}f}"
        return text if text.strip("+-0.,") else text.lstrip("+-")

    def ends(self, interval: Interval) -> str:
        """'[low, high]'."""
        return f"[{', '.join(map(self, interval))}]"

    @property
    def words(self) -> str:
        """What follows an amount: 'million EUR a year'."""
        return f"{self.unit} {self.span}".lstrip()

    @property
    def heading(self) -> str:
        """What stands above amounts: 'in million EUR a year'."""
        return _above(self.unit, self.span)

    @property
    def say(self) -> Say:
        """What writes a utility per decision as '8.9 [6.2, 11.6] million EUR a year'."""
        return saying(self.factor, self.words)

    @property
    def in_words(self) -> str:
        """'per 1,000 decisions', or 'in million EUR a year'."""
        return self.words if self.words.startswith(("per ", "for ")) else f"in {self.words}"


@dataclass(frozen=True, repr=False)
class StatedTerms(Declaring, panel="Amounts"):
    """How amounts and actions are written."""

    unit: str | None = option("Unit of the utilities, such as EUR.", metavar="UNIT", brief=True)
    decisions: float | str | None = option(
        "Print amounts for so many decisions, such as 100000 or 100000/year. A total "
        f"{Hint('cost')} is spread over them.",
        metavar="N[/TIME]",
        brief=True,
    )
    per: str | None = option("The time that has so many decisions, such as year.", key="")
    names: Sequence[str] | None = option(
        "Names of the decisions 0 and 1, such as 'reject,accept'.", metavar="NAME0,NAME1"
    )

    def __post_init__(self) -> None:
        count, slash, time = str(self.decisions).partition("/")
        if isinstance(self.decisions, str):
            object.__setattr__(self, "decisions", _count(count, self.decisions))
            object.__setattr__(self, "per", time.strip() if slash else self.per)
        if self.decisions is not None and not 1 / MAX_UTILITY <= self.number <= MAX_UTILITY:
            problem = f"{Hint('decisions', f'{self.number:g}').words} is not between 0 and {MAX_UTILITY:g}"
            raise DecalError(problem, "give the number of decisions")
        if self.per is not None and self.decisions is None:
            raise DecalError(
                f"{self.per!r} is a time without a number of decisions", f"give {Hint('decisions', '100000/year')}"
            )
        for name in ("unit", "per"):
            object.__setattr__(self, name, getattr(self, name) or None)
        object.__setattr__(self, "names", None if self.names is None else _two(self.names))

    @property
    def with_amounts(self) -> bool:
        """Whether the user said what amounts mean."""
        return self.unit is not None or self.decisions is not None

    @property
    def number(self) -> float:
        """The decisions that amounts speak of."""
        return PER_THOUSAND if self.decisions is None else float(self.decisions)

    @property
    def noun(self) -> str:
        """What utility is measured in."""
        return self.unit or "utility"

    @property
    def span(self) -> str:
        """'a year', or how many decisions amounts speak of."""
        if self.per is None:
            return f"{'per' if self.decisions is None else 'for'} {self.number:,.0f} decisions"
        return f"{'an' if self.per[0].lower() in 'aeio' or self.per == 'hour' else 'a'} {self.per}"

    @property
    def heading(self) -> str:
        """'in EUR a year', for what stands above amounts."""
        return _above(self.unit, self.span)

    def price(self, cost: float) -> str:
        """What one error costs, in the unit."""
        return f"{plain(cost)} {self.unit or ''}".rstrip()

    def worded(self, text: str) -> str:
        """A sentence in these terms: the unit, and the names of the actions in place of constant decisions 0 and 1."""
        if self.unit is not None:
            text = text.replace(PER_DECISION, f"{self.unit} per decision")
        if self.names is None:
            return text
        names = self.names

        def named(found: re.Match[str]) -> str:
            words = constant_words(names[found[1].lower() == "always"], doing=bool(found[2]))
            return words if found[1].islower() else f"A{words[1:]}"

        return _CONSTANT.sub(named, text)

    def scale(self, *values: float) -> Scale:
        """How these utilities per decision are written.

        A small amount beside a large one is written out: '7,200 EUR', and not '0.007 million EUR'.
        """
        sizes = [abs(value * self.number) for value in values]
        least = min((each for each in sizes if each), default=0.0)
        fitting = (each for each in _SIZES if max(sizes) >= each[0] and least >= each[0] * _LEAST)
        size, word = next(fitting, _SIZES[-1])
        return Scale(self.number / size, f"{word}{self.unit or ''}".strip(), self.span)

    def amounts(self, *values: float) -> tuple[list[str], Scale]:
        """Utilities per decision as amounts, all alike."""
        scale = self.scale(*values)
        return alike([value * scale.factor for value in values]), scale

    def amount(self, value: float, interval: Interval | None = None) -> str:
        """A utility per decision as '8.9 million EUR a year [6.2, 11.6]'."""
        (first, *ends), scale = self.amounts(value, *(interval or ()))
        return bracketed((f"{first} {scale.words}", *ends))

    def saying(self, beside: Sequence[float]) -> Say:
        """What writes a utility per decision; beside: the page's others."""
        return self.scale(*beside).say

    def phrase(self, value: float, interval: Interval | None = None, more: str = "") -> str:
        """A utility per decision as '8.9 [6.2, 11.6] million EUR a year'; more: words such as ' more'."""
        texts, scale = self.amounts(value, *(interval or ()))
        what = f" {scale.unit}{more}" if scale.unit else f"{more} {self.noun}"
        return f"{bracketed(texts)}{what} {self.span}"


PLAIN = StatedTerms()
"""The terms where the user said nothing of what amounts mean."""


def _above(unit: str | None, span: str) -> str:
    return f"in {unit} {span}" if unit else span


def _count(text: str, given: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DecalError(
            f"{Hint('decisions', f'{given!r}')} is not a number", f"give for example {Hint('decisions', '100000/year')}"
        ) from None


def _two(names: str | Sequence[str]) -> tuple[str, str]:
    given: Any = names.split(",") if isinstance(names, str) else names
    texts = [str(name).strip() for name in given]
    if len(texts) != 2 or not all(texts) or texts[0] == texts[1]:
        raise DecalError(
            f"{Hint('names', ','.join(texts))} are not two names", "name the actions 0 and 1: 'reject,accept'"
        )
    return texts[0], texts[1]
