"""The Python API: the same numbers as the command, from arrays and data frames."""

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

import decal_cli as decal
from decal_cli.api.words import InputError, raised
from decal_cli.declarations.option import keys_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.roles import DECLARATIONS
from decal_cli.task import SPELLINGS
from tests.helpers.command import FIXTURES, ROOT

VERBS = [
    *(decal.evaluate, decal.recommend, decal.gate, decal.compare, decal.sweep, decal.report),
    *(decal.fit, decal.study, decal.online),
]


def test_rows_of_pandas_that_are_named_in_two_orders_are_refused() -> None:
    rng = np.random.default_rng(3)
    p = pd.Series(rng.random(60), name="p")
    y = pd.Series((rng.random(60) < p).astype(int), name="y")
    shuffled = y.sample(frac=1, random_state=1)
    for call in (
        lambda: decal.evaluate(p, shuffled),
        lambda: decal.evaluate({"p": p, "q": p**2}, shuffled),
        lambda: decal.evaluate({"p": p, "y": shuffled}),
        lambda: decal.evaluate(p, y, weight=shuffled + 1),
        lambda: decal.evaluate(p, y, features=pd.DataFrame({"x": shuffled})),
        lambda: decal.evaluate(pd.DataFrame({"p": p}), shuffled),
        lambda: decal.fit(p, shuffled, method="platt"),
        lambda: decal.online(p, shuffled),
        lambda: decal.ReliabilityDisplay.from_predictions(y, p.loc[shuffled.index]),
    ):
        with pytest.raises(DecalError, match=r"the index of '\w+' is not that of .*\.to_numpy\(\).*\.loc"):
            call()
    expected = decal.evaluate(p.to_numpy(), y.to_numpy(), metrics="brier")["brier"]
    for scores, labels in ((p.loc[shuffled.index], shuffled), (p, y.to_numpy()), (p.to_numpy(), y), (list(p), y)):
        assert decal.evaluate(scores, labels, metrics="brier")["brier"].value == pytest.approx(expected.value)
    other = pd.Series(y.to_numpy(), index=[f"row {at}" for at in range(60)])
    with pytest.raises(DecalError, match="index"):
        decal.evaluate(p, other)
    with pytest.raises(DecalError, match="59 rows"):
        decal.evaluate(p, y.iloc[1:])


def test_probabilities_of_several_classes_are_told_how_to_be_given() -> None:
    rng = np.random.default_rng(4)
    probabilities = rng.dirichlet(np.ones(4), 80)
    labels = rng.integers(0, 4, 80)
    for call, says in (
        (lambda: decal.evaluate(probabilities), r"shape \(80, 4\); .*, and labels after it"),
        (lambda: decal.evaluate(probabilities, labels % 3), r"shape \(80, 4\), .* 3 different values; .*proba='p:\*'"),
        (lambda: decal.recommend(probabilities, labels, threshold=0.3), "of two classes, and there are 4"),
    ):
        with pytest.raises(DecalError, match=says):
            call()
    with pytest.raises(DecalError, match=r"shape \(80, 2\); .*predict_proba\(X\)\[:, 1\]"):
        decal.evaluate(probabilities[:, :2], labels % 2)
    columns = {f"p:{name}": probabilities[:, name] for name in range(4)}
    in_columns = decal.evaluate({**columns, "y": labels}, proba="p:*")
    assert in_columns["accuracy"] == decal.evaluate(probabilities, labels)["accuracy"]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_help_of_a_verb_is_numpydoc_on_one_screen(verb: Callable[..., object]) -> None:
    text = pydoc.render_doc(verb, renderer=pydoc.plaintext)
    headings = [f"{name}\n    {'-' * len(name)}" for name in ("Parameters", "Returns", "Examples")]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places) and len(text.splitlines()) <= 56
    named = [name for name in inspect.signature(verb).parameters if name != "fields"]
    assert len(named) <= 5 and all(re.search(rf"^    .*\b{name}\b", text, re.MULTILINE) for name in named)


