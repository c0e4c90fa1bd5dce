"""Sentences on two models, for decision-makers; the terminal and Markdown share them."""

from __future__ import annotations

from collections.abc import Iterator

from decal_cli.analysis.compare import Comparison, Contest, Difference
from decal_cli.analysis.splice import HeldOut
from decal_cli.metrics import parse
from decal_cli.metrics.confidence import quantile
from decal_cli.render.numbers import plain, short, span
from decal_cli.tables.table import FOLDS

UTILITY = "expected_utility"
MOST_RANGES = 4
"""Ranges of thresholds that a sentence lists."""


def verdict_words(found: Difference, names: tuple[str, str], separator: str = " ") -> str:
    """Who is better, and whether it could be chance: 'p_b better, not by chance'."""
    if found.difference.value is None or (found.better is None and found.difference.value != 0):
        return ""
    if found.better is None:
        return "the same"
    name = names[0 if found.better == "a" else 1]
    if found.by_chance is None:
        return (
            f"{name} ahead,{separator}no interval" if found.difference.interval is None else f"{name} nearer the ideal"
        )
    return f"{name} ahead,{separator}could be chance" if found.by_chance else f"{name} better,{separator}not by chance"


def difference_cell(found: Difference, separator: str = " ") -> str:
    """B - A with its sign, and its paired interval."""
    value = found.difference.value
    if value is None:
        return ""
    return separator.join(filter(None, (signed(value, 4), span(found.difference.interval, 4))))


def signed(value: float, decimals: int) -> str:
    """A difference, with its sign where it does not round to zero."""
    text = short(value, decimals)
    return f"+{text}" if value > 0 and text.strip(".0") else text


def per_thousand(value: float, ends: tuple[float, float] | None = None, plus: bool = False) -> str:
    """A utility per 1,000 decisions with its interval, all to as many decimals as the largest needs."""
    scaled = [1000 * part for part in (value, *(ends or ()))]
    decimals = 1 if max(map(abs, scaled)) >= 1 else 3
    first, *rest = (f"{part:,.{decimals}f}" for part in scaled)
    sign = "+" if plus and scaled[0] > 0 else ""
    return sign + first + (f" [{rest[0]}, {rest[1]}]" if rest else "")


def sides_line(comparison: Comparison) -> str:
    """Which model is A and which is B, and what the intervals are."""
    first, second = comparison.models
    plan = comparison.evaluation.plan
    level = f"{100 * plan.confidence:g} % paired" if plan.intervals else "no"
    return f"A = {first}, B = {second}, {comparison.contests[0].rows:,} rows; B - A with {level} intervals"


