"""What `decal recommend` returns: the advice, what it rests on, and what each way of acting is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from decal_cli.analysis.described import (
    ActionShares,
    CountedStep,
    Decided,
    DecisionCounts,
    Places,
    PriorShiftGain,
    Worth,
)
from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.flowchart import GAINS, Action, ActNow, Advice, Certainty, Constant, Interim, Step
from decal_cli.analysis.recommend import (
    ROUNDS,
    Kind,
    Ranked,
    RanksNow,
    Recommendation,
    Round,
    Trial,
    amounts_in,
    amounts_of,
    ece_advice,
    ece_disagrees,
    ranks_now,
)
from decal_cli.data.words import grouped, quote, shell_word
from decal_cli.declarations.document import Above, Absent, Share, Size, Some, Two
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import Result, named
from decal_cli.numbers import (
    DASH,
    Interval,
    Say,
    chance_words,
    decimal,
    decimals_for,
    percent,
    plain,
    saying,
    sized,
    times,
    within,
)
from decal_cli.render import blocks as b
from decal_cli.render.cells import left, number, reasons, table, words
from decal_cli.render.results.evaluation import MeasuredData, found
from decal_cli.render.results.sections import beside_blocks
from decal_cli.render.results.source import (
    Provenance,
    WrittenResult,
    costs_of_rows,
    ends_of,
    limited_actions,
    one_or_several,
    row_task_line,
    shortened,
    source_lines,
    task_line,
)
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.render.terms import PLAIN, Scale, StatedTerms
from decal_cli.tables.resample import FOLDS

OF_ROWS = 1000
"""Rows that printed counts are of."""
MAX_ACTIONS = 6
"""Actions whose shares a table shows."""
WAYS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "constant": ("best constant action", "take the best constant action", ("expected_utility", "external_regret")),
    "never": ("never act", "always decide 0", ("eu_never",)),
    "always": ("always act", "always decide 1", ("eu_always",)),
    "amount": ("large amounts alone", "act on large amounts alone", ("eu_by_amount",)),
    "now": ("score as it is", "act on the score as it is", ("expected_utility",)),
    "recalibrate": ("recalibrated", "act on the recalibrated score", ("expected_utility", "gain_recalibration")),
    "post-train": ("with features", "act on score and features", ("expected_utility", "gain_post_training")),
    "perfect": ("", "decide with every label known", ("expected_utility", "external_regret", "utility_at_stake")),
}
"""Ways of acting by their key: what a row of a table calls it, what is done, and the metrics whose sum it is worth.

The best constant action stands in place of the two constant decisions where there are more than two actions.
"""
SHARES = {"capture": "capture", "value_capture": "capture of value", "precision": "precision"}
"""Metrics that the table of scores at a capacity shows, with their headings."""
CONSTANT_WAYS = ("never", "always", "constant")

KEYS: Mapping[str | None, str] = {
    None: "now",
    "recalibration": "recalibrate",
    "post-training": "post-train",
    "perfect": "perfect",
}
"""The way of acting on a score, by what makes the score; None: nothing does."""


class Way(NamedTuple):
    """A way of acting: what it is worth per decision, the interval of what it wins over the score as it is, and whom it
    acts on; None for what is not known.
    """

    key: str
    name: str
    worth: float
    interval: Interval | None = None
    decided: Decided | None = None


def ways_of(results: Mapping[str, Result], counts: DecisionCounts | None = None) -> list[Way]:
    """The ways of acting whose worth is known, from the constant decisions to perfect knowledge."""
    known = {key: result.value for key, result in results.items() if result.value is not None}
    ways, decided = [], {} if counts is None else _decided(counts)
    for key, (_, name, metrics) in WAYS.items():
        if all(metric in known for metric in metrics) and not (key == "constant" and "eu_never" in known):
            interval = results[metrics[-1]].interval if key in GAINS else None
            ways.append(Way(key, name, sum(known[each] for each in metrics), interval, decided.get(key)))
    return ways


def _decided(counts: DecisionCounts) -> dict[str, Decided]:
    """The cells of ways of acting by their key."""
    yes, no = counts.steps["now"].positives, counts.steps["now"].negatives
    return {
        "never": Decided(0.0, 0.0, yes, no),
        "always": Decided(yes, no, 0.0, 0.0),
        **counts.steps,
        "perfect": Decided(yes, 0.0, 0.0, no),
    }


def ladder(results: Mapping[str, Result], terms: StatedTerms, title: str = "") -> b.Bars:
    """What each way of acting is worth as bars, each from the lowest to its own, in the user's terms."""
    ways = _named(results)
    worths = [way.worth for way in ways]
    lowest, height = min(worths), max(worths) - min(worths)
    scale = terms.scale(*amounts_in([results]))
    bars = (
        b.Bar(_called(way, terms), text, (way.worth - lowest) / height if height > 0 else 0.0)
        for way, text in zip(ways, _alike(results, worths, scale.factor), strict=True)
    )
    title = title or f"Expected utility {scale.heading}"
    return b.Bars(title, "way of acting", f"expected utility {scale.heading}", bars)


