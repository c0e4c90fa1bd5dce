"""The sums of a statement: what rows are counted by, and what is added up of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from decal_cli.data.large.engines.aggregate import BY_CLUSTER, ENDS
from decal_cli.data.large.engines.checks import PROBLEMS
from decal_cli.data.large.engines.dialects import Dialect
from decal_cli.data.large.engines.request import CountRequest
from decal_cli.tables.cells import GRID, MAX_SPLITS
from decal_cli.tables.pairs import PAIR_GRID

_LEAST = 2.0**-1022
"""In the place of 0, of which there is no logarithm."""


def select(columns: Sequence[str], source: str) -> str:
    """A query of these columns, one on each line."""
    return "    SELECT\n" + ",\n".join(f"        {each}" for each in columns) + f"\n    FROM {source}"


def stacked(cases: Sequence[str]) -> str:
    """The cases of a CASE, one on each line."""
    return "\n            ".join(cases)


def grid_of(request: CountRequest) -> int:
    """Cells of equal width in [0, 1]."""
    return PAIR_GRID if request.pairs else GRID


def placed(request: CountRequest, dialect: Dialect) -> str:
    """Every row with its place among cells of equal width, how many thresholds its score reaches, and its log loss.

    A score above 1 reaches one more, so that no cell of sound rows has it.
    """
    sized, columns = ["decal_scored.*"], ["decal_sized.*"]
    width, one = dialect.number(grid_of(request)), dialect.number(1)
    for side in request.sides:
        score = f"decal_s{side}"
        if dialect.overflows:
            far = f"WHEN {score} > 2 THEN 2 WHEN {score} < -1 THEN -1"
            score = f"CASE WHEN {dialect.is_nan(score)} THEN {score} {far} ELSE {score} END"
        edges = [*map(dialect.number, request.thresholds)]
        reached = [f"CASE WHEN decal_s{side} >= {edge} THEN 1 ELSE 0 END" for edge in edges]
        reached.append(f"CASE WHEN decal_s{side} > {one} THEN 1 ELSE 0 END")
        sized += [
            f"{score} AS decal_p{side}",
            f"FLOOR({score} * {width}) AS decal_place{side}",
            f"{' + '.join(reached)} AS decal_reached{side}",
            f"{score} + (decal_label - {one}) AS decal_off{side}",
        ]
        # ln(1 - s) to the last digits for small s too: what s + (label - 1) has lost of s is added.
        lost = f"decal_p{side} - (decal_off{side} - (decal_label - {one}))"
        columns += [
            f"decal_place{side} + decal_reached{side} AS decal_k{side}",
            f"({lost}) - LN(GREATEST(ABS(decal_off{side}), {dialect.number(_LEAST)})) AS decal_loss{side}",
        ]
    return select(columns, f"(\n{select(sized, 'decal_scored')}\n    ) AS decal_sized")


def counted(request: CountRequest) -> str:
    """The GROUP BY of the rows themselves, by whatever stands in them."""
    keys = [*request.texts.values(), *request.models, *request.score_keys, "decal_label"]
    columns = []
    if request.weight is not None:
        keys += ["decal_sound", *(["decal_w"] if request.by_weight else [])]
        columns.append("MIN(decal_w) AS decal_lightest")
    if not request.whole_labels:
        columns.append("MIN(CASE WHEN decal_label = 2 THEN decal_y END) AS decal_third")
    if request.cells:
        for side in request.sides:
            columns += [f"MIN(decal_s{side}) AS decal_least{side}", f"MAX(decal_s{side}) AS decal_most{side}"]
    columns += [f"{value} AS decal_of_{name}" for name, value in sums_of_rows(request).items()]
    source = "decal_placed" if request.cells else "decal_scored"
    return f"{select([*keys, *columns], source)}\n    GROUP BY {', '.join(keys)}"


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
    sound = ["decal_p >= 0", "decal_p <= 1", "decal_label >= 0", "decal_label <= 1", "decal_c <> ''"]
    sound += ["decal_sound = 1"] if request.weight is not None else []
    sized = select(["decal_placed.*", f"{width} AS decal_width"], f"decal_placed\n    WHERE {' AND '.join(sound)}")
    coarse = f"CASE\n            {stacked(sides)}\n            ELSE decal_place\n        END AS decal_from"
    return select(["decal_sized.*", coarse], f"(\n{sized}\n    ) AS decal_sized")


def sums_of_rows(request: CountRequest) -> dict[str, str]:
    """Sums of rows by the name that they have in the result."""
    sums = {"rows": "COUNT(*)"}
    weights = [""] if request.weight is None else ["decal_w * ", "decal_w * decal_w * "]
    for weight, (n, power, loss, difference, of_log) in zip(
        weights, (("n", "s", "l", "d", "e"), ("n2", "q", "k", "g", "f")), strict=False
    ):
        if weight:
            sums[n] = f"SUM({weight.removesuffix(' * ')})"
        if not request.cells:
            continue
        for side in request.sides:
            sums |= _powers(f"{power}{{}}{side}", weight, f"decal_p{side}", 4)
            sums |= _powers(f"{loss}{{}}{side}", weight, f"decal_loss{side}", 2)
        if request.pairs:
            sums |= _powers(f"{difference}{{}}", weight, _SQUARED, 2)
            sums |= _powers(f"{of_log}{{}}", weight, _LOGARITHMIC, 2)
    return sums


_SQUARED = "((decal_p_b - decal_p_a) * (decal_p_b + decal_p_a - 2 * decal_label))"
"""(b - y)^2 - (a - y)^2."""
_LOGARITHMIC = "(CASE WHEN decal_off_a = 0 OR decal_off_b = 0 THEN 0 ELSE decal_loss_b - decal_loss_a END)"


def _powers(name: str, weight: str, value: str, powers: int) -> dict[str, str]:
    """Sums of the weight times the value to the powers from 1, by name."""
    return {name.format(power): f"SUM({weight}{' * '.join([value] * power)})" for power in range(1, powers + 1)}


def outside(key: str, request: CountRequest, dialect: Dialect) -> str:
    """Whether what rows are counted by says that their score is none."""
    most = grid_of(request) + len(request.thresholds) if request.cells else 1
    return f"(({key} < 0 OR {key} > {dialect.number(most)}) AND NOT ({dialect.is_nan(key)}))"


def example(request: CountRequest, dialect: Dialect) -> str:
    """A score of counted rows that is wrong."""
    values = [f"decal_{'least' if request.cells else 's'}{side}" for side in request.sides]
    first = outside(request.score_keys[0], request, dialect)
    return values[0] if len(values) == 1 else f"CASE WHEN {first} THEN {values[0]} ELSE {values[1]} END"


def judged_sums(request: CountRequest, dialect: Dialect) -> Iterator[str]:
    """What sound rows are counted by of their scores, and their sums; a loss is infinite where a score was certain."""
    for side in request.sides:
        if not request.cells:
            score = f"decal_s{side}"
            cases = f"WHEN decal_bad IS NOT NULL THEN NULL WHEN {score} = 0 THEN 0 ELSE {score}"
            yield f"CASE {cases} END AS decal_p{side}"
            continue
        key, grid = f"decal_k{side}", grid_of(request)
        # The least number of the cells at and above each threshold.
        starts = (math.floor(each * grid) + at for at, each in enumerate(request.thresholds, 1))
        reached = " + ".join(f"CASE WHEN {key} >= {each} THEN 1 ELSE 0 END" for each in starts) or "0"
        yield f"CASE WHEN decal_bad IS NULL THEN {key} + 0 - ({reached}) END AS decal_place{side}"
        yield f"CASE WHEN decal_bad IS NULL THEN {reached} END AS decal_reached{side}"
        if not request.pairs:
            yield "decal_least"
            yield "decal_most"
    for name in sums_of_rows(request):
        column, side = f"decal_of_{name}", name[2:]
        if request.cells and name[0] in "lk":
            certain = f"decal_label = 1 AND decal_least{side} = 0 OR decal_label = 0 AND decal_most{side} = 1"
            yield f"CASE WHEN {certain} THEN {dialect.number(math.inf)} ELSE {column} END AS {column}"
        else:
            yield column


def summed(request: CountRequest, dialect: Dialect) -> str:
    """The result: counts of the same score and label, which may have been spelt in several ways, added up."""
    if not request.cells:
        return _grouped("decal_rows", *_levels(request, dialect), request, dialect)
    keys, columns = _cells(request, dialect)
    if not request.by_cluster:
        return _grouped("decal_rows", keys, columns, request, dialect)
    low, high = _edges("decal_from", "decal_from + decal_width", "", request, dialect)
    first = dialect.as_integer("decal_from + decal_reached")
    of_rows = sums_of_rows(request)
    of_coarse = columns | {"n": dialect.as_double("COUNT(*)")} | of_rows
    of_coarse |= dict(zip(ENDS, ("MIN(decal_p)", "MAX(decal_p)"), strict=True))
    of_coarse |= {"cell": first, "low": low, "high": high, "label": "decal_label", BY_CLUSTER: "1"}
    everywhere = _grouped("decal_rows", keys, {**columns, BY_CLUSTER: "0"}, request, dialect, apart=False)
    keys = ["decal_from", "decal_width", "decal_reached", "decal_label"]
    return f"{everywhere}\nUNION ALL\n{_grouped('decal_coarse', keys, of_coarse, request, dialect, judged=False)}"


def _grouped(
    source: str,
    of_score: list[str],
    sums: dict[str, str],
    request: CountRequest,
    dialect: Dialect,
    apart: bool = True,
    judged: bool = True,
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
    bad, value = (f"CASE decal_bad {codes} END", "MIN(decal_value)") if judged else [dialect.as_text("NULL")] * 2
    columns += [f"{bad} AS {dialect.name('bad')}", f"{value} AS {dialect.name('value')}"]
    keys += [*of_score, *(["decal_w"] if request.by_weight else []), *(["decal_bad"] if judged else [])]
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
    weighted = {} if request.weight is None else {"n": "pos", "n2": "pos2"}
    sums: dict[str, str] = {}
    for all_of, ones in (weighted | {"rows": "rows_pos"}).items():
        sums |= {all_of: f"SUM(decal_of_{all_of})", ones: f"SUM(decal_of_{all_of} * decal_pos)"}
    sums |= {name: dialect.as_integer(sums[name]) for name in ("rows", "rows_pos")}
    if request.weight is None:
        sums = {"n": sums["rows"], "pos": sums["rows_pos"]}
    scores = {f"score{side}": f"decal_p{side}" for side in request.sides}
    return list(scores.values()), scores | sums


def _cells(request: CountRequest, dialect: Dialect) -> tuple[list[str], dict[str, str]]:
    """What cells are grouped by, and their columns."""
    columns: dict[str, str] = {}
    for side in request.sides:
        at = f"decal_place{side}"
        low, high = _edges(at, f"{at} + 1", side, request, dialect)
        place = dialect.as_integer(f"decal_place{side} + decal_reached{side}")
        columns |= {f"cell{side}": place, f"low{side}": low, f"high{side}": high}
    columns["label"] = "decal_pos"
    of_rows = {name: f"SUM(decal_of_{name})" for name in sums_of_rows(request)}
    columns |= {"rows": dialect.as_integer(of_rows["rows"]), "n": dialect.as_double(of_rows["rows"])}
    columns |= {name: value for name, value in of_rows.items() if name != "rows"}
    if not request.pairs:
        columns |= dict(zip(ENDS, ("MIN(decal_least) + 0", "MAX(decal_most) + 0"), strict=True))
    names = ("place", "reached")
    return [*(f"decal_{name}{side}" for side in request.sides for name in names), "decal_pos"], columns


def _edges(place: str, following: str, side: str, request: CountRequest, dialect: Dialect) -> tuple[str, str]:
    """Of a cell from one place up to another."""
    width = dialect.number(grid_of(request))
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
