"""Post-training methods: each declared once, all fitted and applied in one way."""

from decal_cli.posttrain import isotonic  # noqa: F401  (importing a room of methods declares them)
from decal_cli.posttrain.declare import METHODS, Applied, Chosen, Inputs, Method, Model, Training, named, parse

__all__ = ["METHODS", "Applied", "Chosen", "Inputs", "Method", "Model", "Training", "named", "parse"]