def _named(results: Mapping[str, Result], counts: DecisionCounts | None = None) -> list[Way]:
    """The ways of acting that a table names."""
    return [way for way in ways_of(results, counts) if WAYS[way.key][0]]


def _called(way: Way, terms: StatedTerms) -> str:
    names = {} if terms.names is None else dict(zip(CONSTANT_WAYS, terms.names, strict=False))
    return f"always '{names[way.key]}'" if way.key in names else WAYS[way.key][0]


def _alike(results: Mapping[str, Result], worths: Iterable[float], factor: float) -> list[str]:
    """What ways of acting are worth, with the decimals that the gains between them deserve."""
    gains = (results[key] for key in ("gain_recalibration", "gain_beyond", "external_regret") if key in results)
    amounts = [factor * worth for worth in worths]
    decimals = decimals_for([times(gain.interval, factor) for gain in gains], amounts)
    return [decimal(amount, decimals) for amount in amounts]


class GainData(View):
    """Utility per decision with its interval; value null, and the reason, where it cannot be told."""

    value: float | None
    interval: Interval | None
    reason: str | None


class TrialData(View):
    """A method tried. behind: what it leaves behind the best one after costs, with the paired interval; null where it
    was not fitted.
    """

    method: str = of("chosen.key")
    kind: Literal["recalibration", "post-training"] = of("chosen.declared.kind")
    predicted: GainData
    achieved: GainData
    cost: float
    net: float | None
    behind: GainData | None
    seconds: float


class PickedData(View):
    """The method that cross-validation picks among the usual ones, null where it keeps the score; what choosing so wins
    after costs, on rows that took no part in the choice.
    """

    method: str | None
    among: list[str]
    gain: GainData


class RoundData(View):
    """The methods tried on one score, the best first; the action that follows with the best one's score."""

    score: str
    attempts: list[TrialData] = of("trials")
    cross_validation: PickedData | None = of("picked")
    best: str | None = of("best.chosen.key")
    action: str | None = of("advice.action")


class AdviceData(View):
    """Where the walk ended. act_now: what to do today; certainty: how sure that is. method, fit: the method as `decal
    fit` names it, null where there is nothing to fit. small: the gain is clear, but within the tolerance. constant: the
    constant decision that acting on the score does not beat. interim: what can be done at once and at no cost.
    rows_needed: rows that settle an unknown in 4 of 5 cases, null where more rows alone would not. tried: with --try,
    the methods tried on this score, best first, then on the best one's score, until nothing more is won.
    """

    action: Action
    act_now: ActNow
    certainty: Certainty
    method: str | None
    gain: float | None
    interval: Interval | None
    path: Some[Step] = of("steps")
    next: list[str] = of("next_steps")
    ece_advice: Literal["recalibrate", "leave"] | None = of(lambda _, seen: ece_advice(seen.report))
    fit: str | None = of("method")
    rows_needed: int | None
    small: bool
    stakes: float = of("evidence.stakes")
    tolerance: float = of("evidence.tolerated")
    constant: Constant | None
    interim: Interim | None
    tried: Absent[list[RoundData] | None] = of(".rounds")


class DecisionChangeData(View):
    """Rows whose decision a step changes, by direction and label; their cells less those before. gain: in utility per
    decision.
    """

    started_positive: Size
    started_negative: Size
    stopped_positive: Size
    stopped_negative: Size
    true_positives: float
    false_positives: float
    gain: float = of(lambda _, gain: gain)


class DecidedData(View):
    """Rows, by their weight, by decision and label. change: from the step before; null for the score as it is.

    After post-training these are expected counts, on held-out rows: those before and the change, held within the rows
    of each label.
    """

    acted: Size
    true_positives: Size
    false_positives: Size
    false_negatives: Size
    true_negatives: Size
    ppv: Share | None
    sensitivity: Share | None
    change: DecisionChangeData | None = of(
        lambda each, _: DecisionChangeData(each.change, each.gain) if isinstance(each, CountedStep) else None
    )


