"""What clusters do to intervals: how many there are, and how much less rows say than if they were independent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from decal_cli.declarations.document import Above, Positive, Size
from decal_cli.metrics.families.classes import row_brier
from decal_cli.numbers import plain
from decal_cli.tables.clusters import FEW_CLUSTERS, MIN_CLUSTERS, Clustered, design_effect
from decal_cli.tables.rows import Rows


@dataclass(frozen=True)
class Clusters:
    """The clusters of some rows. effective: as many of one size say as much.

    design_effect: variance of the Brier score with clusters over that of independent rows.
    """

    count: Positive
    effective: Above
    design_effect: Size


def clusters_of(rows: Rows) -> Clusters | None:
    """None where every row stands by itself."""
    t = rows.class_table.top if rows.classes else rows.table
    design = t.design
    if not isinstance(design, Clustered):
        return None
    if rows.unit is not None and rows.classes:
        effect = design_effect(row_brier(rows.class_table), rows.weight, rows.unit)
    else:
        effect = design.effect_on(np.stack((t.score**2, (1 - t.score) ** 2)))
    return Clusters(design.clusters, design.effective_clusters, effect)


def cluster_notes(models: Mapping[str, tuple[int, Clusters | None]]) -> Iterator[str]:
    """Of each model, by name with its rows and clusters, what these do to intervals, in words."""
    for name, (rows, clusters) in models.items():
        where = f"{name}: " if len(models) > 1 else ""
        if clusters is None:
            yield f"{where}every cluster has one row, so that rows are independent"
            continue
        times = math.sqrt(clusters.design_effect)
        compared = f"{times:.1f} times wider than" if times >= 1 else f"{1 / max(times, 1e-3):.1f} times narrower than"
        compared = "about as wide as" if f"{times:.1f}" == "1.0" else compared
        yield (
            f"{where}{rows:,} rows in {clusters.count:,} clusters: the interval of the Brier score is "
            f"{compared} if rows were independent (design effect {plain(clusters.design_effect)})"
        )
        yield from _few(where, clusters)


def _few(where: str, clusters: Clusters) -> Iterator[str]:
    alike = clusters.effective > 0.95 * clusters.count
    how_many = f"{clusters.count:,} clusters" + (
        "" if alike else f", which say as much as {clusters.effective:.1f} alike"
    )
    if clusters.effective < MIN_CLUSTERS:
        yield f"{where}no intervals: they need {MIN_CLUSTERS} clusters of about one size, and there are {how_many}"
    elif clusters.effective < FEW_CLUSTERS:
        yield f"{where}intervals use t quantiles and are rough: there are only {how_many}"
