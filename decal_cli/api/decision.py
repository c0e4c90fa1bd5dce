"""The decision: a threshold, costs, utilities, or costs that differ from row to row; and how many rows it acts on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, TypeAlias

from decal_cli.api.data import Matrix, Noun, Several, Values, column
from decal_cli.declarations.option import Option, declared, keys_of, option
from decal_cli.render.terms import StatedTerms
from decal_cli.task import SPELLINGS, Varied


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Noun):
    """What is decided, and what it is worth.

    Parameters
    ----------
    threshold
        Act from this score on, t* in (0, 1): a false positive then costs t*, a false negative 1 - t*.
    odds
        Cost of a false positive to that of a false negative, such as '1:19'.
    decision_threshold
        Score from which the model acts today, where that is not t*.
    terms
        The unit of the utilities, and how many decisions there are.

    More than one threshold, or costs, have constructors: `costs`, `utility`, `per_row` and `abstain`.

    Examples
    --------
    >>> Decision.costs(fp=1, fn=19)
    Decision(cost_fp=1, cost_fn=19)
    >>> Decision(0.3).at_capacity("50/1000", per="day")
    Decision(threshold=0.3, capacity='50/1000', per='day')
    """

    PANEL = "Decision"

    threshold: float | None = option(
        "Act when the score is T or more (t*). A false positive then costs T, a false negative 1 - T.",
        None,
        "-t",
        metavar="T",
        kind=float,
        brief="Act from this score on (t*); a false positive then costs T, a miss 1 - T.",
    )
    _: KW_ONLY
    matrix: Matrix | None = option(
        "Utilities 'u00,u01;u10,u11', a row for each decision and a column for each label, "
        "or with more rows and names: 'wait,0,-20;test,-2,-3;treat,-5,-1'; or a .json, .toml or .csv file of them.",
        metavar="MATRIX",
        key="utility",
        brief="Utilities 'u00,u01;u10,u11': a row for each decision, a column for each label.",
    )
    cost_matrix: Matrix | None = option(
        "Costs in place of utilities, spelled as --utility: a row for each decision and a column for each label.",
        metavar="MATRIX",
    )
    cost_fp: float | None = option(
        "Cost of a false positive; give --cost-fn too.", metavar="COST", kind=float, brief=True
    )
    cost_fn: float | None = option(
        "Cost of a false negative; give --cost-fp too.", metavar="COST", kind=float, brief=True
    )
    odds: str | None = option(
        "Cost of a false positive to that of a false negative: 1:19 means t* = 0.05.", metavar="A:B", brief=True
    )
    price: float | None = option(
        "With --proba: name the class, which is worth 1 where right, or abstain, which is worth 1 less this price.",
        metavar="PRICE",
        key="abstain",
        brief="Of several classes: name the class, or abstain at this price.",
        kind=float,
    )
    decision_threshold: float | None = option(
        "Threshold at which the model is used today, where that is not t*.", metavar="T", kind=float
    )
    amount: Values | None = column("amount")
    cost_fp_column: Values | None = column("cost_fp_column")
    cost_fn_column: Values | None = column("cost_fn_column")
    utility_columns: Several = column("utility_columns")
    capacity: str | float | None = column("capacity")
    per: Values | None = column("per")
    varied: str | Varied | None = declared(None, Option(key="vary"))
    terms: StatedTerms = declared(StatedTerms(), Option(key=""))

    @classmethod
    def of(cls, given: DecisionLike | None) -> Decision:
        """A decision as it is, or of a short form: a number is a threshold, a matrix is utilities."""
        if given is None or isinstance(given, Decision):
            return given or cls()
        single: Any = given
        number = isinstance(single, float | int) or getattr(single, "ndim", 1) == 0
        return cls(single) if number else cls(matrix=single)

    @classmethod
    def costs(cls, *, fp: float, fn: float) -> Decision:
        """Costs of a false positive and of a false negative: t* = fp / (fp + fn)."""
        return cls(cost_fp=fp, cost_fn=fn)

    @classmethod
    def utility(cls, matrix: Matrix, *, actions: Sequence[str] = ()) -> Decision:
        """Utilities, shape (A, 2) or (A, K): a row for each action, a column for each label."""
        rows: Any = matrix
        return cls(matrix=dict(zip(actions, rows, strict=True)) if actions else matrix)

    @classmethod
    def per_row(
        cls, *, fp: float | Values | None = None, fn: float | Values | None = None, utility: Several = ()
    ) -> Decision:
        """Costs that differ from row to row: names of columns or arrays, shape (T,); a number is of every row.

        utility: in place of costs, the four columns of the utilities tn, fn, fp, tp.
        """
        costs = {"cost_fp": fp, "cost_fn": fn}
        of_rows = {name: value if isinstance(value, (int, float)) else None for name, value in costs.items()}
        in_columns = {f"{name}_column": value for name, value in costs.items() if of_rows[name] is None}
        return cls(utility_columns=utility, **of_rows, **in_columns)  # type: ignore[arg-type]

    @classmethod
    def abstain(cls, price: float) -> Decision:
        """Of several classes: name the class, worth 1 where right, or abstain, worth 1 - price, price in (0, 1)."""
        return cls(price=price)

    def at_capacity(self, k: str | float, *, per: Values | None = None) -> Self:
        """Act on so many rows only: a share such as '50/1000' or 0.05, or a count; per: of every value of a column."""
        return replace(self, capacity=k, per=per)

    def vary(self, name: str, low: float, high: float, step: float | None = None) -> Self:
        """Let a number of the decision vary for `sweep`: 'abstain', 'prevalence', 'capacity' or 'ACTION:CLASS'."""
        ends = (low, high) if step is None else (low, high, step)
        return replace(self, varied=f"{name}={':'.join(map(repr, ends))}")

    def in_terms(self, **terms: Any) -> Self:
        """The same decision, its amounts in the unit and for the number of decisions of `Terms(**terms)`."""
        return replace(self, terms=StatedTerms(**terms))

    @property
    def spelled(self) -> dict[str, Any]:
        """Key -> value of what names the task."""
        keys = keys_of(Decision)
        return {key: value for key in SPELLINGS if (value := getattr(self, keys[key])) is not None}


DecisionLike: TypeAlias = "Decision | float | Matrix"
"""A decision, a threshold, or utilities; and after scores, their labels."""