class AdjustedData(View):
    """The threshold in use, and the one on the same score that decides as the recalibrated score does: a number to be
    used as it is written, null where no recalibrated score reaches t*.
    """

    in_use: float = of(".task.decision_threshold")
    adjusted: str | None = of(lambda result, _: None if result.value is None else result.text or repr(result.value))
    interval: Interval | None


class CountsData(View):
    """Decisions of a model on its rows. names: of the actions 0 and 1; rows: how many there are.
    recalibrated and with_features are null where that gain is undefined.
    """

    names: Two[str] | None = of(".terms.names")
    rows: Size = of("total")
    as_is: DecidedData = of("steps.now")
    recalibrated: DecidedData | None = of("steps.recalibrate")
    with_features: DecidedData | None = of("steps.post-train")
    threshold: AdjustedData = of(".report.results.threshold_adjusted")


class AmountData(View):
    """An amount with its interval; null where the metric is undefined."""

    value: float | None = of(lambda result, seen: None if result.value is None else seen.terms.number * result.value)
    interval: Interval | None = of(lambda result, seen: times(result.interval, seen.terms.number))


class AmountsData(View):
    """Utilities times the number of decisions, in the user's unit; per: the time in which these decisions are made."""

    unit: str | None = of(".terms.unit")
    per: str | None = of(".terms.per")
    decisions: Above = of(".terms.number")
    expected_utility: AmountData
    gain_recalibration: AmountData
    gain_beyond: AmountData
    gain_post_training: AmountData


class AdvisedData(MeasuredData):
    """A report with its advice."""

    recommendation: AdviceData = of(".advice")
    holds: Absent[Interval | None] = of(".holds")
    counts: CountsData | None = of(lambda report, seen: seen.task and report.find(DecisionCounts))
    amounts: AmountsData | None = of(
        lambda report, seen: AmountsData(report.results, seen) if seen.terms.with_amounts else None
    )
    moving: Absent[PriorShiftGain | None] = found(PriorShiftGain)
    at_capacity: Absent[list[Ranked] | None] = of(".ranked")
    ranks_now: Absent[RanksNow | None] = of(".ranks_now")


