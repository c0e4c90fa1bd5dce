"""What decisions are worth, row by row and in exact fractions: one loop that is the truth for every world.

A world has K classes and A actions; utilities that all rows share, or each row has; weights, groups, another
prevalence, and a capacity. Nothing here is sorted, counted or vectorised, so that nothing can be shared with decal.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

Exact = Fraction
Payoff = Sequence[Sequence[Exact]]
"""A row for each action, a column for each class."""


@dataclass(frozen=True)
class Row:
    """score: the probability of each class."""

    score: tuple[Exact, ...]
    label: int
    payoff: Payoff
    weight: Exact = Fraction(1)
    group: str = ""


@dataclass(frozen=True)
class RowWorld:
    rows: list[Row]
    prevalence: tuple[Exact, ...] | None = None
    capacity: int | None = None
    decision_threshold: Exact | None = None
    bins: int = 15
    shared: bool = field(default=True, kw_only=True)


def worth_of(payoff: Payoff, chance: Sequence[Exact]) -> list[Exact]:
    """What each action is expected to win."""
    return [sum((u * c for u, c in zip(line, chance, strict=True)), Fraction(0)) for line in payoff]


def taken(world: RowWorld, row: Row) -> int:
    """Of actions worth the same: of two classes the one that is best just above this score (below a score of 1).

    Of more classes the first.
    """
    if world.decision_threshold is not None:
        return int(row.score[1] >= world.decision_threshold)
    each = worth_of(row.payoff, row.score)
    best = [a for a, value in enumerate(each) if value == max(each)]
    if len(row.score) > 2:
        return best[0]
    side = -1 if row.score[1] == 1 else 1
    return max(best, key=lambda a: side * (row.payoff[a][1] - row.payoff[a][0]))


def mean_of(rows: Sequence[Row], value: Callable[[Row], Exact | int]) -> Exact | None:
    total = sum(row.weight for row in rows)
    return sum((row.weight * value(row) for row in rows), Fraction(0)) / total if total else None


def regret(rows: Sequence[Row], acts: Callable[[Row], int] | None, cell: Callable[[Row], Hashable]) -> Exact:
    """What the best action for the labels of each cell adds, per row, to the one taken.

    Without one taken: what knowing the label is expected to add to that best action.
    """
    total = Fraction(0)
    for name in {cell(row) for row in rows}:
        inside = [row for row in rows if cell(row) == name]
        share = [mean_of(inside, lambda row, k=k: row.label == k) or Fraction(0) for k in range(len(rows[0].score))]
        for row in inside:
            each = worth_of(row.payoff, share)
            (known,) = worth_of([[max(of_label) for of_label in zip(*row.payoff, strict=True)]], share)
            total += row.weight * (known - max(each) if acts is None else max(each) - each[acts(row)])
    return total / sum(row.weight for row in rows)


def moved(world: RowWorld) -> RowWorld:
    """Rows weighted to the prevalence, and their scores moved to it."""
    if world.prevalence is None:
        return world
    shares = [mean_of(world.rows, lambda row, k=k: row.label == k) for k in range(len(world.prevalence))]
    factor = [q / share for q, share in zip(world.prevalence, shares, strict=True)]

    def anew(row: Row) -> Row:
        mass = [f * p for f, p in zip(factor, row.score, strict=True)]
        score = tuple(each / sum(mass) for each in mass)
        return replace(row, score=score, weight=row.weight * factor[row.label])

    return replace(world, rows=[anew(row) for row in world.rows], prevalence=None)


def without_place(world: RowWorld, row: Row) -> int:
    """The action that needs no place: the first, or of two classes and utilities that all share, that of low scores."""
    if not world.shared or len(row.score) > 2:
        return 0
    return max(range(len(row.payoff)), key=lambda a: (row.payoff[a][0], row.payoff[a][1]))


def chances_of_places(world: RowWorld) -> dict[int, Exact]:
    """By id of a row, the chance that it is acted on where only so many can be; a place is as heavy as a mean row."""
    free = world.capacity * sum(row.weight for row in world.rows) / len(world.rows)
    rank, wanted = {}, []
    for row in world.rows:
        each, acts, idle = worth_of(row.payoff, row.score), taken(world, row), without_place(world, row)
        two = world.shared and len(row.payoff) == len(row.score) == 2
        rank[id(row)] = row.score[1] if two else each[acts] - each[idle]
        wanted += [row] if acts != idle else []
    chance = {id(row): Fraction(0) for row in world.rows}
    for level in sorted({rank[id(row)] for row in wanted}, reverse=True):
        tied = [row for row in wanted if rank[id(row)] == level]
        mass = sum(row.weight for row in tied)
        share = min(Fraction(1), free / mass)
        chance |= {id(row): share for row in tied}
        free -= share * mass
    return chance


def bin_of(world: RowWorld, rows: Sequence[Row]) -> Callable[[Row], int]:
    """Equal-mass bins of the score: the edges are quantiles, and a score equal to an edge is in the lower bin."""
    scores = sorted(row.score[1] for row in rows)
    edges = set()
    for i in range(1, world.bins):
        if len({row.weight for row in rows}) == 1:
            at = Fraction(i * (len(scores) - 1), world.bins)
            low, part = scores[int(at)], at - int(at)
            edges.add(low + part * (scores[min(int(at) + 1, len(scores) - 1)] - low))
        else:
            total = sum(row.weight for row in rows)
            upto = {s: sum(row.weight for row in rows if row.score[1] <= s) for s in scores}
            edges.add(min(s for s in scores if upto[s] >= total * i / world.bins))
    return lambda row: sum(row.score[1] > edge for edge in edges)


def oracle_values(world: RowWorld, group: str | None = None) -> dict[str, Exact | None]:
    """By metric; None where it does not exist. Of a group: its rows, as the whole world treats them."""
    world = moved(world)
    everyone = world.rows
    rows = [row for row in everyone if group in (None, row.group)]
    classes, actions = len(rows[0].score), len(rows[0].payoff)
    acts = {id(row): taken(world, row) for row in everyone}

    def act(row: Row) -> int:
        return acts[id(row)]

    won = mean_of(rows, lambda row: row.payoff[act(row)][row.label])
    constants = [mean_of(rows, lambda row, a=a: row.payoff[a][row.label]) for a in range(actions)]
    best = max(constants)
    found = {
        "brier": mean_of(rows, lambda row: sum((p - (k == row.label)) ** 2 for k, p in enumerate(row.score))),
        "expected_utility": won,
        "external_regret": best - won,
        "utility_at_stake": mean_of(rows, lambda row: max(line[row.label] for line in row.payoff)) - best,
        "swap_regret": regret(rows, act, act),
        "cfdl(levels=exact)": regret(rows, act, lambda row: row.score),
    }
    chance = {} if world.capacity is None else chances_of_places(world)
    if chance:
        with_places = mean_of(
            rows,
            lambda row: (
                (1 - chance[id(row)]) * row.payoff[without_place(world, row)][row.label]
                + chance[id(row)] * row.payoff[act(row)][row.label]
            ),
        )
        found |= {"utility_at_capacity": with_places, "capacity_cost": won - with_places}
    if classes > 2:
        return found | {"accuracy": mean_of(rows, lambda row: row.score.index(max(row.score)) == row.label)}
    found["brier"] /= 2
    found["regret_calibration"] = regret(rows, act, bin_of(world, rows))
    if world.shared or actions == 2:
        found["regret_grouping_worst"] = regret(rows, None, bin_of(world, rows))
    if actions > 2:
        return found

    def where(chosen: Callable[[Row], bool], hit: Callable[[Row], bool]) -> Exact | None:
        return mean_of([row for row in rows if chosen(row)], hit)

    found |= {
        "eu_never": constants[0],
        "eu_always": constants[1],
        "selection_rate": mean_of(rows, act),
        "accuracy": mean_of(rows, lambda row: act(row) == row.label),
        "sensitivity": where(lambda row: row.label == 1, lambda row: act(row) == 1),
        "specificity": where(lambda row: row.label == 0, lambda row: act(row) == 0),
        "ppv": where(lambda row: act(row) == 1, lambda row: row.label == 1),
        "npv": where(lambda row: act(row) == 0, lambda row: row.label == 0),
    }
    if world.shared:
        (u00, u01), (u10, u11) = rows[0].payoff
        odds = (u00 - u10) / (u11 - u01)
        found["net_benefit"] = mean_of(rows, lambda row: act(row) * (1 if row.label else -odds))
    if chance:
        hits, acted = mean_of(rows, lambda row: chance[id(row)] * row.label), mean_of(rows, lambda row: chance[id(row)])
        found["capture"] = hits / base if (base := mean_of(rows, lambda row: row.label)) else None
        found["precision_at_capacity"] = hits / acted if acted else None
    return found
