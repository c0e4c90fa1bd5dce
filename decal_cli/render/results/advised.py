"""A model with the advice on it in sentences and tables; and within a limit, where only so many rows are acted on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from decal_cli.analysis.described import ActionShares, Decided, DecisionCounts, Places, PriorShiftGain, Utility, Worth
from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.evidence import GAINS
from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.recommend import (
    Kind,
    Ranked,
    RanksNow,
    Recommendation,
    Round,
    amounts_in,
    amounts_of,
    ece_advice,
    ece_disagrees,
    idle,
    ranks_now,
)
from decal_cli.data.words import grouped, quote, shell_word
from decal_cli.hints import Hint
from decal_cli.metrics import named
from decal_cli.numbers import (
    Interval,
    bounds,
    chance_words,
    decimal,
    decimals_for,
    p_value,
    percent,
    plain,
    saying,
    sized,
    times,
    within,
)
from decal_cli.render import blocks as b
from decal_cli.render.cells import left, number, reasons, table
from decal_cli.render.results.sections import beside_blocks
from decal_cli.render.results.source import costs_of_rows, limited_actions, row_task_line, task_line
from decal_cli.render.results.ways import (
    KEYS,
    OF_ROWS,
    WAYS,
    Way,
    action_heads,
    amounts_alike,
    named_ways,
    of_thousand,
    way_name,
    ways_of,
)
from decal_cli.render.terms import StatedTerms

MAX_ACTIONS = 6
"""Actions whose shares a table shows."""
SHARES = {"capture": "capture", "value_capture": "capture of value", "precision": "precision"}
"""Metrics that the table of scores at a capacity shows, with their headings."""


class AdvisedModel:
    """A model on all rows, or on a group of them, with the advice on it, in the user's terms.

    Methods are tried, scores ranked and other thresholds looked at for all rows of a model.
    """

    rounds: Sequence[Round] = ()
    ranked: Sequence[Ranked] = ()
    ranks_now: RanksNow | None = None
    holds: Interval | None = None
    perfect = "perfect decisions are"
    """What the last of the ways is called in a sentence."""

    def __init__(self, report: Report, advice: Advice, whole: Recommendation, terms: StatedTerms) -> None:
        self.report, self.advice, self.evaluation, self.terms = report, advice, whole.evaluation, terms
        self.task = whole.evaluation.plan.binary
        if report.of_all_rows:
            self.rounds, self.holds = whole.rounds.get(report.model, ()), whole.holds.get(report.model)
        self.unused_times = whole.unused_times
        self.scale = terms.scale(*amounts_of(report))
        self.factor, self.say, self.amount = self.scale.factor, self.scale.say, saying(self.scale.factor)

    @property
    def todo(self) -> str:
        """What to do now, in a few words."""
        return self.advice.todo

    def wins(self, factor: float) -> str:
        """What that wins, after costs, times the factor of a page."""
        won, interval = self.advice.wins
        return "" if won is None else within(factor * won, times(interval, factor))

    def lead(self) -> tuple[str, ...]:
        """What to do today."""
        return self.advice.lead

    @cached_property
    def ways(self) -> list[Way]:
        """The ways of acting."""
        return ways_of(self.report.results, self.report.find(DecisionCounts))

    @property
    def room(self) -> float:
        """The share of all rows that the capacity leaves to act on; 1 without one."""
        places = self.report.find(Places)
        return min(places.places / self.report.rows, 1.0) if places else 1.0

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
                    value = p_value(item.value) if rough else say(item.value, item.interval)
                evidence.append(f"{metric.title.lower()}: {value}")
            asked.append(b.AnsweredQuestion(step.question, step.answer, step.reason, evidence, step.number))
        return b.AnsweredQuestions(asked)

    def notes(self) -> b.Blocks:
        """What to do next, if anything, what ECE would have said, and for which decisions the same advice holds."""
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
        if sentences:
            yield b.Conclusion("", sentences)

    def _ece(self) -> b.Lines:
        """What ECE says, which is the same for any decision, beside what recalibration wins for this one."""
        report, advice = self.report, self.advice
        gain = advice.evidence.item(GAINS["recalibrate"])
        ece, null = report.value("ece"), report.value("ece_null")
        if ece is None or null is None or gain.value is None:
            return
        low, high = gain.interval or (0.0, 1.0)
        nothing = "wins nothing" if low == high else "may win or lose"
        does = "wins" if low > 0 else "loses" if high < 0 else nothing
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
        ways, best = named_ways(report.results, counts), report.find(Worth)
        worth = dict(zip(ways, amounts_alike(report.results, [way.worth for way in ways], self.factor), strict=True))
        done = of_thousand(ways, counts.total) if counts else {}
        shares = None if counts or len(self.actions) > MAX_ACTIONS else report.find(ActionShares)

        def name(way: Way) -> str:
            return way_name(way, terms) + (f": {best.action}" if best and way.key == "constant" else "")

        def over(way: Way) -> str:
            """What a way of acting wins over the score as it is, with its interval."""
            _, _, (_, *gains) = WAYS[way.key]
            gain = report.known(gains[-1]) if gains else None
            return "" if gain is None else self.amount(*gain)

        yield table(
            ways,
            [
                (left(""), name),
                (b.Column(f"worth {self.scale.heading}", breaks=(28, 16, 10)), lambda way: worth[way]),
                *(
                    (b.Column(head, breaks=(12, 8)), lambda way, at=at: done[way][at] if way in done else "")
                    for at, head in enumerate(action_heads(terms, ""))
                    if counts
                ),
                not counts and (b.Column("gain over the score as it is", breaks=(18, 12)), over),
                *(self._takes(shares, each) for each in self.actions if shares),
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
            beaten = bounds(over.interval)[1] < 0
            until = " Until a score beats that, act on the amount alone." if beaten else ""
            least = self.terms.price(by_row.least_amount)
            yield b.Paragraph(
                f"Acting on every row that costs about {least} or more to miss, whatever its score, is worth "
                f"{self.say(alone.value)} on held-out rows; acting on the score as it is {won} that.{until}"
            )
        yield from beside_blocks(self.report, self.evaluation, self.terms)

    def places(self) -> b.Blocks:
        """What a limited capacity changes: nothing, where every row can be acted on."""
        yield from ()


class LimitedModel(AdvisedModel):
    """A model on all rows, of which only so many can be acted on, with what its scores are worth then."""

    ranks_now: RanksNow

    def __init__(self, report: Report, advice: Advice, whole: Recommendation, terms: StatedTerms) -> None:
        super().__init__(report, advice, whole, terms)
        self.ranked = whole.ranked[report.model]
        self.ranks_now = ranks_now(self.ranked, advice.evidence.acted_on, whole.evaluation.plan.confidence)
        # Of more than two actions, a method may also change which one a row with a place gets.
        self.keeps_actions = limited_actions(self.evaluation) is not None
        if self.keeps_actions:
            self.perfect = "a perfect ranking is"

    @property
    def ranked_first(self) -> Ranked:
        """What gives the places today, among the scores."""
        return next(each for each in self.ranked if each.method == self.ranks_now.method)

    @property
    def idle(self) -> Utility | None:
        """What acting on no row wins over the order of the score; None where some score is known to win more."""
        return idle(self.report, self.ranks_now, self.advice.evidence.stakes)

    @property
    def first(self) -> str:
        """What to do with the places."""
        if self.idle is not None:
            return "Give no places" if self.keeps_actions else "Act on no row"
        what = "Give the places to" if self.keeps_actions else "Act on"
        return f"{what} the rows that {self.ranks_now.method or 'the score'} puts first"

    def lead(self) -> tuple[str, ...]:
        """First what gives the places today, then what to do without the limit."""
        now, limit, lead = self.ranks_now, self.evaluation.limit, self.advice.lead
        without = (f"Without the limit of {limit}: {lead[0]}", *lead[1:])
        first = f"At capacity {limit}, {self.first[0].lower()}{self.first[1:]}"
        if self.idle is not None:
            won = self.say(*self.idle)
            return (
                f"{first}: that wins {won} over the order of the score, and no method is known to win more.",
                *without,
            )
        if now.method is None:
            return (f"{first}: no method is sure enough to win more.", *without)
        won = self.say(now.gain, self.ranked_first.interval)
        sure = () if now.chance is None else (f"The chance that this wins anything is {chance_words(now.chance)}.",)
        return (f"{first}: wins {won} over the order of the score.", *sure, *without)

    @cached_property
    def ways(self) -> list[Way]:
        """The ways of acting on a share of all rows."""
        room, worth = self.room, self.report.find(Worth)
        assert worth  # there are scores at a capacity
        known = {way.key: way for way in ways_of(self.report.results, self.report.find(DecisionCounts))}
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
                ranks = key == "perfect" and self.keeps_actions
                name = "rank rows perfectly, by their labels" if ranks else WAYS[key][1]
                ways.append(Way(key, name, each.utility, each.interval, found))
        return ways

    def places(self) -> b.Blocks:
        """What a limited capacity changes for the model, and what each score is worth under it."""
        ranked, factor = self.ranked, self.factor
        ends = [times(each.interval, factor) for each in ranked]
        decimals = decimals_for(ends, [factor * (each.utility or 0.0) for each in ranked])
        now, unlimited = ranked[0].utility or 0.0, self.report.results["expected_utility"].value or 0.0
        costs = f"The limit {'costs' if unlimited >= now else 'wins'} {self.say(abs(unlimited - now))}."
        places = self.report.find(Places)
        if places and not places.full:
            costs = "Every row that the score as it is acts on has a place, so that the limit costs it nothing."
        text = " ".join((costs, *self._of_methods()))
        yield b.Paragraph(text, strong=f"At capacity {self.evaluation.limit}.")
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
            keys=1,
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
            bound = "which action a row gets stays as it is" if self.keeps_actions else "no method can win more"
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


def advised_in(
    whole: Recommendation, terms: StatedTerms, reports: Sequence[Report] | None = None
) -> list[AdvisedModel]:
    """These reports, by default all, each with its advice."""
    advice_on = {report.place: advice for report, advice in whole.advised}

    def advised(report: Report) -> AdvisedModel:
        kind = LimitedModel if report.of_all_rows and whole.ranked.get(report.model) else AdvisedModel
        return kind(report, advice_on[report.place], whole, terms)

    return list(map(advised, whole.evaluation.reports if reports is None else reports))


def advice_table(advised: Sequence[AdvisedModel], terms: StatedTerms) -> b.TextTable:
    """What to do now with each model and group, what that wins, and how sure it is; all amounts in one unit."""
    scale = terms.scale(*amounts_in(each.report.results for each in advised))
    return table(
        advised,
        [
            (left("model", wraps=True), "report.model"),
            not all(each.report.of_all_rows for each in advised)
            and (left("group", wraps=True), lambda each: each.report.group or "all rows"),
            (left("do without the limit" if any(each.ranks_now for each in advised) else "do now", wraps=True), "todo"),
            (b.Column(f"wins {scale.heading}", breaks=(16,)), lambda each: each.wins(scale.factor)),
            (left("how sure"), "advice.certainty"),
        ],
    )
