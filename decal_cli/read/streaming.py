"""The same checks with little memory: batches of scores and labels, for callers that only count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from decal_cli.errors import DecalError
from decal_cli.read.check import Part, Rows, checked_scores, floats
from decal_cli.read.csvfile import no_rows
from decal_cli.read.dataset import chosen_columns, dataset, unique_stdin
from decal_cli.read.labels import MISSING_LABEL, NATURAL, Labels
from decal_cli.read.sources import Source, open_source
from decal_cli.read.words import oops
from decal_cli.settings import Columns


def stream(
    paths: Sequence[str], columns: Columns, stdin: BinaryIO | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches (score float64 (n,) in [0, 1], label uint8 (n,)) of one unweighted model; views, valid until the next.

    Parquet, Arrow and CSV files are never held whole. Errors: those of `read`, at the latest after the last batch;
    several scores or weights, which take the whole data set.
    """
    sources = [open_source(path, stdin) for path in unique_stdin(paths)]
    chosen = chosen_columns(sources, columns)
    if len(chosen.score) > 1 or chosen.weight is not None:
        raise oops("several models or weights cannot be streamed", "name one score and no weight")
    try:
        yield from _batches(sources, chosen.score[0], Labels(chosen.label, columns.positive), columns)
    except DecalError:
        # A batch does not know its place; reading everything words the fault as it does elsewhere.
        dataset(sources, columns)
        raise


def _batches(
    sources: Sequence[Source], name: str, labels: Labels, columns: Columns
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    left = 0
    for source in sources:
        count = 0
        for batch in source.batches((name,), (labels.name,)):
            if not batch.num_rows:
                continue
            count += batch.num_rows
            part = Part(source, batch, 0)
            codes = [labels.codes(part, chunk) for _, chunk in part.chunks(labels.name)]
            label = _meaning(labels)[codes[0] if len(codes) == 1 else np.concatenate(codes)]
            score, missing = checked_scores(floats([part], name), name, Rows([part]), columns)
            if int(label.max()) == MISSING_LABEL:
                if columns.missing == "error":
                    raise oops(f"{source.shown}: label missing")
                missing = label == MISSING_LABEL if missing is None else missing | (label == MISSING_LABEL)
            if missing is not None:
                score, label = score[~missing], label[~missing]
            left += len(score)
            if len(score):
                yield score, label
        if not count:
            raise no_rows(source.shown)
    if not left:
        raise oops(f"{sources[0].shown}: no row is left")
    if labels.positive is not None and not labels.seen <= NATURAL.keys() and labels.positive not in labels.seen:
        raise oops(f"{sources[0].shown}: label is never {labels.positive}")


def _meaning(labels: Labels) -> np.ndarray:
    """uint8 (256,): code -> label as far as the values seen so far settle it; the rest of the check is at the end."""
    natural = labels.seen <= NATURAL.keys()
    if not natural and (labels.positive is None or len(labels.seen) > 2):
        raise oops(f"column {labels.name}: labels are not 0 or 1")
    meaning = np.full(256, MISSING_LABEL, dtype=np.uint8)
    one = labels.positive or "1"
    for text in labels.seen:
        alike = text in NATURAL and one in NATURAL and NATURAL[text] == NATURAL[one]
        meaning[labels.values[text]] = text == one or alike
    return meaning
