"""The one statement that counts rows where they are: a GROUP BY in any dialect, with the checks in it.

Its result is an aggregate, which `decal evaluate FILE --aggregated` reads after anyone exported it.

Columns, in this order:

- the columns of groups as texts, under their own names;
- `model`, the name of the score column, where there are several;
- levels, one row for each (groups, model, score): `score`, `n`, `pos`, and where weighted `n2`, `pos2` (sums of squared
  weights; n and pos are then sums of weights) and `rows`, `rows_pos` (numbers of rows);
- or cells, one row for each (groups, model, cell, label): `cell`, `low`, `high`, `label`, `rows`, `n`, `s1` to `s4`,
  `l1`, `l2`, and where weighted `n2`, `q1` to `q4`, `k1`, `k2`. n = sum w, s_k = sum w s^k, l_k = sum w loss^k with the
  log loss of the row, and n2, q_k, k_k the same with w^2. cell = floor(65536 s) + how many of the thresholds s reaches:
  it grows with the score, and every threshold is an edge. low and high are the edges of the cell, and s < high unless
  both are 1. l1 and l2 are Infinity where a score of 0 or 1 is wrong;
- `bad` and `value`. In rows that count scores they are NULL. What is wrong with other rows is counted by rows of its
  own, where the score or the cell is NULL: `bad` is one of the texts in `checks.PROBLEMS`, `value` an example, and
  `rows`, or without weights in levels `n`, how many they are. `checks.sound` takes them out, or raises the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from decal_cli.data.engines.checks import PROBLEMS
from decal_cli.data.engines.dialects import Dialect
from decal_cli.data.engines.labels import label_of, other_label
from decal_cli.errors import DecalError
from decal_cli.tables.cells import GRID

LEVEL_COLUMNS = ("score", "n", "pos", "n2", "pos2", "rows", "rows_pos")
CELL_COLUMNS = (
    *("cell", "low", "high", "label", "rows", "n", "s1", "s2", "s3", "s4", "l1", "l2"),
    *("n2", "q1", "q2", "q3", "q4", "k1", "k2"),
)
RESERVED = frozenset({"model", "bad", "value", *LEVEL_COLUMNS, *CELL_COLUMNS})
"""Names of columns of an aggregate, which no column of groups can have."""


def types_of(names: Sequence[str]) -> dict[str, str]:
    """The types of the columns of an aggregate, as Arrow calls them."""
    whole = {"cell", "label", "rows", "rows_pos"}
    if "cell" not in names and "n2" not in names:
        whole |= {"n", "pos"}
    texts = set(names) - {*LEVEL_COLUMNS, *CELL_COLUMNS}
    return {name: "string" if name in texts else "int64" if name in whole else "float64" for name in names}


@dataclass(frozen=True)
class CountRequest:
    """What is counted: the rows of a table, or of a query, by score.

    positive: the label that counts as 1, None where labels are 0/1 or true/false. thresholds: edges of cells, whether
    cells are asked for or not.
    """

    score: tuple[str, ...]
    label: str
    table: str | None = None
    query: str | None = None
    positive: str | None = None
    weight: str | None = None
    group: tuple[str, ...] = ()
    cells: bool = False
    thresholds: tuple[float, ...] = ()


def checked(request: CountRequest) -> CountRequest:
    """The same request, its thresholds in order. Errors: DecalError, where it cannot be put."""
    for name in request.score:
        if "*" in name:
            raise DecalError(f"score {name!r} is a pattern, and a statement names columns", "name each with --score")
    if len(set(request.score)) < len(request.score):
        raise DecalError("a score is named twice", "name each once")
    for name in request.group:
        if name.lower() in RESERVED:
            raise DecalError(
                f"the group {name!r} has the name of a column of the result",
                f'rename it: --query \'select *, "{name}" as "group_{name}" from ...\'',
            )
    for threshold in request.thresholds:
        if not 0 <= threshold <= 1:
            raise DecalError(f"threshold {threshold:g} is not in [0, 1]", "correct --threshold")
    return replace(request, thresholds=tuple(sorted(set(request.thresholds))))


def count_of_rows(request: CountRequest, dialect: Dialect) -> str:
    """The statement that counts rows."""
    return f"SELECT COUNT(*) AS decal_rows FROM {source_of(request.table, request.query, dialect)}"


def count_of_values(request: CountRequest, dialect: Dialect) -> str:
    """The statement that counts, about, the distinct values of each score and then of each group."""
    columns = [
        f"{dialect.distinct.format(value=dialect.name(name))} AS decal_{at}"
        for at, name in enumerate((*request.score, *request.group))
    ]
    return f"SELECT {', '.join(columns)} FROM {source_of(request.table, request.query, dialect)}"


def source_of(table: str | None, query: str | None, dialect: Dialect) -> str:
    """What stands after FROM: a table or a query, one of which is named. Errors: DecalError."""
    if (table is None) == (query is None):
        raise DecalError("rows come from one table or from one query", "name a table, or give --query")
    if table is not None:
        return dialect.table(table)
    # On lines of its own, so that a comment at its end comments out nothing of ours.
    text = (query or "").strip().rstrip(";")
    return f"(\n{text}\n    ) AS decal_query"


def statement(request: CountRequest, dialect: Dialect) -> str:
    """The statement, which ends without a semicolon. Errors: DecalError, where the request cannot be put."""
    request = checked(request)
    parts = {"decal_given": _given(request, dialect), "decal_read": _read(request, dialect)}
    if request.positive is not None:
        # Read by itself, not by way of decal_given: Postgres would write down what is read twice.
        labels = _select([_label(request, dialect)], source_of(request.table, request.query, dialect))
        parts["decal_labels"] = other_label("decal_y", request.positive, f"(\n{labels}\n    ) AS decal_all", dialect)
    if len(request.score) > 1:
        numbers = range(1, len(request.score) + 1)
        parts["decal_models"] = "    SELECT " + "\n    UNION ALL SELECT ".join(f"{at} AS decal_model" for at in numbers)
    parts["decal_scored"] = _scored(request, dialect)
    parts["decal_judged"] = _judged(dialect)
    parts["decal_rows"] = _rows(request, dialect)
    if request.cells:
        parts["decal_placed"] = _placed(request, dialect)
    named = ",\n".join(f"{name} AS (\n{body}\n)" for name, body in parts.items())
    return f"WITH {named}\n{_counted(request, dialect)}"


def _select(columns: Sequence[str], source: str) -> str:
    return "    SELECT\n" + ",\n".join(f"        {each}" for each in columns) + f"\n    FROM {source}"


def _groups(request: CountRequest) -> list[str]:
    return [f"decal_g{number}" for number in range(1, len(request.group) + 1)]


def _scores(request: CountRequest) -> list[str]:
    return [f"decal_s{number}" for number in range(1, len(request.score) + 1)]


def _model(request: CountRequest) -> list[str]:
    return ["decal_model"] if len(request.score) > 1 else []


def _given(request: CountRequest, dialect: Dialect) -> str:
    """The columns of the user, under names of ours and of known types."""
    columns = [
        f"{dialect.as_text(dialect.name(name))} AS {ours}"
        for name, ours in zip(request.group, _groups(request), strict=True)
    ]
    columns += [
        f"{dialect.as_double(dialect.name(name))} AS {ours}"
        for name, ours in zip(request.score, _scores(request), strict=True)
    ]
    columns.append(_label(request, dialect))
    weight = dialect.number(1) if request.weight is None else dialect.as_double(dialect.name(request.weight))
    columns.append(f"{weight} AS decal_w")
    return _select(columns, source_of(request.table, request.query, dialect))


def _label(request: CountRequest, dialect: Dialect) -> str:
    return f"TRIM({dialect.as_text(dialect.name(request.label))}) AS decal_y"


def _read(request: CountRequest, dialect: Dialect) -> str:
    """The same with NULL for numbers that are NaN."""
    columns = _groups(request)
    for each in [*_scores(request), "decal_w"]:
        columns.append(f"CASE WHEN {dialect.is_nan(each)} THEN NULL ELSE {each} END AS {each}")
    return _select([*columns, "decal_y"], "decal_given")


def _scored(request: CountRequest, dialect: Dialect) -> str:
    """One row for each row and model: its score, and its label as 0, 1, 2 for any other value, or NULL."""
    scores, sources = _scores(request), ["decal_read"]
    columns = [*_groups(request), *_model(request), "decal_y", "decal_w"]
    columns.append(f"{label_of('decal_y', request.positive, dialect)} AS decal_label")
    if request.positive is None:
        columns.append("0 AS decal_never")
    else:
        columns.append("decal_never")
        sources.append("decal_labels")
    if len(scores) == 1:
        columns.append("decal_s1 AS decal_s")
    else:
        cases = " ".join(f"WHEN {number} THEN {each}" for number, each in enumerate(scores, 1))
        columns.append(f"CASE decal_model {cases} END AS decal_s")
        sources.append("decal_models")
    return _select(columns, " CROSS JOIN ".join(sources))


def _judged(dialect: Dialect) -> str:
    """The same with what is wrong with each row: values that cannot be come before values that are missing."""
    infinity = dialect.number(math.inf)
    cases = [
        f"WHEN {problem.condition.format(infinity=infinity)} THEN {code}"
        for code, problem in enumerate(PROBLEMS.values(), 1)
    ]
    bad = f"CASE\n            {_stacked(cases)}\n        END AS decal_bad"
    return _select(["decal_scored.*", bad], "decal_scored")


def _rows(request: CountRequest, dialect: Dialect) -> str:
    """Sound rows with their score, label and weight; the others with an example of what is wrong."""
    cases = [
        f"WHEN {code} THEN {dialect.as_text(problem.value)}"
        for code, problem in enumerate(PROBLEMS.values(), 1)
        if problem.value
    ]
    columns = [
        *_groups(request),
        *_model(request),
        # A score of -0.0 is 0.
        "CASE WHEN decal_bad IS NOT NULL THEN NULL WHEN decal_s = 0 THEN 0 ELSE decal_s END AS decal_p",
        "CASE WHEN decal_bad IS NULL THEN decal_label END AS decal_pos",
        "CASE WHEN decal_bad IS NULL THEN decal_w END AS decal_n",
        "decal_bad",
        f"CASE decal_bad\n            {_stacked(cases)}\n        END AS decal_value",
    ]
    return _select(columns, "decal_judged")


def _stacked(cases: Sequence[str]) -> str:
    return "\n            ".join(cases)


def _placed(request: CountRequest, dialect: Dialect) -> str:
    """Every row with its place among cells of equal width, how many thresholds its score reaches, and its log loss."""
    reached = " + ".join(
        f"CASE WHEN decal_p >= {dialect.number(each)} THEN 1 ELSE 0 END" for each in request.thresholds
    )
    infinity = dialect.number(math.inf)
    cases = [
        f"WHEN decal_p = 1 - decal_pos THEN {infinity}",
        "WHEN decal_pos = 1 THEN 0 - LN(decal_p)",
        "WHEN 1 - decal_p = 1 THEN decal_p",
        # -ln(1 - s) to the last digits for small s too: not every engine has log1p.
        "WHEN decal_pos = 0 THEN decal_p * (LN(1 - decal_p) / ((1 - decal_p) - 1))",
    ]
    columns = [
        "decal_rows.*",
        f"FLOOR(decal_p * {dialect.number(GRID)}) AS decal_place",
        f"CASE WHEN decal_p IS NULL THEN NULL ELSE {reached or '0'} END AS decal_reached",
        f"CASE\n            {_stacked(cases)}\n        END AS decal_loss",
    ]
    return _select(columns, "decal_rows")


def _counted(request: CountRequest, dialect: Dialect) -> str:
    """The GROUP BY itself."""
    keys = [*_groups(request), *_model(request)]
    columns = [f"{ours} AS {dialect.name(name)}" for name, ours in zip(request.group, _groups(request), strict=True)]
    if len(request.score) > 1:
        cases = " ".join(f"WHEN {number} THEN {dialect.text(name)}" for number, name in enumerate(request.score, 1))
        columns.append(f"CASE decal_model {cases} END AS {dialect.name('model')}")
    of_score, sums = (_cells if request.cells else _levels)(request, dialect)
    columns += [f"{value} AS {dialect.name(name)}" for name, value in sums.items()]
    codes = " ".join(f"WHEN {code} THEN {dialect.text(name)}" for code, name in enumerate(PROBLEMS, 1))
    columns.append(f"CASE decal_bad {codes} END AS {dialect.name('bad')}")
    columns.append(f"MIN(decal_value) AS {dialect.name('value')}")
    keys += [*of_score, "decal_bad"]
    source = "decal_placed" if request.cells else "decal_rows"
    listed = ",\n    ".join(columns)
    return f"SELECT\n    {listed}\nFROM {source}\nGROUP BY {', '.join(keys)}"


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
    return ["decal_p"], {"score": "decal_p"} | sums


def _cells(request: CountRequest, dialect: Dialect) -> tuple[list[str], dict[str, str]]:
    """What cells are grouped by, and their columns."""
    low, high = (f"decal_place / {dialect.number(GRID)}", f"(decal_place + 1) / {dialect.number(GRID)}")
    edges = [0.0, *request.thresholds, 1.0]
    if request.thresholds:
        low, high = (
            f"{function}({edge}, {_case('decal_reached', values, dialect)})"
            for function, edge, values in (("GREATEST", low, edges[:-1]), ("LEAST", high, edges[1:]))
        )
    else:
        high = f"LEAST({high}, {dialect.number(1)})"
    sums = {
        "cell": dialect.as_integer("decal_place + decal_reached"),
        "low": low,
        "high": high,
        "label": "decal_pos",
        "rows": "COUNT(*)",
        "n": "SUM(decal_n)",
        **{f"s{power}": f"SUM({' * '.join(['decal_n', *['decal_p'] * power])})" for power in range(1, 5)},
        **{f"l{power}": f"SUM({' * '.join(['decal_n', *['decal_loss'] * power])})" for power in range(1, 3)},
    }
    if request.weight is not None:
        sums["n2"] = "SUM(decal_n * decal_n)"
        sums |= {
            f"q{power}": f"SUM({' * '.join(['decal_n', 'decal_n', *['decal_p'] * power])})" for power in range(1, 5)
        }
        sums |= {
            f"k{power}": f"SUM({' * '.join(['decal_n', 'decal_n', *['decal_loss'] * power])})" for power in range(1, 3)
        }
    return ["decal_place", "decal_reached", "decal_pos"], sums


def _case(number: str, values: Sequence[float], dialect: Dialect) -> str:
    cases = " ".join(f"WHEN {at} THEN {dialect.number(value)}" for at, value in enumerate(values))
    return f"CASE {number} {cases} END"
