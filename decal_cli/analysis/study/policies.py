"""What following the advice loses, compared with always taking the same action, when methods have a cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.flowchart import EVIDENCE_KEYS, FITS, Action, Advice, Evidence, Item, walk
from decal_cli.analysis.study.columns import BASE, Points
from decal_cli.tables.table import Floats

COSTS: Mapping[Action, float] = {"recalibrate": 0.002, "post-train": 0.01}
"""Per decision, in units of u_delta; doing nothing is free."""
MULTIPLES = (0.5, 1.0, 2.0, 4.0)
HINDSIGHT = ("isotonic", "refit", "stack", "stack-boosting", "blend")
"""The methods that the best choice in hindsight is taken from, besides doing nothing and always deciding the same."""
REFIT = "refit"
ALWAYS = ("always-0", "always-1")
"""The constant decisions, which are free."""


@dataclass(frozen=True)
class Policy:
    """A way of choosing, over all points.

    loss: mean utility lost compared with the best choice in hindsight, in units of u_delta; error: its standard error
    over scores of files; chosen: share of points for each action.
    """

    name: str
    loss: float
    error: float
    chosen: Mapping[str, float]


@dataclass(frozen=True)
class Policies:
    """All ways of choosing at one multiple of the costs.

    share: loss of following the advice, as a share of the loss of the better of 'always isotonic' and 'always refit'.
    right: share of points at which the advised action was best in hindsight, or lost at most the tolerance.
    """

    multiple: float
    policies: tuple[Policy, ...]
    share: float
    right: float


NEARLY_BEST = 0.002
"""In units of u_delta: the advice was right where it lost at most this compared with the best action."""


def policies(points: Points, rows: Sequence[int], multiple: float) -> Policies | None:
    """All ways of choosing at one multiple of COSTS; None where the study lacks a method that they need."""
    methods = [name for name in HINDSIGHT if name in points.gains]
    if not {BASE, REFIT, FITS["post-train"]} <= set(methods):
        return None
    costs = {action: multiple * cost for action, cost in COSTS.items()}
    net = {"nothing": np.zeros(len(points.threshold)), **dict(zip(ALWAYS, points.constants, strict=True))}
    for name in methods:
        net[name] = points.gains[name] - costs["recalibrate" if name == BASE else "post-train"]
    best = np.max(list(net.values()), axis=0)
    actions = advised(points, rows, costs)
    named = {"recalibrate": BASE, "post-train": FITS["post-train"], **{name: name for name in ALWAYS}}
    advised_net = np.select([actions == action for action in named], [net[name] for name in named.values()], 0.0)
    constant = {name: np.full(len(best), name) for name in ("nothing", BASE, REFIT, FITS["post-train"])}
    ways = [_policy("follow the advice", best - advised_net, actions, points)]
    for name, chosen in constant.items():
        label = "always nothing" if name == "nothing" else f"always {name}"
        ways.append(_policy(label, best - net[name], chosen, points))
    always = min(policy.loss for policy in ways if policy.name in (f"always {BASE}", f"always {REFIT}"))
    usable = np.isfinite(best)
    right = float(np.mean((best - advised_net)[usable] <= NEARLY_BEST))
    return Policies(multiple, tuple(ways), ways[0].loss / always if always > 0 else float("nan"), right)


def _policy(name: str, loss: Floats, chosen: NDArray[np.str_], points: Points) -> Policy:
    names, times = np.unique(chosen[np.isfinite(loss)], return_counts=True)
    shares = {str(action): float(count / times.sum()) for action, count in zip(names, times, strict=True)}
    return Policy(name, *points.mean(loss), shares)


def advised(points: Points, rows: Sequence[int], costs: Mapping[Action, float]) -> NDArray[np.str_]:
    """What the flowchart advises at every point, shape (P,): an action or, by name, a constant decision.

    Where it cannot tell, the action that it leans to.
    """
    return np.array([_followed(walk(_evidence(points, k, rows[k], costs))) for k in range(len(points.threshold))])


def _followed(advice: Advice) -> str:
    action = advice.lean if advice.action == "cannot-tell" and advice.lean is not None else advice.action
    if action in FITS or advice.constant is None:
        return action
    return ALWAYS[advice.constant.decision]


def _evidence(points: Points, at: int, rows: int, costs: Mapping[Action, float]) -> Evidence:
    items = {}
    for key in EVIDENCE_KEYS:
        value = points.estimates[key][at]
        low, high = (float(end[at]) for end in points.ends[key]) if key in points.ends else (np.nan, np.nan)
        if np.isfinite(value):
            items[key] = Item(key, float(value), (low, high) if np.isfinite(low) else None)
    costs_by_name = {str(action): cost for action, cost in costs.items()}
    return Evidence(items, rows, True, costs=costs_by_name, acts_from=float(points.threshold[at]))
