"""Oracles of what decisions are worth; importing this module adds them to those of `oracles`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from tests.helpers.oracles import Vector, by_level, in_bins, mean, oracle, weights


def decided(rows: Rows, task: BinaryTask) -> Vector:
    return (rows.score >= task.decision_threshold).astype(int)


def utility_of(rows: Rows, task: BinaryTask, decision: Vector) -> float:
    return mean(rows, np.array(task.utility)[decision, rows.label])


@oracle("expected_utility")
def oracle_expected_utility(rows: Rows, task: BinaryTask) -> float:
    return utility_of(rows, task, decided(rows, task))


@oracle("eu_never")
def eu_never(rows: Rows, task: BinaryTask) -> float:
    return utility_of(rows, task, np.zeros(len(rows.label), dtype=int))


@oracle("eu_always")
def eu_always(rows: Rows, task: BinaryTask) -> float:
    return utility_of(rows, task, np.ones(len(rows.label), dtype=int))


@oracle("utility_share")
def utility_share(rows: Rows, task: BinaryTask) -> float:
    """Against the best threshold on these scores, found by trying each."""
    constant = max(eu_never(rows, task), eu_always(rows, task))
    tried = [utility_of(rows, task, (rows.score >= t).astype(int)) for t in [*np.unique(rows.score), 2.0]]
    return (oracle_expected_utility(rows, task) - constant) / (max(tried) - constant)


@oracle("utility_at_stake")
def utility_at_stake(rows: Rows, task: BinaryTask) -> float:
    perfect = utility_of(rows, task, rows.label.astype(int))
    return perfect - max(eu_never(rows, task), eu_always(rows, task))


@oracle("net_benefit")
def net_benefit(rows: Rows, task: BinaryTask) -> float:
    act, t = decided(rows, task), task.threshold
    return mean(rows, act * rows.label) - mean(rows, act * (1 - rows.label)) * t / (1 - t)


@oracle("net_benefit_standardised")
def net_benefit_standardised(rows: Rows, task: BinaryTask) -> float:
    return net_benefit(rows, task) / mean(rows, rows.label)


@oracle("interventions_avoided")
def interventions_avoided(rows: Rows, task: BinaryTask) -> float:
    """From net benefit, as dcurves has it."""
    odds = task.threshold / (1 - task.threshold)
    act_on_all = mean(rows, rows.label) - mean(rows, 1 - rows.label) * odds
    return 100 * (net_benefit(rows, task) - act_on_all) / odds


@oracle("selection_rate")
def selection_rate(rows: Rows, task: BinaryTask) -> float:
    return mean(rows, decided(rows, task))


@oracle("false_positive_rate")
def false_positive_rate(rows: Rows, task: BinaryTask) -> float:
    return mean(rows, decided(rows, task) * (1 - rows.label)) / mean(rows, 1 - rows.label)


@oracle("swap_regret")
def swap_regret(rows: Rows, task: BinaryTask) -> float:
    """Over all four maps of the two actions."""
    act = decided(rows, task)
    maps = [np.array([a, b]) for a in (0, 1) for b in (0, 1)]
    return max(utility_of(rows, task, swap[act]) for swap in maps) - oracle_expected_utility(rows, task)


@oracle("external_regret")
def external_regret(rows: Rows, task: BinaryTask) -> float:
    return max(eu_never(rows, task), eu_always(rows, task)) - oracle_expected_utility(rows, task)


def decision_loss(rows: Rows, task: BinaryTask, groups: list[Rows]) -> float:
    lost = 0.0
    for group in groups:
        middle = np.clip(mean(group, group.score), group.score.min(), group.score.max())
        at = replace(group, score=np.full(len(group.score), middle))
        constants = (eu_never(at, task), eu_always(at, task))
        lost += (max(constants) - oracle_expected_utility(at, task)) * float(weights(group).sum())
    return lost / float(weights(rows).sum())


@oracle("cfdl(levels=exact)")
def cfdl_exact(rows: Rows, task: BinaryTask) -> float:
    return decision_loss(rows, task, by_level(rows))


@oracle("cfdl(levels=bins)")
def cfdl_bins(rows: Rows, task: BinaryTask) -> float:
    return decision_loss(rows, task, in_bins(rows, 15, "mass"))


def _rate(name: str, part: Callable[[Vector, Vector], Vector], whole: Callable[[Vector, Vector], Vector]) -> None:
    def rate(rows: Rows, task: BinaryTask) -> float:
        act = decided(rows, task)
        return mean(rows, part(act, rows.label)) / mean(rows, whole(act, rows.label))

    oracle(name)(rate)


_rate("accuracy", lambda act, label: act == label, lambda act, label: np.ones(len(act)))
_rate("sensitivity", lambda act, label: act * label, lambda act, label: label)
_rate("specificity", lambda act, label: (1 - act) * (1 - label), lambda act, label: 1 - label)
_rate("ppv", lambda act, label: act * label, lambda act, label: act)
_rate("npv", lambda act, label: (1 - act) * (1 - label), lambda act, label: 1 - act)
