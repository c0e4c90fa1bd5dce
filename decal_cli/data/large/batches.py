"""Files larger than memory: read in batches of rows, checked as all files are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from decal_cli.data.check import (
    MISSING_LABEL,
    Labels,
    amounts_of,
    checked_scores,
    checked_weights,
    holds_texts,
    labels_of,
    may_be_text,
    percentages_note,
    read_texts,
    scores_of,
)
from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import InputCounts
from decal_cli.data.formats.files import Source, Wanted, no_rows
from decal_cli.data.parts import Origin, Part, Texts, floats, is_text

Progress = Callable[[int, int | None], None]
"""Takes how many rows are read, and how many there are, where that is known."""


def rows_in(sources: Sequence[Source]) -> int | None:
    """How many rows all files have; None where a format does not say."""
    known = [source.count for source in sources if source.count is not None]
    return sum(known) if len(known) == len(sources) else None


class BatchReader:
    """Batches of files, checked; it knows which labels it has seen.

    read_inputs: what every file holds, once all were read. notes: on how scores were read then. progress: is told how
    far it is. as_texts: the scores that are texts, such as percentages.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        chosen: Chosen,
        progress: Progress = lambda rows, total: None,
    ) -> None:
        self.sources, self.chosen = sources, chosen
        self.progress, self.total = progress, rows_in(sources)
        self.labels = Labels(chosen.label, chosen.positive)
        self.read_inputs: list[InputCounts] = []
        self.notes: tuple[str, ...] = ()
        scores = chosen.score if may_be_text(chosen) else ()
        self.as_texts = {name for name in scores if any(holds_texts(source, name) for source in sources)}
        self._percentages = Counter[str]()

    @property
    def schema(self) -> Any:
        """The columns of a batch: scores and weights as numbers, labels as 0 and 1, all others as texts.

        Of several classes every label is 0, and probabilities are only checked.
        """
        import pyarrow as pa

        texts = dict.fromkeys((*self.chosen.group, *self.chosen.names("cluster")), pa.string())
        numbers = dict.fromkeys((*self.chosen.score, *self.chosen.names("weight")), pa.float64())
        return pa.schema([*numbers.items(), (self.chosen.label, pa.int8()), *texts.items()])

    def read(self, wanted: Wanted | None = None) -> Iterator[tuple[int, Any, Any]]:
        """All rows in batches: the number of the file, the rows as they stand there, and checked as the schema says.

        wanted: by default what is checked. Errors: DecalError, with the first value that is wrong.
        """
        import pyarrow.compute as pc

        read: list[InputCounts] = []
        before = 0
        wanted = {**(wanted or self.chosen.read), **dict.fromkeys(self.as_texts, "typed")}
        self._percentages.clear()
        for number, source in enumerate(self.sources):
            rows = ones = unlabelled = 0
            for table in source.batches(wanted):
                if not table.num_rows:
                    continue
                batch = self._checked(Part(source, table, 0, rows))
                yield number, table, batch
                rows += table.num_rows
                ones += pc.sum(batch.column(self.chosen.label)).as_py() or 0
                unlabelled += batch.column(self.chosen.label).null_count
                self.progress(before + rows, self.total)
            if not rows:
                raise no_rows(source.shown)
            before += rows
            read.append((rows, None if self.chosen.models else ones, unlabelled))
        self.labels.need_positive(self.sources[0].shown)
        self.read_inputs = read
        self.notes = tuple(percentages_note(name, count, before) for name, count in (+self._percentages).items())

    def _checked(self, part: Part) -> Any:
        """The rows of a part of a file as a batch. Errors: DecalError."""
        import pyarrow as pa

        origin, chosen = Origin([part]), self.chosen
        columns = {}
        for name in chosen.score:
            if name in self.as_texts and is_text(part.type_of(name)):
                values, percentages = read_texts(origin, name)
                self._percentages[name] += percentages
            else:
                values = floats([part], name)
            columns[name] = checked_scores(values, name, origin, chosen)
        if chosen.weight:
            columns[chosen.weight] = floats([part], chosen.weight)
            checked_weights(columns[chosen.weight], chosen.weight, origin, chosen)
        arrays = {name: pa.array(values, pa.float64()) for name, values in columns.items()}
        amounts_of(origin, chosen)
        for model in chosen.models:
            scores_of(origin, model, chosen)
        if chosen.models:
            absent = labels_of(origin, chosen.label, chosen, chosen.models[0].classes) < 0
            label = np.where(absent, MISSING_LABEL, 0).astype(np.uint8)
        else:
            label = self.labels.read(origin)
        origin.lacking(label == MISSING_LABEL, chosen.label, "label", chosen)
        arrays[chosen.label] = pa.array(label.view(np.int8), mask=label == MISSING_LABEL)
        for name in self.schema.names[len(arrays) :]:
            # As texts, the same ones from every format.
            texts = Texts([part], name)
            missing = texts.codes < 0
            codes = pa.array(texts.codes, mask=missing)
            arrays[name] = pa.DictionaryArray.from_arrays(codes, pa.array(texts.values, pa.string())).cast(pa.string())
            if name == chosen.cluster:
                origin.lacking(missing, name, "cluster", chosen)
        return pa.record_batch(arrays, schema=self.schema)
