"""One run of `decal fit`."""

from __future__ import annotations

from pathlib import Path

from decal_cli.analysis import fit as fits
from decal_cli.analysis import recommend as recommending
from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.flowchart import FITS
from decal_cli.commands.common import columns_of, data_of, emit, plan_of, preferences_of
from decal_cli.commands.options import FitOptions, InputOptions, PreferenceOptions, TaskOptions
from decal_cli.commands.progress import progress_of
from decal_cli.commands.settings import find_settings
from decal_cli.commands.writing import check_new, check_not_read, write_whole
from decal_cli.data import Dataset, read
from decal_cli.data.words import file_word
from decal_cli.errors import DecalError, printable
from decal_cli.methods import MethodSpec, parse, to_text
from decal_cli.render.results.fitting import Fitted

AUTO = "auto"


def run(options: FitOptions, source: InputOptions, task: TaskOptions, preferences: PreferenceOptions) -> None:
    """Fit a method, evaluate it on held-out rows, and write the model file."""
    chosen = _named(options.method)
    settings = find_settings(Path.cwd())
    check_new(options.model, "model file", options.force)
    plan = plan_of((), task, options, settings)
    columns = columns_of(source, settings)
    wanted = preferences_of(preferences)
    check_not_read(options.model, options.test)
    data = _one_model(data_of(source, settings, options.model))
    test = _unseen(_one_model(read(options.test, columns.updated(data.columns))), data) if options.test else None
    with progress_of() as progress:
        if chosen is None:
            chosen = _advised(data, plan, wanted)
        progress(chosen.key)
        fitting = fits.fit(data, plan, chosen, test)
    saved = fits.saved(fitting, data, plan, columns.logit)
    write_whole(options.model, to_text(saved).encode(), "model file")
    emit(Fitted(fitting, options.model), options.format)


def _named(method: str) -> MethodSpec | None:
    """The method of the line; None where the recommendation is to be followed."""
    if method == AUTO:
        return None
    try:
        return parse(method)
    except DecalError:
        if not Path(method).is_file():
            raise
        raise DecalError(
            f"{method} is a file, and the method comes first", f"name one: decal fit isotonic {file_word(method)}"
        ) from None


def _one_model(data: Dataset) -> Dataset:
    if len(data.models) != 1:
        names = ", ".join(model.name for model in data.models)
        raise DecalError(f"{len(data.models)} score columns are named ({names})", "fit one at a time: --score NAME")
    return data


def _unseen(test: Dataset, data: Dataset) -> Dataset:
    """A test set none of whose files the model is fitted to."""
    known = {item.sha256 for item in data.inputs}
    for item in test.inputs:
        if item.sha256 in known:
            raise DecalError(
                f"--test {printable(item.path)}: holds the rows that the model is fitted to",
                "name a file that it was not fitted to, or drop --test to evaluate it by cross-fitting",
            )
    return test


def _advised(data: Dataset, plan: Plan, wanted: recommending.Preferences) -> MethodSpec:
    """The method that the flowchart ends in."""
    if plan.task is None:
        raise DecalError("auto takes what `decal recommend` advises, which needs the decision", "give --threshold")
    whole = Plan(recommending.EVIDENCE, plan.task, plan.confidence, plan.seed)
    advice = recommending.recommend(data, whole, wanted).advice[0]
    method = None if advice.lean is None else FITS.get(advice.lean)
    if advice.method is None and method is not None:
        raise DecalError(
            f"`decal recommend` cannot tell yet what a method would win; by the estimates it leans to {method}",
            f"to fit it anyway: decal fit {method}",
        )
    if advice.method is None:
        raise DecalError(
            f"there is nothing to fit; the advice is: {advice.headline.rstrip('.')}",
            "see why with decal recommend, or name a method",
        )
    return parse(advice.method)
