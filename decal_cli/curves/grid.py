"""The thresholds of a sweep, and a prior over them, as a user writes them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from decal_cli.documents import json_of, read_document
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_SETTINGS_BYTES, MAX_THRESHOLDS, MIN_THRESHOLD
from decal_cli.tables.table import Floats, Ints
from decal_cli.task import stepped

N_PARTS = 256
"""Parts of a beta prior, of about the same mass; each lies at its mean, so linear functions have exact expectations."""
N_WIDTHS = 64
"""Parts of equal width that a beta prior is cut into as well, for where there is little mass."""


@dataclass(frozen=True, eq=False)
class Prior:
    """How often each threshold occurs: at, shape (k,), increasing in (0, 1), and weight, shape (k,), of sum 1."""

    name: str
    at: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class Grid:
    """Where curves are evaluated: the thresholds to show, shape (K,), increasing in (0, 1), and those of a prior."""

    thresholds: Floats
    prior: Prior | None = None

    @cached_property
    def at(self) -> Floats:
        """The thresholds to show and those of the prior, strictly increasing."""
        return self.thresholds if self.prior is None else np.union1d(self.thresholds, self.prior.at)

    def with_thresholds(self, thresholds: Sequence[float]) -> Grid:
        """The grid that shows these thresholds too."""
        return replace(self, thresholds=np.union1d(self.thresholds, thresholds)) if thresholds else self

    @cached_property
    def shown(self) -> Ints:
        """Places in `at` of the thresholds to show."""
        return np.searchsorted(self.at, self.thresholds)

    @cached_property
    def weight(self) -> Floats | None:
        """The prior's weight of each threshold in `at`; None without a prior."""
        if self.prior is None:
            return None
        weight = np.zeros(len(self.at))
        weight[np.searchsorted(self.at, self.prior.at)] = self.prior.weight
        return weight


def parse_thresholds(text: str) -> Floats:
    """'0.05:0.95:0.05' (start, end, step, the end included) or '0.1,0.3,0.5'; shape (K,), increasing in (0, 1)."""
    fix = "give start:end:step, such as 0.05:0.95:0.05, or a list, such as 0.1,0.3,0.5"
    try:
        if ":" in text:
            start, end, step = (float(part) for part in text.split(":"))
            values = np.array(stepped(start, end, step))
        else:
            values = np.unique([float(part) for part in text.split(",")])
    except ValueError:
        raise DecalError(f"thresholds {text!r} do not parse", fix) from None
    if len(values) > MAX_THRESHOLDS:
        raise DecalError(f"thresholds {text!r} are more than {MAX_THRESHOLDS}", "take a larger step")
    return _inside(values, f"thresholds {text!r}", fix)


def parse_prior(text: str) -> Prior:
    """'beta:2,8', or the path of a CSV or JSON file of thresholds and weights."""
    if text.startswith("beta:"):
        return _beta(text)
    path = Path(text)
    fix = "give beta:A,B, or a CSV or JSON file with pairs of threshold and weight"
    if path.suffix.lower() not in (".csv", ".json"):
        raise DecalError(f"prior {text!r} is neither beta:A,B nor a .csv or .json file", fix)
    place = f"prior file {text}"
    content = read_document(text, place, fix, MAX_SETTINGS_BYTES)
    document = json_of(content, place, fix) if path.suffix.lower() == ".json" else None
    try:
        pairs = _csv_pairs(content) if document is None else _json_pairs(document)
        at, weight = np.array([(float(t), float(w)) for t, w in pairs]).T
    except (TypeError, ValueError, KeyError, OverflowError, csv.Error):
        raise DecalError(f"{place} does not hold pairs of threshold and weight", fix) from None
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0):
        raise DecalError(f"prior file {text}: weights must be 0 or more, and one above 0", fix)
    _inside(at, f"prior file {text}: thresholds", fix)
    return _prior(path.name, at, weight)


def _inside(values: Floats, what: str, fix: str) -> Floats:
    outside = values[~((values > 0) & (values < 1))]
    if len(outside):
        raise DecalError(f"{what} must lie inside (0, 1), and {outside[0]:g} does not", fix)
    if values.min() < MIN_THRESHOLD:
        raise DecalError(f"{what} must be {MIN_THRESHOLD:g} or more, and {values.min():g} is less", fix)
    return values


def _prior(name: str, at: Floats, weight: Floats) -> Prior:
    unique, number = np.unique(at, return_inverse=True)
    return Prior(name, unique, np.bincount(number, weight) / weight.sum())


def _csv_pairs(content: str) -> list[list[str]]:
    rows = [row for row in csv.reader(content.splitlines()) if row]
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    if header == ["threshold", "weight"]:
        rows = rows[1:]
    elif header == ["weight", "threshold"]:
        rows = [row[::-1] for row in rows[1:]]
    return rows


def _json_pairs(document: Any) -> Any:
    if isinstance(document, dict):
        if set(document) == {"threshold", "weight"}:
            return list(zip(document["threshold"], document["weight"], strict=True))
        return document.items()
    return [(row["threshold"], row["weight"]) if isinstance(row, dict) else row for row in document]


def _beta(text: str) -> Prior:
    try:
        a, b = (float(part) for part in text.removeprefix("beta:").split(","))
    except ValueError:
        a = b = -1.0
    if not (0 < a < 1e6 and 0 < b < 1e6):
        raise DecalError(f"prior {text!r} does not parse", "give two positive numbers, such as beta:2,8")
    from scipy.special import betainc, betaincinv

    # Wherever the edges are, and however they are rounded, the masses and means of the parts between them are exact.
    of_equal_mass = betaincinv(a, b, np.arange(1, N_PARTS) / N_PARTS)
    edge = np.unique(np.clip([*of_equal_mass, *np.linspace(0, 1, N_WIDTHS + 1)], 0.0, 1.0))
    mass = np.diff(betainc(a, b, edge))
    first_moment = a / (a + b) * np.diff(betainc(a + 1, b, edge))
    some = mass > 0
    mean = np.clip(first_moment[some] / mass[some], edge[:-1][some], edge[1:][some])
    return _prior(text, np.clip(mean, 1e-12, 1 - 1e-12), mass[some])
