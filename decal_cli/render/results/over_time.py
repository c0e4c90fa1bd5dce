"""Gains by the age of the fit, where fits learn from earlier rows only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from decal_cli.analysis.described import GainByAge, Utility
from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.recommend import amounts_of
from decal_cli.numbers import DASH, saying, within
from decal_cli.render.blocks import Block, Column, Notes, Paragraph
from decal_cli.render.cells import table
from decal_cli.render.terms import StatedTerms


def over_time_blocks(report: Report, terms: StatedTerms, named: bool = False) -> Iterator[Block]:
    """What was judged on what, a table by age, and how long a fit lasts; nothing where rows have no time.

    named: say which model it is.
    """
    over_time = report.over_time
    if over_time is None:
        return
    model = f" of {report.model}" if named else ""
    yield Paragraph(
        f"Gains are those of fits that learn from earlier rows only. They are judged on the {over_time.rows:,} rows "
        f"after the first block of {report.rows:,}, each by a fit that ends just before its block. The table shows "
        "how older fits do.",
        strong=f"Over time{model}.",
    )
    scale = terms.scale(*amounts_of(report))
    days = over_time.unit == "days"
    say = saying(scale.factor)

    def gain(of: Callable[[GainByAge], Utility | None]) -> Callable[[GainByAge], str]:
        return lambda age: DASH if (won := of(age)) is None else say(*won)

    lasting = {"recalibration": over_time.recalibration_lasts}
    if over_time.ages[0].gain_post_training is not None:
        lasting["post-training"] = over_time.post_training_lasts
    yield table(
        over_time.ages,
        [
            (Column(f"{'days' if days else 'time'} after the fit", breaks=(10,)), lambda age: within(age.after)),
            ("rows", lambda age: f"{age.rows:,}"),
            (Column("gain of recalibration", breaks=(16, 8)), gain(lambda age: age.gain_recalibration)),
            "post-training" in lasting
            and (Column("gain of post-training", breaks=(16, 8)), gain(lambda age: age.gain_post_training)),
        ],
        keys=1,
        title=f"Gain by the age of the fit{model}",
        caption=f"Gains {scale.heading}.",
    )
    oldest = over_time.ages[-1].after
    yield Notes((_lasts(name, after, oldest, days) for name, after in lasting.items()), close=True)


def _lasts(name: str, after: float | None, oldest: float, days: bool) -> str:
    """How long a fit of this kind lasts, by the signs of its gains."""
    if after is None:
        return f"The gain of {name} is not above 0, not even on the rows that follow a fit."
    span = f"{within(after)} {'days' if days else 'units of time'}"
    if after == oldest:
        return f"The gain of {name} stays above 0 as far as these rows show: up to {span} after a fit."
    return f"The gain of {name} is above 0 up to {span} after a fit, and not in the next block."