def summary(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Heading and text of each thing that a decision-maker wants to know, most important first."""
    whole = comparison.contests[0]
    task = comparison.evaluation.task
    if task is not None and UTILITY in whole.headline:
        yield f"Decisions at t* = {plain(task.threshold)}", _utility_sentence(comparison, whole)
    if "brier" in whole.headline:
        yield "Brier score", _brier_sentence(comparison, whole)
    yield "Thresholds", _threshold_sentence(comparison, whole)
    if len(comparison.contests) > 1:
        yield "Groups", _group_sentence(comparison)
    yield "Splice", _splice_sentence(comparison)


def _utility_sentence(comparison: Comparison, contest: Contest) -> str:
    found = contest.headline[UTILITY]
    value, interval = found.difference.value or 0.0, found.difference.interval
    if found.better is None:
        return "both are worth the same."
    winner = comparison.name(found.better)
    size = abs(value)
    ends = None if interval is None else (interval if value > 0 else (-interval[1], -interval[0]))
    return (
        f"{winner} is worth {per_thousand(size, ends)} utility more per 1,000 decisions, "
        f"{plain(size)} per decision; {_chance(found)}."
    )


def _brier_sentence(comparison: Comparison, contest: Contest) -> str:
    found = contest.headline["brier"]
    if found.better is None:
        return "the same."
    value, interval = found.difference.value or 0.0, found.difference.interval
    ends = None if interval is None else (interval if value > 0 else (-interval[1], -interval[0]))
    return (
        f"{comparison.name(found.better)} is better by {short(abs(value), 4)}"
        f"{' ' + span(ends, 4) if ends else ''}; {_chance(found)}."
    )


def _chance(found: Difference) -> str:
    if found.by_chance is None:
        return "no interval was made"
    return "this could be chance" if found.by_chance else "not by chance"


def _threshold_sentence(comparison: Comparison, contest: Contest) -> str:
    at = contest.thresholds
    exact = comparison.name(at.curves.dominates) if at.curves.dominates else None
    sides = {lead.side for lead in at.leads}
    if not sides:
        text = "judging all at once, at none is either model ahead beyond chance"
    elif len(sides) == 1:
        side = next(iter(sides))
        other = comparison.name("a" if side == "b" else "b")
        text = f"judging all at once, {comparison.name(side)} is ahead {_ranges(comparison, contest)}; {other} nowhere"
    else:
        text = f"it depends. Judging all at once, {_ranges(comparison, contest, named=True)}"
    crossings = len(at.curves.zeros)
    if exact is not None:
        return f"{text}. The Brier curve of {exact} dominates: it lies nowhere above the other on these rows."
    if at.crossings:
        places = ", ".join(short(crossing.threshold, 3) for crossing in at.crossings)
        times = "once" if len(at.crossings) == 1 else f"{len(at.crossings)} times"
        noise = crossings - len(at.crossings)
        smaller = f"; {noise} smaller crossing{'s are' if noise > 1 else ' is'} within noise and ignored"
        rest = smaller if noise > 0 else ""
        return f"{text}. The Brier curves cross beyond noise {times}, at t = {places}{rest}."
    met = "once" if crossings == 1 else f"{crossings} times"
    return f"{text}. The Brier curves cross {met} on these rows, never beyond noise."


def _ranges(comparison: Comparison, contest: Contest, named: bool = False) -> str:
    parts = []
    several = len(contest.thresholds.leads) > MOST_RANGES
    for lead in contest.thresholds.leads:
        who = f"{comparison.name(lead.side)} is ahead " if named else ""
        where = (
            f"at t = {short(lead.low, 3)}"
            if lead.low == lead.high
            else (f"for t from {short(lead.low, 3)} to {short(lead.high, 3)}")
        )
        parts.append(who + where)
    return ", ".join(parts[:MOST_RANGES]) + (f", and {len(parts) - MOST_RANGES} more (below)" if several else "")


def lead_rows(comparison: Comparison, contest: Contest) -> list[list[str]]:
    """For each range of thresholds: the range, who is ahead, by how much at most per 1,000 decisions, and where."""
    reach = contest.thresholds.reach
    return [
        [
            f"{short(lead.low, 3)} – {short(lead.high, 3)}",
            comparison.name(lead.side),
            f"{plain(1000 * lead.most)} ± {plain(1000 * reach * lead.error)}",
            short(lead.at, 3),
        ]
        for lead in contest.thresholds.leads
    ]


LEAD_HEADINGS = ("thresholds", "ahead beyond chance", "most saved per 1,000 (u_delta 1)", "at t")


def headline_key(comparison: Comparison) -> str:
    """What groups are compared by: utility where there is a task, else the Brier score."""
    return UTILITY if UTILITY in comparison.contests[0].headline else "brier"


def _group_sentence(comparison: Comparison) -> str:
    key = headline_key(comparison)
    places: dict[str, list[str]] = {}
    for contest in comparison.contests[1:]:
        found = contest.headline.get(key)
        words = "undefined" if found is None else verdict_words(found, comparison.models) or "the same"
        places.setdefault(words, []).append(str(contest.group))
    title = parse(key).metric.title.lower()
    return f"by {title}, " + "; ".join(f"{words}: {', '.join(groups)}" for words, groups in places.items()) + "."


def group_rows(comparison: Comparison) -> list[list[str]]:
    """For each group: its rows, the difference that counts, and in words who is better."""
    key = headline_key(comparison)
    rows = []
    for contest in comparison.contests[1:]:
        found = contest.headline.get(key)
        cells = ["", "undefined"]
        if found is not None:
            cells = [difference_cell(found), verdict_words(found, comparison.models)]
        rows.append([str(contest.group), f"{contest.rows:,}", *cells])
    return rows


def group_headings(comparison: Comparison) -> tuple[str, str, str, str]:
    """The columns of the table of groups."""
    return "group", "rows", f"{parse(headline_key(comparison)).metric.title.lower()}, B - A", "who wins"


def _splice_sentence(comparison: Comparison) -> str:
    made = comparison.splice
    if made is None:
        return f"none: {comparison.no_splice}."
    below, above = comparison.name(made.cut.below), comparison.name("a" if made.cut.below == "b" else "b")
    reach = quantile(comparison.evaluation.plan.confidence)
    mean, error = made.brier.difference
    if mean + reach * error < 0:
        advice = "worth it for users of many thresholds"
    else:
        advice = "nothing to gain that one could count on"
    said = f"on rows held out, Brier score {short(made.brier.value, 4)}, {_beside(comparison, made.brier, 1)}"
    if made.utility is not None:
        worth = per_thousand(made.utility.value)
        said += f"; utility per 1,000 decisions {worth}, {_beside(comparison, made.utility, 1000)}"
    doubt = "" if made.agreeing == FOLDS else f" Only {made.agreeing} of {FOLDS} folds choose this order."
    return f"{advice}. {below} below t = {short(made.cut.threshold, 3)} and {above} above: {said}.{doubt}"


def _beside(comparison: Comparison, found: HeldOut, scale: int) -> str:
    """How far it is from the better single model."""
    mean, error = found.difference
    reach = quantile(comparison.evaluation.plan.confidence) * error
    ends = (mean - reach, mean + reach)
    text = per_thousand(mean, ends, plus=True) if scale > 1 else f"{signed(mean, 4)} {span(ends, 4)}"
    return f"{text} beside {comparison.name(found.single)} alone"
