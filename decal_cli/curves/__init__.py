"""What decisions are worth as a function of the threshold t*, for all thresholds at once."""

from decal_cli.curves.battery import FeaturedRows, curves_of
from decal_cli.curves.grid import Grid, Prior, parse_prior, parse_thresholds
from decal_cli.curves.kinds import CURVE_KINDS, CurveKind, MetricCurve

__all__ = [
    "CURVE_KINDS",
    "CurveKind",
    "FeaturedRows",
    "Grid",
    "MetricCurve",
    "Prior",
    "curves_of",
    "parse_prior",
    "parse_thresholds",
]
