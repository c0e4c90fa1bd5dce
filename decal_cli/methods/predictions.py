"""Between what was read and what methods learn from: a model's predictions as training rows, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.data import Predictions
from decal_cli.methods.declare import Applied, MethodSpec, Training
from decal_cli.task import BinaryTask


def training_rows(model: Predictions, task: BinaryTask | None, seed: int) -> Training:
    """A model's rows as methods take them."""
    rows = model.rows
    return Training(
        rows.score,
        rows.label.astype(np.float64),
        rows.weight,
        rows.cluster,
        groups=rows.groups,
        features=None if rows.features is None else rows.typed,
        task=task,
        seed=seed,
    )


def new_name(score: str, spec: MethodSpec) -> str:
    """What the post-trained score is called: 'p_isotonic' of 'p'."""
    return f"{score}_{spec.name.replace('-', '_')}"


THRESHOLD, DECISION = "threshold_", "decision_"
"""How columns begin that hold each row's threshold and its decision."""


def added_columns(applied: Applied, score: str, name: str) -> dict[str, NDArray[Any]]:
    """What scoring rows adds to them: the new score and the ends of its interval, or the moved threshold and decisions.

    score: the old score's column; name: the new one's. All but scores are named by what they are first, so that 'p_*'
    takes none of them for a score.
    """
    if applied.threshold is not None:
        acts = (applied.score >= applied.threshold).astype(np.uint8)
        return {f"{THRESHOLD}{score}": applied.threshold, f"{DECISION}{score}": acts}
    ends = {f"lower_{name}": applied.lower, f"upper_{name}": applied.upper}
    return {name: applied.score} | {key: values for key, values in ends.items() if values is not None}


def with_score(model: Predictions, applied: Applied, name: str) -> Predictions:
    """The same rows under the new score."""
    return replace(model, name=name, columns=(name,), rows=replace(model.rows, score=applied.score))
