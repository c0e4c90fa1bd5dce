"""What decal takes at most of a file, an option or a model: every limit, declared here once with its reason."""

KIB, MIB = 1 << 10, 1 << 20

MAX_STREAM_BYTES = 1024 * MIB
"""Of a pipe, and of a compressed file that must be read whole: both are held in memory. Other files may be larger."""
MAX_LINE_BYTES = 16 * MIB
"""Of one line of JSON Lines: as objects it takes some twenty times that."""
MAX_HEADER_BYTES = 16 * MIB
"""Of the header of a CSV file, which is held as text."""
MAX_ROW_BYTES = 64 * MIB
"""Of a row of a CSV file: the reader holds a block of that size for each processor."""
MAX_HELD_BYTES = 64 * MIB
"""Of a Parquet file that is held in memory while it is read; of larger ones, a damaged page can claim 2 GiB."""
MAX_LEVELS = 1 << 22
"""Distinct scores (of each group and cluster) that are counted, of an engine or of files; of more, cells."""
MAX_CLUSTER_COUNTS = 1 << 21
"""Counts of rows by cluster, cell and label, each with its sums; of more, the cells are coarser."""
MAX_IN_MEMORY_BYTES = 1024 * MIB
"""Of files of which every row is held; of larger ones rows are counted, where the command can."""
HELD_BYTES_OF_ROW = 20
"""What a row takes whose score and label are held and sorted, however few bytes a compressed file has for it."""
HELD_TIMES_OF_ROW = 6
"""How many times as much a row takes that has costs of its own or probabilities of several classes."""
HELD_SHARE_OF_MEMORY = 0.25
"""Of the memory: of larger files a sample of rows is drawn, where single rows are needed."""
N_SAMPLE_ROWS = 200_000
"""Rows of such a sample: a gain has a standard error of about 0.001 u_delta, and methods are fitted in minutes."""
MAX_CELL_COUNTS = 1 << 23
"""Counts of rows by group, model, cell and label, of some 160 bytes each: 64 groups have so many at most."""
MAX_COUNTED_ROWS = 1 << 50
"""Rows that aggregates count, of one model: sums of them must be whole numbers as floats."""
MAX_SUM_OF_WEIGHTS = 1e100
"""Of one level or cell, and its inverse the least: squares of sums must be floats."""
MAX_EMPTY_CELLS = 1 << 25
"""Cells of JSON Lines that no row fills: each takes 8 bytes where its column is read, and none in the file."""
MAX_DOCUMENT_BYTES = 256 * MIB
"""Of a model file or a baseline: a forest of hundreds of full trees, a report of thousands of groups."""
MAX_SETTINGS_BYTES = MIB
"""Of settings, utilities and priors, which people write by hand."""
MAX_VALUES = 1 << 22
"""Numbers, texts, lists and objects in one document: each takes up to some 250 bytes."""
MAX_DEPTH = 64
"""How deep lists and objects are nested, and parts of a dotted key: decal itself writes about ten."""

MAX_UTILITY = 1e15
"""What a utility, a cost or a bound may be, and its inverse the least u_delta: floats hold 15 digits."""
MIN_THRESHOLD = 1e-30
"""The least that utilities of up to 15 digits give; the odds of much smaller ones are no floats."""
MAX_ACTIONS = 100
"""Rows of a utility: what a decision is worth is computed for each."""
MAX_THRESHOLDS = 1000
"""Thresholds of a sweep or a study: each is a row of the table."""
MIN_PREVALENCE = 1e-6
"""How near a share of labels 1 may come to 0 and 1: sums of weights that differ by more lose digits."""
MIN_RISK = 1e-6
"""How near a confidence level may come to 0 and 1: resamples cannot tell more."""
MAX_SEED = 2**32 - 1
"""The largest seed that scikit-learn takes."""
MIN_SHARE_OF_MEAN = 1e-9
"""Of the mean weight, the least that a weight may be: sums are held to this."""

MAX_STREAM_GROUPS = 1000
"""Groups over time: each has forecasters of its own, which a state holds."""

MAX_ROWS_OVER_TIME = 10**12
"""Rows over time, and a horizon: sums over more are no longer exact."""
MAX_STREAM_CLUSTERS = 100_000
"""Clusters over time: a state holds what each method won in each of them."""

MAX_WIDTH = 1 << 20
"""Columns that the features of a model may have."""
MAX_ARRAY_BYTES = 256 * MIB
"""Of one array in a model file; texts are held at the width of the longest."""
MAX_TREE_DEPTH = 1000
"""Of a tree: trees grown to their last leaf on real data reach some 60."""
MAX_STEPS = 1 << 16
"""Steps from roots to leaves that a forest may take for one row: 1,000 trees of depth 64."""
MAX_TREES, MAX_PROBES = 1000, 10_000
"""Of a forest, and of a model of probes: more gain nothing, and every row goes through each of them."""
