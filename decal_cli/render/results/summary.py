"""What `decal evaluate` opens with: a sentence on what acting is worth, the numbers that say most, where to look next.

Amounts are per 1,000 decisions. Numbers have as many decimals as their intervals deserve.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from decal_cli.analysis.described import OF_ONE_ROW, Amount, LimitedWorth
from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import Metric, Result, parse
from decal_cli.numbers import Interval, decimals_for, fixed, percent
from decal_cli.render.blocks import Block, Cell, Column, Notes, Paragraph, Row, TextTable
from decal_cli.render.results.shortened import lowest_first

PER = 1000
"""Decisions that amounts are of."""
WORTH, SCORE, CALIBRATION, TREES = (
    f"Per {PER:,} decisions",
    "Score",
    "Calibration",
    "What trees of five leaves see",
)
LIMITED = "At this capacity"
SHORT = {
    "gain_recalibration": (WORTH, "recalibration"),
    "gain_beyond": (WORTH, "features"),
    "gain_post_training": (WORTH, "both"),
    "eu_by_amount": (WORTH, "by amount alone"),
    "brier": (SCORE, "Brier score"),
    "log_loss": (SCORE, "log loss"),
    "auc": (SCORE, "AUC"),
    "accuracy": (SCORE, "accuracy"),
    "corp_mcb": (CALIBRATION, "miscalibration"),
    "ece": (CALIBRATION, "ECE"),
    "ece_null": (CALIBRATION, "ECE by chance"),
    "ece_top": (CALIBRATION, "ECE, top class"),
    "ece_top_null": (CALIBRATION, "by chance"),
    "ece_classwise": (CALIBRATION, "ECE by class"),
    "shadow_price": (LIMITED, "one more place"),
    "capture": (LIMITED, "capture"),
    "precision_at_capacity": (LIMITED, "precision"),
    "lift": (LIMITED, "lift"),
    "value_capture": (LIMITED, "value captured"),
    "regret_calibration": (TREES, "calibration regret"),
    "regret_grouping": (TREES, "grouping regret"),
    "regret": (TREES, "regret"),
    "grouping_loss": (TREES, "grouping loss"),
}
"""The section in which a metric stands, and what it is called there; others are in `--all`."""
TREES_SENTENCE = (
    "Noise makes these plug-in numbers larger, and a better model can win more than such trees see: decide by the "
    "gains."
)
SKIPPED_AT_LIMIT = ("log_loss", "ece", "ece_null")
"""What makes way for the numbers of a capacity."""
COLUMNS = ("gain_recalibration", "gain_beyond", "auc", "brier", "ece", "ece_top")
"""Metrics that are columns where several models or groups are rows."""
MAX_NAMED = 3
"""Models that a sentence names."""


class Digits(NamedTuple):
    """How amounts of a page are written: per 1,000 decisions, with the decimals that what acting is worth deserves."""

    decimals: int

    @classmethod
    def of(cls, reports: Sequence[Report]) -> Digits:
        """By the widest interval of what acting on a model is worth, else by the largest amount."""
        worths = [report.worth for report in reports if report.worth is not None and report.group is None]
        ends = [(PER * low, PER * high) for low, high in (each.now.interval for each in worths if each.now.interval)]
        amounts = [PER * value for each in worths for value in (each.now.value, each.over.value)]
        return cls(decimals_for(sorted(ends, key=lambda each: each[0] - each[1])[:1], amounts))

    def amount(self, value: float) -> str:
        """A utility per decision as an amount."""
        return fixed(PER * value, self.decimals)

    def with_ends(self, value: float, interval: Interval | None) -> str:
        """The same with its interval."""
        ends = "" if interval is None else f" [{self.amount(interval[0])}, {self.amount(interval[1])}]"
        return self.amount(value) + ends


def told(value: float, interval: Interval | None, side: str | None = None) -> str:
    """A number with its interval, or the side of it that says something, and as many decimals as that deserves."""
    if interval is None:
        return fixed(value, decimals_for([], [value]))
    known = {"at least": interval[:1], "at most": interval[1:]}.get(side or "", interval)
    decimals = decimals_for([interval if side is None else (min(value, *known), max(value, *known))], [value])
    ends = ", ".join(fixed(end, decimals) for end in known)
    return f"{fixed(value, decimals)} [{ends if side is None else f'{side} {ends}'}]"


def opening(evaluation: Evaluation) -> Iterator[Block]:
    """A sentence on each model, or on all of several; then the numbers."""
    reports, digits = evaluation.reports, Digits.of(evaluation.reports)
    if len(reports) == 1:
        yield Paragraph(" ".join(sentences_on(reports[0], digits)))
        yield from numbers_of(reports[0], digits)
    else:
        yield Paragraph(" ".join(sentences_on_several(evaluation, digits)))
        yield ranked_table(reports, digits)


def sentences_on(report: Report, digits: Digits) -> Iterator[str]:
    """What acting on the score is worth, what would win more, and what is unknown."""
    worth = report.worth
    if worth is None:
        yield from _undecided(report)
        return
    now = digits.with_ends(worth.now.value, worth.now.interval)
    if isinstance(worth, LimitedWorth):
        yield (
            f"Acting on the rows that {report.model} puts first is worth {now} per {PER:,} decisions, "
            f"{_against(worth.over, digits)} acting on none ({digits.amount(worth.idle)}); without the limit it would "
            f"be worth {digits.amount(worth.unlimited)}."
        )
    else:
        yield (
            f"Acting on {report.model} is worth {now} per {PER:,} decisions, {_against(worth.over, digits)} always "
            f"deciding {worth.action}, the best constant decision ({digits.amount(worth.constant)}); perfect knowledge "
            f"would be worth {digits.amount(worth.perfect)}."
        )
        share = report.results.get("utility_share")
        if share is not None and share.value is not None and share.value > 0 and worth.over.value > 0:
            yield f"That is {percent(round(share.value, 2))} of what the best threshold on these scores would win."
    yield from _gains(report, digits)


def _against(over: Amount, digits: Digits) -> str:
    """'6.5 [2.0, 11.0] more than', or less."""
    if not over.value and (over.interval is None or not any(over.interval)):
        return "as much as"
    sign = -1 if over.value < 0 else 1
    ends = None if over.interval is None else sorted(sign * end for end in over.interval)
    size = digits.with_ends(abs(over.value), None if ends is None else (ends[0], ends[1]))
    return f"{size} {'less' if sign < 0 else 'more'} than"


def _gains(report: Report, digits: Digits) -> Iterator[str]:
    gain, beyond = (report.results.get(key) for key in ("gain_recalibration", "gain_beyond"))
    if gain is not None and gain.value is not None:
        yield f"Recalibration {_would_win(gain, digits)}."
    elif gain is not None:
        yield f"What recalibration would win is unknown: it {gain.reason}."
    if beyond is not None and beyond.value is not None:
        yield f"Beyond that, the features {_would_win(beyond, digits)}."
    elif not report.features:
        worst = report.results.get("regret_grouping_worst")
        most = (
            ""
            if worst is None or worst.value is None
            else (f": at most {digits.amount(worst.value)}, which is an upper limit and not an estimate")
        )
        yield f"What features would win beyond that is unknown without {Hint('features').words}{most}."


def _would_win(gain: Result, digits: Digits) -> str:
    value, ends = gain.value or 0.0, gain.interval
    if ends is not None and ends[0] <= 0 <= ends[1]:
        return f"may win or lose: {digits.with_ends(value, ends)}"
    if value < 0:
        return f"would lose {digits.with_ends(-value, None if ends is None else (-ends[1], -ends[0]))}"
    return f"would win {digits.with_ends(value, ends)}"


def _undecided(report: Report) -> Iterator[str]:
    """Without a decision: how it ranks, how far off it is, and what is needed to say what it is worth."""
    auc, brier, off = (report.results.get(key) for key in ("auc", "brier", "corp_mcb"))
    if auc is not None and auc.value is not None and report.by_class is None:
        yield (
            f"{report.model} puts a row of label 1 above one of label 0 with probability "
            f"{told(auc.value, auc.interval)} (AUC)."
        )
    if brier is not None and brier.value is not None:
        of_that = "" if off is None or off.value is None else (f", of which {told(off.value, None)} is miscalibration")
        its = "Its" if auc is not None and auc.value is not None and report.by_class is None else f"{report.model}'s"
        yield f"{its} Brier score is {told(brier.value, brier.interval)}{of_that}."
    yield f"What acting on it wins or loses needs a decision: give {needed(report.by_class is not None)}."


def needed(of_classes: bool) -> str:
    """The options that name a decision."""
    if of_classes:
        return f"{Hint('abstain').words}, or {Hint('utility').words} with a column for each class"
    costs = f"{Hint('cost_fp').words} and {Hint('cost_fn').words}"
    return f"{costs}, {Hint('threshold').words}, {Hint('odds').words} or {Hint('utility').words}"


def sentences_on_several(evaluation: Evaluation, digits: Digits) -> Iterator[str]:
    """Which model is worth most, which are worth less than a constant decision, and where recalibration wins most."""
    whole = [report for report in evaluation.reports if report.group is None]
    ranked = sorted(whole, key=_place)
    first, worth = ranked[0], ranked[0].worth
    groups = len({report.group for report in evaluation.reports} - {None})
    if len(whole) == 1:
        yield from sentences_on(first, digits)
    elif worth is None:
        brier = first.results.get("brier")
        if brier is not None and brier.value is not None:
            size = told(brier.value, brier.interval)
            yield f"Of {len(whole)} models, {first.model} has the lowest Brier score, {size}."
        yield f"What acting on them wins or loses needs a decision: give {needed(first.by_class is not None)}."
    else:
        now = digits.with_ends(worth.now.value, worth.now.interval)
        beside = (
            f"acting on none is worth {digits.amount(worth.idle)}, {first.model} without the limit "
            f"{digits.amount(worth.unlimited)}"
            if isinstance(worth, LimitedWorth)
            else f"always deciding {worth.action} is worth {digits.amount(worth.constant)}, perfect knowledge "
            f"{digits.amount(worth.perfect)}"
        )
        yield f"Of {len(whole)} models, {first.model} is worth most: {now} per {PER:,} decisions; {beside}."
        yield from _no_better(ranked)
        yield from _most_to_win(whole, digits)
    if groups:
        yield f"The table has {'each model and' if len(whole) > 1 else 'all rows, and'} each of {groups:,} groups."


def _no_better(reports: Sequence[Report]) -> Iterator[str]:
    lose = [report.model for report in reports if report.worth is not None and report.worth.over.value <= 0]
    if lose:
        more = len(lose) - MAX_NAMED
        named = ", ".join(lose[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        yield f"No better than the best constant decision: {named}."


def _most_to_win(reports: Sequence[Report], digits: Digits) -> Iterator[str]:
    gains = [(report, report.results.get("gain_recalibration")) for report in reports]
    known = [(gain.value, report, gain) for report, gain in gains if gain is not None and gain.value is not None]
    winning = [each for each in known if (each[0] if each[2].interval is None else each[2].interval[0]) > 0]
    wins = "Recalibration clearly wins" if any(gain.interval for *_, gain in known) else "Recalibration wins"
    if winning:
        value, report, gain = max(winning, key=lambda each: each[0])
        of_all = f"for {len(winning)} of them" if len(winning) < len(known) else "for all of them"
        yield f"{wins} {of_all}, most for {report.model}: {digits.with_ends(value, gain.interval)}."
    elif known:
        yield f"{wins} for none of them."
    if reports and not any(report.features for report in reports):
        yield f"What features would win is unknown without {Hint('features').words}."


def _place(report: Report) -> tuple[bool, float]:
    """To sort by: what is worth most first, without a decision the lowest Brier score."""
    if report.worth is not None:
        return lowest_first(-report.worth.now.value)
    brier = report.results.get("brier")
    return lowest_first(None if brier is None else brier.value)


def numbers_of(report: Report, digits: Digits) -> Iterator[Block]:
    """The numbers that say most, in sections that stand side by side; apart from them, those of small trees."""
    rows = list(_worth_rows(report, digits))
    apart = []
    limited = isinstance(report.worth, LimitedWorth)
    for key, result in report.results.items():
        section, name = SHORT.get(key, ("", ""))
        if not section or result.value is None or (limited and key in SKIPPED_AT_LIMIT):
            continue
        cell = _cell(parse(key).declared, result, digits)
        if section == TREES:
            apart.append(f"{name} {cell.text}")
        else:
            rows.append(Row((Cell((name,), code=key), cell), section))
    order = {WORTH: 0, LIMITED: 1, SCORE: 2, CALIBRATION: 3}
    rows.sort(key=lambda row: order[row.section])
    if rows:
        yield TextTable((Column("metric", words=True), Column(report.model)), tuple(rows), beside=True)
    if report.features and len(apart) > 1:
        yield Paragraph(f"{', '.join(apart)}. {TREES_SENTENCE}", strong=f"{TREES}:")


def _worth_rows(report: Report, digits: Digits) -> Iterator[Row]:
    worth = report.worth
    if worth is None:
        return
    other = (
        ("acting on none", worth.idle)
        if isinstance(worth, LimitedWorth)
        else (f"always {worth.action}", worth.constant)
    )
    best = ("without limit", worth.unlimited) if isinstance(worth, LimitedWorth) else ("perfect", worth.perfect)
    yield Row((Cell(("as it is",)), _amount_cell(worth.now.value, worth.now.interval, digits)), WORTH)
    for name, value in (other, best):
        yield Row((Cell((name,)), _amount_cell(value, None, digits)), WORTH)


def _amount_cell(value: float, interval: Interval | None, digits: Digits) -> Cell:
    ends = () if interval is None else (f"[{digits.amount(interval[0])}, {digits.amount(interval[1])}]",)
    return Cell((digits.amount(value), *ends))


def is_amount(metric: Metric) -> bool:
    """Whether a metric is a utility per decision, so that many decisions have so many times that."""
    return metric.unit == "utility" and metric.name not in OF_ONE_ROW


def _cell(metric: Metric, result: Result, digits: Digits) -> Cell:
    """Utilities as amounts, all else as it is; a value that says itself as it does."""
    if result.value is None:
        return Cell(("–",), reason=result.reason or "")
    if is_amount(metric):
        return _amount_cell(result.value, result.interval, digits)
    # The range of what chance shows is not an interval of anything.
    interval = None if metric.name.endswith("_null") else result.interval
    value, _, ends = told(result.value, interval, result.side).partition(" ")
    return Cell(tuple(filter(None, (result.text or value, ends))))


def ranked_table(reports: Sequence[Report], digits: Digits) -> TextTable:
    """A row for each model and group, the model that is worth most first, each followed by its groups."""
    models = sorted((report for report in reports if report.group is None), key=_place)
    order = {report.model: number for number, report in enumerate(models)}
    rows = sorted(reports, key=lambda report: (order.get(report.model, len(order)), report.group is not None))
    keys = [key for key in COLUMNS if any(_known(report, key) for report in reports)]
    decided, grouped = any(report.worth is not None for report in reports), any(report.group for report in reports)
    columns = [Column("model", words=True)] if len(models) > 1 or not grouped else []
    columns += [Column("group", words=True), Column("rows", drops=2)] if grouped else []
    columns += [Column(f"worth per {PER:,}", breaks=(9,)), Column("over best constant", breaks=(9,))] if decided else []
    columns += [Column(_heading(key), breaks=(9,), drops=_drops(key)) for key in keys]
    return TextTable(
        tuple(columns),
        tuple(Row((*_ranked_cells(report, keys, decided, grouped, digits),)[-len(columns) :]) for report in rows),
        keys=1 + (grouped and len(models) > 1),
        dense=True,
    )


def _known(report: Report, key: str) -> bool:
    result = report.results.get(key)
    return result is not None and result.value is not None


def _heading(key: str) -> str:
    section, name = SHORT[key]
    return f"{name} {'win' if name == 'features' else 'wins'}" if section == WORTH else name


def _drops(key: str) -> int:
    """Which columns go first where there is little room: those that decide least."""
    return {"ece": 1, "ece_top": 1, "brier": 2, "auc": 2}.get(key, 0)


def _ranked_cells(report: Report, keys: Sequence[str], decided: bool, grouped: bool, digits: Digits) -> Iterator[Cell]:
    yield Cell((report.model,))
    if grouped:
        yield Cell((report.group or "all rows",))
        yield Cell((f"{report.rows:,}",))
    if decided:
        amounts = (None, None) if report.worth is None else (report.worth.now, report.worth.over)
        for each in amounts:
            yield Cell(("–",)) if each is None else _amount_cell(each.value, each.interval, digits)
    for key in keys:
        result = report.results.get(key)
        yield Cell(("–",)) if result is None else _cell(parse(key).declared, result, digits)


def shown_in(reports: Sequence[Report]) -> Container[str]:
    """The metrics that stand in the summary."""
    return SHORT if len(reports) == 1 else COLUMNS


def next_steps(evaluation: Evaluation) -> Notes:
    """Where to look next."""
    models = {report.model for report in evaluation.reports}
    steps = [
        f"{Verb('recommend').words} (what to do)" if evaluation.plan.decision is not None else "",
        f"{Verb('compare').words} (two models row by row)" if len(models) > 1 else "",
        f"{Verb('sweep').words} (every threshold)" if evaluation.decision is None and evaluation.by_row is None else "",
        f"{Verb('evaluate', 'all').words} (every metric)",
    ]
    return Notes((f"Next: {', '.join(filter(None, steps))}.",), quiet=True)
