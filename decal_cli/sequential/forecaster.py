"""What a forecaster is: it predicts one row, later learns its label, and never looks ahead; and how one is declared."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.document import Size, Words
from decal_cli.declarations.spec import Between, Declaration, Registry, Spec, parameters_of
from decal_cli.sequential.resumable import Resumable
from decal_cli.tables.table import Floats, Ints


class Guarantee(NamedTuple):
    """What a theorem says of a forecaster, where labels are known before the next row.

    metric: v_regret, cdl or dist_cal. bound: what it is at most, per row. holds: of what it is the bound.
    """

    metric: Literal["v_regret", "cdl", "dist_cal"]
    bound: Size
    holds: Words


class Forecaster(Resumable, ABC):
    """Predicts rows one after the other, and learns labels in the order of the rows.

    It has a `replay` of its own, or a `predict_one`: each of them is made of the other.

    title: its name for users. randomised: whether its predictions rest on random numbers, of its `seed`. needs_score:
    whether it looks at the score at all. uses_horizon: whether it is made for a number of rows, its `horizon`. on_grid:
    whether it predicts the points of a grid, so that many rows have the same prediction.
    """

    title: ClassVar[str]
    randomised: ClassVar[bool] = False
    needs_score: ClassVar[bool] = True
    uses_horizon: ClassVar[bool] = False
    on_grid: ClassVar[bool] = False

    def predict_one(self, score: float) -> float:
        """The probability of label 1 of the next row, from the labels learned so far."""
        nothing = np.zeros(1, dtype=np.int64)
        return float(self.replay(np.array([score]), nothing.astype(np.uint8), nothing)[0])

    @abstractmethod
    def learn_one(self, score: float, label: int) -> None:
        """Learn the label of the next row whose label is not learned yet."""

    def guarantee(self, rows: int) -> Guarantee | None:
        """What is guaranteed after so many rows, whatever the labels are; None where nothing is."""
        return None

    def awaits(self, score: Floats, group: NDArray[Any]) -> bool:
        """Whether these rows, shape (P,), can be those that it predicted and has not learned."""
        return True

    def account(self) -> float | None:
        """How far from calibration the rows that it learned are, at most, added up; None: it keeps no account."""
        return None

    def replay(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """What is predicted for each of the next rows, shape (T,): `one_by_one`, faster.

        score, label: of the P rows that were predicted and whose labels are not learned yet, then of the T next rows,
        shape (P + T,). known: int64 (T,), never decreasing, at most P + t: how many of those first rows have a known
        label when row t is predicted. What was learned at the last row is kept, so that a stream that is cut into
        pieces is predicted as one that is not.
        """
        return one_by_one(self, score, label, known)

    def acts_from(self, threshold: float) -> float | None:
        """The score from which its prediction is this much; None where there is none, or where it is no curve."""
        return None


def one_by_one(forecaster: Forecaster, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
    """The predictions of a forecaster that is asked and taught row by row, shape (T,)."""
    predictions = np.empty(len(known))
    learned, before = 0, len(score) - len(known)
    for row, until in enumerate(known.tolist()):
        while learned < until:
            forecaster.learn_one(float(score[learned]), int(label[learned]))
            learned += 1
        predictions[row] = forecaster.predict_one(float(score[before + row]))
    return predictions


@dataclass(frozen=True, kw_only=True)
class OnlineMethod(Declaration):
    """A declared forecaster. function: its class; parameters: the keyword-only ones that users may set."""

    function: type[Forecaster]

    @property
    def randomised(self) -> bool:
        """Whether its predictions rest on random numbers."""
        return self.function.randomised


OnlineSpec = Spec[OnlineMethod]
ONLINE: Registry[OnlineMethod] = Registry("method", "rolling-isotonic(window=500)")
"""Every declared forecaster by name, in the order of declaration."""

N_BINS = Between(0, 1001)
"""Bins of equal width; without them there is one forecaster for all scores."""

F = TypeVar("F", bound=type[Forecaster])


def _inside(
    *, bins: Annotated[int, "bins of the score, each with a forecaster of its own; 0: none", N_BINS] = 0
) -> None:
    """What every forecaster takes: see InsideBins."""


def online(name: str, *, source: str) -> Callable[[F], F]:
    """Declare the decorated forecaster under this name; source: where it comes from.

    Its keyword-only parameters are those that users may set; `seed` and `horizon` come before them, where it uses them.
    """

    def declare(forecaster: F) -> F:
        parameters = (*parameters_of(forecaster.__init__), *parameters_of(_inside))
        ONLINE.add(
            OnlineMethod(name=name, title=forecaster.title, source=source, function=forecaster, parameters=parameters)
        )
        return forecaster

    return declare


def forecaster_of(spec: OnlineSpec, seed: int, horizon: int | None, *, groups: bool = False) -> Forecaster:
    """A fresh forecaster; horizon: how many rows there will be, None where that is not known.

    groups: whether it is to run in each group on its own. Nobody knows how many rows a part will have, so that inside
    parts the horizon is not used.
    """
    parameters = dict(spec.parameters)
    bins = parameters.pop("bins", 0)

    def alone(seed: int, horizon: int | None = None) -> Forecaster:
        forecaster = spec.declared.function
        made_with: dict[str, int | None] = {"seed": seed} if forecaster.randomised else {}
        if forecaster.uses_horizon:
            made_with["horizon"] = horizon
        return forecaster(**made_with, **parameters)

    def in_bins(seed: int, horizon: int | None = None) -> Forecaster:
        return Inside(alone, seed, bins) if bins else alone(seed, horizon)

    return Inside(in_bins, seed) if groups else in_bins(seed, horizon)


class Inside(Forecaster):
    """In each bin of the score, or in each group, on its own: a forecaster is made when the first row of a part comes.

    make: a fresh one with this seed. bins: how many, of equal width, the last one with its upper end; a forecaster of
    the base rate becomes one that recalibrates the score. 0: by group, which predict_one, learn_one and replay take.
    """

    def __init__(self, make: Callable[[int], Forecaster], seed: int, bins: int = 0) -> None:
        self.make, self.seed, self.bins = make, seed, bins
        self.parts: dict[str, Forecaster] = {}
        self.title = make(seed).title  # type: ignore[misc]

    def part(self, name: str) -> Forecaster:
        """The forecaster of a part; each has random numbers of its own."""
        if name not in self.parts:
            self.parts[name] = self.make(zlib.crc32(f"{self.seed} {name}".encode()))
        return self.parts[name]

    def _parted(self, score: Floats, group: Any) -> tuple[Sequence[Any] | NDArray[Any], NDArray[Any]]:
        """The parts, and the number of that of each row, shape (T,)."""
        if self.bins:
            return range(self.bins), np.minimum((score * self.bins).astype(np.int64), self.bins - 1)
        return np.unique(np.array(group, dtype=str), return_inverse=True)

    def _of(self, score: float, group: str) -> Forecaster:
        parts, number = self._parted(np.array([score]), [group])
        return self.part(str(parts[number[0]]))

    def predict_one(self, score: float, group: str = "") -> float:
        """What the forecaster of the row's part predicts."""
        return self._of(score, group).predict_one(score)

    def learn_one(self, score: float, label: int, group: str = "") -> None:
        """Teach the forecaster of the row's part."""
        self._of(score, group).learn_one(score, label)

    def replay(
        self, score: Floats, label: NDArray[np.uint8], known: Ints, group: Sequence[str] | None = None
    ) -> Floats:
        """All predictions at once, part by part; group: of each of the P + T rows."""
        score = score.astype(np.float64)
        parts, part = self._parted(score, [""] * len(score) if group is None else group)
        predictions, before = np.empty(len(known)), len(score) - len(known)
        last = int(known[-1]) if len(known) else 0
        for number in np.unique(part).tolist():
            forecaster, inside = self.part(str(parts[number])), part == number
            own_known = np.concatenate(([0], np.cumsum(inside)))[known]
            own, new = np.flatnonzero(inside), inside[before:]
            predictions[new] = forecaster.replay(score[own], label[own], own_known[new])
            # Labels that came after the part's own last row are learned too: nobody keeps them for it.
            learned = int(own_known[new][-1]) if new.any() else 0
            for row in own[learned : np.searchsorted(own, last)].tolist():
                forecaster.learn_one(float(score[row]), int(label[row]))
        return predictions

    def awaits(self, score: Floats, group: NDArray[Any]) -> bool:
        """Whether each part awaits its own of these rows."""
        parts, number = self._parted(score, group)
        name = np.array(parts, dtype=str)[number]
        return {*name.tolist()} <= self.parts.keys() and all(
            part.awaits(score[name == own], group[name == own]) for own, part in self.parts.items()
        )

    def account(self) -> float | None:
        """Those of the parts, added up."""
        of_parts = [part.account() for part in self.parts.values()]
        known = [each for each in of_parts if each is not None]
        return sum(known) if known and len(known) == len(of_parts) else None

    def state(self) -> dict[str, Any]:
        """What each part knows."""
        return {"parts": {name: self.parts[name].state() for name in sorted(self.parts)}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Errors: ValueError where there is no such part."""
        if self.bins and not {*state["parts"]} <= {*map(str, range(self.bins))}:
            raise ValueError(f"there are {self.bins} bins, and others here")
        self.parts = {}
        for name, known in state["parts"].items():
            self.part(name).restore(known)

    def guarantee(self, rows: int) -> Guarantee | None:
        """That of each bin, added up: at most what it is where all bins have as many rows; of groups none."""
        per_bin = max(1, -(-rows // max(self.bins, 1)))
        of_bin = self.make(self.seed).guarantee(per_bin) if self.bins else None
        return None if of_bin is None else of_bin._replace(bound=of_bin.bound * per_bin * self.bins / rows)
