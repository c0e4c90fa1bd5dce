"""What decal takes at most of a file, an option or a model: every limit, declared here once with its reason."""

KIB, MIB = 1 << 10, 1 << 20

MAX_STREAM_BYTES = 1024 * MIB
"""Most bytes of a pipe, and of a decompressed file that is held in memory. Other files may be larger."""
MAX_LINE_BYTES = 16 * MIB
"""Most bytes of one line of JSON Lines: parsed into objects, a line takes some twenty times that."""
MAX_HEADER_BYTES = 16 * MIB
"""Most bytes of the header of a CSV file, which is held as text."""
MAX_ROW_BYTES = 64 * MIB
"""Most bytes of a row of a CSV file: the reader holds a block of that size for each processor."""
MAX_HELD_BYTES = 64 * MIB
"""Most bytes of a Parquet file that is held while it is read; in a larger one, a damaged page can claim 2 GiB."""
MAX_LEVELS = 1 << 22
"""Most distinct scores (in each group and cluster) that are counted one by one; where there are more, cells are."""
MAX_CLUSTER_COUNTS = 1 << 21
"""Most counts of rows by cluster, cell and label, each with its sums; where there would be more, cells are coarser."""
MAX_IN_MEMORY_BYTES = 1024 * MIB
"""Most bytes of files whose every row is held; the rows of larger files are counted, where the command can."""
HELD_BYTES_OF_ROW = 20
"""Bytes that a row takes once its score and label are held and sorted; a compressed file may have fewer for it."""
HELD_TIMES_OF_ROW = 6
"""How many times as much memory a row takes if it has costs of its own or probabilities of several classes."""
HELD_SHARE_OF_MEMORY = 0.25
"""Share of the memory that files may take; from larger ones a sample is drawn, where single rows are needed."""
N_SAMPLE_ROWS = 200_000
"""Rows in a sample of a large file: a gain has a standard error of about 0.001 u_delta, and fits take minutes."""
MAX_CELL_COUNTS = 1 << 23
"""Most counts of rows by group, model, cell and label, of some 160 bytes each: 64 groups need no more."""
MAX_COUNTED_ROWS = 1 << 50
"""Most rows that aggregates count for one model: their sums must be whole numbers as floats."""
MAX_SUM_OF_WEIGHTS = 1e100
"""Largest sum of weights in a level or cell, and its inverse the smallest: squares of sums must be floats."""
MAX_EMPTY_CELLS = 1 << 25
"""Most empty cells of JSON Lines: each takes 8 bytes where its column is read, and none in the file."""
MAX_DOCUMENT_BYTES = 256 * MIB
"""Most bytes of a model file or a baseline: a forest of hundreds of full trees, a report of thousands of groups."""
MAX_SETTINGS_BYTES = MIB
"""Most bytes of a file of settings, utilities or priors, which people write by hand."""
MAX_VALUES = 1 << 22
"""Most numbers, texts, lists and objects in one document: each takes up to some 250 bytes of memory."""
MAX_DEPTH = 64
"""Most levels of nested lists and objects, and most parts of a dotted key: decal itself writes about ten."""

MAX_UTILITY = 1e15
"""Largest utility, cost or bound, and its inverse the smallest u_delta: floats hold 15 digits."""
MIN_THRESHOLD = 1e-30
"""Smallest threshold that utilities of up to 15 digits give; the odds of much smaller ones are no floats."""
MAX_ACTIONS = 100
"""Most actions, the rows of a utility matrix: what a decision is worth is computed for each."""
MAX_THRESHOLDS = 1000
"""Most thresholds of a sweep or a study: each is a row of the table."""
MIN_PREVALENCE = 1e-6
"""How near a share of labels 1 may come to 0 and 1: sums of weights that differ by more lose digits."""
MIN_RISK = 1e-6
"""How near a confidence level may come to 0 and 1: resamples cannot tell more."""
MAX_SEED = 2**32 - 1
"""The largest seed that scikit-learn takes."""
MIN_SHARE_OF_MEAN = 1e-9
"""Smallest weight, as a share of the mean weight: the sums of aggregates are held to the same share."""

MAX_STREAM_GROUPS = 1000
"""Most groups of a stream: each has forecasters of its own, which a state holds."""

MAX_ROWS_OVER_TIME = 10**12
"""Most rows of a stream, and the longest horizon: sums over more are no longer exact."""
MAX_STREAM_CLUSTERS = 100_000
"""Most clusters of a stream: a state holds what each method won in each of them."""

MAX_WIDTH = 1 << 20
"""Most columns that the features of a model may have."""
MAX_ARRAY_BYTES = 256 * MIB
"""Most bytes of one array in a model file; all its texts are held at the width of the longest."""
MAX_TREE_DEPTH = 1000
"""Greatest depth of a tree: trees grown to their last leaf on real data reach some 60."""
MAX_STEPS = 1 << 16
"""Most steps from roots to leaves that a forest takes for one row: 1,000 trees of depth 64."""
MAX_TREES, MAX_PROBES = 1000, 10_000
"""Most trees of a forest, and most probes of a model of probes: more gain nothing, and each costs time at every row."""
