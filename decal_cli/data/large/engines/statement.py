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
from decal_cli.data.large.engines.sums import (
    coarsely_placed,
    counted,
    example,
    judged_sums,
    outside,
    placed,
    select,
    stacked,
    summed,
)
from decal_cli.errors import DecalError
from decal_cli.hints import Hint


def size_of_head(request: CountRequest, dialect: Dialect, most: int) -> str:
    """The statement that counts the first rows, so many at most, and about how many scores and texts they have."""
    weight = [request.weight] if request.by_weight and request.weight is not None else []
    columns = [dialect.name(name) for name in (*request.score, *request.texts, *weight)]
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
        raise DecalError("rows come from one table or from one query", f"name a table, or give {Hint('query')}")
    if table is not None:
        return dialect.table(table)
    # On lines of its own, so that a comment at its end comments out nothing of ours.
    text = (query or "").strip().rstrip(";")
    if "\0" in text or text != text.encode(errors="ignore").decode():
        raise DecalError(f"{Hint('query')} is not text in UTF-8", "correct it")
    return f"(\n{text}\n    ) AS decal_query"


def statement(request: CountRequest, dialect: Dialect) -> str:
    """The statement, which ends without a semicolon. Errors: DecalError, where the request cannot be put.

    Rows are counted first and judged then, since what is wrong with a row shows in what it is counted by.
    """
    request = checked(request)
    parts = {"decal_given": _given(request, dialect)}
    if request.positive is not None:
        # Read by itself, not by way of decal_given: Postgres would write down what is read twice.
        labels = select([_label(request, dialect)], source_of(request.table, request.query, dialect))
        parts["decal_labels"] = other_label("decal_y", request.positive, f"(\n{labels}\n    ) AS decal_all", dialect)
    if request.models:
        numbers = range(1, len(request.score) + 1)
        parts["decal_models"] = "    SELECT " + "\n    UNION ALL SELECT ".join(f"{at} AS decal_model" for at in numbers)
    parts["decal_scored"] = _scored(request, dialect)
    if request.cells:
        parts["decal_placed"] = placed(request, dialect)
    parts["decal_counted"] = counted(request)
    parts["decal_judged"] = _judged(request, dialect)
    parts["decal_rows"] = _rows(request, dialect)
    if request.by_cluster:
        parts["decal_coarse"] = coarsely_placed(request)
    # What is read twice is not written down: it is every row.
    again = {"decal_placed": dialect.read_again} if request.by_cluster else {}
    named = ",\n".join(f"{name} AS {again.get(name, '')}(\n{body}\n)" for name, body in parts.items())
    return f"WITH {named}\n{summed(request, dialect)}"


def _given(request: CountRequest, dialect: Dialect) -> str:
    """The columns of the user, under names of ours and of known types."""
    columns = [f"{dialect.as_text(dialect.name(name))} AS {ours}" for name, ours in request.texts.items()]
    for name, ours in zip(request.score, request.scores, strict=True):
        score = dialect.as_double(dialect.name(name))
        columns.append(f"{_probability(score, dialect) if request.logit else score} AS {ours}")
    columns.append(_label(request, dialect))
    if request.weight is not None:
        weight = dialect.as_double(dialect.name(request.weight))
        columns.append(f"CASE WHEN {dialect.is_nan(weight)} THEN NULL ELSE {weight} END AS decal_w")
    return select(columns, source_of(request.table, request.query, dialect))


def _label(request: CountRequest, dialect: Dialect) -> str:
    label = dialect.name(request.label)
    return f"{label if request.whole_labels else f'TRIM({dialect.as_text(label)})'} AS decal_y"


def _probability(score: str, dialect: Dialect) -> str:
    """That of log-odds; what is no number stays as it is."""
    infinite = ", ".join(dialect.number(each) for each in (math.inf, -math.inf))
    # GREATEST and LEAST of NULL are the other number in some engines, and NULL in others.
    as_it_is = f"{score} IS NULL OR {dialect.is_nan(score)} OR {score} IN ({infinite})"
    return f"CASE WHEN {as_it_is} THEN {score} ELSE {logistic(score, dialect)} END"


def _scored(request: CountRequest, dialect: Dialect) -> str:
    """One row for each row and model, or pair: its scores, and its label as 0, 1, any other value, or NULL."""
    scores, sources = request.scores, ["decal_given"]
    columns = [*request.texts.values(), *request.models]
    if request.whole_labels:
        columns.append("decal_y AS decal_label")
    else:
        columns += ["decal_y", f"{label_of('decal_y', request.positive, dialect)} AS decal_label"]
    if request.positive is not None:
        sources.append("decal_labels")
    if request.weight is not None:
        sound = f"decal_w > 0 AND decal_w < {dialect.number(math.inf)}"
        columns += ["decal_w", f"CASE WHEN {sound} THEN 1 WHEN decal_w IS NOT NULL THEN 0 END AS decal_sound"]
    if request.models:
        cases = " ".join(f"WHEN {number} THEN {each}" for number, each in enumerate(scores, 1))
        columns.append(f"CASE decal_model {cases} END AS decal_s")
        sources.append("decal_models")
    else:
        columns += [f"{each} AS decal_s{side}" for each, side in zip(scores, request.sides, strict=True)]
    return select(columns, " CROSS JOIN ".join(sources))


def _judged(request: CountRequest, dialect: Dialect) -> str:
    """Counts with what is wrong with their rows: values that cannot be come before values that are missing."""
    words = {
        "outside": " OR ".join(outside(key, request, dialect) for key in request.score_keys),
        "absent": " OR ".join(f"{key} IS NULL OR {dialect.is_nan(key)}" for key in request.score_keys),
        "cluster": request.texts.get(request.cluster or "", ""),
    }
    cases = [f"WHEN {each.condition.format(**words)} THEN {code}" for code, each in problems_of(request.known)]
    columns, sources = ["decal_counted.*"], ["decal_counted"]
    if request.positive is not None:
        columns += ["decal_other", "decal_never"]
        sources.append("decal_labels")
    bad = f"CASE\n            {stacked(cases)}\n        END AS decal_bad"
    return select([*columns, bad], " CROSS JOIN ".join(sources))


def _rows(request: CountRequest, dialect: Dialect) -> str:
    """Counts of sound rows by score and label; those of the others with an example of what is wrong."""
    third = "decal_label" if request.whole_labels else "decal_third"
    values = {"score": example(request, dialect), "third": third, "other": "decal_other", "weight": "decal_lightest"}
    cases = [
        f"WHEN {code} THEN {dialect.as_text(values[each.value])}"
        for code, each in problems_of(request.known)
        if each.value
    ]
    columns = [
        # What is wrong is not counted cluster by cluster.
        *(
            "CASE WHEN decal_bad IS NULL THEN decal_c END AS decal_c" if ours == "decal_c" else ours
            for ours in request.texts.values()
        ),
        *request.models,
        *(["CASE WHEN decal_bad IS NULL THEN decal_w END AS decal_w"] if request.by_weight else []),
        *judged_sums(request, dialect),
        "CASE WHEN decal_bad IS NULL THEN decal_label END AS decal_pos",
        "decal_bad",
        f"CASE decal_bad\n            {stacked(cases)}\n        END AS decal_value",
    ]
    return select(columns, "decal_judged")
