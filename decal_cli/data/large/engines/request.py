"""What an engine is asked to count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from decal_cli.data.large.engines.aggregate import RESERVED, SIDES
from decal_cli.errors import DecalError
from decal_cli.hints import Hint

N_SPLITS = 3
"""Of coarse cells, where nothing else is asked for: 209 of them, and one more for each threshold."""


@dataclass(frozen=True)
class CountRequest:
    """What is counted: the rows of a table, or of a query, by score.

    positive: the label that counts as 1, None where labels are 0/1 or true/false. thresholds: edges of cells, whether
    cells are asked for or not. pairs: whether rows are counted by both of two scores at once.
    logit: whether scores are log-odds. splits: how fine the coarse cells are by which clusters are counted.
    whole_labels: whether labels are whole numbers, 0 and 1 if they are sound, so that no text is looked at. by_weight:
    whether rows are counted by their weight too, so that those of one level have one weight.
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
    cluster: str | None = None
    pairs: bool = False
    logit: bool = False
    splits: int = N_SPLITS
    whole_labels: bool = False
    by_weight: bool = False

    @property
    def by_cluster(self) -> bool:
        """Whether clusters are counted by coarse cells, beside the cells of all rows."""
        return self.cells and self.cluster is not None and self.cluster not in self.group

    @property
    def texts(self) -> dict[str, str]:
        """Columns of the user by which rows are counted, and what the statement calls them."""
        ours = {name: f"decal_g{number}" for number, name in enumerate(self.group, 1)}
        return ours if self.cluster is None or self.cluster in ours else {**ours, self.cluster: "decal_c"}

    @property
    def scores(self) -> list[str]:
        """What the statement calls the columns of scores."""
        return [f"decal_s{number}" for number in range(1, len(self.score) + 1)]

    @property
    def sides(self) -> Sequence[str]:
        """What the names of a score's columns end with, of each score by which one row is counted at once."""
        return SIDES if self.pairs else ("",)

    @property
    def score_keys(self) -> list[str]:
        """What rows are counted by of each score: itself, or the number of its cell."""
        return [f"decal_{'k' if self.cells else 's'}{side}" for side in self.sides]

    @property
    def known(self) -> frozenset[str]:
        """What can be wrong with a row besides its score and label."""
        known = {"weight": self.weight, "cluster": self.cluster, "positive": self.positive}
        return frozenset(name for name, value in known.items() if value is not None)

    @property
    def models(self) -> list[str]:
        """The column of the model's number, where each row is counted once for each of several."""
        return ["decal_model"] if len(self.score) > 1 and not self.pairs else []


def checked(request: CountRequest) -> CountRequest:
    """The same request, its thresholds in order. Errors: DecalError, where it cannot be put."""
    for name in request.score:
        if "*" in name:
            raise DecalError(
                f"score {name!r} is a pattern, and a statement names columns", f"name each with {Hint('score')}"
            )
    if len(set(request.score)) < len(request.score):
        raise DecalError("a score is named twice", "name each once")
    if request.pairs and len(request.score) != 2:
        raise DecalError(
            f"pairs are of two scores, and {len(request.score)} {'is' if len(request.score) == 1 else 'are'} named",
            f"name two with {Hint('score')}",
        )
    if request.cells and request.pairs and request.cluster is not None:
        raise DecalError(
            "clusters of two scores are counted by every pair of scores, and cells of both do not hold them",
            f"round the scores in {Hint('query')}, or draw a sample of clusters",
        )
    for name in request.texts:
        if name.lower() in RESERVED:
            role = "group" if name in request.group else "cluster"
            raise DecalError(
                f"the {role} {name!r} has the name of a column of the result",
                f'rename it: {Hint("query")} \'select *, "{name}" as "{role}_{name}" from ...\'',
            )
    for threshold in request.thresholds:
        if not 0 <= threshold <= 1:
            raise DecalError(f"threshold {threshold:g} is not in [0, 1]", f"correct {Hint('threshold')}")
    return replace(request, thresholds=tuple(sorted(set(request.thresholds))))
