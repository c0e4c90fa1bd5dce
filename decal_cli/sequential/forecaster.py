"""What a forecaster is: it predicts one row, later learns its label, and never looks ahead; and how one is declared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.document import Size, Words
from decal_cli.declarations.spec import Between, Declaration, Registry, Spec, parameters_of
from decal_cli.sequential.resumable import Resumable
from decal_cli.tables.table import Floats, Ints

State = dict[str, Any]
"""What a forecaster knows, as JSON holds it: numbers, texts, None, lists and dicts of them; of bounded size."""


class Guarantee(NamedTuple):
    """What a theorem says of a forecaster, where labels are known before the next row.

    metric: v_regret, cdl or dist_cal. bound: what it is at most, per row. holds: of what it is the bound.
    """

    metric: Literal["v_regret", "cdl", "dist_cal"]
    bound: Size
    holds: Words


class Forecaster(Resumable, ABC):
    """Predicts rows one after the other, and learns labels in the order of the rows.

    title: its name for users. randomised: whether its predictions rest on random numbers, of its `seed`. needs_score:
    whether it looks at the score at all. uses_horizon: whether it is made for a number of rows, its `horizon`. on_grid:
    whether it predicts the points of a grid, so that many rows have the same prediction.
    """

    title: ClassVar[str]
    randomised: ClassVar[bool] = False
    needs_score: ClassVar[bool] = True
    uses_horizon: ClassVar[bool] = False
    on_grid: ClassVar[bool] = False

    @abstractmethod
    def predict_one(self, score: float) -> float:
        """The probability of label 1 of the next row, from the labels learned so far."""

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
