"""Post-training methods: each declared once, all fitted and applied in one way."""

import decal_cli.methods.families  # noqa: F401  (declares them)
from decal_cli.methods.declare import (
    METHODS,
    Applied,
    Method,
    MethodSpec,
    Model,
    Training,
    actions_taken,
    fit,
    fit_each,
    methods_for_two,
    missing,
    note_of,
    payoffs,
    unseen_categories,
)
from decal_cli.methods.model_file import Saved, from_text, score_rows, to_text
from decal_cli.methods.predictions import added_columns, new_name, training_rows, with_score
from decal_cli.methods.trial import Performance, Predicting, compared, judge, try_out, won, won_over

named = METHODS.named
parse = METHODS.parse

__all__ = [
    "METHODS",
    "Applied",
    "Method",
    "MethodSpec",
    "Model",
    "Performance",
    "Predicting",
    "Saved",
    "Training",
    "actions_taken",
    "added_columns",
    "compared",
    "fit",
    "fit_each",
    "from_text",
    "judge",
    "methods_for_two",
    "missing",
    "named",
    "new_name",
    "note_of",
    "parse",
    "payoffs",
    "score_rows",
    "to_text",
    "training_rows",
    "try_out",
    "unseen_categories",
    "with_score",
    "won",
    "won_over",
]
