"""The evaluation procedure of [R, appendix A] as data: evidence in, the answers on the way and the action out."""

from decal_cli.analysis.flowchart.advice import Advice, Interim, Step
from decal_cli.analysis.flowchart.evidence import (
    BEYOND,
    EVIDENCE_KEYS,
    FITS,
    GAINS,
    HEADROOM,
    NEW_THRESHOLD,
    OVER_CONSTANT,
    POST_TRAINING,
    RECALIBRATION,
    Action,
    Answer,
    Constant,
    Evidence,
    Interval,
    Item,
)
from decal_cli.analysis.flowchart.walk import TRY, walk

__all__ = [
    "BEYOND",
    "EVIDENCE_KEYS",
    "FITS",
    "GAINS",
    "HEADROOM",
    "NEW_THRESHOLD",
    "OVER_CONSTANT",
    "POST_TRAINING",
    "RECALIBRATION",
    "TRY",
    "Action",
    "Advice",
    "Answer",
    "Constant",
    "Evidence",
    "Interim",
    "Interval",
    "Item",
    "Step",
    "walk",
]
