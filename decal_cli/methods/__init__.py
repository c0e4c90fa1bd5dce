"""Post-training methods: each declared once, all fitted and applied in one way."""

import decal_cli.methods.families  # noqa: F401  (declares them)
from decal_cli.methods.declare import METHODS, Applied, Chosen, Method, Model, Training, named, note_of, parse
from decal_cli.methods.model_file import Saved, from_text, score_rows, to_text
from decal_cli.methods.predictions import added_columns, new_name, training_rows, with_score
from decal_cli.methods.trial import Performance, judge, try_out, won, won_over

__all__ = [
    "METHODS",
    "Applied",
    "Chosen",
    "Method",
    "Model",
    "Performance",
    "Saved",
    "Training",
    "added_columns",
    "from_text",
    "judge",
    "named",
    "new_name",
    "note_of",
    "parse",
    "score_rows",
    "to_text",
    "training_rows",
    "try_out",
    "with_score",
    "won",
    "won_over",
]
