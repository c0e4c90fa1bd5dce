"""The sums of a statement: what rows are grouped by, and what is added up of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from decal_cli.data.large.engines.aggregate import BY_CLUSTER, ENDS
from decal_cli.data.large.engines.checks import PROBLEMS
from decal_cli.data.large.engines.dialects import Dialect
from decal_cli.data.large.engines.request import CountRequest
from decal_cli.tables.cell_pairs import PAIR_GRID
from decal_cli.tables.cells import GRID, MAX_SPLITS


def select(columns: Sequence[str], source: str) -> str:
    """A query of these columns, one on each line."""
    return "    SELECT\n" + ",\n".join(f"        {each}" for each in columns) + f"\n    FROM {source}"


def stacked(cases: Sequence[str]) -> str:
    """The cases of a CASE, one on each line."""
    return "\n            ".join(cases)


def placed(request: CountRequest, dialect: Dialect) -> str:
    """Every row with its place among cells of equal width, how many thresholds its score reaches, and its log loss."""
    columns = ["decal_rows.*", *(each for side in request.sides for each in _of_side(side, request, dialect))]
    return select(columns, "decal_rows")


def coarsely_placed(request: CountRequest) -> str:
    """Sound rows with the place of the coarse cell that each is in, and its width: see `cells.coarse_cells`."""
    from_end = f"LEAST(decal_place, {GRID - 1} - decal_place)"
    octaves = range(MAX_SPLITS - 1, request.splits, -1)
    widths = [f"WHEN {from_end} >= {1 << each} THEN {1 << each - request.splits}" for each in octaves]
    width = f"CASE\n            {stacked(widths)}\n            ELSE 1\n        END" if widths else "1"
    start = f"FLOOR({from_end} / decal_width) * decal_width"
    sides = [
        f"WHEN decal_place < {GRID // 2} THEN {start}",
        f"WHEN decal_place < {GRID} THEN {GRID} - decal_width - {start}",
    ]
    sized = select(["decal_placed.*", f"{width} AS decal_width"], "decal_placed\n    WHERE decal_bad IS NULL")
    coarse = f"CASE\n            {stacked(sides)}\n            ELSE decal_place\n        END AS decal_from"
    return select(["decal_sized.*", coarse], f"(\n{sized}\n    ) AS decal_sized")


def _of_side(side: str, request: CountRequest, dialect: Dialect) -> Iterator[str]:
    p = f"decal_p{side}"
    reached = " + ".join(f"CASE WHEN {p} >= {dialect.number(each)} THEN 1 ELSE 0 END" for each in request.thresholds)
    cases = [
        f"WHEN {p} = 1 - decal_pos THEN {dialect.number(math.inf)}",
        f"WHEN decal_pos = 1 THEN 0 - LN({p})",
        f"WHEN 1 - {p} = 1 THEN {p}",
        # -ln(1 - s) to the last digits for small s too: not every engine has log1p.
        f"WHEN decal_pos = 0 THEN {p} * (LN(1 - {p}) / ((1 - {p}) - 1))",
    ]
    yield f"FLOOR({p} * {_width(request, dialect)}) AS decal_place{side}"
    yield f"CASE WHEN {p} IS NULL THEN NULL ELSE {reached or '0'} END AS decal_reached{side}"
    yield f"CASE\n            {stacked(cases)}\n        END AS decal_loss{side}"


def _width(request: CountRequest, dialect: Dialect) -> str:
    """Cells of equal width in [0, 1]."""
    return dialect.number(PAIR_GRID if request.pairs else GRID)


def counted(request: CountRequest, dialect: Dialect) -> str:
    """The GROUP BY itself."""
    if not request.cells:
        return _grouped("decal_rows", *_levels(request, dialect), request, dialect)
    of_cells, sums = _cells(request, dialect)
    if not request.by_cluster:
        return _grouped("decal_placed", of_cells, sums, request, dialect)
    low, high = _edges("decal_from", "decal_from + decal_width", "", request, dialect)
    first = dialect.as_integer("decal_from + decal_reached")
    of_coarse = sums | {"cell": first, "low": low, "high": high, BY_CLUSTER: "1"}
    everywhere = _grouped("decal_placed", of_cells, {**sums, BY_CLUSTER: "0"}, request, dialect, apart=False)
    keys = ["decal_from", "decal_width", "decal_reached", "decal_pos"]
    return f"{everywhere}\nUNION ALL\n{_grouped('decal_coarse', keys, of_coarse, request, dialect)}"


def _grouped(
    source: str, of_score: list[str], sums: dict[str, str], request: CountRequest, dialect: Dialect, apart: bool = True
) -> str:
    """Sums by group, model, score, and what is wrong; and by cluster, if these are counted apart."""
    texts = {name: ours for name, ours in request.texts.items() if apart or ours != "decal_c"}
    keys = [*texts.values(), *request.models]
    columns = [
        f"{texts.get(name, dialect.as_text('NULL'))} AS {dialect.name(name)}" for name, ours in request.texts.items()
    ]
    columns += _named_models(request, dialect)
    columns += [f"{value} AS {dialect.name(name)}" for name, value in sums.items()]
    codes = " ".join(f"WHEN {code} THEN {dialect.text(name)}" for code, name in enumerate(PROBLEMS, 1))
    columns.append(f"CASE decal_bad {codes} END AS {dialect.name('bad')}")
    columns.append(f"MIN(decal_value) AS {dialect.name('value')}")
    keys += [*of_score, "decal_bad"]
    listed = ",\n    ".join(columns)
    return f"SELECT\n    {listed}\nFROM {source}\nGROUP BY {', '.join(keys)}"


def _named_models(request: CountRequest, dialect: Dialect) -> Iterator[str]:
    """Columns that name the model of a row, or both models of all rows."""
    if request.pairs:
        for name, side in zip(request.score, request.sides, strict=True):
            yield f"{dialect.text(name)} AS {dialect.name('model' + side)}"
    elif request.models:
        cases = " ".join(f"WHEN {number} THEN {dialect.text(name)}" for number, name in enumerate(request.score, 1))
        yield f"CASE decal_model {cases} END AS {dialect.name('model')}"


def _levels(request: CountRequest, dialect: Dialect) -> tuple[list[str], dict[str, str]]:
    """What levels are grouped by, and their columns."""
    rows = {"rows": "COUNT(*)", "rows_pos": dialect.as_integer("SUM(decal_pos)")}
    if request.weight is None:
        sums = {"n": rows["rows"], "pos": rows["rows_pos"]}
    else:
        sums = {
            "n": "SUM(decal_n)",
            "pos": "SUM(decal_n * decal_pos)",
            "n2": "SUM(decal_n * decal_n)",
            "pos2": "SUM(decal_n * decal_n * decal_pos)",
        } | rows
    scores = {f"score{side}": f"decal_p{side}" for side in request.sides}
    return list(scores.values()), scores | sums


def _cells(request: CountRequest, dialect: Dialect) -> tuple[list[str], dict[str, str]]:
    """What cells are grouped by, and their columns."""
    sums: dict[str, str] = {}
    for side in request.sides:
        at = f"decal_place{side}"
        low, high = _edges(at, f"{at} + 1", side, request, dialect)
        place = dialect.as_integer(f"decal_place{side} + decal_reached{side}")
        sums |= {f"cell{side}": place, f"low{side}": low, f"high{side}": high}
    sums |= {"label": "decal_pos", "rows": "COUNT(*)", "n": "SUM(decal_n)"}
    weights = ("decal_n",) if request.weight is None else ("decal_n", "decal_n * decal_n")
    for weight, (power, loss, difference, of_log) in zip(
        weights, (("s", "l", "d", "e"), ("q", "k", "g", "f")), strict=False
    ):
        if power == "q":
            sums["n2"] = f"SUM({weight})"
        for side in request.sides:
            sums |= _powers(f"{power}{{}}{side}", weight, f"decal_p{side}", 4)
            sums |= _powers(f"{loss}{{}}{side}", weight, f"decal_loss{side}", 2)
        if request.pairs:
            sums |= _powers(f"{difference}{{}}", weight, _SQUARED, 2)
            sums |= _powers(f"{of_log}{{}}", weight, _logarithmic(dialect), 2)
    if not request.pairs:
        sums |= dict(zip(ENDS, ("MIN(decal_p)", "MAX(decal_p)"), strict=True))
    names = ("place", "reached")
    return [*(f"decal_{name}{side}" for side in request.sides for name in names), "decal_pos"], sums


_SQUARED = "((decal_p_b - decal_p_a) * (decal_p_b + decal_p_a - 2 * decal_pos))"
"""(b - y)^2 - (a - y)^2."""


def _logarithmic(dialect: Dialect) -> str:
    infinity = dialect.number(math.inf)
    none = f"decal_loss_a = {infinity} OR decal_loss_b = {infinity}"
    return f"(CASE WHEN {none} THEN {dialect.number(0)} ELSE decal_loss_b - decal_loss_a END)"


def _powers(name: str, weight: str, value: str, powers: int) -> dict[str, str]:
    """Sums of the weight times the value to the powers from 1, by name."""
    return {name.format(power): f"SUM({' * '.join([weight, *[value] * power])})" for power in range(1, powers + 1)}


def _edges(place: str, following: str, side: str, request: CountRequest, dialect: Dialect) -> tuple[str, str]:
    """Of a cell from one place up to another."""
    width = _width(request, dialect)
    low, high = f"{place} / {width}", f"({following}) / {width}"
    if not request.thresholds:
        return low, f"LEAST({high}, {dialect.number(1)})"
    ends = [0.0, *request.thresholds, 1.0]
    low, high = (
        f"{function}({edge}, {_case(f'decal_reached{side}', values, dialect)})"
        for function, edge, values in (("GREATEST", low, ends[:-1]), ("LEAST", high, ends[1:]))
    )
    return low, high


def _case(number: str, values: Sequence[float], dialect: Dialect) -> str:
    cases = " ".join(f"WHEN {at} THEN {dialect.number(value)}" for at, value in enumerate(values))
    return f"CASE {number} {cases} END"