class AdvisedModel:
    """A model on all rows, or on a group of them, with the advice on it, in the user's terms.

    Methods are tried, scores ranked and other thresholds looked at for all rows of a model.
    """

    rounds: Sequence[Round] = ()
    ranked: Sequence[Ranked] = ()
    ranks_now: RanksNow | None = None
    holds: Interval | None = None

    def __init__(self, report: Report, advice: Advice, whole: Recommendation, terms: StatedTerms) -> None:
        self.report, self.advice, self.evaluation, self.terms = report, advice, whole.evaluation, terms
        self.task, self.limit = whole.evaluation.plan.binary, whole.evaluation.limit
        if report.of_all_rows:
            self.rounds = (whole.rounds or {}).get(report.model, ())
            self.ranked, self.holds = whole.ranked.get(report.model, ()), whole.holds.get(report.model)
        if self.ranked:
            self.ranks_now = ranks_now(self.ranked, advice.evidence.acted_on, whole.evaluation.plan.confidence)
        self.unused_times = whole.unused_times
        self.scale = terms.scale(*amounts_of(report))
        self.factor, self.say, self.amount = self.scale.factor, self.scale.say, saying(self.scale.factor)

    @property
    def todo(self) -> str:
        """What to do now, in a few words."""
        now, constant = self.advice.act_now, self.advice.constant
        if now.method is not None:
            return f"{now.action} with {now.method}"
        return constant.words if constant is not None and constant.gain > 0 else "use as it is"

    def wins(self, factor: float) -> str:
        """What that wins, after costs, times the factor of a page."""
        now = self.advice.act_now
        if now.action == "done":
            return ""
        ends, cost = self.report.results[GAINS[now.action]].interval, (self.advice.gain or now.gain) - now.gain
        return within(factor * now.gain, ends and times((ends[0] - cost, ends[1] - cost), factor))

    def lead(self) -> tuple[str, ...]:
        """What to do today; where so many rows can be acted on only, first what gives the places."""
        now, limit, lead = self.ranks_now, self.limit, self.advice.lead
        if now is None or limit is None:
            return lead
        without = (f"Without the limit of {limit}: {lead[0]}", *lead[1:])
        first = f"At capacity {limit}, act on the rows that"
        if now.method is None:
            return (f"{first} the score puts first: no method is sure enough to win more.", *without)
        won = self.say(now.gain, self.ranked_first.interval)
        sure = () if now.chance is None else (f"The chance that this wins anything is {chance_words(now.chance)}.",)
        return (f"{first} {now.method} puts first: wins {won} over the order of the score.", *sure, *without)

    @cached_property
    def ways(self) -> list[Way]:
        """The ways of acting, of all rows on a share of them, where so many rows can be acted on only."""
        report, room = self.report, self.room
        unlimited, worth = ways_of(report.promised, report.find(DecisionCounts)), report.find(Worth)
        if not self.ranked:
            return unlimited
        assert worth  # there are scores at a capacity
        known = {way.key: way for way in unlimited}
        never, always = known.get("never", Way("never", "act on none", 0.0)), known.get("always")
        ways = [never._replace(worth=worth.constant)]
        nobody = never.decided
        if always is not None and nobody is not None:
            shares = [share * each for share in (room, 1 - room) for each in (nobody.positives, nobody.negatives)]
            by_chance = room * always.worth + (1 - room) * never.worth
            ways.append(Way("always", "act on as many rows by chance", by_chance, None, Decided(*shares)))
        for each in self.ranked:
            if each.utility is not None:
                key, found = KEYS[each.kind], None
                if nobody is not None and each.capture is not None and each.precision:
                    # By the share of label 1 that it finds and the share of label 1 among the rows it acts on.
                    hits = each.capture * nobody.positives
                    alarms = hits / each.precision - hits
                    found = Decided(hits, alarms, nobody.positives - hits, nobody.negatives - alarms)
                ways.append(Way(key, WAYS[key][1], each.utility, each.interval, found))
        return ways

    @property
    def room(self) -> float:
        """The share of all rows that the capacity leaves to act on; 1 without one."""
        places = self.report.find(Places)
        return min(places.places / self.report.rows, 1.0) if places else 1.0

    @property
    def ranked_first(self) -> Ranked:
        """What gives the places today, among the scores."""
        return next(each for each in self.ranked if self.ranks_now and each.method == self.ranks_now.method)

    def walk(self) -> b.AnsweredQuestions:
        """The walk through the flowchart; a number that an answer rests on stands where it is first used."""
        seen, asked = set[str](), []
        for step in self.advice.steps:
            evidence = []
            for item in step.evidence:
                if item.metric in seen:
                    continue
                seen.add(item.metric)
                metric, value, say = named(item.metric), "undefined", within
                if item.value is not None:
                    say = self.say if metric.unit == "utility" else within
                    rough = metric.unit != "utility" and item.interval is None
                    value = f"{item.value:.2g}" if rough else say(item.value, item.interval)
                evidence.append(f"{metric.title.lower()}: {value}")
            asked.append(b.AnsweredQuestion(step.question, step.answer, step.reason, evidence, step.number))
        return b.AnsweredQuestions(asked)

    def notes(self) -> b.Conclusion:
        """What to do next, what ECE would have said, and for which decisions the same advice holds."""
        sentences = [*self.advice.next_steps, *self._ece()]
        for name in self.unused_times[:1]:
            option = Hint("time", shell_word(name)).words
            sentences.append(
                f"Column {quote(name)} looks like a time: {option} fits on earlier rows and judges on later ones."
            )
        if self.holds is not None:
            low, high = map(plain, self.holds)
            same = f"thresholds from {low} to {high}" if low != high else f"the threshold {low} alone"
            sentences.append(f"This advice holds for {same}.")
        return b.Conclusion("", sentences)

    def _ece(self) -> b.Lines:
        """What ECE says, which is the same for any decision, beside what recalibration wins for this one."""
        report, advice = self.report, self.advice
        gain = advice.evidence.item(GAINS["recalibrate"])
        ece, null = report.value("ece"), report.value("ece_null")
        if ece is None or null is None or gain.value is None:
            return
        low, high = gain.interval or (0.0, 1.0)
        does = "wins" if low > 0 else "loses" if high <= 0 else "may win or lose"
        sentence = (
            f"ECE is {within(ece)} whatever the decision ({within(null)} for a calibrated model); for this one, "
            f"recalibration {does}."
        )
        if ece_disagrees(report, advice):
            blind = "it does not ask whether the error crosses the threshold"
            if advice.action == "post-train":
                blind = "it does not see how rows with equal scores differ"
            elif advice.evidence.useless:
                blind = "it does not see that a constant decision wins as much"
            elif advice.action == "do-not-post-train":
                blind = "it does not know what recalibration costs"
            leaves = ece_advice(report) == "leave"
            alone = "leave the model as it is" if leaves else f"advise recalibration: {blind}"
            sentence += f" ECE alone would {alone}."
        yield sentence

    def worth(self) -> b.Blocks:
        """What each way of acting is worth and what it does, and the costs in words."""
        report, terms, counts = self.report, self.terms, self.report.find(DecisionCounts)
        ways = _named(report.promised, counts)
        worth = dict(zip(ways, _alike(report.results, [way.worth for way in ways], self.factor), strict=True))
        done = of_thousand(ways, counts.total) if counts else {}
        shares = None if counts or len(self.actions) > MAX_ACTIONS else report.find(ActionShares)

        def over(way: Way) -> str:
            """What a way of acting wins over the score as it is, with its interval."""
            _, _, (_, *gains) = WAYS[way.key]
            gain = report.known(gains[-1]) if gains else None
            return "" if gain is None else self.amount(*gain)

        yield table(
            ways,
            [
                (left(""), lambda way: _called(way, terms)),
                (b.Column(f"worth {self.scale.heading}", breaks=(28, 16, 10)), lambda way: worth[way]),
                *(
                    (b.Column(head, breaks=(12, 8)), lambda way, at=at: done[way][at] if way in done else "")
                    for at, head in enumerate(action_heads(terms, ""))
                    if counts
                ),
                not counts and (b.Column("gain over the score as it is", breaks=(18, 12)), over),
                *(self._takes(shares, name) for name in self.actions if shares),
            ],
            keys=1,
        )
        yield b.Notes(self._costs(), close=True)
        yield from self.beside()

    def _takes(self, shares: ActionShares, name: str) -> tuple[b.Column, Callable[[Way], str]]:
        """Rows of 1,000 that get an action."""
        best, at = self.report.find(Worth), self.actions.index(name)

        def taken(way: Way) -> str:
            if way.key == "constant":
                return f"{OF_ROWS if best and name == best.action else 0:,}"
            after = shares.after.get(WAYS[way.key][2][-1])
            return f"{OF_ROWS * after[at]:,.0f}" if after else ""

        return b.Column(f"takes {name}", breaks=(10,)), taken

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that decisions are counted by, in their order."""
        task, decision = self.evaluation.plan.task, self.evaluation.decision
        return tuple(decision.actions) if decision is not None else () if task is None else task.taken

    def _costs(self) -> b.Lines:
        """The decision and its costs in words."""
        task, by_row, terms, evaluation = self.task, self.evaluation.by_row, self.terms, self.evaluation
        if by_row is not None:
            yield self._row_costs()
        elif task is None and evaluation.task is not None:
            yield task_line(evaluation.task)
        if task is None:
            return
        alarm, miss = map(terms.price, task.costs)
        one, other, acting = "A false alarm (acting at label 0)", "a miss (not acting at label 1)", "acting"
        if terms.names:
            acting, one, other = action_heads(terms, "'")
        right = "" if task.utility[0][0] == task.utility[1][1] == 0 else ", beside the right decision,"
        costs, own = f"{one} costs{right} {alarm}, {other} {miss}", task.decision_threshold
        at = "" if own == task.threshold else f", and the score is acted on from {plain(own)}"
        yield f"{costs}: {acting} pays from a probability of {plain(task.threshold)}{at}."
        weighted = "weight" in evaluation.columns
        if self.report.find(DecisionCounts) and (terms.number != OF_ROWS or weighted):
            yield f"Counts are of {OF_ROWS:,} rows{', by their weight' if weighted else ''}."

    def _row_costs(self) -> str:
        """Utilities of each row in words."""
        by_row = self.evaluation.by_row
        assert by_row is not None  # asked where there are such
        if not by_row.to_act_or_not or by_row.thresholds is None or "utility_columns" in by_row.columns:
            return row_task_line(by_row)
        alarm, miss = costs_of_rows(by_row, self.terms.price)
        low, middle, high = (within(each) for each in by_row.thresholds)
        return (
            f"A false alarm (acting at label 0) costs {alarm}, a miss (not acting at label 1) {miss}: acting "
            f"pays from a probability of each row's own, {low} to {high}, half of them below {middle}."
        )

    def beside(self) -> b.Blocks:
        """What moved scores, large amounts, rows without a label and the time of rows come to."""
        population, by_row = self.evaluation.population, self.evaluation.by_row
        if population and (moving := self.report.find(PriorShiftGain)):
            used = "the scores as they are" if population.kept else "the moved scores"
            yield b.Paragraph(
                f"Where {percent(population.there[1])} are positive, scores made for {percent(population.here[1])} are "
                f"worth {self.say(moving.kept)}; moving them to it wins {self.say(moving.gain, moving.interval)}. To "
                f"move them is to act on them from about {moving.threshold:.4g} on. All else on this page is of {used}."
            )
        alone, over = map(self.report.known, ("eu_by_amount", "gain_over_amount"))
        if by_row is not None and by_row.least_amount is not None and alone and over:
            gain = self.say(*sized(*over))
            won = f"loses {gain} against" if over.value < 0 else f"wins {gain} over"
            beaten = over.interval is not None and over.interval[1] < 0
            until = " Until a score beats that, act on the amount alone." if beaten else ""
            least = self.terms.price(by_row.least_amount)
            yield b.Paragraph(
                f"Acting on every row that costs about {least} or more to miss, whatever its score, is worth "
                f"{self.say(alone.value)} on held-out rows; acting on the score as it is {won} that.{until}"
            )
        yield from beside_blocks(self.report, self.evaluation, self.terms)

    def places(self) -> b.Blocks:
        """What a limited capacity changes for the model, and what each score is worth under it."""
        ranked, factor = self.ranked, self.factor
        if not ranked or self.limit is None:
            return
        ends = [times(each.interval, factor) for each in ranked]
        decimals = decimals_for(ends, [factor * (each.utility or 0.0) for each in ranked])
        now, unlimited = ranked[0].utility or 0.0, self.report.results["expected_utility"].value or 0.0
        costs = f"The limit {'costs' if unlimited >= now else 'wins'} {self.say(abs(unlimited - now))}."
        places = self.report.find(Places)
        if places and not places.full:
            costs = "Every row that the score as it is acts on has a place, so that the limit costs it nothing."
        text = " ".join((costs, *self._of_methods()))
        yield b.Paragraph(text, strong=f"At capacity {self.limit}.")
        yield table(
            ranked,
            [
                (left("with these places"), lambda each: each.method or "score as it is"),
                (
                    b.Column(f"worth {self.scale.heading}", breaks=(28, 16, 10)),
                    lambda each: "" if each.utility is None else decimal(factor * each.utility, decimals),
                ),
                (
                    b.Column("gain over the score as it is", breaks=(18, 12)),
                    lambda each: "" if each.gain is None else self.amount(each.gain, each.interval),
                ),
                *(
                    (head, lambda each, of=of: number(getattr(each, of), decimals=3))
                    for of, head in SHARES.items()
                    if getattr(ranked[0], of) is not None
                ),
            ],
        )
        yield from reasons((each.method or "", each.reason) for each in ranked)

    def _of_methods(self) -> b.Lines:
        """What is left to win with these places; without a task every row has utilities of its own."""
        task = self.task
        of = grouped((each.kind, each) for each in self.ranked)

        def most(kind: Kind) -> Ranked | None:
            """The score of this kind that wins most; None where none is known."""
            known = (each for each in of.get(kind, ()) if each.gain is not None)
            return max(known, key=lambda each: each.gain or 0.0, default=None)

        first, scaled = next(iter(of.get("recalibration", ())), None), most("recalibration")
        perfect, learned = most("perfect"), most("post-training")
        if perfect is not None:
            ideal = self.say(perfect.gain or 0.0, perfect.interval)
            # Of more than two actions, a method may also change which one a row with a place gets.
            others = limited_actions(self.evaluation) is not None
            bound = "which action a row gets stays as it is" if others else "no method can win more"
            yield f"A perfect ranking, by the labels, would win {ideal} with these places; {bound}."
        if first is not None and first.gain is not None and task is not None:
            does = self._won(first) if first.gain else "on the rows with a place, that changes nothing"
            which = f"changes only which of them reach {plain(task.threshold)}"
            yield f"Recalibration keeps the order of the scores, and {which}: {does}."
        elif first is not None and first.gain is not None and scaled is not None:
            changes = "changes what acting is expected to win, and so the order"
            yield f"Recalibration by {scaled.method} {changes}: {self._won(scaled)}."
        if learned is not None:
            yield f"Of the post-trained scores, {learned.method} is worth most: {self._won(learned)}."
        elif task is None:
            yield "What features would win with these places is unknown."
        else:
            yield "Only another order, such as one that features give, finds other rows."
        yield "All else on this page is of decisions without this limit."
        if first is not None and first.gain is not None:
            yield (
                "The gain of recalibration is estimated there with the calibrator that suits each fold best, here with "
                "one in all folds."
            )

    def _won(self, each: Ranked) -> str:
        """How much is won, and whether chance could explain it."""
        gain, ends = each.gain or 0.0, each.interval
        if ends is not None and ends[0] <= 0 <= ends[1]:
            return f"its gain is {self.say(gain, ends)}, which chance could explain"
        return f"it {'loses' if gain < 0 else 'wins'} {self.say(*sized(gain, ends))}"


def action_heads(terms: StatedTerms, quote: str) -> tuple[str, str, str]:
    """Headings of rows acted on, false alarms and misses; quote: around the names of the user's actions."""
    if not terms.names:
        return "acts on", "false alarms", "misses"
    off, on = (f"{quote}{name}{quote}" for name in terms.names)
    return on, f"{on} at label 0", f"{off} at label 1"


