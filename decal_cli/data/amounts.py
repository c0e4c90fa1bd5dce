"""Columns that say what decisions on each row are worth: read and checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decal_cli.data.check import Origin, Part, floats, missing_values, times
from decal_cli.data.columns import Chosen
from decal_cli.data.words import number
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_UTILITY
from decal_cli.roles import ROW_UTILITIES, Columns
from decal_cli.tables.table import Floats

_WHAT = {"amount": "amount", "cost_fp_column": "cost", "cost_fn_column": "cost", "utility_columns": "utility"}


def amounts_of(
    parts: Sequence[Part], chosen: Chosen, columns: Columns, origin: Origin
) -> tuple[dict[str, Floats], np.ndarray | None]:
    """The columns by role, shape (T,), of utilities (T, A K); and the mask of rows that lack one, None for none.

    Errors: DecalError, for a negative amount or cost, an infinite one, a missing one unless it may be dropped, and
    utilities that look swapped.
    """
    roles = [role for role in ROW_UTILITIES if chosen.names(role)]
    if roles and chosen.models and roles != ["utility_columns"]:
        raise DecalError(
            f"{Hint(roles[0])} says what one kind of error costs, and of several classes there are more kinds",
            f"give {Hint('utility_columns')} with a column for each action and class",
        )
    amounts: dict[str, Floats] = {}
    lacking: list[np.ndarray] = []
    for role in roles:
        names = chosen.names(role)
        values = [_checked(floats(parts, name), name, role, origin) for name in names]
        for name, column in zip(names, values, strict=True):
            missing = np.isnan(column)
            if missing.any():
                if columns.missing == "error":
                    raise missing_values(missing, name, _WHAT[role], origin)
                lacking.append(missing)
        amounts[role] = np.column_stack(values) if role == "utility_columns" else values[0]
    if "utility_columns" in amounts:
        _check_order(amounts["utility_columns"], chosen, origin)
    return amounts, np.logical_or.reduce(lacking) if lacking else None


def _checked(values: Floats, name: str, role: str, origin: Origin) -> Floats:
    what = _WHAT[role]
    with np.errstate(invalid="ignore"):
        negative = values < 0
        beyond = np.abs(values) > MAX_UTILITY
    if beyond.any():
        row = int(beyond.argmax())
        raise DecalError(
            f"{origin.place(name, row)}: {what} {number(values[row])} is beyond {MAX_UTILITY:g}{times(beyond)}",
            "correct it or remove the row",
        )
    if role != "utility_columns" and negative.any():
        row = int(negative.argmax())
        raise DecalError(
            f"{origin.place(name, row)}: {what} {number(values[row])} is negative{times(negative)}",
            f"correct it, or give {Hint('utility_columns')}: utilities may have either sign",
        )
    return values


def _check_order(utility: Floats, chosen: Chosen, origin: Origin) -> None:
    """Raise where both of two decisions are worth more when they are wrong."""
    names = chosen.utility_columns
    if chosen.models or len(names) != 4:
        return
    tn, fn, fp, tp = utility.T
    with np.errstate(invalid="ignore"):
        swapped = (tn < fp) & (tp < fn)
    if swapped.any():
        row = int(swapped.argmax())
        shown = ", ".join(f"{name} {number(value)}" for name, value in zip(names, utility[row], strict=True))
        raise DecalError(
            f"{origin.place(names[0], row)}: wrong decisions are worth more than right ones ({shown}){times(swapped)}",
            "name the columns in the order tn,fn,fp,tp",
        )
