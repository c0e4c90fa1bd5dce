"""What a forecaster is: it predicts one row, later learns its label, and never looks ahead; and how one is declared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.spec import Declaration, Registry, Spec, parameters_of
from decal_cli.tables.table import Floats, Ints

State = dict[str, Any]
"""What a forecaster knows, as JSON holds it: numbers, texts, None, lists and dicts of them; of bounded size."""


class Forecaster(ABC):
    """Predicts rows one after the other, and learns labels in the order of the rows.

    title: its name for users. randomised: whether its predictions rest on random numbers. needs_score: whether it looks
    at the score at all.
    """

    title: ClassVar[str]
    randomised: ClassVar[bool] = False
    needs_score: ClassVar[bool] = True

    @abstractmethod
    def predict_one(self, score: float) -> float:
        """The probability of label 1 of the next row, from the labels learned so far."""

    @abstractmethod
    def learn_one(self, score: float, label: int) -> None:
        """Learn the label of the next row whose label is not learned yet."""

    def replay(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """What is predicted for each of the next rows, shape (T,): `one_by_one`, faster.

        score, label: of the P rows that were predicted and whose labels are not learned yet, then of the T next rows,
        shape (P + T,). known: int64 (T,), never decreasing, at most P + t: how many of those first rows have a known
        label when row t is predicted. What was learned at the last row is kept, so that a stream that is cut into
        pieces is predicted as one that is not.
        """
        return one_by_one(self, score, label, known)

    @abstractmethod
    def state(self) -> State:
        """What it knows, apart from the parameters that it was made with."""

    @abstractmethod
    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state. Errors: KeyError, TypeError or ValueError, where it is none."""


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

F = TypeVar("F", bound=type[Forecaster])


def online(name: str, *, source: str) -> Callable[[F], F]:
    """Declare the decorated forecaster under this name; source: where it comes from.

    Its keyword-only parameters are those that users may set; a randomised one also takes `seed` and `horizon`.
    """

    def declare(forecaster: F) -> F:
        parameters = parameters_of(forecaster.__init__)
        ONLINE.add(
            OnlineMethod(name=name, title=forecaster.title, source=source, function=forecaster, parameters=parameters)
        )
        return forecaster

    return declare


def forecaster_of(spec: OnlineSpec, seed: int, horizon: int | None) -> Forecaster:
    """A fresh forecaster; horizon: how many rows there will be, None where that is not known."""
    made_with = {"seed": seed, "horizon": horizon} if spec.declared.randomised else {}
    return spec.declared.function(**made_with, **spec.parameters)