def of_thousand(ways: Sequence[Way], total: float, decimals: int | None = None) -> dict[Way, list[str]]:
    """Rows of 1,000 acted on, false alarms and misses, all alike: whole where the smallest is a row at least."""
    rows = {
        way: [OF_ROWS * each / total for each in (done.acted, done.false_positives, done.false_negatives)]
        for way in ways
        if (done := way.decided) is not None
    }
    if decimals is None:
        least = min((each for row in rows.values() for each in row if each > 0), default=1.0)
        decimals = 0 if least >= 0.95 else 1 if least >= 0.095 else 2
    return {way: [decimal(each, decimals) for each in row] for way, row in rows.items()}


def advised_in(
    whole: Recommendation, terms: StatedTerms, reports: Sequence[Report] | None = None
) -> list[AdvisedModel]:
    """These reports, by default all, each with its advice."""
    advice_on = {report.place: advice for report, advice in whole.advised}
    shown = whole.evaluation.reports if reports is None else reports
    return [AdvisedModel(report, advice_on[report.place], whole, terms) for report in shown]


def advice_table(advised: Sequence[AdvisedModel], terms: StatedTerms) -> b.TextTable:
    """What to do now with each model and group, what that wins, and how sure it is; all amounts in one unit."""
    scale = terms.scale(*amounts_in(each.report.results for each in advised))
    return table(
        advised,
        [
            (left("model", wraps=True), "report.model"),
            not all(each.report.of_all_rows for each in advised)
            and (left("group", wraps=True), lambda each: each.report.group or ""),
            (left("do now", wraps=True), "todo"),
            (b.Column(f"wins {scale.heading}", breaks=(16,)), lambda each: each.wins(scale.factor)),
            (left("how sure"), "advice.certainty"),
        ],
    )


