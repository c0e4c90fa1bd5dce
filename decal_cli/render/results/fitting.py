"""What `decal fit` returns."""

from __future__ import annotations

from typing import Literal

from decal_cli.analysis.fit import Fitting, Gain, how_judged
from decal_cli.data.words import enumerated, file_word
from decal_cli.declarations.document import Absent, Positive, Size
from decal_cli.hints import Verb
from decal_cli.learn.method import Kind
from decal_cli.learn.models import note_of
from decal_cli.metrics import parse
from decal_cli.numbers import Interval, bounds, bracketed, many, shares_text
from decal_cli.render.blocks import Blocks, Facts, Notes, Paragraph
from decal_cli.render.cells import better, left, reasons, table
from decal_cli.render.results.comparison import difference_cell
from decal_cli.render.results.source import Provenance, WrittenResult, source_lines
from decal_cli.render.schema import Document, View, data_of, of
from decal_cli.render.terms import PLAIN, StatedTerms


class ChangeData(View):
    """A metric of the score as it is and of the new one, and the difference with its paired interval."""

    before: float | None = of("a.value")
    after: float | None = of("b.value")
    difference: float | None = of("difference.value")
    interval: Interval | None = of("difference.interval")
    reason: str | None = of("difference.reason")


class FitData(View):
    """A fitted model. method: as `decal fit` takes it. model_file: null where none was written.
    column: what `decal apply` adds. rows: that the model was fitted
    to. judged: on which rows the figures are, those it was fitted to, each scored by a model that other folds fitted,
    or those of --test. seconds: processor time of the fits of all folds, 0 with --test. gain: null without a task.
    why: what auto compared, where it took another method than the advice names.
    metrics: empty where the model moves the threshold and leaves the score.
    """

    method: str = of("chosen.key")
    kind: Kind = of("chosen.declared.kind")
    model_file: str | None = of(lambda _, path: path)
    column: str = of(lambda fitting, _: fitting.columns[0])
    rows: Positive = of(lambda fitting, _: len(fitting.training.rows))
    judged: Literal["cross-fitted", "test"] = of(lambda fitting, _: "cross-fitted" if fitting.cross_fitted else "test")
    seconds: Size
    gain: Gain | None
    metrics: dict[str, ChangeData] = of("differences")
    why: Absent[str]


class FittedPage(WrittenResult):
    """A fitted model and how it does, for formats to write; path: the model file, None where none was written."""

    def __init__(self, fitting: Fitting, path: str | None, terms: StatedTerms = PLAIN) -> None:
        super().__init__(fitting.judged, terms)
        self.fitting, self.path = fitting, path

    def sections(self) -> Blocks:
        """The data, what was written, and the metrics before and after on rows that the model has not seen."""
        fitting = self.fitting
        yield Notes(source_lines(fitting.judged))
        method, rows = fitting.chosen.declared, many(len(fitting.training.rows), "row")
        written = "" if self.path is None else f", written to {self.path}"
        yield Paragraph(f"({fitting.chosen.key}), fitted to {rows}{written}", strong=method.title)
        population, calibrated, differences = fitting.judged.population, "", fitting.differences
        if population is not None:
            moved = "" if population.kept else "; it takes scores as they come"
            calibrated = f"The model is for a population with {shares_text(population.prevalence)}{moved}."
        said = (
            fitting.why,
            calibrated,
            self.terms.worded(note_of(fitting.model) or ""),
            f"Evaluated {how_judged(fitting)}:",
        )
        yield from (Paragraph(text, close=True) for text in said if text)
        if fitting.gain is not None:
            yield self._gain_facts(fitting.gain)
            if bounds(fitting.gain.interval)[1] < 0:
                found = f"keep the score as it is, or take the method that `{Verb('recommend', 'try').words}` finds"
                yield Paragraph(f"Here {fitting.chosen.key} clearly loses: {found}.", close=True)
        if differences:
            yield table(
                differences,
                [
                    (left("metric", wraps=True), lambda key: parse(key).declared.title),
                    (left(""), better),
                    ("as it is", lambda key: differences[key].a.value),
                    ("new score", lambda key: differences[key].b.value),
                    ("difference", lambda key: difference_cell(differences[key])),
                ],
            )
            yield from reasons(((key, each.difference.reason) for key, each in differences.items()), quiet=False)
        else:
            yield Paragraph("The score does not change: only the threshold moves.", close=True)
        if self.path is not None:
            several = len(fitting.training.rows.classes)
            first, *others = fitting.columns
            # Bounds of the score begin with a word of their own: lower_*.
            named = enumerated([first, *(each.replace(first, "*") for each in others)])
            added = f"the {several} columns {first.rpartition(':')[0]}:*" if several else named
            yield Notes(
                (f"Next: {Verb('apply').words} {file_word(self.path)} NEW -o OUT adds {added} to the rows of NEW.",),
                copy=True,
            )

    def data(self) -> Document:
        """Where the figures come from, and the model."""
        return {**data_of(Provenance(self.fitting.judged)), "fit": data_of(FitData(self.fitting, self.path))}

    def _gain_facts(self, gain: Gain) -> Facts:
        (before, after, *gained), scale = self.terms.amounts(
            gain.before, gain.after, gain.value, *(gain.interval or ())
        )
        facts = (
            ("act on the score as it is", before),
            ("act on the new score" if self.fitting.differences else "act from the new threshold on", after),
            ("gain", f"{'+' if gain.value > 0 else ''}{bracketed(gained)}"),
        )
        return Facts(((f"Expected utility {scale.heading}", facts),))
