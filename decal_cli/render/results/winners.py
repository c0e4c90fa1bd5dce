"""Sentences on two models, for decision-makers."""

from __future__ import annotations

from collections.abc import Iterator

from decal_cli.analysis.compare import Comparison, Contest, Difference, Thresholds
from decal_cli.analysis.splice import SpliceGain
from decal_cli.metrics import parse
from decal_cli.metrics.confidence import quantile
from decal_cli.numbers import Interval, plain, short, span
from decal_cli.render.results.differences import signed, who_wins
from decal_cli.render.results.disagreements import disagreements_sentence
from decal_cli.render.results.shortened import MAX_GROUPS
from decal_cli.render.results.swap import swap_sentence
from decal_cli.render.terms import Terms
from decal_cli.tables.resample import FOLDS

UTILITIES = ("utility_at_capacity", "expected_utility")
"""What decisions are compared by: the first that there is."""
MAX_RANGES = 4
"""Ranges of thresholds that a sentence lists."""


def sides_line(comparison: Comparison) -> str:
    """Which model is A and which is B, and what the intervals are."""
    first, second = comparison.models
    plan = comparison.evaluation.plan
    level = f"{100 * plan.confidence:g} % paired" if plan.intervals else "no"
    return f"A = {first}, B = {second}, {comparison.contests[0].rows:,} rows; B - A with {level} intervals"


def summary(comparison: Comparison, terms: Terms) -> Iterator[tuple[str, str]]:
    """Heading and text of each thing that a decision-maker wants to know, most important first."""
    whole = comparison.contests[0]
    task = comparison.evaluation.task
    if group_key(comparison) in UTILITIES:
        at = "" if task is None else f" at t* = {' and '.join(map(plain, task.thresholds))}"
        limit = comparison.evaluation.capacity
        at += "" if limit is None else f", capacity {limit.text}"
        yield f"Decisions{at}", _utility_sentence(comparison, whole, terms)
    if whole.swap is not None:
        yield "Rows acted on", swap_sentence(whole.swap, comparison.models)
    if whole.disagreements is not None:
        yield "Disagreements", disagreements_sentence(whole.disagreements, comparison.models)
    if "brier" in whole.headline:
        yield "Brier score", _brier_sentence(comparison, whole)
    if whole.thresholds is not None:
        yield "Thresholds", _threshold_sentence(comparison, whole.thresholds)
    if len(comparison.contests) > 1:
        yield "Groups", _group_sentence(comparison)
    if whole.thresholds is not None and (comparison.splice is not None or comparison.no_splice is not None):
        yield "Splice", _splice_sentence(comparison, terms)


def _utility_sentence(comparison: Comparison, contest: Contest, terms: Terms) -> str:
    difference = contest.headline[group_key(comparison)]
    if difference.better is None:
        return "both models are worth the same."
    size, ends = _size(difference)
    (value, *span_ends), unit = terms.amounts(size, *(ends or ()))
    within = f" [{', '.join(span_ends)}]" if ends else ""
    return (
        f"{comparison.name(difference.better)} is worth {value}{within} more {unit or terms.noun} {terms.span} "
        f"({plain(size)} per decision); {_chance(difference)}."
    )


def _brier_sentence(comparison: Comparison, contest: Contest) -> str:
    difference = contest.headline["brier"]
    if difference.better is None:
        return "the same."
    size, ends = _size(difference)
    return (
        f"{comparison.name(difference.better)} is better by {short(size, 4)}"
        f"{' ' + span(ends, 4) if ends else ''}; {_chance(difference)}."
    )


def _size(difference: Difference) -> tuple[float, Interval | None]:
    """How far the two are apart, whichever is ahead, with its interval."""
    value, interval = difference.difference.value or 0.0, difference.difference.interval
    if interval is None or value > 0:
        return abs(value), interval
    return abs(value), (-interval[1], -interval[0])


def _chance(difference: Difference) -> str:
    if difference.by_chance is None:
        return "there is no interval"
    return "chance could explain this" if difference.by_chance else "chance does not explain this"