class Recommended(WrittenResult):
    """A recommendation in the user's terms, for formats to write."""

    def __init__(self, recommendation: Recommendation, terms: StatedTerms = PLAIN) -> None:
        super().__init__(recommendation.evaluation, terms)
        self.recommendation = recommendation

    def sections(self) -> b.Blocks:
        """A table of models if several; for each what to do, what ways of acting are worth, and why; then the data."""
        evaluation = shortened(self.evaluation)
        advised = advised_in(self.recommendation, self.terms, evaluation.reports)
        if len(advised) > 1:
            yield advice_table(advised, self.terms)
        for each in advised:
            yield b.Heading(each.report.name, summary=each.todo)
            first, *others = each.lead()
            yield b.Conclusion(first, others, close=True)
            yield from each.places()
            yield from each.worth()
            yield each.walk()
            yield each.notes()
            for at in range(len(each.rounds)):
                yield from _round_blocks(each.rounds, at, "time" in evaluation.columns, each.scale)
        yield b.Notes(source_lines(evaluation, self.terms.names))

    def data(self) -> Document:
        """One report, or several."""
        return one_or_several(data_of(Provenance(self.evaluation)), self.entries())

    def entries(self) -> list[Document]:
        """Each report with its advice, without what all of them share."""
        return [data_of(AdvisedData(each.report, each)) for each in advised_in(self.recommendation, self.terms)]

    def rows(self) -> Records:
        """One row per model and group; where methods were tried, one per method: by model, and by the score."""
        rounds = self.recommendation.rounds
        if rounds is None:
            yield ["model", "group", "action", "method", "gain", "low", "high"]
            for report, advice in self.recommendation.advised:
                yield [*report.place, advice.action, advice.method, advice.gain, *ends_of(advice)]
            return
        yield [
            *("model", "score", "method", "kind", "predicted", "predicted_low", "predicted_high"),
            *("achieved", "low", "high", "cost", "net", "seconds", "reason"),
        ]
        for model, of_model in rounds.items():
            for score, trial in ((each.score, trial) for each in of_model for trial in each.trials):
                who, promised, got = trial.chosen, trial.predicted, trial.achieved
                gains = promised.value, *ends_of(promised), got.value, *ends_of(got)
                yield [
                    model,
                    score,
                    who.key,
                    who.declared.kind,
                    *gains,
                    trial.cost,
                    trial.net,
                    trial.seconds,
                    got.reason,
                ]


