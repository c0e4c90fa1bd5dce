"""Between what was read and what methods learn from: a model's predictions as training rows, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.data import Predictions
from decal_cli.methods.declare import Applied, MethodSpec, Training
from decal_cli.task import ClassDecision, Task


def training_rows(model: Predictions, task: Task | ClassDecision | None, seed: int) -> Training:
    """A model's rows as methods take them."""
    rows = model.rows
    binary = task.two_actions if isinstance(task, Task) else None
    return Training(
        rows.score,
        rows.label if rows.classes else rows.label.astype(np.float64),
        rows.weight,
        rows.cluster,
        groups=rows.groups,
        features=None if rows.features is None else rows.typed,
        classes=rows.classes,
        task=binary,
        decision=task if binary is None else None,
        seed=seed,
        feature_names=model.feature_names,
    )


def new_name(score: str, spec: MethodSpec) -> str:
    """What the post-trained score is called: 'p_isotonic' of 'p'."""
    return f"{score}_{spec.name.replace('-', '_')}"


THRESHOLD, DECISION = "threshold_", "decision_"
"""How columns begin that hold each row's threshold and its decision."""


def added_columns(applied: Applied, score: str, name: str, classes: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """What scoring rows adds to them: the new score and the ends of its interval, or the moved threshold and decisions.

    score: the old score's column; name: the new one's. All but scores are named by what they are first, so that 'p_*'
    takes none of them for a score. classes: where there are several, each has a column 'name:class'.
    """
    if classes:
        return {f"{name}:{each}": applied.score[:, k] for k, each in enumerate(classes)}
    if applied.threshold is not None:
        acts = (applied.score >= applied.threshold).astype(np.uint8)
        return {f"{THRESHOLD}{score}": applied.threshold, f"{DECISION}{score}": acts}
    ends = {f"lower_{name}": applied.lower, f"upper_{name}": applied.upper}
    return {name: applied.score} | {key: values for key, values in ends.items() if values is not None}


def with_score(model: Predictions, applied: Applied, name: str) -> Predictions:
    """The same rows under the new score."""
    return replace(model, name=name, columns=(name,), rows=replace(model.rows, score=applied.score))
