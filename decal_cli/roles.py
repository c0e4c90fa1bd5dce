"""What columns can stand for (score, label, weight and so on), declared once.

The options of the command line, the keys of a settings file, the keywords of the Python API, the reader and the report
all read these declarations. A new role is one field of `Columns`, and the code that uses its values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from decal_cli.declarations.option import Declaring, Option, declared, option, options_of
from decal_cli.hints import Hint


@dataclass(frozen=True)
class Role(Option):
    """What one column, or several, stand for.

    read_as: as numbers, as texts that are only told apart, as features, read when they are needed, or as times. globs:
    whether a pattern such as 'p_*' can name the columns. usual: names, in lower case, and patterns that find a column
    when the user names none; a role that has them is required. shares: other roles that the same column can have.
    unless: a role that, where named, replaces this one.
    """

    read_as: Literal["numbers", "texts", "features", "times"] = "texts"
    metavar: str = "COLUMN"
    globs: bool = False
    usual: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    unless: str = ""


def role(help: str, default: Any = "", flag: str = "", **more: Any) -> Any:
    """A field that stands for columns; `more` as for `Role`."""
    return declared(Role(help, default, flag, **more))


@dataclass(frozen=True)
class Columns(Declaring, panel="Input"):
    """The columns a user named, by role, and how their values are read.

    A role of several columns is a tuple, which is empty when the user names none; a role of one column is then "".
    The reader finds such a column by its usual names, if the role has any.
    """

    score: tuple[str, ...] = role(
        "Score column, or a pattern such as 'p_*'. Or a list such as 'p,q'; every column is a model.",
        (),
        "-s",
        read_as="numbers",
        globs=True,
        usual=("p", "prob", "proba", "probability", "score", "y_prob", "y_score", "pred", "p_*"),
        unless="proba",
        brief=True,
    )
    proba: tuple[str, ...] = role(
        "Columns of the probabilities of several classes, a pattern such as lr:*, or a list 'nb:*,lr:*'. "
        "The * is the class, and every pattern is a model.",
        (),
        metavar="PATTERN",
        read_as="numbers",
        globs=True,
        brief=True,
    )
    classes: str = option(
        f"Names of the classes, 'a,b,c', in the order of one list-valued column that {Hint('proba')} names.",
        "",
        metavar="NAMES",
    )
    label: str = role("Label column.", flag="-y", usual=("y", "label", "target", "y_true", "outcome"), brief=True)
    weight: str = role("Column of positive row weights.", read_as="numbers")
    group: tuple[str, ...] = role("Also report every value of this column by itself.", (), brief=True)
    cluster: str = role(
        "Column of what rows were sampled by, such as the patient. Intervals count clusters as independent, not rows, "
        "and folds keep them whole.",
        # A group may be a cluster, and so may the ids that two files are joined by.
        shares=("group",),
        brief=True,
    )
    time: str = role(
        "Column of dates, times or numbers: gains are then of fits that learn from earlier rows only, judged on later "
        "ones.",
        read_as="times",
        # A date may be a group, a day of a capacity or what rows were sampled by.
        shares=("group", "cluster", "features"),
    )
    per: str = role(
        f"With {Hint('capacity')}: column whose every value has that capacity, such as the day; times count as their "
        "days.",
        panel="Decision",
        # A day may be what rows were sampled by, and results may be reported by it.
        shares=("group", "cluster", "time"),
    )
    amount: str = role(
        f"Column of what a miss costs in this row; give {Hint('cost_fp')} or {Hint('cost_fp_column')} too. It may be "
        "the amount of a transaction; every row then has a threshold of its own.",
        panel="Decision",
        read_as="numbers",
        brief=True,
    )
    cost_fp_column: str = role(
        f"Column of what a false positive costs in this row; give {Hint('amount')}, {Hint('cost_fn_column')} or "
        f"{Hint('cost_fn')} too.",
        panel="Decision",
        read_as="numbers",
    )
    cost_fn_column: str = role(
        f"Column of what a false negative costs in this row; give {Hint('cost_fp_column')} or {Hint('cost_fp')} too.",
        panel="Decision",
        read_as="numbers",
    )
    utility_columns: tuple[str, ...] = role(
        f"Columns of the utilities of this row in the order of {Hint('utility')}: 'tn,fn,fp,tp', or for each of "
        "several actions a column for each class.",
        (),
        panel="Decision",
        read_as="numbers",
        metavar="COLUMNS",
    )
    features: tuple[str, ...] = role(
        "Feature columns, such as x*: what post-training could use. Names, patterns, a list such as 'age,x*', '*' for "
        "all that have no other role, or one list-valued embedding column.",
        (),
        read_as="features",
        globs=True,
        # An age band may be both, and an amount says something; a feature that is the label or the score is a leak
        # or a slip.
        shares=("group", "amount", "cost_fp_column", "cost_fn_column", "utility_columns"),
        brief=True,
    )
    log: str = option(
        "The tool that logged a language model's answers: lm-eval (samples_*.jsonl) or inspect (.json, .eval). The "
        "score is then the model's confidence, and label 1 a right answer.",
        "",
        flag="--from",
        choices=("lm-eval", "inspect"),
    )
    positive: str = option("Label value that counts as 1.", "", metavar="VALUE")
    logit: bool = option("Scores are log-odds.", False)
    margin: bool = option("Scores are margins of any size: their range in these rows is rescaled to [0, 1].", False)
    missing: Literal["error", "drop"] = option(
        "What to do with missing values: report an error, or drop the rows and say how many. Features may be missing.",
        "error",
        choices=("error", "drop"),
        brief=True,
    )
    prevalence: str = option(
        "Share of labels 1 where decisions are made: rows are weighted to it, and scores moved to it. Of several "
        "classes a share for each: 'a=0.2,b=0.3'; one class may be missing and gets the rest.",
        "",
        metavar="SHARE",
    )
    sampled_negatives: str = option(
        f"Share of the rows of label 0 that was kept; undone as by {Hint('prevalence')}.", "", metavar="SHARE"
    )
    capacity: str = option(
        "Act only on so many rows, those with the highest scores: 50/1000, 0.05 or 200. If every row has utilities of "
        "its own, or there are more actions or classes, it is on those where that is expected to win most.",
        "",
        panel="Decision",
        metavar="K",
        brief=True,
    )
    keep_scores: bool = option(
        f"With {Hint('prevalence')} or {Hint('sampled_negatives')}: leave the scores as they are.", False
    )
    aggregated: bool = option(
        "The files hold counts, not rows, as a GROUP BY of the score gives them: score, n and pos, or cells. "
        "Several files add up.",
        False,
    )

    def __post_init__(self) -> None:
        """Split lists: a single text that names all utility columns, 'a,b,c,d'; and patterns, each with a star."""
        object.__setattr__(self, "proba", tuple(each for given in self.proba for each in _patterns(given)))
        if len(self.utility_columns) == 1:
            object.__setattr__(self, "utility_columns", tuple(map(str.strip, self.utility_columns[0].split(","))))

    def names(self, role: str) -> tuple[str, ...]:
        """The columns named for a role."""
        named = getattr(self, role)
        return named if isinstance(named, tuple) else (named,) if named else ()

    def updated(self, given: Mapping[str, Any]) -> Columns:
        """These columns, with the given values in place of their own."""
        return replace(self, **given)


ALL_COLUMNS = "*"
"""The pattern that takes every column that has no other role."""
DECLARATIONS = options_of(Columns)
"""Everything that can be said about the columns, by name."""
ROLES: dict[str, Role] = {name: each for name, each in DECLARATIONS.items() if isinstance(each, Role)}
"""The roles among them, in the order of a report."""
DEFAULTS: dict[str, Any] = {name: each.default for name, each in DECLARATIONS.items()}
"""The value of each when the user gives none."""

ROW_UTILITIES = ("amount", "cost_fp_column", "cost_fn_column", "utility_columns")
"""The roles that give each row utilities of its own."""
ROW_UTILITIES_FIX = "drop it here; evaluate, recommend, report, gate, compare, fit and sweep take it"
"""What to do where a command takes one utility for all rows."""


def several(name: str) -> bool:
    """Whether more than one column can be named."""
    return bool(DECLARATIONS[name].kind == list[str])


def _patterns(given: str) -> list[str]:
    """The patterns of a list such as 'nb:*,lr:*', in which each has one star; else the text itself."""
    parts = [part.strip() for part in given.split(",")]
    return parts if len(parts) > 1 and all(part.count("*") == 1 for part in parts) else [given]
