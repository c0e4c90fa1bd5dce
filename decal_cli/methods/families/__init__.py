"""The methods, one file a family and nothing else; importing this package declares them in printed order."""

from decal_cli.methods.families import isotonic, sigmoid, curved, binned, venn_abers, threshold  # noqa: F401, I001
from decal_cli.methods.families import scalings, glar, multicalibration, retrain, blend, probing, several, class_trees  # noqa: F401