def test_every_declared_field_is_a_keyword_and_an_option() -> None:
    assert {*DECLARATIONS, *SPELLINGS} <= {*keys_of(decal.Data), *keys_of(decal.Decision)}


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, decal_cli; print([m for m in ('numpy', 'pyarrow', 'typer') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


P = np.linspace(0.02, 0.98, 60)
Y = (np.arange(60) % 3 == 0).astype(int)
MODEL = DummyClassifier().fit(P[:, None], Y)
FRAME = pd.DataFrame({"p": P, "p_old": P**2, "y": Y, "site": np.where(Y, "a", "b")})


DECLARING = ("option", "Option", "Role", "declared")


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "id", "")


@pytest.mark.parametrize(
    ("hint", "on_the_line", "in_python"),
    [
        (Hint("cost_fn"), "--cost-fn", "cost_fn="),
        (Hint("cost_fp", 0), "--cost-fp 0", "cost_fp=0"),
        (Hint("missing", "drop"), "--missing drop", "missing='drop'"),
        (Hint("logit"), "--logit", "logit=True"),
        (Hint("odds", "1:19"), "--odds 1:19", "odds='1:19'"),
        (Hint("score", ("p_a", "p_b")), "--score p_a --score p_b", "score=['p_a', 'p_b']"),
        (Hint("positive", "2"), "--positive 2", "positive=2"),
        (Hint("vary", "'a:b=0:1'"), "--vary 'a:b=0:1'", "vary='a:b=0:1'"),
        (Hint("method", "METHOD"), "--method METHOD", "methods=METHOD"),
        (Verb("fit", method="isotonic"), "decal fit isotonic", "fit(method='isotonic')"),
        (Verb("recommend", "try"), "decal recommend --try", "recommend(methods='all')"),
    ],
    ids=str,
)
def test_an_error_carries_hints_and_each_side_says_them(hint: Hint | Verb, on_the_line: str, in_python: str) -> None:
    error = decal.DecalError(f"{hint} is wrong", f"give {hint}")
    assert str(error) == f"{on_the_line} is wrong; give {on_the_line}"
    assert len(error.hints) == 2 and type(error.hints[0]) is type(hint)
    assert str(raised(error)) == f"{in_python} is wrong; give {in_python}"


@pytest.mark.ci
def test_no_sentence_names_an_option_of_the_command_line_but_as_a_hint() -> None:
    texts = []
    for path in (ROOT / "decal_cli").rglob("*.py"):
        if path.parent.name in ("commands", "options", "api", "formats") or path.name in ("roles.py", "documents.py"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        declared = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and name_of(node) in DECLARING]
        helps = {id(inner) for node in declared for inner in ast.walk(node)}
        helps |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in helps:
                texts.append(node.value)
    assert len(texts) > 1000
    assert not [text for text in texts if re.search(r"(?<![\w-])--[a-z]", text) and "\n" not in text]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: decal.evaluate(P, Y, treshold=0.3), "no argument 'treshold'; did you mean threshold"),
        (lambda: decal.gate(P, Y, rule="brier<=1"), "no argument 'rule'; did you mean rules?"),
        (lambda: decal.evaluate(P, Y, metrics="breir"), "did you mean brier?"),
        (lambda: decal.evaluate(P, Y, metrics="ece(bin=3)"), "its parameters: bins=15"),
        (lambda: decal.evaluate(FRAME, score="p", label="y", group="cite"), "did you mean 'site'?"),
        (lambda: decal.evaluate(decal.Data(FRAME, score="p", label="y").by("cite", "group")), "did you mean 'site'?"),
        (lambda: decal.evaluate(FRAME, score="p", label="y", group=["cite"]), "did you mean 'site'?"),
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
        (lambda: decal.evaluate(FRAME, score=3, label="y"), "score= holds 3, which is not a text"),
        (lambda: decal.evaluate(P, Y, score="p"), "score= names columns, and the scores are an array"),
        (
            lambda: decal.Decision.utility([[0, -1], [-1, 0]], actions=["a"]),
            "the matrix has 2 rows, and actions= names 1",
        ),
        (lambda: decal.Decision.per_row(), "per_row() is given neither"),
        (lambda: decal.evaluate(P, Y, reference=FRAME), "reference= has columns of the same names"),
        (lambda: decal.evaluate(Y, P), "swapped?"),
        (lambda: decal.evaluate(5, 0.3), "is one value, of type int; give the path of a file, a frame, or (scores"),
        (lambda: decal.fit(decal.Data((P, Y)), "isotonic"), "'isotonic' stands where the decision does; data come"),
        (lambda: decal.fit(FRAME, "isotonic", score="p", label="y"), "'isotonic' stands where the decision does"),
        (lambda: decal.evaluate(FRAME, "0.3", score="p", label="y"), "'0.3' stands where the decision does"),
        (lambda: decal.recommend(FRAME, (0.1, 0.4), score="p", label="y"), "(0.1, 0.4) stands where the decision"),
        (lambda: decal.evaluate((P, Y), "0.3"), "'0.3' stands where the decision does"),
        (lambda: decal.fit("isotonic", decal.Data((P, Y))), "Data stands where the decision does"),
        (lambda: decal.evaluate((P, Y), decal.Decision.costs(fp=-1, fn=2)), "cost_fp=-1 is not a positive number"),
        (lambda: decal.OnlineForecaster("hedge", horizon=0), "horizon=0 is no number of rows"),
        (lambda: decal.Terms(names=["reject"]), "names='reject' are not two names"),
        (lambda: decal.GainsDisplay.from_predictions(Y, P), "give threshold=, utility=, cost_fp=/cost_fn= or odds="),
        (lambda: decal.GainsDisplay.from_predictions(Y, np.c_[P, P]), "the probabilities have shape (60, 2); give one"),
        (lambda: decal.fit(P, Y, method=None), "method=None is not a text"),
        (lambda: decal.fit(P, Y, method="hedge"), "replay it: online() with methods='hedge'"),
        (lambda: decal.apply(None, FRAME), "the model is of type NoneType; give what `fit` returned, or a path"),
        (lambda: decal.gate(P, Y, rules="e_calibration<20"), "use: online(rules=)"),
        (lambda: decal.evaluate([0, 1, 1], [0.0, 0.3, 1.0]), "swapped?"),
        (lambda: decal.evaluate("predz.csv"), "predz.csv: no such file"),
        (lambda: decal.recommend(decal.Data(FIXTURES / "multiclass_n1500_k3.csv", proba="p_*")), "decision"),
        (lambda: decal.recommend(P, Y, threshold="0.4:0.3"), "threshold='0.1:0.4'"),
        (lambda: decal.recommend(P, Y, threshold=0.3, methods="isotoni"), "did you mean isotonic?"),
        (lambda: decal.recommend(P, Y, threshold=0.3, cost={"post-trian": 1.0}), "did you mean post-train?"),
        (lambda: decal.gate(P, Y, rules=[]), "give for example rules="),
        (lambda: decal.gate(P, Y, rules="breir<=1"), "did you mean brier?"),
        (lambda: decal.gate(P, Y, rules="brier<=baseline"), "name it with baseline="),
        (lambda: decal.gate(P, Y, rules="drop(auc)<=1", baseline={"a": 1}), "with: evaluate() and save('report.json')"),
        (
            lambda: decal.gate(FRAME, score="p", label="y", rules="drop(auc)<=1", baseline=pd.DataFrame({"a": P})),
            "columns: a; a baseline has rows like these, or is a JSON report of evaluate()",
        ),
        (lambda: decal.compare({"a": P}, Y), "name two score columns: score=['p_a', 'p_b']"),
        (lambda: decal.sweep(P, Y, thresholds=[0.3, 1.4]), "thresholds"),
        (lambda: decal.evaluate(P, Y, metrics="brier")["breir"], "did you mean brier?"),
        (lambda: decal.evaluate(FRAME, score="p", label="y", group="site")["brier"], "pick one"),
        (lambda: decal.evaluate(P, Y, metrics="brier")["ece"], "metrics=['ece']"),
        (lambda: decal.evaluate(P, Y).plot("relability"), "did you mean reliability?"),
        (lambda: decal.evaluate(P, Y).plot("waterfall"), "give threshold="),
        (lambda: decal.evaluate(P, Y).to_frame("plars"), "did you mean polars?"),
        (lambda: decal.evaluate(P, Y).save("-"), "name one, such as save('result.txt'), or leave it out and print"),
        (lambda: decal.evaluate(P, Y).to_text("htlm"), "did you mean html?"),
        (lambda: decal.fit(P, Y), "recommend()` advises, which needs the decision; give threshold="),
        (lambda: decal.fit(P, Y, method="isotoni"), "did you mean isotonic?"),
        (lambda: decal.fit(FRAME, score=["p", "p_old"], label="y", logit=True, method="platt"), "2 score columns"),
        (lambda: decal.apply("nowhere.json", FRAME), "nowhere.json: No such file or directory"),
        (lambda: decal.study([]), "name them, such as a.parquet"),
        (lambda: decal.study("a.csv", seeds=0), "seeds=0 is not positive"),
        (lambda: decal.study("a.csv", workers=0), "workers=0 is not positive"),
        (lambda: decal.study("a.csv", seeds=1, workers=1), "a.csv: no such file"),
        (lambda: decal.study("a.csv", method="platt"), "no argument 'method'; did you mean methods?"),
        (lambda: decal.ReliabilityDisplay.from_predictions(P, Y), "swapped? from_predictions(y_true, y_prob)"),
        (lambda: decal.GainsDisplay.from_predictions(Y, P), "give threshold="),
        (lambda: decal.GroupingDisplay.from_predictions(Y, P), "give features="),
        (lambda: decal.BrierCurveDisplay.from_predictions(np.where(Y, "b", "a"), P), "pos_label='a' or pos_label='b'"),
        (lambda: decal.BrierCurveDisplay.from_predictions(Y, P, thresold=0.3), "did you mean threshold"),
        (lambda: decal.BrierCurveDisplay.from_estimator(MODEL, P[:, None], Y, pos_label=2), "pos_label="),
    ],
)
def test_errors_are_one_line_with_the_near_match(call: Callable[[], Any], says: str) -> None:
    with pytest.raises((InputError, TypeError)) as raised:
        call()
    text = str(raised.value)
    assert says in text and "\n" not in text and "--" not in text
    if not isinstance(raised.value, TypeError):
        assert isinstance(raised.value, decal.DecalError) and isinstance(raised.value, ValueError)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_equal_weights_are_no_weights(weight: float) -> None:
    rng = np.random.default_rng(2)
    score = rng.beta(1, 2, 700)
    label = (rng.random(700) < score).astype(int)

    def numbers(**given: object) -> dict[str, object]:
        return decal.recommend(score, label, threshold=0.3, **given).to_dict()["metrics"]

    assert numbers(weight=np.full(700, weight)) == numbers()
