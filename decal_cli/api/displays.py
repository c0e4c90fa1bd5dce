"""Pictures as scikit-learn's displays: `from_estimator`, `from_predictions`, and `plot(ax=...)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from decal_cli.analysis.sweep import Sweep
from decal_cli.api.inputs import Several, Utilities, Values, look_swapped, plan_of, swapped, task_given
from decal_cli.api.pictures import draw_sweep, sweep_for
from decal_cli.api.words import spoken
from decal_cli.data import Columns, Dataset, from_arrays
from decal_cli.data.words import text_of
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.errors import DecalError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike


class PictureDisplay:
    """One picture of one classifier. `ax_` and `figure_` are what it was drawn into; `plot(ax=...)` draws it again."""

    picture: ClassVar[str]
    """As `answer.plot` names it."""
    looks_at_features: ClassVar[bool] = False
    """Whether `from_estimator` shows it the features."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.ax_: Axes
        self.figure_: Figure

    @spoken
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into these axes, or into a figure of its own."""
        self.ax_ = draw_sweep(self.sweep, self.picture, ax)
        figure: Any = self.ax_.figure
        self.figure_ = figure
        return self

    @classmethod
    @spoken
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        features: Several | None = None,
        pos_label: object = None,
        name: str = "Classifier",
        ax: Axes | None = None,
        threshold: float | None = None,
        utility: Utilities | None = None,
        cost_fp: float | None = None,
        cost_fn: float | None = None,
        odds: str | None = None,
        decision_threshold: float | None = None,
        confidence: float = CONFIDENCE,
        seed: int = SEED,
    ) -> Self:
        """Draw the picture of predicted probabilities, shape (T,), of the positive class, against labels.

        features: (T, d) or a frame, which some pictures need. pos_label: the label that counts as 1. The decision as
        for `evaluate`.
        """
        return cls._drawn(locals())

    @classmethod
    @spoken
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        features: Several | None = None,
        pos_label: object = None,
        name: str | None = None,
        ax: Axes | None = None,
        threshold: float | None = None,
        utility: Utilities | None = None,
        cost_fp: float | None = None,
        cost_fn: float | None = None,
        odds: str | None = None,
        decision_threshold: float | None = None,
        confidence: float = CONFIDENCE,
        seed: int = SEED,
    ) -> Self:
        """Draw the picture of what a fitted classifier predicts for X; the rest as for `from_predictions`.

        features: by default X, where the picture looks at features.
        """
        given = {each: value for each, value in locals().items() if each not in ("cls", "estimator", "X", "y")}
        classes = list(estimator.classes_)
        positive = classes[1] if pos_label is None else pos_label
        if len(classes) != 2 or positive not in classes:
            raise DecalError(f"the classifier has the classes {classes}", "give one of two, and pos_label= one of them")
        given |= {"y_true": y, "y_prob": estimator.predict_proba(X)[:, classes.index(positive)], "pos_label": positive}
        given["name"] = type(estimator).__name__ if name is None else name
        if features is None and cls.looks_at_features:
            given["features"] = X
        return cls._drawn(given)

    @classmethod
    def _drawn(cls, given: dict[str, Any]) -> Self:
        sweep = sweep_for(_data(given), plan_of(given, (), task_given(given)), cls.picture)
        return cls(sweep).plot(given["ax"])


def _data(given: dict[str, Any]) -> Dataset:
    y_true, y_prob, positive = given["y_true"], given["y_prob"], text_of(given["pos_label"])
    roles: dict[str, Values | Several | None] = {"weight": given["sample_weight"], "features": given["features"]}
    present: dict[str, Any] = {role: values for role, values in roles.items() if values is not None}
    name = str(given["name"])
    columns = Columns(score=(name,), positive=positive)
    try:
        return from_arrays({name: np.asarray(y_prob)}, y_true, columns=columns, **present)
    except DecalError as error:
        if look_swapped(y_prob, y_true):
            raise swapped("from_predictions(y_true, y_prob)") from None
        raise DecalError(error.problem, re.sub(r"--positive ([^\s,;]+)", r"pos_label='\1'", error.fix)) from None


class ReliabilityDisplay(PictureDisplay):
    """The reliability diagram: frequency of the positive class over the score, and what a calibrated model shows."""

    picture = "reliability"


class BrierCurveDisplay(PictureDisplay):
    """The Brier curve: the loss of acting on the score at every threshold, as it is and calibrated."""

    picture = "brier"


class DecisionCurveDisplay(PictureDisplay):
    """The decision curve: net benefit at every threshold, beside treating all and treating none."""

    picture = "decision"


class GroupingDisplay(PictureDisplay):
    """How rows of equal scores differ by their features."""

    picture = "grouping"
    looks_at_features = True


class GainsDisplay(PictureDisplay):
    """The gains of a decision: the score as it is, recalibrated, with the features. Needs a decision."""

    picture = "waterfall"
    looks_at_features = True
