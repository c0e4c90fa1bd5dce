"""What a verb is asked, as nouns: the data, the decision, the statistics, and what acting costs.

Each field is declared once. The option of the command line, the key of a settings file and the keyword of Python come
from its declaration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from decal_cli.declarations.defaults import CONFIDENCE, N_STUDY_SEEDS, SEED, STUDY_FOLDER, STUDY_THRESHOLDS, WARM_UP
from decal_cli.declarations.option import Option, declared, option

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from decal_cli.analysis.gate import Undecided
    from decal_cli.api.answer import Answer

from decal_cli.api.data import Data, Names, Noun, Path, Paths, Source, Table, Values, same
from decal_cli.api.decision import Decision, DecisionLike
from decal_cli.api.words import spoken
from decal_cli.render import terms

__all__ = [
    "Costs",
    "Data",
    "Decision",
    "DecisionLike",
    "Halvings",
    "Names",
    "Noun",
    "OverTime",
    "Path",
    "Paths",
    "Rules",
    "Source",
    "Statistics",
    "Table",
    "Terms",
    "Values",
    "same",
]


class Terms(terms.StatedTerms):
    __doc__ = terms.StatedTerms.__doc__

    @spoken
    def __post_init__(self) -> None:
        super().__post_init__()


@dataclass(frozen=True, repr=False)
class Statistics(Noun):
    """How sure the intervals are, and the random numbers.

    Parameters
    ----------
    confidence
        Level of the intervals, in (0, 1), by default .95.
    seed
        Of folds and resamples, by default 0.
    intervals
        Whether intervals are computed, which takes most of the time.
    """

    PANEL = "Statistics"

    confidence: float | None = option(
        "Confidence level of the intervals.", metavar="LEVEL", kind=float, shown=CONFIDENCE
    )
    seed: int | None = option("Seed of folds and resamples.", metavar="N", kind=int, shown=SEED)
    intervals: bool = declared(True, Option())


@dataclass(frozen=True, repr=False)
class Costs(Noun):
    """What post-training costs per decision, in the unit of the utilities, and what is good enough.

    Parameters
    ----------
    both
        Cost of recalibration and of post-training alike, or a mapping of costs by action.
    recalibrate, post_train
        Cost of one of them. With a number of decisions in the terms, costs are totals that are spread over them.
    satisfied_at
        Expected utility per decision that is good enough.
    tolerance
        Gain per decision that is too small to matter, by default .05 of what is at stake.
    """

    PANEL = "Cost of post-training"

    both: float | Mapping[str, float] | Sequence[str] | None = option(
        "Cost of post-training in utility per decision, or in total with --decisions. "
        "'recalibrate=1' and 'post-train=50' set the cost of one action. Repeatable.",
        metavar="[ACTION=]COST",
        key="cost",
        brief="Cost of post-training per decision, such as post-train=0.01. Repeatable.",
        kind=list[str],
    )
    _: KW_ONLY
    recalibrate: float | None = declared(None, Option())
    post_train: float | None = declared(None, Option())
    satisfied_at: float | None = option("Expected utility per decision that is good enough.", metavar="EU", kind=float)
    tolerance: float | None = option(
        "Gain per decision that is too small to matter.", metavar="U", shown="0.05 of what is at stake", kind=float
    )

    def by_action(self) -> list[str]:
        """Costs as the command line takes them: '0.01' or 'post-train=0.01'."""
        both = self.both
        if isinstance(both, (list, tuple)):
            return [str(text) for text in both]
        named: dict[str, float | None] = dict(both) if isinstance(both, Mapping) else {}
        named |= {"recalibrate": self.recalibrate, "post-train": self.post_train} if not named else {}
        alone = [] if both is None or isinstance(both, Mapping) else [_number("cost", both)]
        return alone + [f"{name}={_number('cost', cost)}" for name, cost in named.items() if cost is not None]


@dataclass(frozen=True, repr=False)
class Rules(Noun):
    """What must hold.

    Parameters
    ----------
    rules
        Such as 'gain_recalibration<=0.01', 'brier<=baseline+0.005' or 'upper(drop(expected_utility))<=0.005'.
    baseline
        An earlier answer, its `to_dict()`, the path of a JSON report, or the rows with the earlier scores.
    undecided
        What a rule counts as that the rows neither show to hold nor to fail: 'fail' or 'pass'.
    """

    PANEL = "Gate"

    rules: Names = declared((), Option())
    baseline: Answer | Data | Table | Path | None = declared(None, Option())
    undecided: Undecided | None = option(
        "What a rule counts as that does not hold for the value, where the rows do not show that it fails.",
        choices=("fail", "pass"),
        shown="fail",
        brief="What a rule counts as that the rows do not decide.",
    )


@dataclass(frozen=True, repr=False)
class OverTime(Noun):
    """How time passes in a stream of rows, and which forecasters are replayed.

    Parameters
    ----------
    time
        Dates or numbers, shape (T,), never decreasing, or the name of their column.
    delay
        When labels become known: rows, such as 500, a time, such as '7d', or the name of a column that says when.
    warm_up
        First rows, from which the frozen recalibration is learned.
    every
        Windows of the table, such as 'month' or 1000.
    horizon
        How many rows there will be.
    methods
        Forecasters, by default all.
    """

    PANEL = "Over time"

    time: Values | None = option(
        "Column of dates, times or numbers, never decreasing.",
        metavar="COLUMN",
        brief=True,
        shown="rows are in order as they stand",
    )
    delay: int | str | None = option(
        "When labels become known: after so many rows (500) or so much time (7d; s, min, h, d, w), "
        "or the name of a column that says when.",
        metavar="DELAY",
        brief="When labels become known: rows (500), a time (7d) or a column.",
        shown="before the next row, or with --time at any later time",
    )
    warm_up: int | None = option(
        "First rows, from which the frozen recalibration is learned.", metavar="ROWS", shown=WARM_UP, kind=int
    )
    every: int | str | None = option(
        "Windows of the table: hour, day, week, month, quarter, year, or a number of rows.",
        metavar="WINDOW",
        brief=True,
        shown="as few as can be read",
    )
    horizon: int | None = option(
        "Number of rows that there will be, which halves the bounds of the forecasters that use it.",
        metavar="ROWS",
        kind=int,
    )
    methods: Names = declared((), Option())


@dataclass(frozen=True, repr=False)
class Halvings(Noun):
    """How a study halves its files.

    Parameters
    ----------
    thresholds
        At which gains are compared, in (0, 1): numbers, or '0.1:0.9:0.1'.
    seeds
        Number of random halvings of every file.
    workers
        Processes; more than one need `if __name__ == "__main__":` around the call in a script.
    folder
        Where finished units are kept, so that a stopped study goes on from there.
    """

    PANEL = "Study"

    thresholds: str | ArrayLike = option(
        "Thresholds t*: start:end:step, or a list such as 0.1,0.3,0.5.",
        STUDY_THRESHOLDS,
        metavar="GRID",
        brief="Thresholds t*: start:end:step, or 0.1,0.3,0.5.",
    )
    seeds: int = option(
        "Number of random halvings of every file (seeds 0 to N - 1).", N_STUDY_SEEDS, metavar="N", kind=int, brief=True
    )
    workers: int | None = option("Number of processes.", metavar="N", shown="one per processor", kind=int, brief=True)
    folder: Path = option(
        "Folder for points, tables and pictures.", STUDY_FOLDER, "-o", metavar="FOLDER", line="output", brief=True
    )


def _number(name: str, value: Any) -> str:
    from decal_cli.api.asking import real

    return repr(real(name, value))
