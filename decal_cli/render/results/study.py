"""What `decal study` returns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np

from decal_cli.analysis.study.columns import columns_of
from decal_cli.analysis.study.policies import Policies
from decal_cli.analysis.study.summary import Relation, Summary
from decal_cli.render.blocks import Block, Heading, Notes, Picture, Source
from decal_cli.render.results.source import pair
from decal_cli.render.results.study_tables import study_lines, study_tables
from decal_cli.render.schema import Ends, Limit, Positive
from decal_cli.version import SCHEMA, __version__


class RelationData(TypedDict):
    """How an estimate predicts a gain."""

    estimate: str
    target: str
    r2: float | None
    interval: Ends | None
    slope: float | None
    mean_error: float | None


class PolicyData(TypedDict):
    """A way of choosing. right: share of points at which it lost at most .002; chosen: share at which each action was
    taken.
    """

    name: str
    loss: float | None
    error: float | None
    interval: Ends | None
    right: float | None
    chosen: dict[str, float]


class PoliciesData(TypedDict):
    """All ways of choosing at one multiple of the costs."""

    multiple: float
    policies: Annotated[list[PolicyData], Limit(minItems=1)]
    share: float | None
    right: float | None


class StudyData(TypedDict):
    """How estimates predict the gains of methods on rows that took no part, what following the advice loses, processor
    time of fits. Utilities are over u_delta; in relations_in_utility, u_delta is 1/t*. tasks: by name, where a study is
    over these and not over thresholds.
    """

    files: Annotated[list[str], Limit(minItems=1)]
    scores: Annotated[list[Annotated[list[str], Limit(minItems=2, maxItems=2)]], Limit(minItems=1)]
    thresholds: list[float]
    tasks: NotRequired[list[str]]
    seeds: Annotated[list[int], Limit(minItems=1)]
    points: Positive
    relations: list[RelationData]
    relations_in_utility: list[RelationData]
    policies: list[PoliciesData]
    seconds: dict[str, float]
    reasons: dict[str, str]
    notes: list[str]


class StudiedData(TypedDict):
    """What `decal study` prints and keeps as summary.json."""

    schema: Literal[1]
    decal: str
    study: StudyData


class Studied:
    """A study, for formats to write; captions: of the pictures that lie beside its page, by file name."""

    title = "Do the estimates predict the gains?"

    def __init__(self, summary: Summary, captions: Mapping[str, str] | None = None) -> None:
        self.summary = summary
        self.captions = captions

    def blocks(self) -> Iterator[Block]:
        """What was studied and the tables; the saved page also has pictures and lists what was skipped."""
        yield Source(tuple(study_lines(self.summary)))
        yield from study_tables(self.summary)
        if self.captions is None:
            return
        for file, caption in self.captions.items():
            yield Picture(caption, file=file)
        if self.summary.notes:
            yield Heading("What was dropped", level=1)
            yield Notes(self.summary.notes)

    def data(self) -> StudiedData:
        """StudiedData."""
        summary, points = self.summary, self.summary.points
        document: StudiedData = {
            "schema": SCHEMA,
            "decal": __version__,
            "study": {
                "files": list(points.files),
                "scores": [list(pair) for pair in points.pairs],
                "thresholds": np.unique(points.threshold[np.isfinite(points.threshold)]).tolist(),
                "seeds": np.unique(points.seed).tolist(),
                "points": len(points.threshold),
                "relations": [_relation(relation) for relation in summary.relations.values()],
                "relations_in_utility": [_relation(relation) for relation in summary.in_utility.values()],
                "policies": [_policies(policies) for policies in summary.policies],
                "seconds": dict(summary.seconds),
                "reasons": dict(summary.reasons),
                "notes": list(summary.notes),
            },
        }
        if points.task is not None:
            document["study"]["tasks"] = list(dict.fromkeys(points.task.tolist()))
        return document

    def rows(self) -> Iterator[list[Any]]:
        """All points, a row each."""
        columns = columns_of(self.summary.points)
        yield list(columns)
        yield from map(list, zip(*(values.tolist() for values in columns.values()), strict=True))


def _relation(relation: Relation) -> RelationData:
    return {
        "estimate": relation.estimate,
        "target": relation.target,
        "r2": _finite(relation.r2),
        "interval": pair(relation.interval),
        "slope": _finite(relation.slope),
        "mean_error": _finite(relation.mean_error),
    }


def _policies(policies: Policies) -> PoliciesData:
    return {
        "multiple": policies.multiple,
        "policies": [
            {
                "name": policy.name,
                "loss": _finite(policy.loss),
                "error": _finite(policy.error),
                "interval": pair(policy.interval),
                "right": _finite(policy.right),
                "chosen": dict(policy.chosen),
            }
            for policy in policies.policies
        ],
        "share": _finite(policies.share),
        "right": _finite(policies.right),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
