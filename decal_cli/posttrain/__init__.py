"""Post-training methods: each declared once, all fitted and applied in one way."""

from decal_cli.posttrain import isotonic, sigmoid, binned, venn_abers, threshold  # noqa: F401, I001  (importing declares methods; in printed order)
from decal_cli.posttrain import glar, multicalibration, retrain, blend, probing  # noqa: F401  (these need more than the score)
from decal_cli.posttrain.declare import METHODS, Applied, Chosen, Inputs, Method, Model, Training, named, note_of, parse
from decal_cli.posttrain.model_file import Saved, from_text, score_rows, to_text
from decal_cli.posttrain.predictions import added_columns, new_name, training_rows, with_score
from decal_cli.posttrain.trial import Trial, judge, try_out, won, won_over

__all__ = [
    "METHODS",
    "Applied",
    "Chosen",
    "Inputs",
    "Method",
    "Model",
    "Saved",
    "Training",
    "Trial",
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