def _threshold_sentence(comparison: Comparison, at: Thresholds) -> str:
    exact = comparison.name(at.curves.dominates) if at.curves.dominates else None
    sides = {lead.side for lead in at.leads}
    if not sides:
        text = "at no threshold is one model clearly ahead (tested at all thresholds together)"
    elif len(sides) == 1:
        side = next(iter(sides))
        other = comparison.name("a" if side == "b" else "b")
        text = f"{comparison.name(side)} is clearly ahead {_ranges(comparison, at)}; {other} nowhere"
    else:
        text = f"it depends: {_ranges(comparison, at, named=True)}"
    crossings = len(at.curves.zeros)
    if exact is not None:
        return f"{text}. On these rows the Brier curve of {exact} is nowhere above the other."
    if at.crossings:
        places = ", ".join(short(crossing.threshold, 3) for crossing in at.crossings)
        times = "once" if len(at.crossings) == 1 else f"{len(at.crossings)} times"
        noise = crossings - len(at.crossings)
        smaller = f"; {noise} smaller crossing{'s are' if noise > 1 else ' is'} within noise"
        rest = smaller if noise > 0 else ""
        return f"{text}. The Brier curves clearly cross {times}, at t = {places}{rest}."
    if not crossings:
        return f"{text}. The Brier curves are the same."
    met = "once" if crossings == 1 else f"{crossings} times"
    return f"{text}. The Brier curves cross {met} on these rows, each time within noise."


def _ranges(comparison: Comparison, at: Thresholds, named: bool = False) -> str:
    parts = []
    several = len(at.leads) > MAX_RANGES
    for lead in at.leads:
        who = f"{comparison.name(lead.side)} is clearly ahead " if named else ""
        where = (
            f"at t = {short(lead.low, 3)}"
            if lead.low == lead.high
            else (f"for t from {short(lead.low, 3)} to {short(lead.high, 3)}")
        )
        parts.append(who + where)
    return ", ".join(parts[:MAX_RANGES]) + (f", and {len(parts) - MAX_RANGES} more (below)" if several else "")


def group_key(comparison: Comparison) -> str:
    """What groups are compared by: utility where there is a task, else the Brier score."""
    whole = comparison.contests[0].headline
    return next((utility for utility in UTILITIES if utility in whole), "brier")


def _group_sentence(comparison: Comparison) -> str:
    key = group_key(comparison)
    places: dict[str, list[str]] = {}
    for contest in comparison.contests[1:]:
        difference = contest.headline.get(key)
        words = "undefined" if difference is None else who_wins(difference, comparison.models).text or "the same"
        places.setdefault(words, []).append(str(contest.group))
    title = parse(key).declared.title.lower()
    many = len(comparison.contests) > MAX_GROUPS + 1
    named = (f"{len(groups):,} groups" if many else ", ".join(groups) for groups in places.values())
    return f"by {title}, " + "; ".join(f"{words}: {groups}" for words, groups in zip(places, named, strict=True)) + "."


def _splice_sentence(comparison: Comparison, terms: Terms) -> str:
    splice = comparison.splice
    if splice is None:
        return f"none: {comparison.no_splice}."
    below, above = comparison.name(splice.cut.below), comparison.name("a" if splice.cut.below == "b" else "b")
    mean, error = splice.brier.difference
    if mean + quantile(comparison.evaluation.plan.confidence) * error < 0:
        advice = "worth it if you use many thresholds"
    else:
        advice = "not worth it: the gain is within noise"
    reached = f"on held-out rows, Brier score {short(splice.brier.value, 4)}, {_beside(comparison, splice.brier, None)}"
    if splice.utility is not None and comparison.evaluation.capacity is None:
        reached += f"; {_beside(comparison, splice.utility, terms)}"
    doubt = "" if splice.agreeing == FOLDS else f" Only {splice.agreeing} of {FOLDS} folds choose this order."
    return f"{advice}. {below} below t = {short(splice.cut.threshold, 3)} and {above} above: {reached}.{doubt}"


def _beside(comparison: Comparison, reached: SpliceGain, terms: Terms | None) -> str:
    """How far it is from the better single model; terms: of an amount, with what is reached."""
    mean, error = reached.difference
    reach = quantile(comparison.evaluation.plan.confidence) * error
    ends = (mean - reach, mean + reach)
    if terms is None:
        text = f"{signed(mean, 4)} {span(ends, 4)}"
    else:
        (value,), unit = terms.amounts(reached.value)
        (change, low, high), of_change = terms.amounts(mean, *ends)
        sign, size = "+" if mean > 0 else "", "" if of_change == unit else f" {of_change}"
        text = f"{value} {unit or terms.noun} {terms.span}, {sign}{change} [{low}, {high}]{size}"
    return f"{text} compared with {comparison.name(reached.single)} alone"
