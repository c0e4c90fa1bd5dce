"""The user's terms for utility and decisions: the unit, how many decisions in which time, names of the two actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from decal_cli.errors import DecalError
from decal_cli.limits import MAX_UTILITY
from decal_cli.numbers import PER_DECISION, Interval, alike

PER_THOUSAND = 1000.0
"""Decisions that amounts speak of, where the user does not say how many there are."""
_CONSTANT = re.compile(r"\b([Aa]lways decid(?:e|ing)) ([01])\b")
_SIZES = ((1e9, "billion "), (1e6, "million "), (1.0, ""))


@dataclass(frozen=True)
class Terms:
    """How amounts and actions are written.

    unit: of utility, such as EUR. per, decisions: the time, such as year, and how many decisions it has. names: of the
    actions 0 and 1.
    """

    unit: str | None = None
    per: str | None = None
    decisions: float | None = None
    names: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.decisions is not None and not 1 / MAX_UTILITY <= self.decisions <= MAX_UTILITY:
            problem = f"--decisions {self.decisions:g} is not between 0 and {MAX_UTILITY:g}"
            raise DecalError(problem, "give the number of decisions")
        if self.per is not None and self.decisions is None:
            raise DecalError(
                f"--per {self.per} needs the number of decisions",
                f"give --decisions, the number of decisions per {self.per}; or, if it is a column of days, --capacity",
            )

    @classmethod
    def of(
        cls,
        unit: str | None = None,
        per: str | None = None,
        decisions: float | None = None,
        names: str | Sequence[str] | None = None,
    ) -> Terms:
        """Terms as a user gives them; names: 'reject,accept', the actions 0 and 1. Errors: DecalError."""
        return cls(unit or None, per or None, decisions, None if names is None else _two(names))

    @property
    def with_amounts(self) -> bool:
        """Whether the user said what amounts mean."""
        return self.unit is not None or self.decisions is not None

    @property
    def number(self) -> float:
        """The decisions that amounts speak of."""
        return self.decisions or PER_THOUSAND

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
        return self.measured_in(self.unit)

    def measured_in(self, words: str | None) -> str:
        """'in million EUR a year', for what stands above amounts that these words follow elsewhere."""
        return " ".join(filter(None, (f"in {words}" if words else "", self.span)))

    def worded(self, text: str) -> str:
        """A sentence in these terms: the unit, and the names of the actions in place of constant decisions 0 and 1."""
        if self.unit is not None:
            text = text.replace(PER_DECISION, f"{self.unit} per decision")
        if self.names is None:
            return text
        names = self.names
        return _CONSTANT.sub(lambda found: f"{found[1]} '{names[int(found[2])]}'", text)

    def scale(self, *values: float) -> tuple[float, str]:
        """What turns these utilities per decision into amounts, and the words that follow: 'million EUR'."""
        largest = max(abs(value * self.number) for value in values)
        size, word = next((each for each in _SIZES if largest >= each[0]), _SIZES[-1])
        return self.number / size, f"{word}{self.unit or ''}".strip()

    def amounts(self, *values: float) -> tuple[list[str], str]:
        """Utilities per decision as amounts, all alike, and the words that follow: 'million EUR'."""
        factor, words = self.scale(*values)
        return alike([value * factor for value in values]), words

    def amount(self, value: float, interval: Interval | None = None, beside: Sequence[float] = ()) -> str:
        """A utility per decision as '8.9 million EUR a year [6.2, 11.6]'; beside: others of the same size."""
        numbers = (value, *(interval or ()))
        factor, words = self.scale(*numbers, *beside)
        first, *ends = alike([number * factor for number in numbers])
        shown = f" [{', '.join(ends)}]" if ends else ""
        return " ".join(filter(None, (first, words, self.span))) + shown


def _two(names: str | Sequence[str]) -> tuple[str, str]:
    given: Any = names.split(",") if isinstance(names, str) else names
    texts = [str(name).strip() for name in given]
    if len(texts) != 2 or not all(texts) or texts[0] == texts[1]:
        raise DecalError(f"--names {','.join(texts)!r} are not two names", "name the actions 0 and 1: 'reject,accept'")
    return texts[0], texts[1]