def _round_blocks(rounds: Sequence[Round], at: int, in_time: bool, scale: Scale) -> b.Blocks:
    """What was tried on which score, what each method won, and what follows.

    in_time: whether fits learn from earlier rows only.
    """
    each, how = rounds[at], "fitted to earlier rows only" if in_time else f"cross-fitted in {FOLDS} folds"
    yield b.Paragraph(
        f"{'Started over with' if at else 'Tried on'} {each.score}, {how}: each gain is on "
        f"held-out rows, in {scale.unit or 'utility'} {scale.span} over acting on this score as it is. Predicted: the "
        "expected gain of its kind, before any fit."
    )
    yield trial_table(each, scale)
    yield from reasons(((trial.chosen.key, trial.achieved.reason) for trial in each.trials), together=True)
    yield b.Conclusion("", _conclusion(each, at + 1, len(rounds), scale.say))


def trial_table(each: Round, scale: Scale) -> b.TextTable:
    """The methods, the best first."""
    costly, say = any(trial.cost for trial in each.trials), saying(scale.factor)

    def gain(result: Result) -> b.Cell:
        """A piece each for the number and for the ends of its interval."""
        return words(DASH) if result.value is None else b.Cell((*say(result.value, result.interval).split(" "),))

    def after_cost(trial: Trial) -> str:
        """What is left after the cost, with the digits of the gain."""
        ends = times(trial.achieved.interval, scale.factor)
        return "" if trial.net is None else within(scale.factor * trial.net, like=ends)

    return table(
        each.trials,
        [
            (left("method"), "chosen.key"),
            (left("kind", drops=2), "chosen.declared.kind"),
            ("predicted", lambda trial: gain(trial.predicted)),
            ("achieved", lambda trial: gain(trial.achieved)),
            costly and ("after cost", after_cost),
            (b.Column("processor", drops=1), lambda trial: f"{trial.seconds:.2f} s"),
        ],
        row=lambda trial: {"chosen": trial is each.best},
        picks=True,
    )


