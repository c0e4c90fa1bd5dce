"""Rows held against a reference, such as those a model was trained on: is only the share of labels 1 another one?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from decal_cli.data import Dataset, Input
from decal_cli.declarations.document import Hidden, Limit, Share
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint
from decal_cli.metrics.confidence import Interval, normal
from decal_cli.metrics.label_shift import N_BINS, ReferenceScores, binned, label_shift, psi
from decal_cli.tables.table import Table

MAX_PVALUE = 0.01
"""Up to here, the scores of one label are not those of the reference."""


@dataclass(frozen=True)
class Shift:
    """One model against the reference.

    psi: population stability index on ten bins of the reference. share, reference_share: of labels 1, in these rows and
    in the reference. by_scores: the share that the scores alone tell, with its interval; None, with the reason, where
    they cannot. pvalue: of the scores of each label being those of the reference. alike: whether no more
    than the share of labels 1 differs.
    """

    model: str
    psi: float
    share: Share
    reference_share: Share
    by_scores: Share | None = None
    interval: Interval | None = None
    pvalue: Share | None = None
    alike: bool | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Reference:
    """The reference, its rows by model, and how every model's rows differ from it."""

    inputs: Annotated[tuple[Input, ...], Limit(minItems=1)]
    scores: Hidden[Mapping[str, ReferenceScores]]
    models: Annotated[tuple[Shift, ...], Limit(minItems=1)]


def against(dataset: Dataset, reference: Dataset, confidence: float | None) -> Reference:
    """How the rows of every model differ from those of the same model in the reference."""
    for each in (dataset, reference):
        each.need_two_classes(f"evaluate {Hint('reference').words}")
    if dataset.population is not None:
        raise DecalError(
            f"{Hint('reference')} compares the rows as they are, and {Hint('prevalence')} counts them as others",
            "drop one of them",
        )
    scores = {model.name: ReferenceScores(model.rows.table) for model in reference.models}
    shifts = (_shift(each.name, each.rows.table, scores[each.name].table, confidence) for each in dataset.models)
    return Reference(reference.inputs, scores, tuple(shifts))


def _shift(model: str, rows: Table, reference: Table, confidence: float | None) -> Shift:
    edges = reference.bin_edges(N_BINS)
    seen = binned(rows, edges)
    index = psi(binned(reference, edges), seen)
    try:
        found = label_shift(binned(reference, edges, 0), binned(reference, edges, 1), seen)
    except Undefined as undefined:
        return Shift(model, index, rows.base_rate, reference.base_rate, reason=undefined.reason)
    interval = None if confidence is None else normal(found.prevalence, confidence, 0.0, 1.0)
    share, pvalue = found.prevalence.mean, found.pvalue
    return Shift(model, index, rows.base_rate, reference.base_rate, share, interval, pvalue, pvalue > MAX_PVALUE)
