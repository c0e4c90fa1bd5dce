"""The features of rows as fitted models ask for them."""

from __future__ import annotations

from decal_cli.errors import Undefined
from decal_cli.tables.rows import Matrix, Unlabelled


def features_of(rows: Unlabelled) -> Matrix:
    """The features of rows, shape (T, d). Errors: Undefined, where there are none."""
    if rows.features is None:
        raise Undefined("needs the features that the model was fitted with")
    return rows.matrix