def _conclusion(each: Round, number: int, rounds: int, say: Say) -> b.Lines:
    """What follows from a round: the flowchart's new answer, or that nothing is left to win."""
    if number == 1 and each.picked is not None and len(each.picked.among) > 1:
        *others, other = each.picked.among
        won = say(each.picked.gain.value or 0.0, each.picked.gain.interval)
        yield (
            f"Choosing by cross-validation among {', '.join(others)} and {other} would have picked "
            f"{each.picked.method or 'none of them'}, and wins {won} on rows that took no part in the choice."
        )
    n_tried = sum(trial.achieved.value is not None for trial in each.trials)
    if each.best is None or each.advice is None or each.report is None:
        if not n_tried:
            yield "No method could be fitted to these rows, so their gains are unknown."
            return
        kept = "keep the score as it is" if number == 1 else f"stay with {each.score}"
        yield f"No method wins anything on held-out rows: {kept}."
        return
    if number == 1 and n_tried > 1:
        yield (
            f"The best of {n_tried} looks a little better than it is, because the same rows chose it: evaluate it on "
            f"new rows before you use it ({Verb('fit').words} {shell_word(each.best.chosen.key)} "
            f"{Hint('test', 'FILE').words})."
        )
    # The best recalibration, where a costlier kind was best and on the same rows the difference may be nothing.
    kinds = [(trial.chosen.declared.kind, trial) for trial in each.trials if (trial.net or 0) > 0]
    cheaper = next((trial for kind, trial in kinds if kind == "recalibration"), each.best)
    behind = None if each.best.chosen.declared.kind == "recalibration" else cheaper.behind
    if behind is not None and behind.interval is not None and behind.interval[0] <= 0 and cheaper is not each.best:
        after = " after costs" if any(trial.cost for trial in each.trials) else ""
        yield (
            f"{cheaper.chosen.key} needs only the score and may be as good: on the same rows it is "
            f"behind by {say(behind.value or 0.0, behind.interval)}{after}."
        )
    # The action goes by what there is to win, or where that does not pay, by the cost.
    advice, headline = each.advice, each.advice.headline
    priced = [step.reason for step in advice.steps if step.question.endswith("worth its cost?")]
    why = priced[-1] if advice.action == "do-not-post-train" and priced else advice.steps[0].reason
    yield f"Starting over with {each.report.model}: {headline[:1].lower()}{headline[1:]} {why}"
    if number == rounds and advice.action in ("recalibrate", "post-train"):
        noise = f" after {ROUNDS} rounds: each of them fits to the noise of these rows a little more"
        yield f"Stopped{noise if number == ROUNDS else ': none of the methods that were named recalibrates'}."
