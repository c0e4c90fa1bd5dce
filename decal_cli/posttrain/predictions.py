"""Between what was read and what methods learn from: a model's predictions as training rows, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from decal_cli.posttrain.declare import Applied, Chosen, Training
from decal_cli.read import Predictions
from decal_cli.task import Task


def training_rows(model: Predictions, task: Task | None, seed: int) -> Training:
    """A model's rows as methods take them."""
    groups = np.column_stack(list(model.groups.values())).astype(str) if model.groups else None
    features = None if model.features is None else model.features()
    label = model.label.astype(np.float64)
    return Training(model.score, features, groups, label=label, weight=model.weight, task=task, seed=seed)


def new_name(score: str, chosen: Chosen) -> str:
    """What the post-trained score is called: 'p_isotonic' of 'p'."""
    return f"{score}_{chosen.method.name.replace('-', '_')}"


def with_score(model: Predictions, applied: Applied, name: str) -> Predictions:
    """The same rows under the new score."""
    return replace(model, model=name, score=applied.score)
