"""New rows scored by a model that was fitted and saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from decal_cli.data import Batch, Columns, NewRows
from decal_cli.documents import read_document
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.learn.method import added_columns, new_name, unseen_categories
from decal_cli.learn.methods import parse
from decal_cli.learn.model_file import Saved, from_text, score_rows


def read_model(path: str) -> Saved:
    """The model of a file. Errors: DecalError, where it is none that `decal fit` wrote."""
    return from_text(model_text(path), path)


def model_text(path: str) -> str:
    """The text of a model file. Errors: DecalError, where it cannot be read."""
    return read_document(path, f"model file {path}", f"name a file that `{Verb('fit').words}` wrote")


def columns_for(saved: Saved, missing: Any = "error") -> Columns:
    """The columns that the model looks at; missing: what is done with rows that lack a score."""
    return Columns(
        score=() if saved.proba else (saved.score,),
        proba=saved.proba,
        features=saved.features,
        group=saved.groups,
        logit=saved.logit,
        missing=missing,
    )


@dataclass(frozen=True, eq=False)
class ScoredBatch:
    """Some rows with what the model adds to them.

    added: name -> values, shape (rows that lack no score,). unseen: how many of these have a category that the model
    was not fitted on.
    """

    batch: Batch
    added: Mapping[str, NDArray[Any]]
    unseen: int


def scored(saved: Saved, rows: NewRows, name: str | None, shown: str) -> Iterator[ScoredBatch]:
    """Every batch of rows with its new columns. name: of the new score; shown: the model, for messages."""
    for batch in rows.batches():
        applied = score_rows(saved, batch.rows, shown)
        new = name or new_name(saved.score, parse(saved.method))
        added = added_columns(applied, name or saved.score, new, saved.classes)
        for column in added:
            if column in rows.names:
                raise DecalError(f"there is a column {column!r} already", f"name the new one: {Hint('name', 'COLUMN')}")
        yield ScoredBatch(batch, added, unseen_categories(saved.model, batch.rows))
