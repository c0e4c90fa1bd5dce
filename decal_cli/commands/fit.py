"""One run of `decal fit`."""

from __future__ import annotations

from pathlib import Path

from decal_cli.analysis import fit as fits
from decal_cli.api.asking import preferences_of
from decal_cli.api.nouns import Costs, Decision, Statistics
from decal_cli.commands.common import columns_of, data_of, emit, plan_of, terms_of
from decal_cli.commands.options.acting import FitOptions
from decal_cli.commands.options.common import InputOptions
from decal_cli.commands.progress import progress_of
from decal_cli.commands.settings import find_settings, working_folder
from decal_cli.data import read
from decal_cli.data.output import check_new, check_not_read, write_whole
from decal_cli.data.words import file_word
from decal_cli.errors import DecalError
from decal_cli.learn.method import MethodSpec
from decal_cli.learn.methods import parse
from decal_cli.learn.model_file import to_text
from decal_cli.render.results.fitting import FittedPage
from decal_cli.render.terms import StatedTerms


def run(
    options: FitOptions, source: InputOptions, task: Decision, costs: Costs, terms: StatedTerms, sure: Statistics
) -> None:
    """Fit a method, evaluate it on held-out rows, and write the model file."""
    chosen = _named(options.method)
    check_new(options.model, "model file", options.force)
    settings = find_settings(working_folder())
    plan = plan_of((), task, sure, settings, source)
    columns = columns_of(source, settings)
    if columns.margin:
        raise DecalError(
            "a model file does not hold the range of margins, which other rows would not have",
            "give --logit, a map that is the same for all rows",
        )
    terms = terms_of(terms, settings)
    wanted = preferences_of(costs, terms)
    check_not_read(options.model, options.test)
    data = fits.one_model(data_of(source, settings, options.model))
    plan = plan.for_rows(data)
    known = {role: names for role, names in data.columns.items() if role != "proba"}
    test = fits.unseen(read(options.test, columns.updated(known)), data) if options.test else None
    with progress_of() as progress:
        followed = fits.advised(data, plan, wanted) if chosen is None else fits.Advised(chosen)
        progress(followed.chosen.key)
        fitting = fits.fit(data, plan, followed.chosen, test, followed.why)
    saved = fits.saved(fitting, data, plan, columns.logit)
    write_whole(options.model, to_text(saved).encode(), "model file")
    emit(FittedPage(fitting, options.model, terms), options.format)


def _named(method: str) -> MethodSpec | None:
    """The method of the line; None where the recommendation is to be followed."""
    if method == fits.AUTO:
        return None
    try:
        return parse(method)
    except DecalError:
        if not Path(method).is_file():
            raise
        raise DecalError(
            f"{method} is a file, and the method comes first", f"name one: decal fit isotonic {file_word(method)}"
        ) from None
