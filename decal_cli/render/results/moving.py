"""What it is worth to move scores to the population where decisions are made, in words and as data."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from decal_cli.analysis.evaluate import Report
from decal_cli.numbers import percent
from decal_cli.render.blocks import Paragraph
from decal_cli.render.results.source import pair
from decal_cli.render.schema import Ends, Share
from decal_cli.render.terms import Terms
from decal_cli.tables.population import Population


class MovingData(TypedDict):
    """Expected utility per decision in the population, of scores as they were made and of scores moved to it.
    threshold: to act from on the scores as they were made, which decides as the moved scores do.
    """

    kept: float
    moved: float
    gain: float
    interval: Ends | None
    threshold: Share


class WithMoving(TypedDict):
    """What a report says of it, where rows are counted as another population."""

    moving: NotRequired[MovingData]


def moving_line(report: Report, population: Population | None, terms: Terms) -> Paragraph | None:
    """The sentence on it."""
    moving = report.moving
    if moving is None or population is None:
        return None
    (kept, moved, gain, *ends), unit = terms.amounts(moving.kept, moving.moved, moving.gain, *(moving.interval or ()))
    words = " ".join(filter(None, (unit, terms.span)))
    interval = f" [{', '.join(ends)}]" if ends else ""
    used = "the scores as they are" if population.kept else "the moved scores"
    return Paragraph(
        f"Where {percent(population.prevalence)} are positive, scores made for {percent(population.sampled)} are worth "
        f"{kept} {words}; moved to it they are worth {moved}, which is a gain of {gain}{interval}. To move them is to "
        f"act on them from about {moving.threshold:.4g} on. All else on this page is of {used}."
    )


def moving_data(report: Report) -> WithMoving:
    """The same as JSON has it; empty where it does not arise."""
    moving = report.moving
    if moving is None:
        return {}
    data: MovingData = {
        "kept": moving.kept,
        "moved": moving.moved,
        "gain": moving.gain,
        "interval": pair(moving.interval),
        "threshold": moving.threshold,
    }
    return {"moving": data}
