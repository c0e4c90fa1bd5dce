"""The features of rows as fitted models ask for them."""

from __future__ import annotations

from decal_cli.errors import Undefined
from decal_cli.methods.declare import NO_FEATURES
from decal_cli.tables.features import Matrix
from decal_cli.tables.rows import Unlabelled


def features_of(rows: Unlabelled) -> Matrix:
    """The features of rows as numbers, shape (T, d), NaN where missing. Errors: Undefined, where there are none."""
    if rows.features is None:
        raise Undefined(NO_FEATURES)
    return rows.matrix
