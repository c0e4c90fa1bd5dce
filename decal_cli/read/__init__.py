"""Files, streams and arrays -> Predictions: columns picked, values checked, once and for all.

The only room that knows paths, file formats, column names and pyarrow.
"""

from decal_cli.read.arrays import from_arrays
from decal_cli.read.dataset import Dataset, Input, Predictions
from decal_cli.read.reading import read
from decal_cli.settings import Columns

__all__ = ["Columns", "Dataset", "Input", "Predictions", "from_arrays", "read"]
