"""What `decal evaluate` opens with: what acting is worth, the numbers that say most, and where to look next."""

from __future__ import annotations

from collections.abc import Callable

from decal_cli.analysis.described import OF_ONE_ROW, Utility, Worth
from decal_cli.analysis.evaluate import Evaluation, Report, known_in
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import Metric, Result, parse
from decal_cli.numbers import DASH, Interval, bracketed, decimals_for, ends_of, fixed, percent, sized, times
from decal_cli.render.blocks import Blocks, Cell, Column, Lines, Notes, Paragraph, Row, TextTable
from decal_cli.render.cells import left, table, words, written
from decal_cli.render.results.sections import having
from decal_cli.render.results.source import lowest_first
from decal_cli.task import constant_words

PER = 1000
"""Decisions that the amounts of a summary are of."""
WORTH, SCORE, CALIBRATION, TREES = (f"Per {PER:,} decisions", "Score", "Calibration", "What trees of five leaves see")
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


class Opening:
    """What `decal evaluate` opens with: what acting is worth, the numbers that say most, where to look next.

    Amounts are per 1,000 decisions, with the decimals that the widest interval of what acting on a model is worth
    deserves, or else the largest amount.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation, self.reports = evaluation, evaluation.reports
        self.models = sorted(evaluation.whole, key=_place)
        self.groups = len({report.group for report in evaluation.reports} - {None})
        worths = [worth for _, worth in having(self.models, Worth)]
        self.limited = any(worth.limited for worth in worths)
        ends = filter(None, (times(each.now.interval, PER) for each in worths))
        widest = max(ends, key=lambda each: each[1] - each[0], default=None)
        amounts = [PER * value for each in worths for value in (each.now.value, each.over.value)]
        self.decimals = decimals_for((widest,), amounts)

    def blocks(self) -> Blocks:
        """A sentence on each model, or on all of several; then the numbers."""
        if len(self.reports) == 1:
            yield Paragraph(" ".join(self._of_one(self.reports[0])))
            yield from self._numbers(self.reports[0])
        else:
            yield Paragraph(" ".join(self._of_several()))
            yield self._ranked_table()

    def _amount(self, value: float, interval: Interval | None = None) -> str:
        """A utility per decision as an amount, with its interval."""
        return bracketed(fixed(PER * each, self.decimals) for each in (value, *(interval or ())))

    def _of_one(self, report: Report) -> Lines:
        """What acting on the score is worth, what would win more, and what is unknown."""
        worth, model = report.find(Worth), report.model
        if not worth:
            yield from _undecided(report)
            return
        acting, best, ideal = model, ", the best constant decision", "perfect knowledge"
        if self.limited:
            acting, best, ideal = f"the rows that {model} puts first", "", "without the limit it"
        yield (
            f"Acting on {acting} is worth {self._amount(*worth.now)} per {PER:,} decisions, "
            f"{self._against(worth.over)} {_constant(worth)}{best} ({self._amount(worth.constant)}); {ideal} would be "
            f"worth {self._amount(worth.perfect)}."
        )
        share = report.value("utility_share")
        if share is not None and share > 0 and not self.limited:
            yield f"That is {percent(round(share, 2))} of what the best threshold on these scores would win."
        gain, beyond = map(report.known, ("gain_recalibration", "gain_beyond"))
        if gain is not None:
            yield f"{self._without_limit('Recalibration')} {self._would_win(*gain)}."
        elif "gain_recalibration" in report.results:
            yield f"What recalibration would win is unknown: it {report.results['gain_recalibration'].reason}."
        if beyond is not None:
            yield f"Beyond that, the features {self._would_win(*beyond)}."
        elif not report.features:
            worst, most = report.value("regret_grouping_worst"), ""
            if worst == 0:
                yield (
                    "On these rows, features cannot win anything beyond recalibration: knowing every label would then "
                    "add nothing."
                )
                return
            if worst is not None:
                most = f": at most {self._amount(worst)}, which is an upper limit and not an estimate"
            yield f"What features would win beyond that is unknown without {Hint('features').words}{most}."

    def _without_limit(self, words: str) -> str:
        """The beginning of a sentence, which says first that it is of decisions without a limit, where there is one."""
        return f"Without the limit, {words[0].lower()}{words[1:]}" if self.limited else words

    def _against(self, over: Utility) -> str:
        """'6.5 [2.0, 11.0] more than', or less."""
        if not over.value and (over.interval is None or not any(over.interval)):
            return "as much as"
        return f"{self._amount(*sized(*over))} {'less' if over.value < 0 else 'more'} than"

    def _would_win(self, value: float, ends: Interval | None) -> str:
        if ends is not None and ends[0] <= 0 <= ends[1]:
            does = "may win or lose" if any(ends) else "wins nothing"
            return f"{does}: {self._amount(value, ends)}"
        return f"would {'lose' if value < 0 else 'win'} {self._amount(*sized(value, ends))}"

    def _of_several(self) -> Lines:
        """Which model is worth most, which are worth less than a constant, and where recalibration wins most."""
        first, count = self.models[0], len(self.models)
        worth = first.find(Worth)
        if count == 1:
            yield from self._of_one(first)
        elif not worth:
            brier = first.known("brier")
            if brier is not None:
                yield f"Of {count} models, {first.model} has the lowest Brier score, {told(*brier)}."
            yield f"What acting on them wins or loses needs a decision: give {needed(first.of_classes)}."
        else:
            yield (
                f"Of {count} models, {first.model} is worth most: {self._amount(*worth.now)} per {PER:,} decisions; "
                f"{_constant(worth)} is worth {self._amount(worth.constant)}, "
                f"{f'{first.model} without the limit' if self.limited else 'perfect knowledge'} "
                f"{self._amount(worth.perfect)}."
            )
            lose = [report.model for report, each in having(self.models, Worth) if each.over.value <= 0]
            if lose:
                more = f" and {len(lose) - MAX_NAMED} more" if len(lose) > MAX_NAMED else ""
                than = "acting on none" if self.limited else "the best constant decision"
                yield f"No better than {than}: {', '.join(lose[:MAX_NAMED])}{more}."
            yield from self._most_to_win()
        if self.groups:
            each = f"{self.groups:,} groups" if self.groups > 1 else "the only group"
            yield f"The table has {'each model and' if count > 1 else 'all rows, and'} {each}."

    def _most_to_win(self) -> Lines:
        known = [
            (gain, report.model) for report in self.evaluation.whole if (gain := report.known("gain_recalibration"))
        ]
        winning = [each for each in known if (each[0].interval or each[0])[0] > 0]
        wins = "Recalibration clearly wins" if any(gain.interval for gain, _ in known) else "Recalibration wins"
        wins = self._without_limit(wins)
        if winning:
            most, model = max(winning, key=lambda each: each[0].value)
            of_all = f"{len(winning)} of them" if len(winning) < len(known) else "all of them"
            whom = model if len(winning) == 1 else f"{of_all}, most for {model}"
            yield f"{wins} for {whom}: {self._amount(*most)}."
        elif known:
            yield f"{wins} for none of them."
        if not any(report.features for report in self.models):
            yield f"What features would win is unknown without {Hint('features').words}."

    def _heading(self, key: str, wins: str = "") -> str:
        """What a metric is called; wins: what is said of it, where it is a gain, which is one without a limit."""
        section, name = SHORT[key]
        return f"{name}{wins}{' without limit' if self.limited else ''}" if section == WORTH else name

    def _numbers(self, report: Report) -> Blocks:
        """The numbers that say most, in sections that stand side by side; apart from them, those of small trees."""
        rows, apart = list[Row](), []
        if worth := report.find(Worth):
            constant = "acting on none" if self.limited else constant_words(worth.action)
            perfect = "without limit" if self.limited else "perfect"
            known = {"as it is": self._amount(*worth.now)}
            known |= {constant: self._amount(worth.constant), perfect: self._amount(worth.perfect)}
            rows = [Row((words(name), written(amount)), WORTH) for name, amount in known.items()]
        for key, result in report.results.items():
            section, _ = SHORT.get(key, ("", ""))
            if not section or result.value is None or (self.limited and key in SKIPPED_AT_LIMIT):
                continue
            cell, name = self._cell(key, result), self._heading(key)
            if section == TREES:
                apart.append(f"{name} {cell.text}")
            else:
                rows.append(Row((Cell((name,), code=key), cell), section))
        rows.sort(key=lambda row: (WORTH, LIMITED, SCORE, CALIBRATION).index(row.section))
        if rows:
            yield TextTable((left("metric"), Column(report.model)), rows, beside=True)
        if report.features and len(apart) > 1:
            yield Paragraph(f"{', '.join(apart)}. {TREES_SENTENCE}", strong=f"{TREES}:")

    def _cell(self, key: str, result: Result | None) -> Cell:
        """Utilities as amounts, all else as it is; a value that says itself as it does."""
        if result is None or result.value is None:
            return Cell((DASH,), reason="" if result is None else result.reason or "")
        metric = parse(key).declared
        if is_amount(metric):
            return written(self._amount(result.value, result.interval))
        # The range of what chance shows is not an interval of anything.
        interval = None if metric.name.endswith("_null") else result.interval
        return written(told(result.value, interval, result.side), result.text)

    def _ranked_table(self) -> TextTable:
        """A row for each model and group, the model that is worth most first, each followed by its groups."""
        order = {report.model: number for number, report in enumerate(self.models)}
        keys = known_in(self.reports, COLUMNS)
        decided, several = bool(having(self.reports, Worth)), len(self.models) > 1

        def worth(of: str) -> Callable[[Report], Cell]:
            amounts = {report.place: self._amount(*getattr(each, of)) for report, each in having(self.reports, Worth)}
            return lambda report: written(amounts.get(report.place, DASH))

        def values(key: str) -> tuple[Column, Callable[[Report], Cell]]:
            # Where there is little room, those that decide least go first.
            drops = {"ece": 1, "ece_top": 1, "brier": 2, "auc": 2}.get(key, 0)
            heading = self._heading(key, " win" if key == "gain_beyond" else " wins")
            return Column(heading, breaks=(9,), drops=drops), lambda each: self._cell(key, each.results.get(key))

        over = "over acting on none" if self.limited else "over best constant"
        return table(
            sorted(self.reports, key=lambda report: (order.get(report.model, len(order)), not report.of_all_rows)),
            [
                (several or not self.groups) and (left("model"), "model"),
                self.groups > 0 and (left("group"), lambda each: each.group or "all rows"),
                self.groups > 0 and (Column("rows", drops=2), lambda each: f"{each.rows:,}"),
                decided and (Column(f"worth per {PER:,}", breaks=(9,)), worth("now")),
                decided and (Column(over, breaks=(9,)), worth("over")),
                *map(values, keys),
            ],
            keys=1 + (self.groups > 0 and several),
            dense=True,
        )

    def next_steps(self) -> Notes:
        """Where to look next."""
        evaluation = self.evaluation
        shared = evaluation.decision is None and not evaluation.plan.by_row
        steps = [
            f"{Verb('recommend').words} (what to do)" if evaluation.plan.decision is not None else "",
            f"{Verb('compare').words} (two models row by row)" if len(evaluation.models) > 1 else "",
            f"{Verb('sweep').words} (every threshold)" if shared else "",
            f"{Verb('evaluate', 'all').words} (every metric)",
        ]
        return Notes((f"Next: {', '.join(filter(None, steps))}.",), quiet=True)


def told(value: float, interval: Interval | None, side: str | None = None) -> str:
    """A number with its interval, or the side of it that says something, and as many decimals as that deserves."""
    if interval is None:
        return fixed(value, decimals_for([], [value]))
    known = ends_of(interval, side)
    decimals = decimals_for([interval if side is None else (min(value, *known), max(value, *known))], [value])
    ends = ", ".join(fixed(end, decimals) for end in known)
    return f"{fixed(value, decimals)} [{ends if side is None else f'{side} {ends}'}]"


def _undecided(report: Report) -> Lines:
    """Without a decision: how it ranks, how far off it is, and what is needed to say what it is worth."""
    auc, brier, off = report.known("auc"), report.known("brier"), report.value("corp_mcb")
    its = f"{report.model}'s"
    if auc is not None and not report.of_classes:
        its = "Its"
        yield f"{report.model} puts a row of label 1 above one of label 0 with probability {told(*auc)} (AUC)."
    if brier is not None:
        of_that = "" if off is None else f", of which {told(off, None)} is miscalibration"
        yield f"{its} Brier score is {told(*brier)}{of_that}."
    yield f"What acting on it wins or loses needs a decision: give {needed(report.of_classes)}."


def needed(of_classes: bool) -> str:
    """The options that name a decision."""
    if of_classes:
        return f"{Hint('abstain').words}, or {Hint('utility').words} with a column for each class"
    costs = f"{Hint('cost_fp').words} and {Hint('cost_fn').words}"
    return f"{costs}, {Hint('threshold').words}, {Hint('odds').words} or {Hint('utility').words}"


def _constant(worth: Worth) -> str:
    """What is always done instead."""
    return "acting on none" if worth.limited else constant_words(worth.action, doing=True)


def _place(report: Report) -> tuple[bool, float]:
    """To sort by: what is worth most first, without a decision the lowest Brier score."""
    worth = report.find(Worth)
    return lowest_first(-worth.now.value if worth else report.value("brier"))


def is_amount(metric: Metric) -> bool:
    """Whether a metric is a utility per decision, so that many decisions have so many times that."""
    return metric.unit == "utility" and metric.name not in OF_ONE_ROW
