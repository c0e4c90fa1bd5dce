"""What may be chosen of: the values of an option, and names for completion."""

from __future__ import annotations

import os

MISSING = ("error", "drop")
"""What to do with missing scores of new rows."""
DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "spark")
"""Whose SQL a statement is in."""
PICTURES = (
    *("brier", "decision", "roc", "reliability", "grouping", "waterfall", "utility", "actions", "risk-coverage"),
    "all",
)
"""What is drawn of a sweep."""


def column_names(incomplete: str) -> list[str]:
    """Columns of the first file on the line that begin so."""
    from decal_cli.data import columns_in
    from decal_cli.errors import DecalError

    # The line as the shell hands it over: an option without its value yet keeps Typer from parsing it.
    words = (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()
    path = next((word.strip("'\"") for word in words[1:] if os.path.isfile(word.strip("'\""))), None)
    try:
        return [] if path is None else [name for name in columns_in(path) if name.startswith(incomplete)]
    except (DecalError, OSError):
        return []


def metric_names(incomplete: str) -> list[str]:
    """Metrics that begin so."""
    from decal_cli.metrics import METRICS

    return [name for name in METRICS if name.startswith(incomplete)]


def pack_names(incomplete: str) -> list[str]:
    """Packs that begin so."""
    from decal_cli.analysis.packs import PACKS

    return [name for name in PACKS if name.startswith(incomplete)]


def rule_names(incomplete: str) -> list[str]:
    """What rules may begin with: metrics, and what is counted."""
    from decal_cli.analysis.gate import COUNTED

    return metric_names(incomplete) + [name for name in COUNTED if name.startswith(incomplete)]


def method_names(incomplete: str) -> list[str]:
    """Methods that begin so."""
    from decal_cli.learn.methods import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def online_names(incomplete: str) -> list[str]:
    """Forecasters over time that begin so."""
    from decal_cli.sequential import ONLINE

    return [name for name in ONLINE if name.startswith(incomplete)]


def every_method_name(incomplete: str) -> list[str]:
    """Methods and forecasters over time that begin so."""
    return method_names(incomplete) + online_names(incomplete)


def method_names_or_auto(incomplete: str) -> list[str]:
    """The same, and 'auto'."""
    return [name for name in ("auto",) if name.startswith(incomplete)] + method_names(incomplete)
