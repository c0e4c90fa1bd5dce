"""What a verb was asked, as its answer keeps it: the data, the plan, and the library of frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from decal_cli.analysis.evaluate import Plan
from decal_cli.api.frames import Library, library_of
from decal_cli.api.inputs import dataset_of, plan_of, task_given
from decal_cli.data import Dataset


@dataclass(frozen=True, eq=False)
class Question:
    """What an answer answers: the data and the plan, and the library that its frames are of."""

    data: Dataset
    plan: Plan
    library: Library


def asked_question(asked: Mapping[str, Any]) -> Question:
    """The data set of a verb's arguments and its plan, which names no metric yet."""
    plan = plan_of(asked, (), task_given(asked))
    counts = not asked.get("methods") and asked.get("vary") is None
    data = dataset_of(asked, plan.edges if counts else None, bool(asked.get("pairs")))
    return Question(data, plan, library_of(asked["data"]))
