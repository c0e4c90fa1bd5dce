"""The sections of a report as text: what each says, for a report that has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import attrgetter
from typing import TypeVar

from decal_cli.analysis.described import (
    MAX_PVALUE,
    ActionCounts,
    ByClass,
    GainByAge,
    GainsOverTime,
    Places,
    Reference,
    Regimes,
    Section,
    Shift,
    WithoutLabels,
)
from decal_cli.analysis.evaluate import Evaluation, Plan, Report
from decal_cli.analysis.packs import MIN_DENOMINATOR, QUANTILES, ByOutcome, Gap, Pack, Packed
from decal_cli.analysis.recommend import amounts_of
from decal_cli.data.words import grouped
from decal_cli.hints import Hint, Verb, said
from decal_cli.metrics.label_shift import N_BINS
from decal_cli.numbers import DASH, alike, bounds, counts, decimals_for, p_value, percent, plain, short, times, within
from decal_cli.render.blocks import Blocks, Cell, Column, Heading, Lines, Notes, Paragraph, Row, TextTable
from decal_cli.render.cells import amount, by_words, counted, left, number, table, texts, words
from decal_cli.render.results.source import lowest_first
from decal_cli.render.terms import StatedTerms

S = TypeVar("S", bound=Section)

MAX_ACROSS = 8
"""Classes that stand side by side; of more, the cells that cost most are listed."""
N_COSTLIEST = 10
"""How many of the costliest cells are listed."""
MAX_PAIRS = 10
"""Pairs of groups of one metric that a table shows."""
MAX_CLASSES_SHOWN, N_LOWEST = 30, 20
"""Most classes that the table of classes shows; where there are more, how many of the lowest recall it shows."""
REGIMES_EXPLAINED = (
    "c: the frequency of label 1; a regret is what the bin adds to the metric of that name, the grouping regret "
    "between its lower and its sharp upper bound; a grouping loss up to Vmin may change no decision, one above it "
    "does; larger: the larger of the two regrets"
)


def having(reports: Sequence[Report], kind: type[S]) -> list[tuple[Report, S]]:
    """The reports that have a section of this kind, each with it."""
    return [(report, section) for report in reports if (section := report.find(kind))]


def beside_blocks(report: Report, evaluation: Evaluation, terms: StatedTerms, named: bool = False) -> Blocks:
    """What rows without a label and the time of rows come to; named: say which model it is."""
    if apart := report.find(WithoutLabels):
        yield without_labels_text(apart, report, "weight" in evaluation.columns, terms, named)
    yield from over_time_blocks(report, terms, named)


def without_labels_text(
    apart: WithoutLabels, report: Report, weighted: bool, terms: StatedTerms, named: bool
) -> Paragraph:
    """What rows without a label leave open; weighted: rows have weights already. named: say which model it is."""
    low, high = apart.interval or (apart.above, apart.above)
    way = "higher" if low > 0.5 else "lower" if high < 0.5 else ""
    scored, score = ("score", "score") if not report.of_classes else ("prediction", "highest probability")
    scale = terms.scale(*amounts_of(report))

    def between(ends: Sequence[float]) -> str:
        return " and ".join(alike([scale.factor * end for end in ends]))

    rows, them, their, one = "row has", "it", "Its", "it"
    if apart.rows > 1:
        rows, them, their, one = "rows have", "them", "Their", "that of one of them"
    text = (
        f"{apart.rows:,} {rows} a {scored} and no label, and the other numbers do not count {them}. "
        f"{their} {score} is {way or 'not clearly another one'}: {one} lies above that of a row with a "
        f"label with probability {within(apart.above, apart.interval)}."
    )
    if apart.expected_utility is not None:
        text += (
            f" Whatever their labels are, acting on the score is worth between {between(apart.expected_utility)} "
            f"{scale.words} on all {report.rows + apart.rows:,} rows."
        )
    if apart.gain_recalibration is not None:
        # Recalibration may change no decision on the rows without a label.
        low, high = apart.gain_recalibration
        won = f"lies between {between((low, high))}" if low < high else f"is {between((low,))}"
        text += f" What recalibration wins there {won}."
    if way and not weighted:
        text += (
            f" Where a row's chance of having a label is known, its inverse as {Hint('weight').words} makes the rows "
            "with a label stand for all."
        )
    return Paragraph(text, strong=f"Missing labels{f' of {report.model}' if named else ''}.")


def over_time_blocks(report: Report, terms: StatedTerms, named: bool) -> Blocks:
    """What was judged on what, a table by age, and how long a fit lasts; nothing where rows have no time.

    named: say which model it is.
    """
    over_time = report.find(GainsOverTime)
    if not over_time:
        return
    model = f" of {report.model}" if named else ""
    yield Paragraph(
        f"Gains are those of fits that learn from earlier rows only. They are judged on {over_time.rows:,} of "
        f"{report.rows:,} rows, those after the first block, each by a fit that ends just before its block. The table "
        "shows how older fits do.",
        strong=f"Over time{model}.",
    )
    scale = terms.scale(*amounts_of(report))
    days = over_time.unit == "days"

    lasting = {"recalibration": over_time.recalibration_lasts}
    if over_time.ages[0].gain_post_training is not None:
        lasting["post-training"] = over_time.post_training_lasts

    def gain(method: str) -> Callable[[GainByAge], Cell | str]:
        won = attrgetter(f"gain_{method.replace('-', '_')}")
        known = [each for age in over_time.ages if (each := won(age)) is not None]
        decimals = decimals_for(
            [times(each.interval, scale.factor) for each in known], [scale.factor * each.value for each in known]
        )

        def cell(age: GainByAge) -> Cell | str:
            each = won(age)
            if each is None:
                return DASH
            return amount(scale.factor * each.value, times(each.interval, scale.factor), decimals)

        return cell

    yield table(
        over_time.ages,
        [
            (Column(f"{'days' if days else 'time'} after the fit", breaks=(10,)), lambda age: within(age.after)),
            ("rows", lambda age: f"{age.rows:,}"),
            *((Column(f"gain of {name}", breaks=(16, 8)), gain(name)) for name in lasting),
        ],
        keys=1,
        title=f"Gain by the age of the fit{model}",
        caption=f"Gains {scale.heading}.",
    )
    lines = []
    for name, after in lasting.items() if over_time.ages[0].gain_recalibration.interval is not None else ():
        lasts = "is not clearly above 0 on the rows that follow a fit"
        if after is not None:
            s = "" if after == 1 else "s"
            far = f"up to {within(after)} {f'day{s}' if days else f'unit{s} of time'} after a fit"
            lasts = f"is clearly above 0 {far}, and not in the next block"
            if after == over_time.ages[-1].after:
                lasts = f"stays clearly above 0 as far as these rows show: {far}"
        lines.append(f"The gain of {name} {lasts}.")
    yield Notes(lines, close=True)


def regime_tables(reports: Sequence[Report], factor: float = 1.0, measured_in: str = "") -> Blocks:
    """A table of bins for each model and group that has them, from the lowest score up, and what its columns mean.

    factor: of regrets per decision, and measured_in what they are then in, where the page writes amounts of many.
    """
    shown = having(reports, Regimes)
    for report, regimes in shown:
        yield _regime_table(regimes, f"{report.name}: " if len(reports) > 1 else "", factor)
    if shown:
        yield Notes((REGIMES_EXPLAINED + (f"; regrets are {measured_in}" if measured_in else ""),), quiet=True)


def _regime_table(regimes: Regimes, name: str, factor: float) -> TextTable:
    """The bins of a model, from the lowest score up, and their sum."""
    # All alike, with three digits of the largest, so that rows add up.
    sizes = [factor * size for r in regimes.bins for size in (r.regret_calibration, r.regret_grouping or 0.0)]
    decimals = decimals_for((), sizes)

    def regret(value: float | None, low: float | None = None, high: float | None = None) -> Cell:
        bounds = None if low is None or high is None else (low, high)
        if factor == 1.0 or value is None:
            return by_words(number(value, bounds).text)
        return by_words(amount(factor * value, times(bounds, factor), decimals).text)

    bins = table(
        regimes.bins,
        [
            (left(f"{name}score from, to", breaks=(9,)), lambda r: Cell((short(r.low, 4), f"to {short(r.high, 4)}"))),
            ("rows", lambda r: counted(r.rows)),
            (Column("mean score", drops=2), "score"),
            ("c", "rate"),
            (Column("grouping loss", breaks=(9,)), "grouping_loss"),
            (Column("Vmin", drops=1), "least_variance"),
            (Column("calibration regret", breaks=(9,)), lambda r: regret(r.regret_calibration)),
            (
                Column("grouping regret", breaks=(9,)),
                lambda r: regret(r.regret_grouping, r.regret_grouping_lower, r.regret_grouping_upper_sharp),
            ),
            (left("larger"), "larger"),
        ],
        keys=1,
    )
    # The metrics are the sums of the columns.
    known = [r.regret_grouping for r in regimes.bins if r.regret_grouping is not None]
    regrets = regret(sum(r.regret_calibration for r in regimes.bins)), regret(sum(known) if known else None)
    cells = map(words, ("all", counted(sum(r.rows for r in regimes.bins)), *[""] * 4))
    return replace(bins, rows=(*bins.rows, Row((*cells, *regrets, words("")), apart=True)))


def class_blocks(report: Report, by_class: ByClass, named: bool) -> Blocks:
    """A table of several classes, and of the actions on each. named: whether model and group stand above."""
    whose, shown, which = f"{report.name}: " if named else "", by_class.classes, ""
    if len(shown) > MAX_CLASSES_SHOWN:
        shown = tuple(sorted(shown, key=lambda each: (*lowest_first(each.recall), each.name))[:N_LOWEST])
        has = f"{Hint('format', 'json').words} has all"
        which = f", the {N_LOWEST} of {len(by_class.classes)} with the lowest recall ({has})"
    yield table(
        shown,
        [
            (left("class"), "name"),
            ("rows", lambda each: counted(each.rows)),
            ("predicted", lambda each: counted(each.predicted)),
            ("right", lambda each: counted(each.right)),
            ("precision", "precision"),
            ("recall", "recall"),
        ],
        title=f"{whose}classes{which}",
        keys=1,
    )
    if done := report.find(ActionCounts):
        few = len(done.classes) <= MAX_ACROSS and len(done.actions) <= 2 * MAX_ACROSS
        yield from action_tables(report, done, whose) if few else (_costliest(done, whose, _limit(report)),)


def _limit(report: Report) -> str:
    """What is said of actions that would be taken if every row had a place."""
    return " without the limit" if report.find(Places) else ""


def action_tables(report: Report, done: ActionCounts, whose: str = "") -> Iterator[TextTable]:
    """A row for each action and a column for each class: rows, and what they lose."""
    lost = [[1000 * loss for loss in row] for row in done.loss]
    of_rows, limit = "class" if report.of_classes else "label", _limit(report)
    title = f"{whose}what each loses{limit} against the best action for the {of_rows}, per 1,000 rows"
    for cells, above in ((done.rows, f"{whose}actions taken{limit}, by {of_rows}: rows"), (lost, title)):
        written = iter(counts([cell for row in cells for cell in row]))
        rows = [(action, *islice(written, len(done.classes))) for action in done.actions]
        yield texts(("action", *done.classes), rows, title=above, keys=1)


def _costliest(done: ActionCounts, whose: str, limit: str) -> TextTable:
    """The cells of action and class that lose most against the best action for the class."""
    places = ((action, name) for action in done.actions for name in done.classes)
    whole = zip(places, chain(*done.rows), chain(*done.loss), strict=True)
    cells = sorted((-loss, action, name, n) for (action, name), n, loss in whole if loss > 0)
    shown = cells[:N_COSTLIEST]
    of_all = f"of {len(cells):,} " if len(shown) < len(cells) else ""
    return table(
        shown,
        [
            (left("action"), lambda cell: cell[1]),
            (left("class"), lambda cell: cell[2]),
            ("rows", lambda cell: counted(cell[3])),
            ("adds to the loss per 1,000 rows", lambda cell: plain(-1000 * cell[0])),
        ],
        title=f"{whose}the {len(shown)} {of_all}cells of action and class that lose most{limit}",
        keys=2,
    )


def cell_rows(done: ActionCounts) -> Iterator[tuple[str, float]]:
    """Rows and loss of every cell that holds rows, by a key, for CSV."""
    for what, cells in (("rows", done.rows), ("loss", done.loss)):
        for a, action in enumerate(done.actions):
            for k, name in enumerate(done.classes):
                if done.rows[a][k] > 0:
                    yield f"{what}[{action}, {name}]", cells[a][k]


def pack_blocks(evaluation: Evaluation, packed: Packed) -> Blocks:
    """All that a pack shows below its measures."""
    pack = packed.pack
    by_outcome = [(report, each) for report, scores in having(evaluation.reports, ByOutcome) for each in scores.labels]
    if by_outcome:
        yield Heading("Scores by outcome")
        yield table(
            by_outcome,
            [
                len({id(report) for report, _ in by_outcome}) > 1 and (left("model"), lambda row: row[0].name),
                ("label", lambda row: str(row[1].label)),
                ("rows", lambda row: f"{row[1].rows:,}"),
                ("mean", lambda row: row[1].mean),
                *((percent(share), lambda row, at=f"{share:g}": row[1].quantiles[at]) for share in QUANTILES),
            ],
        )
    for model, gaps in grouped((gap.model, gap) for gap in packed.gaps).items():
        yield Heading("Groups that are apart" + (f": {model}" if len(evaluation.models) > 1 else ""))
        yield _gap_table(gaps, pack)
    if packed.gaps or packed.too_small:
        yield Notes(_gap_notes(packed, evaluation.plan), quiet=True)
    yield Notes(map(said, pack.notes), quiet=True)


def _gap_table(gaps: Sequence[Gap], pack: Pack) -> TextTable:
    """The clear pairs of each metric, or the most certain one where none is clear."""
    by_metric = grouped(((gap.column, gap.metric), gap) for gap in gaps)
    several = len({gap.column for gap in gaps}) > 1
    return table(
        [gap for of_metric in by_metric.values() for gap in of_metric[:MAX_PAIRS]],
        [
            (left("metric", wraps=True), lambda gap: pack.measures[gap.metric]),
            (left("higher (rows)", wraps=True), lambda gap: f"{gap.high} ({counted(gap.high_rows)})"),
            (left("lower (rows)", wraps=True), lambda gap: f"{gap.low} ({counted(gap.low_rows)})"),
            ("gap", lambda gap: by_words(number(gap.difference, gap.interval).text)),
            (
                left("beyond noise", wraps=True),
                lambda gap: "unknown" if gap.interval is None else "yes" if gap.clear else "no",
            ),
        ],
        lambda gap: {"section": gap.column if several else ""},
    )


def _gap_notes(packed: Packed, plan: Plan) -> Lines:
    """What a gap is, how sure its interval is, and which groups are not compared."""
    pack = packed.pack
    sizes = [size for gap in packed.gaps for size in (gap.high_rows, gap.low_rows)]
    # Rows of clusters, or of unlike weights, count as fewer independent ones.
    effective = any(size % 1 for size in (*sizes, *(each.rows for each in packed.too_small)))
    if packed.gaps:
        together = ""
        if plan.intervals:
            sure = plain(100 * plan.confidence)
            together = f", with an interval that holds for all pairs of groups at once ({sure} %)"
        yield (
            f"gap: the higher value less the lower{together}; every pair that is clearly apart is listed, the most "
            "certain first, or the most certain one where none is; rows: those of the denominator"
            f"{', of rates and rankings the effective ones' if effective else ''}"
        )
    counts = Counter((gap.model, gap.column, gap.metric) for gap in packed.gaps)
    cut = [f"{pack.measures[key]} {count:,}" for (_, _, key), count in counts.items() if count > MAX_PAIRS]
    if cut:
        has = f"{Hint('format', 'json').words} has all"
        yield f"the {MAX_PAIRS} most certain pairs of each metric are listed; {has}: {', '.join(cut)}"
    small = grouped((f"{each.group} ({counted(each.rows)})", pack.measures[each.metric]) for each in packed.too_small)
    if small:
        listed = [f"{group} for {', '.join(dict.fromkeys(names))}" for group, names in small.items()]
        more = f"; and {len(listed) - MAX_PAIRS:,} more" if len(listed) > MAX_PAIRS else ""
        yield (
            f"too small to be compared, fewer than {MIN_DENOMINATOR} {'effective ' if effective else ''}rows in the "
            "denominator: "
            f"{'; '.join(listed[:MAX_PAIRS])}{more}"
        )


def reference_blocks(reference: Reference) -> Blocks:
    """A row for each model, what follows, and what the columns mean."""

    names = ", ".join(item.path for item in reference.inputs)
    yield Heading(f"Against the reference: {names}, {sum(item.rows for item in reference.inputs):,} rows")
    yield table(
        reference.models,
        [
            (left("model"), "model"),
            ("PSI", "psi"),
            ("labels 1 in the reference", lambda shift: percent(shift.reference_share)),
            ("in these rows", lambda shift: percent(shift.share)),
            ("by the scores alone", lambda shift: number(shift.by_scores, shift.interval, reason=shift.reason)),
            ("p-value", lambda shift: DASH if shift.pvalue is None else p_value(shift.pvalue)),
        ],
    )
    yield Notes(f"{shift.model}: {_meaning(shift)}" for shift in reference.models)
    explained = (
        f"PSI: population stability index on {N_BINS} equal-mass bins of the reference; p-value: how often scores "
        "differ so much where the scores of each label are those of the reference"
    )
    yield Notes((explained,), quiet=True)


def _meaning(shift: Shift) -> str:
    if shift.alike is None:
        return f"the scores alone cannot tell the share of labels 1: {shift.reason}"
    if not shift.alike:
        return (
            f"the scores of one label are not those of the reference (p-value up to {plain(MAX_PVALUE)}): "
            "what was learned on the reference, such as a calibration, need not hold here"
        )
    low, high = bounds(shift.interval)
    if not low <= shift.share <= high:
        return (
            "the scores look like those of the reference with another share of labels 1, but not with the share that "
            "these labels have: the labels mean something else, or the scores tell less here"
        )
    if shift.interval is not None and low <= shift.reference_share <= high:
        return "nothing differs from the reference beyond noise"
    alone = "no more than the share of labels 1 differs from the reference beyond noise"
    # The scores may point at no row of label 1, or none of label 0: then by the labels of these rows.
    shares = (round(share, 4) for share in (shift.by_scores or 0.0, shift.share))
    share = next((share for share in shares if 0 < share < 1), None)
    if share is None:
        return alone
    return (
        f"{alone}; {Verb('recommend').words} on the reference with "
        f"{Hint('prevalence', plain(share)).words} says what moving its scores to that share wins"
    )
