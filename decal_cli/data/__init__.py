"""Files, streams and arrays to checked rows: finds the columns and checks every value once.

The only room that knows paths, file formats, column names and pyarrow.
"""

from decal_cli.data.arrays import from_arrays
from decal_cli.data.columns import in_lists
from decal_cli.data.dataset import Dataset, Input, Predictions
from decal_cli.data.formats.sources import columns_in
from decal_cli.data.newrows import Batch, NewRows
from decal_cli.data.output import Writer, as_file, as_parquet, format_of
from decal_cli.data.pairing import Paired, join_files, on_same_rows, pair_up
from decal_cli.data.reading import Counting, read
from decal_cli.data.stream import Stream, read_stream, read_times
from decal_cli.data.times import Clock, shown_time
from decal_cli.roles import Columns

__all__ = [
    "Batch",
    "Clock",
    "Columns",
    "Counting",
    "Dataset",
    "Input",
    "NewRows",
    "Paired",
    "Predictions",
    "Stream",
    "Writer",
    "as_file",
    "as_parquet",
    "columns_in",
    "format_of",
    "from_arrays",
    "in_lists",
    "join_files",
    "on_same_rows",
    "pair_up",
    "read",
    "read_stream",
    "read_times",
    "shown_time",
]
