"""The page of `decal study --figures`: the experiment as Perez-Lebel et al. 2025 print it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from decal_cli.analysis.study.columns import BASE, BEYOND_SUFFIX
from decal_cli.analysis.study.points import PREDICTORS
from decal_cli.analysis.study.summary import Relation, Summary, short_title
from decal_cli.render.blocks import Block, Picture, Source, Table
from decal_cli.render.results.study_tables import GROUPING, plain_r2, study_lines, table_of_words

Relations = Mapping[tuple[str, str], Relation]


class Experiment:
    """The squared correlations of every estimate with every method's gain in both units, and the pictures.

    captions: of the pictures that lie beside the page, by file name.
    """

    title = "The experiment of Perez-Lebel et al. 2025"

    def __init__(self, summary: Summary, captions: Mapping[str, str]) -> None:
        self.summary = summary
        self.captions = captions

    def blocks(self) -> Iterator[Block]:
        """What was studied, the tables, the pictures."""
        yield Source((study_lines(self.summary)[0], GROUPING))
        for relations, unit in (
            (self.summary.relations, "utilities per unit of u_delta"),
            (self.summary.in_utility, "utilities in the paper's units, where u_delta is 1/t*"),
        ):
            yield self._table(relations, f"r2 with the gain of each method; {unit}", "")
            yield self._table(relations, f"r2 with the gain beyond {BASE}; {unit}", BEYOND_SUFFIX)
        for file, caption in self.captions.items():
            yield Picture(caption, file=file)

    def _table(self, relations: Relations, title: str, suffix: str) -> Table:
        rows = []
        for method in self.summary.points.gains:
            r2 = [relations.get((name, method + suffix)) for name in PREDICTORS]
            if any(r2):
                rows.append((method, *map(plain_r2, r2)))
        return table_of_words(title, "", ("method", *map(short_title, PREDICTORS)), rows)
