"""A data set as it is used: in the population that decisions are made in, and at the capacity of acting on rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from decal_cli.data.dataset import Dataset
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MIN_PREVALENCE
from decal_cli.roles import Columns
from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.cells import CellTable
from decal_cli.tables.listed import Capacity
from decal_cli.tables.population import Population, Shares, class_shares, population_share
from decal_cli.tables.rows import Rows
from decal_cli.task import few_names

MAX_OFF = 1e-6
"""By how much shares of all classes may miss a sum of 1, as rounded ones do."""


def as_used(dataset: Dataset, columns: Columns) -> Dataset:
    """The data set in the user's population, and with the user's capacity. Errors: DecalError."""
    dataset = in_population(dataset, columns)
    if columns.capacity is None:
        return dataset
    capacity = parse_capacity(columns.capacity)
    rows = min(len(model.rows) for model in dataset.models)
    counts = dataset.models[0].rows
    if isinstance(counts, Aggregated):
        cells = isinstance(counts.table, CellTable)
        problem = "only cells of it are known" if cells else f"{rows:,} rows are more than memory can hold"
        raise DecalError(
            f"{Hint('capacity')} ranks rows by their score, and {problem}",
            f"round the scores, or draw a sample of rows, in {Hint('query')}; or give a file of rows",
        )
    if columns.per is None and capacity.among is None and capacity.places > rows:
        raise DecalError(
            f"{Hint('capacity', capacity.text)} is more than the {rows:,} rows",
            f"give a smaller count or a share, or the column of days with {Hint('per')}",
        )
    return replace(dataset, capacity=capacity)


def parse_capacity(text: str) -> Capacity:
    """'50/1000', '0.05' or '200'. Errors: DecalError."""
    try:
        places, *among = (float(part) for part in text.split("/"))
    except ValueError:
        places, among = math.nan, []
    share = bool(among) or places < 1
    whole = among[0] if among else 1.0
    wrong = ""
    if len(among) > 1 or not all(map(math.isfinite, (places, *among))):
        wrong = "is not a count or a share"
    elif places <= 0 or whole <= 0:
        wrong = "is not positive"
    elif among and places > whole:
        wrong = "is more than all rows"
    elif not share and places != int(places):
        wrong = "is neither a whole count nor a share below 1"
    if wrong:
        raise DecalError(f"{Hint('capacity', text)} {wrong}", "give for example 50/1000, 0.05 or 200")
    return Capacity(text, places, whole if share else None)


def in_population(dataset: Dataset, columns: Columns) -> Dataset:
    """The data set as the user's population has it; itself, where none is named. Errors: DecalError."""
    if columns.prevalence is None and columns.sampled_negatives is None:
        if columns.keep_scores:
            raise DecalError(
                f"{Hint('keep_scores')} keeps scores in another population", f"name it with {Hint('prevalence')}"
            )
        return dataset
    if columns.prevalence is not None and columns.sampled_negatives is not None:
        raise DecalError(
            f"{Hint('prevalence')} and {Hint('sampled_negatives')} both name the population", "give one of them"
        )
    rows = dataset.models[0].rows
    population = _of_classes(rows, columns) if dataset.classes else _of_ones(rows, columns)
    models = tuple(replace(model, rows=population.counted(model.rows)) for model in dataset.models)
    return replace(dataset, models=models, population=population)


def _of_ones(rows: Rows, columns: Columns) -> Population:
    sampled = population_share(rows)
    if not 0 < sampled < 1:
        raise DecalError(
            f"every label is {sampled:.0f}: there is nothing to count as other labels", "give rows of both labels"
        )
    if columns.prevalence is not None:
        if "=" in columns.prevalence:
            raise DecalError(
                f"{Hint('prevalence', columns.prevalence)} names classes, and labels are 0 and 1",
                f"give the share of labels 1, for example {Hint('prevalence', '0.02')}",
            )
        share = _share(columns.prevalence, Hint("prevalence").words, 0.02)
        return Population.of_ones(share, sampled, columns.keep_scores)
    kept = _share(columns.sampled_negatives or "", Hint("sampled_negatives").words, 0.1)
    return Population.of_ones(sampled / (sampled + (1 - sampled) / kept), sampled, columns.keep_scores, known=False)


def _of_classes(rows: Rows, columns: Columns) -> Population:
    if columns.prevalence is None:
        raise DecalError(
            f"{Hint('sampled_negatives')} is for scores of two classes", f"name the shares with {Hint('prevalence')}"
        )
    here = class_shares(rows)
    absent = [name for name, share in zip(rows.classes, here, strict=True) if not share]
    if absent:
        raise DecalError(
            f"no row has the label {absent[0]!r}, so that none can count as one of another population",
            "give rows of every class",
        )
    return Population(_shares(columns.prevalence, rows.classes), here, columns.keep_scores, classes=rows.classes)


def _shares(text: str, classes: Sequence[str]) -> Shares:
    """'a=0.2,b=0.3': the share of each class; one class may be missing and gets the rest. Errors: DecalError."""
    shown = Hint("prevalence", text)
    example = ",".join(f"{name}={1 / len(classes):.2g}" for name in classes[:-1][:3])
    fix = f"give a share for each class (one may be missing), as in {Hint('prevalence', example)}"
    given: dict[str, float] = {}
    for part in text.split(","):
        name, equals, share = (each.strip() for each in part.rpartition("="))
        if not equals:
            raise DecalError(f"{shown} does not say which class has the share {share!r}", fix)
        if name not in classes or name in given:
            wrong = "is named twice" if name in given else f"is no class; the classes are {few_names(classes)}"
            raise DecalError(f"{shown}: {name!r} {wrong}", fix)
        given[name] = _share(share, f"{Hint('prevalence')} {name}=", 0.02)
    left = [name for name in classes if name not in given]
    if len(left) > 1:
        raise DecalError(f"{shown} leaves out {len(left)} classes: {few_names(left)}", fix)
    total = sum(given.values())
    if left:
        given[left[0]] = 1 - total
    wrong_sum = total > 1 - MIN_PREVALENCE if left else abs(total - 1) > MAX_OFF
    if wrong_sum:
        raise DecalError(f"the shares of {shown} add up to {total:g}", "give shares that add up to 1")
    total = sum(given.values())
    return tuple(given[name] / total for name in classes)


def _share(text: str, option: str, example: float) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not MIN_PREVALENCE <= share <= 1 - MIN_PREVALENCE:
        hint = f" (did you mean {share / 100:g}?)" if 1 < share < 100 else ""
        joined = "" if option.endswith("=") else " "
        raise DecalError(
            f"{option}{joined}{text} is not a share between 0 and 1", f"give for example {example:g}{hint}"
        )
    return share
