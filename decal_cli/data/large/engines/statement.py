"""The statement that counts scores where the rows are: plain SQL, which finds what is wrong with rows as well.

Its result is an aggregate (`aggregate`), which `decal evaluate FILE --aggregated` reads after anyone exported it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from decal_cli.data.large.engines.checks import problems_of
from decal_cli.data.large.engines.dialects import Dialect, logistic
from decal_cli.data.large.engines.labels import label_of, other_label
from decal_cli.data.large.engines.request import CountRequest, checked
from decal_cli.data.large.engines.sums import coarsely_placed, counted, placed, select, stacked
from decal_cli.errors import DecalError


def size_of_head(request: CountRequest, dialect: Dialect, most: int) -> str:
    """The statement that counts the first rows, so many at most, and about how many scores and texts they have."""
    columns = [dialect.name(name) for name in (*request.score, *request.texts)]
    listed = ", ".join(dict.fromkeys(columns))
    head = f"(\n    SELECT {listed} FROM {source_of(request.table, request.query, dialect)}\n    LIMIT {most}\n)"
    return _size(columns, f"{head} AS decal_head", dialect)


def size_of_texts(request: CountRequest, dialect: Dialect) -> str:
    """The statement that counts all rows, and about how many texts of each column they have."""
    columns = [dialect.name(name) for name in request.texts]
    return _size(columns, source_of(request.table, request.query, dialect), dialect)


def _size(columns: Sequence[str], source: str, dialect: Dialect) -> str:
    distinct = [f"{dialect.distinct.format(value=each)} AS decal_{at}" for at, each in enumerate(columns)]
    return f"SELECT {', '.join(['COUNT(*) AS decal_rows', *distinct])} FROM {source}"


def source_of(table: str | None, query: str | None, dialect: Dialect) -> str:
    """What stands after FROM: a table or a query, one of which is named. Errors: DecalError."""
    if (table is None) == (query is None):
        raise DecalError("rows come from one table or from one query", "name a table, or give --query")
    if table is not None:
        return dialect.table(table)
    # On lines of its own, so that a comment at its end comments out nothing of ours.
    text = (query or "").strip().rstrip(";")
    if "\0" in text or text != text.encode(errors="ignore").decode():
        raise DecalError("--query is not text in UTF-8", "correct it")
    return f"(\n{text}\n    ) AS decal_query"


def statement(request: CountRequest, dialect: Dialect) -> str:
    """The statement, which ends without a semicolon. Errors: DecalError, where the request cannot be put."""
    request = checked(request)
    parts = {"decal_given": _given(request, dialect), "decal_read": _read(request, dialect)}
    if request.positive is not None:
        # Read by itself, not by way of decal_given: Postgres would write down what is read twice.
        labels = select([_label(request, dialect)], source_of(request.table, request.query, dialect))
        parts["decal_labels"] = other_label("decal_y", request.positive, f"(\n{labels}\n    ) AS decal_all", dialect)
    if request.models:
        numbers = range(1, len(request.score) + 1)
        parts["decal_models"] = "    SELECT " + "\n    UNION ALL SELECT ".join(f"{at} AS decal_model" for at in numbers)
    parts["decal_scored"] = _scored(request, dialect)
    parts["decal_judged"] = _judged(request, dialect)
    parts["decal_rows"] = _rows(request, dialect)
    if request.cells:
        parts["decal_placed"] = placed(request, dialect)
    if request.by_cluster:
        parts["decal_coarse"] = coarsely_placed(request)
    named = ",\n".join(f"{name} AS (\n{body}\n)" for name, body in parts.items())
    return f"WITH {named}\n{counted(request, dialect)}"


def _given(request: CountRequest, dialect: Dialect) -> str:
    """The columns of the user, under names of ours and of known types."""
    columns = [f"{dialect.as_text(dialect.name(name))} AS {ours}" for name, ours in request.texts.items()]
    columns += [
        f"{dialect.as_double(dialect.name(name))} AS {ours}"
        for name, ours in zip(request.score, request.scores, strict=True)
    ]
    columns.append(_label(request, dialect))
    weight = dialect.number(1) if request.weight is None else dialect.as_double(dialect.name(request.weight))
    columns.append(f"{weight} AS decal_w")
    return select(columns, source_of(request.table, request.query, dialect))


def _label(request: CountRequest, dialect: Dialect) -> str:
    return f"TRIM({dialect.as_text(dialect.name(request.label))}) AS decal_y"


def _read(request: CountRequest, dialect: Dialect) -> str:
    """The same with NULL for numbers that are NaN, and probabilities for log-odds."""
    columns = list(request.texts.values())
    infinite = ", ".join(dialect.number(each) for each in (math.inf, -math.inf))
    for each in [*request.scores, "decal_w"]:
        value = each
        if request.logit and each != "decal_w":
            # GREATEST and LEAST of NULL are the other number in some engines, and NULL in others.
            as_it_is = f"{each} IS NULL OR {each} IN ({infinite})"
            value = f"CASE WHEN {as_it_is} THEN {each} ELSE {logistic(each, dialect)} END"
        columns.append(f"CASE WHEN {dialect.is_nan(each)} THEN NULL ELSE {value} END AS {each}")
    return select([*columns, "decal_y"], "decal_given")


def _scored(request: CountRequest, dialect: Dialect) -> str:
    """One row for each row and model, or pair: its scores, and its label as 0, 1, 2 for any other value, or NULL."""
    scores, sources = request.scores, ["decal_read"]
    columns = [*request.texts.values(), *request.models, "decal_y", "decal_w"]
    columns.append(f"{label_of('decal_y', request.positive, dialect)} AS decal_label")
    if request.positive is None:
        columns.append("0 AS decal_never")
    else:
        columns.append("decal_never")
        sources.append("decal_labels")
    if request.pairs:
        first, second = scores
        columns += [f"{each} AS decal_s{side}" for each, side in zip(scores, request.sides, strict=True)]
        # The score that is judged: the one that is wrong, if any.
        wrong = f"{first} < 0 OR {first} > 1 OR ({first} IS NULL AND {second} >= 0 AND {second} <= 1)"
        columns.append(f"CASE WHEN {wrong} THEN {first} ELSE {second} END AS decal_s")
    elif request.models:
        cases = " ".join(f"WHEN {number} THEN {each}" for number, each in enumerate(scores, 1))
        columns.append(f"CASE decal_model {cases} END AS decal_s")
        sources.append("decal_models")
    else:
        columns.append("decal_s1 AS decal_s")
    return select(columns, " CROSS JOIN ".join(sources))


def _judged(request: CountRequest, dialect: Dialect) -> str:
    """The same with what is wrong with each row: values that cannot be come before values that are missing."""
    words = {"infinity": dialect.number(math.inf), "cluster": request.texts.get(request.cluster or "", "")}
    cases = [
        f"WHEN {problem.condition.format(**words)} THEN {code}"
        for code, problem in problems_of(request.cluster is not None)
    ]
    bad = f"CASE\n            {stacked(cases)}\n        END AS decal_bad"
    return select(["decal_scored.*", bad], "decal_scored")


def _rows(request: CountRequest, dialect: Dialect) -> str:
    """Sound rows with their score, label and weight; the others with an example of what is wrong."""
    cases = [
        f"WHEN {code} THEN {dialect.as_text(problem.value)}"
        for code, problem in problems_of(request.cluster is not None)
        if problem.value
    ]
    texts, scores = request.texts.values(), {side: f"decal_s{side}" for side in request.sides}
    columns = [
        # What is wrong is not counted cluster by cluster.
        *("CASE WHEN decal_bad IS NULL THEN decal_c END AS decal_c" if ours == "decal_c" else ours for ours in texts),
        *request.models,
        # A score of -0.0 is 0.
        *(
            f"CASE WHEN decal_bad IS NOT NULL THEN NULL WHEN {score} = 0 THEN 0 ELSE {score} END AS decal_p{side}"
            for side, score in scores.items()
        ),
        "CASE WHEN decal_bad IS NULL THEN decal_label END AS decal_pos",
        "CASE WHEN decal_bad IS NULL THEN decal_w END AS decal_n",
        "decal_bad",
        f"CASE decal_bad\n            {stacked(cases)}\n        END AS decal_value",
    ]
    return select(columns, "decal_judged")
