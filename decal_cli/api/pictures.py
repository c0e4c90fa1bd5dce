"""Pictures for notebooks: one panel, into axes of the user's or of its own; and as scikit-learn's displays.

A display is made by `from_estimator` or `from_predictions`; `plot(ax=...)` draws it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.sweep import Sweep, VariedSweep, swept
from decal_cli.api.asking import asked, swapped
from decal_cli.api.nouns import Data, DecisionLike
from decal_cli.api.words import one_of, spoken
from decal_cli.curves.grid import Grid, parse_thresholds
from decal_cli.data import Dataset
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.hints import GIVE_TASK, renamed
from decal_cli.plot.report import CLASS_PICTURES, draw_classes_on
from decal_cli.plot.sweeps import PICTURES, draw_on, pictures_of
from decal_cli.render.terms import PLAIN, StatedTerms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

FROM_FEATURES = ("brier", "grouping", "waterfall")
"""Pictures that look at the features; for others they are not read, which is faster."""
OF_SCORES = ("reliability", "brier")
"""Pictures that need no decision."""
USUAL = Grid(parse_thresholds(SWEEP_THRESHOLDS))
"""Where curves are computed."""


def draw_picture(data: Dataset, plan: Plan, picture: str, ax: Axes | None, report: int, terms: StatedTerms) -> Axes:
    """A picture of a data set."""
    if data.classes:
        one_of("picture", picture, CLASS_PICTURES)
        return draw_classes_on(data, plan, picture, ax, report, terms)
    return draw_sweep(sweep_for(data, plan, picture), picture, ax, report, terms)


def sweep_for(data: Dataset, plan: Plan, picture: str) -> Sweep:
    """The curves that a picture shows. Errors: DecalError, where it needs what was not given."""
    one_of("picture", picture, PICTURES)
    if picture == "grouping" and not any(model.rows.has_features for model in data.models):
        raise DecalError("grouping shows how rows of equal scores differ", "give features=")
    if plan.by_row and picture in OF_SCORES:
        plan = replace(plan, decision=None)
    elif plan.by_row:
        fix = f"draw {' or '.join(map(repr, OF_SCORES))}, which take none, or write the page of report"
        raise DecalError(f"{picture} is of one decision for all rows, and each row has its own", fix)
    if picture == "waterfall" and not plan.task:
        raise DecalError("waterfall shows the gains of a decision", GIVE_TASK)
    if picture not in FROM_FEATURES:
        data = replace(data.changed(lambda rows: replace(rows, features=None)), features=None)
    if picture == "reliability":
        plan = replace(plan, intervals=False)
    return swept(data, plan, USUAL)


def curves_of_models(data: Dataset, plan: Plan) -> Sweep:
    """The curves of two models on all rows."""
    return swept(data.changed(lambda rows: replace(rows, groups={}, features=None)), plan, USUAL)


def draw_sweep(
    sweep: Sweep | VariedSweep, picture: str, ax: Axes | None = None, report: int = 0, terms: StatedTerms = PLAIN
) -> Axes:
    """A picture of curves that are computed already: over t*, or over a number of the task that varies.

    report: which model and group, where a picture shows one. terms: of the amounts in it.
    """
    curves: Any = sweep
    one_of("picture", picture, pictures_of(sweep, ("all",)))
    if not 0 <= report < len(sweep.reports):
        raise DecalError(f"report={report} is none of the {len(sweep.reports)} reports", "they count from 0")
    return draw_on(curves, picture, ax, report, terms)


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
        if np.ndim(y_prob) != 1:
            raise DecalError(
                f"the probabilities have shape {np.shape(y_prob)}", "give one dimension, such as predict_proba(X)[:, 1]"
            )
        rows = Data({name: y_prob}, y_true, score=(name,), weight=sample_weight, positive=pos_label)
        given = asked(rows, decision, None, fields)
        try:
            data = given.rows()
        except DecalError as error:
            problem, fix = error.given
            told = DecalError(problem, renamed(fix, "positive", "pos_label"))
            raise swapped(y_prob, y_true, "from_predictions(y_true, y_prob)") or told from None
        return cls(sweep_for(data, given.plan, cls.picture)).plot(ax)

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
        for name in ("predict_proba", "classes_"):
            if not hasattr(estimator, name):
                fitted = f"Calibrator({type(estimator).__name__}(..)).fit(X, y)"
                raise DecalError(f"the classifier has no {name}", f"fit one that has probabilities, such as {fitted}")
        classes = np.asarray(estimator.classes_).tolist()
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
