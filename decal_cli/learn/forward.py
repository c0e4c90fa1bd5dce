"""What fits on earlier rows make of later ones: what methods would have won, had they been fitted as time went by.

Rows are cut by time into blocks of about as many rows. A recalibrator, and with features the method `blend`, are fitted
to all rows up to the end of each block and score every later block. So a row has a score from a fit of every age: from
just before its block, or some blocks earlier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.learn import held_out
from decal_cli.learn.probe import build_recalibrated
from decal_cli.learn.scaling import SCALINGS
from decal_cli.numbers import many
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Ints

BLEND = "blend"
"""The method whose gain the probe predicts."""


@dataclass(frozen=True, eq=False)
class Forward:
    """Labelled rows with their time, and what fits on earlier rows say of them. Errors of its parts: Undefined.

    The age of a fit is counted in blocks: 1 where it ended just before the block of a row.
    """

    rows: Rows
    seed: int
    method: held_out.Method = "chosen"

    @cached_property
    def block(self) -> Ints:
        """The block of each row, shape (T,)."""
        return self.rows.block

    @property
    def oldest(self) -> int:
        """The age of the oldest fit."""
        return int(self.block.max())

    def judged(self, age: int) -> Ints:
        """The rows that a fit of this age says something of, in their order, shape (m,)."""
        return np.flatnonzero(self.block >= age)

    def recalibrated(self, age: int) -> Floats:
        """The recalibrated score of the rows in `judged`: (m,), or (m, K) of several classes."""
        return self._of_age(self._recalibrated, age)

    def with_features(self, age: int) -> Floats:
        """The score by `blend` of the rows in `judged`: (m,), or (m, K) of several classes."""
        return self._of_age(self._with_features, age)

    def _of_age(self, fits: list[Floats], age: int) -> Floats:
        """The score of each row in `judged` by the fit that ended `age` blocks before its block."""
        which = self.judged(age)
        return np.stack(fits)[self.block[which] - age, which]

    @cached_property
    def _recalibrated(self) -> list[Floats]:
        return self._scored(lambda earlier: _recalibrated(self.rows, earlier, self.seed, self.method))

    @cached_property
    def _with_features(self) -> list[Floats]:
        # Loaded late: whoever only recalibrates needs none of the methods.
        from decal_cli.learn.method import Training, fit
        from decal_cli.learn.methods import METHODS

        def score(earlier: Rows) -> Floats:
            named = {name: getattr(earlier, name) for name in ("weight", "cluster", "classes")}
            label = earlier.label if earlier.classes else earlier.label.astype(np.float64)
            training = Training(earlier.score, label, features=earlier.typed, seed=self.seed, **named)
            return fit(METHODS.parse(BLEND), training)(self.rows).score

        return self._scored(score)

    def _scored(self, score: Callable[[Rows], Floats]) -> list[Floats]:
        """The score of all rows by fits to those up to the end of each block but the last."""
        scores = []
        for k in range(self.oldest):
            earlier = self.rows.take(self.block <= k)
            try:
                scores.append(score(earlier))
            except Undefined as undefined:
                # All rows together may be enough.
                first = f"the first{f' {k + 1}' if k else ''} of {self.oldest + 1} blocks of time"
                raise Undefined(f"{undefined.reason}; the fit to {first} has {many(len(earlier), 'row')}") from None
        return scores


def _recalibrated(rows: Rows, earlier: Rows, seed: int, method: held_out.Method) -> Floats:
    """The score of rows by the calibrator that is chosen on earlier rows and fitted to all of those."""
    if rows.classes:
        fit = SCALINGS[build_recalibrated(earlier, seed=seed).chosen]
        return fit(earlier.score, earlier.label, earlier.weights)(rows).score
    t, name = earlier.table, str(method)
    if method == "chosen":
        name = Counter(held_out.of_table(t, seed).chosen).most_common(1)[0][0]
    return held_out.CALIBRATORS[name](held_out.LevelCounts(t.score, *t.of_labels))(rows.score)
