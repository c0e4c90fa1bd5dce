"""Forecasters that learn while they predict, and statistics that may be looked at after every row."""

from decal_cli.sequential.forecasters import ONLINE, Forecaster, OnlineMethod, OnlineSpec, forecaster_of

parse = ONLINE.parse

__all__ = ["ONLINE", "Forecaster", "OnlineMethod", "OnlineSpec", "forecaster_of", "parse"]
