"""Which files and rows a state has counted already, so that no row counts twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.data import Stream
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.tables.table import Floats, Ints

if TYPE_CHECKING:
    from decal_cli.analysis.online.replay import Replay

MAX_LATEST = 1000
"""Rows that are remembered: what comes again begins with them, ends among them, or holds them all."""
MAX_FILES = 1000
"""Files that are remembered."""
MAX_CHANCE = 1e-6
"""Rows that are equal count as the same rows where they would be so by chance less often."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Latest:
    """The latest rows. time: of each, 0 where rows are in order as they stand; digest: of what else each holds."""

    def __init__(self, dtype: Any) -> None:
        self.time: NDArray[Any] = np.empty(0, dtype)
        self.digest: NDArray[np.uint64] = np.empty(0, np.uint64)

    def then(self, time: NDArray[Any], digest: NDArray[np.uint64]) -> None:
        """Take further rows."""
        self.time = np.concatenate((self.time, time[-MAX_LATEST:]))[-MAX_LATEST:]
        self.digest = np.concatenate((self.digest, digest[-MAX_LATEST:]))[-MAX_LATEST:]

    def among(self, time: NDArray[Any], digest: NDArray[np.uint64], rows: int) -> int:
        """How many of the first of these rows were taken before; rows: how many were taken in all.

        The rows are compared with the latest ones at every shift; a shift counts where all rows that overlap are equal.
        """
        n, count = len(self.digest), len(digest)
        if not n or not count:
            return 0
        # The first of these rows is one of the latest; or the oldest of the latest is one of these.
        places = [-at for at in np.flatnonzero(self._equal(time[0], digest[0], self.time, self.digest)).tolist()]
        later = self._equal(self.time[0], self.digest[0], time, digest)
        places += [at for at in np.flatnonzero(later).tolist() if 0 < at <= rows - n]
        most, alike = 0, self._chance(time, digest) if places else 0.0
        for shift in places:
            known = min(n + shift, count)
            mine, theirs = slice(max(-shift, 0), known - shift), slice(max(shift, 0), known)
            same = self._equal(self.time[mine], self.digest[mine], time[theirs], digest[theirs])
            if same.all() and alike ** (1 + np.count_nonzero(np.diff(digest[theirs]))) <= MAX_CHANCE:
                most = max(most, known)
        return most

    @staticmethod
    def _equal(time: Any, digest: Any, other_time: Any, other_digest: Any) -> NDArray[np.bool_]:
        return np.asarray((time == other_time) & (digest == other_digest))

    def _chance(self, time: NDArray[Any], digest: NDArray[np.uint64]) -> float:
        """The chance that two rows of one time are equal, by counting pairs."""
        times = np.unique(np.concatenate((self.time, time)), return_inverse=True)[1]
        digests = np.unique(np.concatenate((self.digest, digest)), return_inverse=True)[1]
        pairs = [_pairs(times), _pairs(times * (int(digests.max()) + 1) + digests)]
        return pairs[1] / pairs[0] if pairs[0] else 0.0

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {"time": self.time.tolist(), "digest": [f"{each:016x}" for each in self.digest.tolist()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Errors: KeyError, TypeError or ValueError, where it is no state."""
        self.time = np.array(state["time"], dtype=self.time.dtype)
        self.digest = np.array([int(each, 16) for each in state["digest"]], dtype=np.uint64)
        if not len(self.time) == len(self.digest) <= MAX_LATEST:
            raise ValueError("a row lacks a time or a digest")


def _pairs(of_row: Ints) -> int:
    """Pairs of rows that have the same number; a row may be in a thousand rows or in millions."""
    counts = np.unique(of_row, return_counts=True)[1].astype(object)
    return int((counts * (counts - 1)).sum())


def digests_of(score: Floats, label: NDArray[np.uint8], *texts: NDArray[Any] | None) -> NDArray[np.uint64]:
    """A hash of what each row holds, shape (T,): two rows that differ have the same one with a chance of 1 in 2^64."""
    from hashlib import blake2b

    digest = _mixed((score + 0.0).view(np.uint64), label.astype(np.uint64))
    for column in texts:
        if column is not None:
            values, place = np.unique(column.astype(str), return_inverse=True)
            each = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") for text in values.tolist()]
            digest = _mixed(digest, np.array(each, dtype=np.uint64)[place])
    return digest


def _mixed(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of pairs of numbers, shape (T,): a change in any bit of either changes about half of its bits."""
    bits = first * _ODD + second
    for shift in (30, 27, 31):
        bits = (bits ^ (bits >> np.uint64(shift))) * _ODD
    return np.asarray(bits ^ (bits >> np.uint64(32)))


def unknown_rows(stream: Stream, replay: Replay, skip: bool, shown: str) -> Stream:
    """The rows of a stream that a replay has not taken. Files that it has are left out, with a note.

    skip: whether rows that it has are left out too. Errors: DecalError, one line, where they are not to be.
    """
    numbers = np.arange(len(stream)) if stream.row_numbers is None else stream.row_numbers
    of_file = np.searchsorted(np.cumsum([each.rows for each in stream.inputs]), numbers, side="right")
    kept = np.ones(len(stream), dtype=bool)
    for number, each in enumerate(stream.inputs):
        if each.sha256 in replay.files:
            kept &= of_file != number
            stream = replace(stream, notes=(*stream.notes, f"{each.path}: was taken before, and is skipped"))
        else:
            replay.files = [*replay.files, each.sha256][-MAX_FILES:]
    stream = stream if kept.all() else stream.only(kept)
    if stream.clock != replay.plan.clock:
        return stream
    rows = slice(stream.labelled)
    time = np.zeros(stream.labelled, dtype=np.int64) if stream.clock == "rows" else stream.time[rows]
    score = np.zeros(len(stream)) if stream.score is None else stream.score.astype(np.float64)
    texts = (each if each is None else each[rows] for each in (stream.group, stream.cluster))
    known = replay.latest.among(time, digests_of(score[rows], stream.label[rows], *texts), replay.rows)
    if not known:
        return stream
    if not skip:
        which = "these" if known == stream.labelled else f"the first {known:,} of these"
        raise DecalError(
            f"{shown}: has {which} {stream.labelled:,} rows already",
            f"leave them out, or {Hint('skip_known')} takes the rest",
        )
    note = f"skipped the first {known:,} of {len(stream):,} rows, which the state has"
    return replace(stream.only(np.arange(len(stream)) >= known), notes=(*stream.notes, note))
