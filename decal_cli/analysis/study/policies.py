"""What following the advice loses, compared with always taking the same action, when methods have a cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.flowchart import EVIDENCE_KEYS, FITS, Action, Advice, Evidence, Item, walk
from decal_cli.analysis.study.columns import BASE, StudyPoints
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.declarations.document import Known, Limit
from decal_cli.tables.table import Floats

COSTS: Mapping[Action, float] = {"recalibrate": 0.002, "post-train": 0.01}
"""Per decision, in units of u_delta; doing nothing is free."""
MULTIPLES = (0.5, 1.0, 2.0, 4.0)
HINDSIGHT = ("isotonic", "refit", "stack", "stack-boosting", "blend")
"""The methods that the best choice in hindsight is taken from, besides doing nothing and always deciding the same."""
REFIT = "refit"
ALWAYS = ("always-0", "always-1")
"""The constant decisions, which are free."""
OURS, AS_PRINTED = "follow the advice", "flowchart as printed"
"""The advice of `decal recommend`, and that of the flowchart of Perez-Lebel et al. 2025, appendix A."""
ABOUT_0 = 0.02
"""Grouping regret in the paper's units up to which it counts as 0: its r of GLAR (app. C.3)."""


@dataclass(frozen=True)
class Policy:
    """A way of choosing, over all points.

    loss: mean utility lost compared with the best choice in hindsight, in units of u_delta; error: its standard error
    over scores of files; interval: over files, or scores where there are too few files, None where there are too few
    of both; right: share of points that lost at most NEARLY_BEST; chosen: share of points for each action.
    """

    name: str
    loss: Known
    error: Known
    interval: tuple[float, float] | None
    right: Known
    chosen: Mapping[str, float]


@dataclass(frozen=True)
class Policies:
    """All ways of choosing at one multiple of the costs.

    share: loss of following the advice, as a share of the loss of the better of 'always isotonic' and 'always refit'.
    right: share of points at which the advised action was best in hindsight, or lost at most the tolerance.
    """

    multiple: float
    policies: Annotated[tuple[Policy, ...], Limit(minItems=1)]
    share: Known
    right: Known


NEARLY_BEST = 0.002
"""In units of u_delta: the advice was right where it lost at most this compared with the best action."""


def policies(
    points: StudyPoints, rows: Sequence[int], multiple: float, confidence: float = CONFIDENCE
) -> Policies | None:
    """All ways of choosing at one multiple of COSTS; None where the study lacks a method that they need."""
    methods = [name for name in HINDSIGHT if name in points.gains]
    if not {BASE, REFIT, FITS["post-train"]} <= set(methods):
        return None
    costs = {action: multiple * cost for action, cost in COSTS.items()}
    net = {"nothing": np.zeros(len(points.threshold)), **dict(zip(ALWAYS, points.constants, strict=True))}
    for name in methods:
        net[name] = points.gains[name] - costs["recalibrate" if name == BASE else "post-train"]
    best = np.max(list(net.values()), axis=0)
    method_of = {"recalibrate": BASE, "post-train": FITS["post-train"], **{name: name for name in ALWAYS}}
    ways = []
    for label, actions in ((OURS, advised(points, rows, costs)), (AS_PRINTED, advised_as_printed(points, costs))):
        won = np.select([actions == action for action in method_of], [net[name] for name in method_of.values()], 0.0)
        ways.append(_policy(label, best - won, actions, points, confidence))
    constant = {name: np.full(len(best), name) for name in ("nothing", BASE, REFIT, FITS["post-train"])}
    for name, chosen in constant.items():
        label = "always nothing" if name == "nothing" else f"always {name}"
        ways.append(_policy(label, best - net[name], chosen, points, confidence))
    always = min(policy.loss for policy in ways if policy.name in (f"always {BASE}", f"always {REFIT}"))
    return Policies(multiple, tuple(ways), ways[0].loss / always if always > 0 else float("nan"), ways[0].right)


def _policy(name: str, loss: Floats, chosen: NDArray[np.str_], points: StudyPoints, confidence: float) -> Policy:
    usable = np.isfinite(loss)
    names, times = np.unique(chosen[usable], return_counts=True)
    shares = {str(action): float(count / times.sum()) for action, count in zip(names, times, strict=True)}
    # No choice does better than the best one in hindsight.
    interval = points.over_clusters(loss, confidence)
    ends = None if interval is None else (max(interval[0], 0.0), interval[1])
    return Policy(name, *points.mean(loss), ends, float(np.mean(loss[usable] <= NEARLY_BEST)), shares)


def advised_as_printed(points: StudyPoints, costs: Mapping[Action, float]) -> NDArray[np.str_]:
    """What the flowchart of Perez-Lebel et al. 2025 advises on the plug-in estimates, shape (P,), in one round.

    "About 0" is the paper's own r, at which GLAR begins to correct: .02 in its units, which is .02 t* u_delta.
    """
    regret, grouping = points.estimates["regret"], points.estimates["regret_grouping"]
    selected = np.where(grouping <= ABOUT_0 * points.threshold, "recalibrate", "post-train")
    cost = np.where(selected == "recalibrate", costs["recalibrate"], costs["post-train"])
    return np.where((regret > 0) & (regret > cost), selected, "nothing")


def advised(points: StudyPoints, rows: Sequence[int], costs: Mapping[Action, float]) -> NDArray[np.str_]:
    """What the flowchart advises at every point, shape (P,): an action or, by name, a constant decision.

    Where it cannot tell, the action that it leans to.
    """
    return np.array([_followed(walk(_evidence(points, k, rows[k], costs))) for k in range(len(points.threshold))])


def _followed(advice: Advice) -> str:
    action = advice.lean if advice.action == "cannot-tell" and advice.lean is not None else advice.action
    if action in FITS or advice.constant is None:
        return action
    return ALWAYS[int(advice.constant.decision)]


def _evidence(points: StudyPoints, at: int, rows: int, costs: Mapping[Action, float]) -> Evidence:
    items = {}
    for key in EVIDENCE_KEYS:
        value = points.estimates[key][at]
        low, high = (float(end[at]) for end in points.ends[key]) if key in points.ends else (np.nan, np.nan)
        if np.isfinite(value):
            items[key] = Item(key, float(value), (low, high) if np.isfinite(low) else None)
    costs_by_name = {str(action): cost for action, cost in costs.items()}
    return Evidence(items, rows, True, costs=costs_by_name, acts_from=float(points.threshold[at]))
