"""Files larger than memory: read in batches of rows, checked as all files are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from decal_cli.data.check import checked_scores, checked_weights
from decal_cli.data.columns import Chosen
from decal_cli.data.formats.files import no_rows
from decal_cli.data.formats.sources import FileSource
from decal_cli.data.labels import MISSING_LABEL, Labels
from decal_cli.data.parts import Origin, Part, floats
from decal_cli.data.texts import Texts
from decal_cli.data.words import quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import Columns

Progress = Callable[[int, int | None], None]
"""Takes how many rows are read, and how many there are, where that is known."""


def memory() -> int:
    """Bytes that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def rows_in(sources: Sequence[FileSource]) -> int | None:
    """All rows, where every format says so."""
    counts = [getattr(source, "count", None) for source in sources]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


class BatchReader:
    """Batches of files, checked; it knows which labels it has seen."""

    def __init__(self, chosen: Chosen, columns: Columns) -> None:
        self.chosen = chosen
        self.columns = columns
        self.labels = Labels(chosen.label, columns.positive)

    @property
    def schema(self) -> Any:
        """The columns of a batch: scores and weights as numbers, labels as 0 and 1, all others as texts."""
        import pyarrow as pa

        texts = dict.fromkeys((*self.chosen.group, *self.chosen.names("cluster")), pa.string())
        numbers = dict.fromkeys((*self.chosen.score, *self.chosen.names("weight")), pa.float64())
        return pa.schema([*numbers.items(), (self.chosen.label, pa.int8()), *texts.items()])

    def batches(self, source: FileSource) -> Iterator[Any]:
        """The rows of one file as batches of pyarrow. Errors: DecalError, with the first value that is wrong."""
        start = 0
        for table in source.batches(self.chosen.numbers, self.chosen.texts):
            if table.num_rows:
                yield self.checked(Part(source, table, 0, start))
                start += table.num_rows
        if not start:
            raise no_rows(source.shown)

    def checked(self, part: Part) -> Any:
        """The rows of a part of a file as a batch. Errors: DecalError."""
        import pyarrow as pa

        origin, chosen = Origin([part]), self.chosen
        columns = {}
        for name in chosen.score:
            columns[name], _ = checked_scores(floats([part], name), name, origin, self.columns)
        if chosen.weight is not None:
            columns[chosen.weight] = floats([part], chosen.weight)
            checked_weights(columns[chosen.weight], chosen.weight, origin, self.columns)
        label = self._label(part)
        arrays = {name: pa.array(values, pa.float64()) for name, values in columns.items()}
        arrays[chosen.label] = pa.array(label.view(np.int8), mask=label == MISSING_LABEL)
        for name in self.schema.names[len(arrays) :]:
            arrays[name] = texts = _texts(part, name)
            if name == chosen.cluster and texts.null_count:
                origin.lacking(texts.is_null().to_numpy(zero_copy_only=False), name, "cluster", self.columns)
        return pa.record_batch(arrays, schema=self.schema)

    def _label(self, part: Part) -> np.ndarray:
        labels, origin = self.labels, Origin([part])
        code = labels.codes(origin)
        if not labels.natural and (labels.positive is None or len(labels.seen) > 2):
            labels.meaning(code, origin)  # which raises
        if int(code.max()) == MISSING_LABEL:
            origin.lacking(code == MISSING_LABEL, labels.name, "label", self.columns)
        return labels.table()[code]

    def check_all(self, sources: Sequence[FileSource]) -> None:
        """What only all labels tell. Errors: DecalError."""
        if not self.labels.has_positive:
            raise DecalError(
                f"{sources[0].shown}, column {quote(self.labels.name)}: label is never {quote(self.labels.positive)}",
                f"correct {Hint('positive')}",
            )


def _texts(part: Part, name: str) -> Any:
    """A column as texts, the same ones from every format."""
    import pyarrow as pa

    texts = Texts([Part(part.source, part.table, 0)], name)
    codes = pa.array(texts.codes, mask=texts.codes < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(texts.values, pa.string())).cast(pa.string())
