"""Pictures as scikit-learn's displays: `from_estimator`, `from_predictions`, and `plot(ax=...)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from decal_cli.analysis.sweep import Sweep
from decal_cli.api.asking import asked, look_swapped, swapped
from decal_cli.api.nouns import Data, DecisionLike
from decal_cli.api.pictures import draw_sweep, sweep_for
from decal_cli.api.words import spoken
from decal_cli.errors import DecalError
from decal_cli.hints import renamed

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
        decision: DecisionLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        name: str = "Classifier",
        **fields: Any,
    ) -> Self:
        """Draw the picture of predicted probabilities, shape (T,), of the positive class, against labels.

        pos_label: the label that counts as 1. fields: ax=, the axes; and those of `Data`, `Decision` and `Statistics`,
        such as features=, (T, d) or a frame, which some pictures need, or threshold=.
        """
        ax = fields.pop("ax", None)
        rows = Data({name: np.asarray(y_prob)}, y_true, score=(name,), weight=sample_weight, positive=pos_label)
        given = asked(rows, decision, None, fields)
        try:
            question = given.question(given.plan, None)
        except DecalError as error:
            if look_swapped(y_prob, y_true):
                raise swapped("from_predictions(y_true, y_prob)") from None
            problem, fix = error.given
            raise DecalError(problem, renamed(fix, "positive", "pos_label")) from None
        return cls(sweep_for(question.data, question.plan, cls.picture)).plot(ax)

    @classmethod
    @spoken
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        decision: DecisionLike | None = None,
        *,
        pos_label: object = None,
        **fields: Any,
    ) -> Self:
        """Draw the picture of what a fitted classifier predicts for X; the rest as for `from_predictions`.

        features: by default X, where the picture looks at features.
        """
        classes = list(estimator.classes_)
        positive = classes[1] if pos_label is None else pos_label
        if len(classes) != 2 or positive not in classes:
            raise DecalError(f"the classifier has the classes {classes}", "give one of two, and pos_label= one of them")
        fields = {"name": type(estimator).__name__, **({"features": X} if cls.looks_at_features else {}), **fields}
        y_prob = estimator.predict_proba(X)[:, classes.index(positive)]
        return cls.from_predictions(y, y_prob, decision, pos_label=positive, **fields)


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
