"""Errors in Python's words: keywords for options, near matches, one line each."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from decal_cli.api.words import InputError, in_python
from tests.helpers.command import ROOT

P = np.linspace(0.02, 0.98, 60)
Y = (np.arange(60) % 3 == 0).astype(int)
FRAME = pd.DataFrame({"p": P, "p_old": P**2, "y": Y, "site": np.where(Y, "a", "b")})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("give --cost-fn too, or use --threshold", "give cost_fn= too, or use threshold="),
        ("--cost-fp 0 is not a positive number", "cost_fp=0 is not a positive number"),
        ("drop these rows with --missing drop", "drop these rows with missing='drop'"),
        ("for log-odds add --logit", "for log-odds add logit=True"),
        ("give for example --odds 1:19 (t* = .05)", "give for example odds='1:19' (t* = .05)"),
        ("--threshold, --cost-fp/--cost-fn or --odds", "threshold=, cost_fp=/cost_fn= or odds="),
        ("name two score columns: --score p_a --score p_b", "name two score columns: score=['p_a', 'p_b']"),
        ("use --positive 2", "use positive=2"),
        ("name it with --baseline report.json", "name it with baseline='report.json'"),
        ("--test new.csv: holds", "test='new.csv': holds"),
        ("to fit it anyway: decal fit isotonic", "to fit it anyway: fit(method='isotonic')"),
        ("see why with decal recommend, or", "see why with recommend(), or"),
        ("`decal recommend --try` fits the methods", "recommend(methods='all') fits the methods"),
        ("others: --method METHOD", "others: methods=METHOD"),
    ],
)
def test_options_are_said_as_keywords(written: str, said: str) -> None:
    assert in_python(written) == said


def messages() -> list[str]:
    """Every text in the package that names an option."""
    texts = []
    for path in (ROOT / "decal_cli").rglob("*.py"):
        if path.parent.name in ("commands", "options", "api"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"--[a-z]", node.value):
                texts.append(node.value)
    return texts


def test_no_error_leaves_an_option_as_the_command_line_has_it() -> None:
    texts = messages()
    assert len(texts) > 20
    assert not [text for text in texts if re.search(r"--[a-z]", in_python(text))]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: decal.evaluate(P, Y, treshold=0.3), "no argument 'treshold'; did you mean threshold"),
        (lambda: decal.gate(P, Y, rule="brier<=1"), "no argument 'rule'; did you mean rules?"),
        (lambda: decal.evaluate(P, Y, metrics="breir"), "did you mean brier?"),
        (lambda: decal.evaluate(P, Y, metrics="ece(bin=3)"), "its parameters: bins=15"),
        (lambda: decal.evaluate(FRAME, score="p", label="y", group="cite"), "did you mean 'site'?"),
        (lambda: decal.evaluate(FRAME, score="p_odl", label="y"), "did you mean 'p_old'?"),
        (lambda: decal.evaluate(P, Y, missing="dorp"), "did you mean drop?"),
        (lambda: decal.evaluate(P, Y, threshold="0.3"), "threshold='0.3' is not a number"),
        (lambda: decal.evaluate(P, Y, threshold=2.0), "threshold 2 "),
        (lambda: decal.evaluate(P, Y, cost_fp=1), "give cost_fn= too, or use threshold="),
        (lambda: decal.evaluate(P, Y, seed=1.5), "seed=1.5 is not a whole number"),
        (lambda: decal.evaluate(P, Y, odds=3), "odds=3 is not a text"),
        (lambda: decal.evaluate(P, Y, weight=-np.ones(60)), "weight -1 is not positive"),
        (lambda: decal.evaluate(P, Y, features=np.ones((3, 1))), "'features' has 3 rows"),
        (lambda: decal.evaluate(P), "give label="),
        (lambda: decal.evaluate(Y, P), "swapped?"),
        (lambda: decal.evaluate("predz.csv"), "predz.csv: no such file"),
        (lambda: decal.recommend(P, Y), "give threshold=, utility="),
        (lambda: decal.recommend(P, Y, threshold=0.3, methods="isotoni"), "did you mean isotonic?"),
        (lambda: decal.recommend(P, Y, threshold=0.3, cost={"post-trian": 1.0}), "did you mean post-train?"),
        (lambda: decal.gate(P, Y, rules=[]), "give for example rules="),
        (lambda: decal.gate(P, Y, rules="breir<=1"), "did you mean brier?"),
        (lambda: decal.gate(P, Y, rules="brier<=baseline"), "name it with baseline="),
        (lambda: decal.compare({"a": P}, Y), "name two score columns: score=['p_a', 'p_b']"),
        (lambda: decal.sweep(P, Y, thresholds=[0.3, 1.4]), "thresholds"),
        (lambda: decal.evaluate(P, Y, metrics="brier")["breir"], "did you mean brier?"),
        (lambda: decal.evaluate(P, Y, metrics="brier")["ece"], "metrics=['ece']"),
        (lambda: decal.evaluate(P, Y).plot("relability"), "did you mean reliability?"),
        (lambda: decal.evaluate(P, Y).plot("waterfall"), "give threshold="),
        (lambda: decal.evaluate(P, Y).to_frame("plars"), "did you mean polars?"),
        (lambda: decal.evaluate(P, Y).to_text("htlm"), "did you mean html?"),
    ],
)
def test_errors_are_one_line_with_the_near_match(call: Callable[[], Any], says: str) -> None:
    with pytest.raises((InputError, TypeError)) as raised:
        call()
    text = str(raised.value)
    assert says in text and "\n" not in text and "--" not in text
    if not isinstance(raised.value, TypeError):
        assert isinstance(raised.value, decal.DecalError) and isinstance(raised.value, ValueError)
