"""The lowest Brier curve of several models, in a table and a sentence, and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from decal_cli.curves.lowest import Lowest, Rival
from decal_cli.numbers import DASH, short
from decal_cli.render.blocks import Block, Column, Paragraph, Row, Table
from decal_cli.render.cells import number, words

NOT_SHOWN = "The lowest curve of all models is not shown: the models do not have the same rows."


class RivalData(TypedDict):
    """A model beside the others: refinement_loss is twice the area under its calibrated Brier curve; gap: its largest
    distance to the lowest curve (u_delta 1), at the threshold gap_at; lowest_share: of the thresholds at which its
    curve alone is the lowest; beaten_by: the model that is lower beyond chance, clearest at the threshold beaten_at.
    """

    model: str
    refinement_loss: float
    gap: float
    gap_at: float
    lowest_share: float
    beaten_by: str | None
    beaten_at: float | None


class LowestData(TypedDict):
    """The lowest calibrated Brier curve of all models on the thresholds, and every model beside it; sufficient: models
    that no other one beats beyond chance.
    """

    value: list[float]
    sufficient: list[str]
    models: list[RivalData]


def lowest_data(lowest: Lowest) -> LowestData:
    """LowestData."""
    models: list[RivalData] = [
        {
            "model": rival.name,
            "refinement_loss": rival.refinement_loss,
            "gap": rival.gap,
            "gap_at": rival.at,
            "lowest_share": rival.share,
            "beaten_by": rival.beaten_by,
            "beaten_at": rival.beaten_at,
        }
        for rival in lowest.rivals
    ]
    return {"value": lowest.value.tolist(), "sufficient": list(lowest.unbeaten), "models": models}


def lowest_blocks(lowest: Lowest, unit: str, factor: float) -> Iterator[Block]:
    """A row for each model, and what follows from them all."""
    heads = ("refinement loss", f"gap, {unit}", "at t*", "lowest at", "beaten beyond chance by")
    columns = (Column("model", words=True), *(Column(head, breaks=(16,)) for head in heads))
    rows = tuple(
        Row(
            (
                words(rival.name),
                number(rival.refinement_loss),
                number(factor * rival.gap),
                words(short(rival.at, 3)),
                words(f"{100 * rival.share:.0f} % of t*"),
                words(DASH if rival.beaten_by is None else f"{rival.beaten_by} at {short(rival.beaten_at or 0.0, 3)}"),
            )
        )
        for rival in lowest.rivals
    )
    yield Table(columns, rows, title="Calibrated Brier curves against the lowest of them", keys=1, stacked=True)
    yield Paragraph(verdict(lowest), close=True)


def verdict(lowest: Lowest) -> str:
    """Whether any model may be sufficient, and whose curve is the best lower one that is known."""
    left = lowest.unbeaten
    holders = [rival for rival in _by_share(lowest) if rival.share > 0]
    best = _listed([f"{rival.name} ({100 * rival.share:.0f} % of t*)" for rival in holders]) or "any: all are equal"
    if not left:
        return f"No model named is sufficient here: each is beaten by another. Best known lower curve: {best}."
    if len(left) == len(lowest.rivals):
        return "No model is beaten beyond chance: these rows do not tell which knows more."
    several = len(left) > 1
    others = "the others are" if len(lowest.rivals) - len(left) > 1 else "the other is"
    return (
        f"{_listed(left)} {'are' if several else 'is'} not beaten and may be sufficient; {others} not. "
        f"Best known lower curve: {best}."
    )


def _by_share(lowest: Lowest) -> list[Rival]:
    return sorted(lowest.rivals, key=lambda rival: -rival.share)


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)
