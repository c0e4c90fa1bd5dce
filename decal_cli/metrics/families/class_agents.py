"""The largest loss of an agent that acts on the probabilities of several classes: cdl and u_cal, and cfdl of one task.

Two classes have the closed forms of a score; more classes a linear program (`numerics.worst_rules`). It takes seconds,
and is solved where these metrics are named, or every metric is asked for.
"""

from __future__ import annotations

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.metrics.declare import Witness, for_classes
from decal_cli.metrics.families import agents
from decal_cli.metrics.numerics import class_decisions, worst_rules
from decal_cli.metrics.numerics.at_levels import Levels, as_score, levels_or_cells, on_exact_levels
from decal_cli.metrics.numerics.worst_rules import WorstRule
from decal_cli.tables.classes import ClassLevels, ClassTable, best_actions
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats

MAX_NUMBERS = 1000
"""Levels times classes up to which the program is solved on the levels themselves: 333 levels of three classes."""
CELLS = (32, 64)
"""Cells on which the agent of u_cal is looked for, at least and at most; fewer of more classes."""
MAX_SHOWN_ROWS = 20_000
"""Rows on which it is decided which of its actions an agent needs."""
N_RULE_DRAWS = 20
"""Labels are drawn so many times: each time a program is solved."""
_NO_INTERVAL = "nothing: the worst agent is chosen on these rows"
_NOT_DRAWN = "nothing: it is the mean of 20 draws"


def _levels(c: ClassTable, levels: Levels) -> ClassLevels:
    """The levels that cdl and cfdl work on. Errors: Undefined, where there are too many to solve a program on them."""
    if on_exact_levels(c, levels) and c.n_levels * len(c.classes) > MAX_NUMBERS:
        most = MAX_NUMBERS // len(c.classes)
        raise Undefined(f"has {c.n_levels:,} levels, and {most} are taken at most; levels=bins puts them together")
    return levels_or_cells(c, levels)


def _cdl(c: ClassTable, levels: Levels) -> WorstRule:
    return c.cached(("cdl", levels), lambda: worst_rules.over_frequencies(_levels(c, levels)))


def _cdl_witness(c: ClassTable, *, levels: Levels = "auto") -> Witness:
    t = as_score(c)
    if t is not None:
        return agents.witness_of("cdl", t, levels)
    rule, used = _cdl(c, levels), _levels(c, levels)
    loss = worst_rules.lost_over_frequencies(used, rule.utility) if len(rule.utility) else 0.0
    _need_loss(rule, loss)
    return _witness(rule.utility, loss, "cfdl" if levels == "auto" else f"cfdl(levels={levels})")


@for_classes(
    "cdl",
    interval=None,
    covers=_NO_INTERVAL,
    witness=_cdl_witness,
    source=f"{cite('Hu and Wu 2024', 'thm. 3.11')}, the linear program by cuts",
    slow=True,
)
def cdl(c: ClassTable, *, levels: Levels = "auto") -> float:
    """The most that any decision maker with payoffs in [0, 1] loses by acting on probabilities instead of frequencies.

    A linear program over all proper scoring rules, on levels of equal probabilities; where these hold few rows, on
    8 to 32 cells of about equally many rows, fewer of more classes.
    """
    t = as_score(c)
    return agents.cdl(t, levels=levels) if t is not None else _cdl(c, levels).loss


@for_classes("cdl_null", interval=None, covers=_NOT_DRAWN, slow=True)
def cdl_null(c: ClassTable, seed: Seed, *, levels: Levels = "auto") -> float:
    """Mean cdl that a perfectly calibrated model with these probabilities shows, by chance alone.

    The classes of the rows of each level or cell are drawn from its probabilities, 20 times.
    """
    t = as_score(c)
    if t is not None:
        return agents.cdl_null(t, seed, levels=levels)
    used = _levels(c, levels)

    def mean() -> float:
        drawn = class_decisions.calibrated_counts(c, used.of_row, used.score, N_RULE_DRAWS, seed.generator("classes"))
        return float(np.mean([worst_rules.most_over_frequencies(used._replace(counts=each)) for each in drawn]))

    return c.cached(("cdl_null", levels, seed), mean)


def _u_cal(c: ClassTable) -> tuple[WorstRule, bool]:
    """The worst agent against the base rate, and whether it is that of the rows and not of cells of them."""

    def worst() -> tuple[WorstRule, bool]:
        if c.n_levels * len(c.classes) <= MAX_NUMBERS:
            return worst_rules.over_constant(c.at_levels()), True
        cells = int(np.clip(MAX_NUMBERS // len(c.classes), *CELLS))
        return worst_rules.over_constant(c.in_cells(cells), c.by_row(MAX_SHOWN_ROWS)), False

    return c.cached("u_cal", worst)


def _attained(c: ClassTable, utility: Floats) -> float:
    """What the best constant action adds to this agent's actions, on the rows themselves."""
    if not len(utility):
        return 0.0
    won = c.units.mean(utility[best_actions(c.score, utility), c.label]).value
    return float((utility @ c.count(c.label, len(c.classes))).max() / c.total) - won


def _u_cal_witness(c: ClassTable) -> Witness:
    t = as_score(c)
    if t is not None:
        return agents.witness_of("u_cal", t)
    rule, _ = _u_cal(c)
    loss = _attained(c, rule.utility)
    _need_loss(rule, loss)
    return _witness(rule.utility, loss, "external_regret")


@for_classes(
    "u_cal",
    interval=None,
    covers=_NO_INTERVAL,
    witness=_u_cal_witness,
    source=f"{cite('Kleinberg et al. 2023', 'thm. 17')}, the linear program by cuts; per row, with payoffs in [0, 1]",
    slow=True,
)
def u_cal(c: ClassTable) -> float:
    """The most that any decision maker with payoffs in [0, 1] loses by acting on probabilities instead of base rates.

    A linear program over all proper scoring rules, on up to 1,000 / K levels of equal probabilities. Of more, the agent
    is looked for on 32 to 64 cells and evaluated on all rows: what is printed is lost, and a little more may be.
    """
    t = as_score(c)
    if t is not None:
        return agents.u_cal(t)
    rule, exact = _u_cal(c)
    return rule.loss if exact else max(_attained(c, rule.utility), 0.0)


def _need_loss(rule: WorstRule, loss: float) -> None:
    if not len(rule.utility) or loss <= worst_rules.NOTHING:
        raise Undefined("no agent loses anything")


def _witness(utility: Floats, loss: float, shown_by: str) -> Witness:
    return Witness(tuple(map(tuple, utility.tolist())), (), loss, shown_by)
