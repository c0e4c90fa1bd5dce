"""The evaluation procedure of [R, appendix A] as data: evidence in, the walk's answers and the action out."""

from decal_cli.analysis.flowchart.evidence import (
    BEYOND,
    EVIDENCE_KEYS,
    FITS,
    GAINS,
    MEANS,
    RECALIBRATION,
    TOGETHER,
    Action,
    Answer,
    Evidence,
    Interval,
    Item,
)
from decal_cli.analysis.flowchart.walk import TRY, Advice, Step, walk

__all__ = [
    "BEYOND",
    "EVIDENCE_KEYS",
    "FITS",
    "GAINS",
    "MEANS",
    "RECALIBRATION",
    "TOGETHER",
    "TRY",
    "Action",
    "Advice",
    "Answer",
    "Evidence",
    "Interval",
    "Item",
    "Step",
    "walk",
]
