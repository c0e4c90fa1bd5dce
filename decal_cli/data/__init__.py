"""Files, streams and arrays to checked rows: finds the columns and checks every value once.

The only room that knows paths, file formats, column names and pyarrow.
"""

from decal_cli.data.arrays import from_arrays
from decal_cli.data.dataset import Dataset, Input, Predictions
from decal_cli.data.newrows import Batch, NewRows
from decal_cli.data.pairing import Paired, on_same_rows, pair_up, read_pair, with_ids
from decal_cli.data.reading import read
from decal_cli.data.sources import columns_in
from decal_cli.data.writing import Writer, as_file, format_of
from decal_cli.roles import Columns

__all__ = [
    "Batch",
    "Columns",
    "Dataset",
    "Input",
    "NewRows",
    "Paired",
    "Predictions",
    "Writer",
    "as_file",
    "columns_in",
    "format_of",
    "from_arrays",
    "on_same_rows",
    "pair_up",
    "read",
    "read_pair",
    "with_ids",
]
