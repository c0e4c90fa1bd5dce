"""The difference of two models as cells: how large it is, and who is better."""

from __future__ import annotations

from decal_cli.analysis.compare import Difference
from decal_cli.numbers import short, span
from decal_cli.render.blocks import Cell, Tone
from decal_cli.render.cells import words

_TONES: dict[bool | None, Tone] = {True: "doubtful", False: "good", None: ""}


def difference_cell(each: Difference) -> Cell:
    """B - A with its sign, and its paired interval."""
    value = each.difference.value
    if value is None:
        return words("")
    return Cell(tuple(filter(None, (signed(value, 4), span(each.difference.interval, 4)))))


def who_wins(each: Difference, names: tuple[str, str]) -> Cell:
    """Who is better, and whether it could be chance: 'p_b better, not by chance'; in short 'B better, ..'."""
    if each.difference.value is None or (each.better is None and each.difference.value != 0):
        return words("")
    if each.better is None:
        return words("the same")
    side = 0 if each.better == "a" else 1
    parts, short = (_better(each, name) for name in (names[side], "AB"[side]))
    return Cell(parts, short, tone=_TONES[each.by_chance])


def _better(each: Difference, name: str) -> tuple[str, ...]:
    if each.by_chance is None:
        return (f"{name} ahead,", "no interval") if each.difference.interval is None else (f"{name} nearer the ideal",)
    return (f"{name} ahead,", "could be chance") if each.by_chance else (f"{name} better,", "not by chance")


def signed(value: float, decimals: int) -> str:
    """A difference, with its sign where it does not round to zero."""
    text = short(value, decimals)
    return f"+{text}" if value > 0 and text.strip(".0") else text
