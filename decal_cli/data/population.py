"""The population that decisions are made in, where the rows were sampled from another."""

from __future__ import annotations

import math
from dataclasses import replace

from decal_cli.data.dataset import Dataset
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MIN_PREVALENCE
from decal_cli.roles import Columns
from decal_cli.tables.population import Population, population_share
from decal_cli.tables.rows import Rows


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
    if dataset.classes:
        raise DecalError(
            f"{Hint('prevalence')} and {Hint('sampled_negatives')} are for scores of two classes",
            f"name them with {Hint('score')}",
        )
    population = _population(dataset.models[0].rows, columns)
    models = tuple(replace(model, rows=population.counted(model.rows)) for model in dataset.models)
    return replace(dataset, models=models, population=population)


def _population(rows: Rows, columns: Columns) -> Population:
    sampled = population_share(rows)
    if not 0 < sampled < 1:
        raise DecalError(
            f"every label is {sampled:.0f}: there is nothing to count as other labels", "give rows of both labels"
        )
    if columns.prevalence is not None:
        return Population(_share(columns.prevalence, Hint("prevalence").words, 0.02), sampled, columns.keep_scores)
    kept = _share(columns.sampled_negatives or "", Hint("sampled_negatives").words, 0.1)
    return Population(sampled / (sampled + (1 - sampled) / kept), sampled, columns.keep_scores, known=False)


def _share(text: str, option: str, example: float) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not MIN_PREVALENCE <= share <= 1 - MIN_PREVALENCE:
        hint = f" (did you mean {share / 100:g}?)" if 1 < share < 100 else ""
        raise DecalError(f"{option} {text} is not a share between 0 and 1", f"give for example {example:g}{hint}")
    return share
