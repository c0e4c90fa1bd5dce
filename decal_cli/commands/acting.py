"""The commands that act on the advice, and those that explain, each with its options and help."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Any

import decal_cli
from decal_cli.api.nouns import Costs, Data, Decision, Halvings, Statistics, names_in
from decal_cli.commands.line import GivenOptions
from decal_cli.commands.options import (
    ARGUMENTS,
    INPUT,
    INPUT_FORMATS,
    OUTPUT,
    WITHOUT_TERMS,
    format_option,
    method_names,
    metric_names,
    output_option,
)
from decal_cli.commands.tree import ACT, EXPLAIN, under
from decal_cli.commands.writing import emit
from decal_cli.declarations.option import argument, keys_of, option
from decal_cli.errors import DecalError
from decal_cli.render.formats import format_for
from decal_cli.roles import ROW_UTILITIES
from decal_cli.task import SPELLINGS


@under(ACT, "Method")
def fit(
    *,
    method: str = argument(
        "Method to fit, such as isotonic or 'platt(on=p)'; `decal methods` lists them. "
        "auto fits what `decal recommend` advises.",
        "METHOD",
        required=True,
        complete=names_in("learn.methods.METHODS", also=("auto",)),
    ),
    decision: Decision,
    data: Annotated[
        Data,
        {
            "files": f"Rows to fit the method to. {INPUT_FORMATS} Several files are one data set.",
            "score": "Score column.",
            "group": "Column of groups that multicalibration corrects. Repeatable.",
        },
    ],
    costs: Costs,
    statistics: Annotated[Statistics, {"seed": "Seed of folds and methods."}],
    model: str = output_option("Model file to write, as readable JSON.", "MODEL", key="output", required=True),
    force: bool = option("Overwrite the model file if it exists.", False, panel=OUTPUT),
    format: str = format_option("blocks", "data", text="Format of the evaluation.", by_suffix=False),
) -> None:
    """Fit a method, evaluate it on held-out rows, and save it as a model file.

    Example: decal fit isotonic calibration.parquet --score p --label y --threshold 0.3 -o model.json
    """
    from decal_cli.data.output import check_new
    from decal_cli.data.words import file_word
    from decal_cli.learn.methods import METHODS

    name = method.partition("(")[0].strip()
    if name not in ("auto", *METHODS) and os.path.isfile(method):
        raise DecalError(
            f"{method} is a file, and the method comes first",
            f"name one: decal fit isotonic {file_word(method)}",
        )
    format_for(None, model, ["json"], "model file")
    check_new(model, "model file", force)
    answer = decal_cli.fit(data, decision, method=method, costs=costs, statistics=statistics)
    answer.save_model(model)
    answer.result.path = model
    emit(answer.result, format)


@under(ACT, OUTPUT)
def apply(
    model: str = argument(
        "Model file that `decal fit` wrote, or state that `decal online` wrote.", "MODEL", required=True, panel=INPUT
    ),
    file: str = argument(
        "Rows to score, in any input format; - reads standard input.", "FILE", required=True, panel=INPUT
    ),
    missing: str = option(
        "Missing scores: report an error, or keep the rows without a new score (drop).",
        "error",
        choices=("error", "drop"),
        panel=INPUT,
    ),
    output: str = output_option(
        "File for the rows with the new score (.csv or .parquet); - writes CSV to standard output.",
        "OUT",
        required=True,
    ),
    name: str | None = option(
        "Name of the new column.", metavar="COLUMN", shown="the old score's name and the method's, such as p_isotonic"
    ),
    force: bool = option("Overwrite the output file if it exists.", False),
) -> None:
    """Score new rows with a model file. Every column is kept, and the new score is added.

    Example: decal apply model.json new.parquet -o scored.parquet
    """
    from decal_cli.commands.apply import run

    run(model, file, missing, output, name, force)


@under(ACT, "Study")
def study(
    halvings: Halvings,
    decision: Annotated[
        Decision,
        {
            **WITHOUT_TERMS,
            # A study is over t*, or of one utility that all rows share.
            **dict.fromkeys(("threshold", "cost_fp", "cost_fn", "odds", "decision_threshold", "capacity", "per")),
            **dict.fromkeys(ROW_UTILITIES),
            "utility": "Study this one task in place of thresholds: a utility of more than two actions, or with a "
            "column for each of several classes.",
            "cost_matrix": "The same as costs.",
            "abstain": "With --proba: study only naming the class or abstaining at this price. [default: 11 tasks: "
            "accuracy, abstention at 6 prices, dearer misses of the first 4 classes]",
        },
    ],
    data: Annotated[
        Data,
        {
            "files": "CSV, Parquet, Arrow/Feather or JSON Lines, each also gzipped. Every file is a data set.",
            "time": None,
            "group": "Column of groups that multicalibration corrects. Repeatable.",
            "engine": None,
            "query": None,
        },
    ],
    statistics: Annotated[Statistics, {"seed": None}],
    said: GivenOptions,
    method: list[str] = option(
        "Study only this method.", (), metavar="METHOD", complete=method_names, shown="all", brief=True
    ),
    figures: bool = option(
        "Also draw every figure of Perez-Lebel et al. 2025, in both units, on a page of its own: figures.md.",
        False,
        panel=OUTPUT,
    ),
    format: str = format_option("blocks", "data", "rows", text="Format of the summary.", by_suffix=False),
) -> None:
    """Check on your own models whether the estimated gains come true.

    Every file is a data set: methods are fitted to one half and evaluated on the other, several times.

    Example: decal study a.parquet b.parquet --score 'p_*' --features 'x*' --missing drop -o study
    """
    from decal_cli.commands.study import run

    of_settings = set() if set(said) & set(SPELLINGS) else set(decision.spelled)
    nothing: dict[str, Any] = {name: None for key, name in keys_of(Decision).items() if key in of_settings}
    decision = replace(decision, **nothing)
    run(data, decision, statistics, halvings, method, figures, format)


@under(EXPLAIN, ARGUMENTS)
def demo(folder: str = argument("Folder to write the example file to.", "FOLDER", "fixtures")) -> Any:
    """Write the files of the examples, and ask for advice on one of them.

    The examples of README run on these files.

    Example: decal demo
    """
    from decal_cli.commands.demo import run

    return run(folder)


@under(EXPLAIN, ARGUMENTS)
def methods(
    name: str | None = argument(
        "Method to explain; without it, all are listed.",
        "NAME",
        complete=names_in("learn.methods.METHODS", "sequential.ONLINE"),
    ),
) -> None:
    """List the methods and the forecasters over time, or explain one.

    An explanation says what the method does, its parameters, its source, and what it needs.

    Example: decal methods glar
    """
    from decal_cli.learn.methods import named
    from decal_cli.render.results.explained import method_explained, method_list, online_explained
    from decal_cli.sequential import ONLINE

    if not name:
        emit(method_list())
    else:
        emit(online_explained(ONLINE[name]) if name in ONLINE else method_explained(named(name)))


@under(EXPLAIN, ARGUMENTS)
def metrics(
    name: str | None = argument("Metric to explain; without it, all are listed.", "NAME", complete=metric_names),
) -> None:
    """List the metrics, or explain one.

    An explanation gives the formula, range, direction, parameters, source, and what the metric needs.

    Example: decal metrics regret_calibration
    """
    from decal_cli.metrics import parse
    from decal_cli.render.results.explained import metric_explained, metric_list

    emit(metric_explained(parse(name).declared) if name else metric_list())
