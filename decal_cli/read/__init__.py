"""Files, streams and arrays -> Predictions: columns picked, values checked, once and for all.

The only room that knows paths, file formats, column names and pyarrow.
"""

from decal_cli.read.dataset import Dataset, Input, Predictions, read
from decal_cli.settings import Columns

__all__ = ["Columns", "Dataset", "Input", "Predictions", "read"]
