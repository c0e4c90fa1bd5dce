"""Forecasters that learn while they predict, and statistics that may be looked at after every row."""

from decal_cli.sequential import recalibrators, base_rate, decision_loss, one_step_ahead  # noqa: F401, I001  (declares them in this order)
from decal_cli.sequential.forecaster import ONLINE, Forecaster, OnlineMethod, OnlineSpec
from decal_cli.sequential.inside import forecaster_of

parse = ONLINE.parse

__all__ = ["ONLINE", "Forecaster", "OnlineMethod", "OnlineSpec", "forecaster_of", "parse"]
