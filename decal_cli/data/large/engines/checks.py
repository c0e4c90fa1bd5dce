"""What an engine can find wrong with rows: the same checks, and the same lines, as for rows that are read here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from decal_cli.data.dataset import Dataset
from decal_cli.data.parts import Origin, Part, missing_fix
from decal_cli.data.words import number, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint


@dataclass(frozen=True)
class Problem:
    """One thing that can be wrong with a row.

    role: the column that has it. condition: when a row has it, in SQL. value: what is shown of it, '' for a missing
    value. text: how the line goes on after the column, with {value} and {times}; fix: what to do about it.
    needs: what must be known for it, '' for nothing.
    """

    role: str
    condition: str
    value: str = ""
    text: str = ""
    fix: str = ""
    needs: str = ""


BAD, VALUE = "bad", "value"
"""The columns that say what is wrong."""
_NULLS = ["", "\\N", "NULL", "null"]
"""What engines write for NULL where they export CSV."""
Dropped = dict[str | None, dict[str, int]]
"""By model, how many rows were dropped for each problem."""
PROBLEMS = {
    "score outside [0, 1]": Problem(
        "score",
        "{outside}",
        "score",
        "score {value} is outside [0, 1]{times}",
        "name a column of probabilities, or correct the rows",
    ),
    "label never positive": Problem(
        "label",
        "decal_never = 1",
        "other",
        "label is never the positive value, it is {value}",
        f"correct {Hint('positive')}",
        "positive",
    ),
    "label of a third value": Problem(
        "label",
        "decal_label < 0 OR decal_label > 1",
        "label",
        "label is {value}{times}, and a label is 0 or 1, or has two values",
        f"say which counts as 1 with {Hint('positive')}, correct it or name another column",
    ),
    "weight not positive and finite": Problem(
        "weight",
        "NOT (decal_weight > 0 AND decal_weight < {infinite})",
        "weight",
        "weight {value} is not positive and finite{times}",
        "correct the weight or remove the row",
        "weight",
    ),
    "missing score": Problem("score", "{absent}"),
    "missing label": Problem("label", "decal_label IS NULL"),
    "missing weight": Problem("weight", "decal_weight IS NULL", needs="weight"),
    "missing cluster": Problem("cluster", "{cluster} IS NULL OR {cluster} = ''", needs="cluster"),
}
"""By what stands in the column `bad`, the worst first: a row has one."""


def sound(table: Any, shown: str, drop: bool, names: Mapping[str, str] | None = None) -> tuple[Any, Dropped]:
    """The rows of an aggregate that count scores, without `bad` and `value`; and what was dropped.

    table: a pyarrow Table as `statement` describes it; `bad` and `value` may be absent. shown: what it is called. drop:
    whether rows with missing values may be dropped. names: the user's columns by role, as far as they are known.
    Errors: DecalError, with the worst problem and how many rows have it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if BAD not in table.column_names:
        return table, {}
    is_bad = pc.invert(pc.is_in(table[BAD].cast(pa.string()).fill_null(""), pa.array(_NULLS)))
    wrong = table.filter(is_bad).to_pylist()
    kept = table.filter(pc.invert(is_bad)).drop_columns([name for name in (BAD, VALUE) if name in table.column_names])
    rows = "rows" if "rows" in table.column_names else "n"
    unknown = sorted({str(each[BAD]) for each in wrong} - PROBLEMS.keys())
    if unknown:
        raise DecalError(f"{shown}, column 'bad': {quote(unknown[0])} is not known", "export what decal sql asks for")
    dropped: Dropped = {}
    for name, problem in PROBLEMS.items():
        having = [each for each in wrong if each[BAD] == name]
        if having and (problem.text or not drop):
            # The first model that has it: all have the same labels and weights.
            having = [each for each in having if each.get("model") == having[0].get("model")]
            raise _error(problem, having, sum(int(each[rows]) for each in having), shown, names or {})
        for each in having:
            of_model = dropped.setdefault(each.get("model"), {})
            of_model[name] = of_model.get(name, 0) + int(each[rows])
    if dropped and not kept.num_rows:
        raise DecalError(f"{shown}: no row is left ({_why(next(iter(dropped.values())))})", "name other columns")
    return kept, dropped


def sound_parts(parts: Sequence[Part], drop: bool) -> tuple[Origin, list[Dropped]]:
    """The same for loaded files, each with what was dropped of it."""
    kept = Origin()
    dropped: list[Dropped] = []
    start = 0
    for part in parts:
        names = getattr(part.source, "of_role", None)
        table, of_part = sound(part.table, part.source.shown, drop, names)
        kept.append(Part(part.source, table, start))
        dropped.append(of_part)
        start += table.num_rows
    return kept, dropped


def with_dropped(data: Dataset, dropped: Sequence[Dropped]) -> Dataset:
    """The data set of the sound rows, whose models say what was dropped of its inputs."""
    models, notes = [], []
    for model in data.models:
        counts: Counter[str] = Counter()
        for of_input in dropped:
            counts.update(dropped_of(of_input, model.name))
        count = counts.total()
        models.append(replace(model, dropped=count))
        if count:
            notes.append(f"{model.name}: dropped {count:,} of {len(model.rows) + count:,} rows ({_why(counts)})")
    return replace(data, models=tuple(models), notes=(*notes, *data.notes))


def dropped_of(dropped: Dropped, model: str) -> Mapping[str, int]:
    """What was dropped of a model; where there is only one, its name is not known."""
    return dropped.get(model) or dropped.get(None) or {}


def _why(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" if len(counts) > 1 else name for name, count in counts.items())


def _error(
    problem: Problem, having: list[dict[str, Any]], count: int, shown: str, names: Mapping[str, str]
) -> DecalError:
    model = having[0].get("model") if problem.role == "score" else None
    column = model or names.get(problem.role)
    place = shown if column is None else f"{shown}, column {quote(column)}"
    if not problem.text:
        lacking = f"{count:,} rows" if count > 1 else "1 row"
        return DecalError(
            f"{place}: {problem.role} missing in {lacking}",
            missing_fix(problem.role),
        )
    values = [str(each[VALUE]) for each in having if each.get(VALUE) is not None]
    value = "missing" if not values else quote(min(values)) if problem.role == "label" else number(float(values[0]))
    times = f" ({count:,} such rows)" if count > 1 else ""
    return DecalError(f"{place}: {problem.text.format(value=value, times=times)}", problem.fix)
