"""A limited capacity in words and as data: places, rows without one, and what these come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.places import Places
from decal_cli.numbers import counts, plain
from decal_cli.render.schema import Count, Ends, Limit, Positive

Rows = Annotated[float, Limit(minimum=0)]


class PlacesData(TypedDict):
    """Places and rows where so many rows can be acted on; of weighted rows as many as their share of the weight says.

    lists: one, or one for each value of the column of --per; full: those with no place left for a row that would be
    acted on. acted: rows that are acted on; reaching: rows that would be, were there no limit. ranked_by:
    what the places go by; thresholds: the lowest and the highest of it from which on the lists act.
    """

    lists: Positive
    full: Count
    places: Rows
    acted: Rows
    reaching: Rows
    ranked_by: Literal["score", "expected gain"]
    thresholds: Ends


class WithPlaces(TypedDict):
    """What a report says of it, where the capacity is limited."""

    places: NotRequired[PlacesData]


def places_data(report: Report) -> WithPlaces:
    """As JSON has it; empty where there is no limit."""
    places = report.places
    if places is None:
        return {}
    data: PlacesData = {
        "lists": places.lists,
        "full": places.full,
        "places": places.places,
        "acted": places.acted,
        "reaching": places.reaching,
        "ranked_by": "score" if places.by_score else "expected gain",
        "thresholds": list(places.thresholds),
    }
    return {"places": data}


def places_lines(reports: Sequence[Report], per: str | None) -> Iterator[str]:
    """A sentence on the places of each model, on all of its rows; per: the column whose values have places each."""
    models = {report.model for report in reports}
    for report in reports:
        if report.places is not None and report.group is None:
            yield ("" if len(models) == 1 else f"{report.model}: ") + _sentence(report.rows, report.places, per)


def _sentence(rows: int, places: Places, per: str | None) -> str:
    acted, room, reaching, without = counts((places.acted, places.places, places.reaching, places.without))
    if not places.full:
        return f"{acted} of {room} places are taken, and no row that would be acted on is without one"
    low, high = (plain(each) for each in places.thresholds)
    what = "a score" if places.by_score else "an expected gain"
    begins = f"{what} of {low} on" if low == high else f"{what} between {low} and {high} on, depending on {per}"
    lists = "" if per is None else f"; every place is taken in {places.full:,} of {places.lists:,} values of {per}"
    return (
        f"{acted} of {rows:,} rows are acted on, from {begins}; {reaching} would be without the limit, so that "
        f"{without} have no place{lists}"
    )
