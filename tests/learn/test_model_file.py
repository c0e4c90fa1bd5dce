"""Model files: the same model comes back to the last bit, or the file is refused in one line."""

import base64
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

import decal_cli
from decal_cli.data.large.engines import DIALECTS
from decal_cli.learn import model_file
from decal_cli.learn.as_sql import scoring_statement
from decal_cli.learn.curves import Sigmoid, Threshold
from decal_cli.learn.method import Training, fit
from decal_cli.learn.methods import parse
from decal_cli.learn.model_file import Saved, from_text, score_rows, to_text
from decal_cli.learn.models import Applied
from decal_cli.learn.regions import Curve
from decal_cli.learn.stacks import StackedForest
from decal_cli.learn.trees import Forest, Tree
from decal_cli.tables.rows import Unlabelled
from decal_cli.task import BinaryTask
from tests.helpers.command import BINARY
from tests.helpers.model_files import LEFT_OUT, SAVED_STEPS, forged, of_model, put, refused
from tests.helpers.training import (
    FIFTH,
    LETTERS,
    OF_THREE,
    OF_TWO,
    class_training,
    fit_method,
    random_training,
    unlabelled,
)

CASES = [
    *((key, 2) for key in (*OF_TWO, "glar(r=-1)", "glar(r=-1,adjust=threshold)", "platt(on=p)")),
    *((key, 3) for key in OF_THREE),
]


@cache
def saved(key: str, classes: int = 2) -> Saved:
    """The method of this key, fitted to 300 rows with three features and a group, as `decal fit` keeps it."""
    rows = random_training(300, seed=7) if classes == 2 else class_training(rows=300)
    several = {} if classes == 2 else {"classes": LETTERS, "proba": ("m:a", "m:b", "m:c")}
    return Saved(
        method=key,
        model=fit_method(key, rows),
        score="p_näme",
        features=("x1", "x2", "x3"),
        width=3,
        kinds=("number",) * 3,
        groups=("site",) if classes == 2 else (),
        task=FIFTH if classes == 2 else None,
        fitted_on={"rows": 300, "seed": 0, "inputs": [{"sha256": "ab" * 32, "rows": 300}]},
        **several,
    )


def same_bits(a: Any, b: Any) -> bool:
    """Two values of a model agree in type and in every bit."""
    if is_dataclass(a):
        return type(a) is type(b) and all(same_bits(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same_bits, a, b))
    if isinstance(a, np.ndarray):
        if a.dtype.kind == "U":
            return a.tolist() == b.tolist()
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return type(a) is type(b) and a == b


def bits(applied: Applied) -> list[bytes | None]:
    return [None if values is None else values.tobytes() for values in applied]


@pytest.mark.parametrize(("key", "classes"), CASES)
def test_the_same_model_comes_back_and_says_the_same_of_rows(key: str, classes: int) -> None:
    given, new = saved(key, classes), unlabelled(random_training(300, seed=8) if classes == 2 else class_training(3))
    text = to_text(given)
    back = from_text(text, "m.json")
    assert to_text(back) == text and text.endswith("}\n") and json.loads(text)["method"] == key
    assert same_bits(back.model, given.model) and back.classes == given.classes
    assert bits(back.model(new)) == bits(score_rows(back, new, "m.json")) == bits(given.model(new))


def test_columns_task_and_origin_come_back() -> None:
    for task in (None, FIFTH, BinaryTask.of_costs(1.1, 19.3, 0.25), BinaryTask.of_threshold(0.1 + 0.2)):
        given = Saved(**{**vars(saved("isotonic")), "task": task, "logit": True})
        back = from_text(to_text(given), "m.json")
        for name in ("method", "score", "features", "width", "groups", "logit", "task"):
            assert getattr(back, name) == getattr(given, name)
        assert back.fitted_on.items() >= given.fitted_on.items()
        assert "decal" in back.fitted_on, "the version that fitted it"


def test_a_reviewer_can_read_it() -> None:
    lines = to_text(SAVED_STEPS).splitlines()
    assert '    "model": "Steps",' in lines
    assert '      "float64": [0.1, 0.3333333333333333, 0.9]' in lines


class TestNumbers:
    @given(
        st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=2, max_size=5),
        st.lists(st.floats(0, 1), min_size=2, max_size=5),
    )
    def test_floats_come_back_to_the_last_bit(self, at: list[float], value: list[float]) -> None:
        # 5e-324, -0.0, 1.7e308: whatever stands on the axis.
        size = min(len(at), len(value))
        given = of_model(Curve(np.sort(at[:size]), np.sort(value[:size])))
        assert same_bits(from_text(to_text(given), "m.json").model, given.model)

    @given(st.floats(allow_nan=False), st.floats(allow_nan=False, allow_infinity=False))
    def test_infinite_parameters_are_told_from_text(self, slope: float, intercept: float) -> None:
        given = of_model(Sigmoid("p", slope, intercept))
        text = to_text(given)
        with np.errstate(all="ignore"):
            usable = np.isfinite(given.model(Unlabelled(np.array([0.0, 1.0]))).score).all()
        if usable:
            assert same_bits(from_text(text, "m.json").model, given.model)
        else:
            assert "cannot be used" in refused(text)

    @pytest.mark.parametrize("kind", ["float64", "float32", "int64", "int32", "int16", "uint8", "bool"])
    @pytest.mark.parametrize("size", [0, 3, model_file.LISTED + 1])
    def test_every_type_of_array_comes_back_listed_or_packed(self, kind: str, size: int) -> None:
        values = np.random.default_rng(1).integers(0, 256, size * 8, dtype=np.uint8)
        array = (values[: 8 * size : 8] % 2 == 0) if kind == "bool" else values.view(kind)[:size].copy()
        encoded = model_file._encoded(array)
        back = model_file._decoded(json.loads(json.dumps(encoded)))
        np.testing.assert_array_equal(back, array)
        assert back.dtype == array.dtype and back.tobytes() == array.tobytes()

    @pytest.mark.parametrize(
        "value", [np.array([1j]), np.array([None]), object(), {"a": 1}], ids=("complex", "objects", "object", "dict")
    )
    def test_what_no_file_can_hold_is_an_error_of_ours(self, value: object) -> None:
        with pytest.raises(TypeError, match="no model file can"):
            model_file._encoded(value)


class TestChanged:
    """Any change of any byte is seen."""

    @pytest.mark.parametrize("bit", [1, 16])
    def test_every_byte_of_a_small_file(self, bit: int) -> None:
        content = to_text(SAVED_STEPS).encode()
        for at in range(len(content)):
            changed = bytearray(content)
            changed[at] ^= bit
            refused(changed.decode())

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text + "\n",
            lambda text: text[:-1],
            lambda text: " " + text,
            lambda text: "\ufeff" + text,
            lambda text: text.replace("\n", "\r\n"),
            lambda text: json.dumps(json.loads(text)),
            lambda text: text.replace('"score": "p"', '"score": "q"'),
            lambda text: text.replace('"score": "p"', '"score": "p",\n    "score": "p"'),
            lambda text: text.replace('"decal_model": 1', '"decal_model": 1,\n  "decal_model": 1'),
            lambda text: text.replace("0.9", "0.90"),
            lambda text: text.replace("0.9", "NaN"),
            lambda text: text.replace("0.9", "Infinity"),
            lambda text: text.replace("0.9", "1e999"),
            lambda text: text.replace("0.9", '"\\ud800"'),
            lambda text: text.replace("0.9", "1" * 5000),
            lambda text: text.replace("0.9", "[" * 300 + "]" * 300),
            lambda text: text[: len(text) // 2],
            lambda text: text + text,
        ],
    )
    def test_other_changes(self, change: Callable[[str], str]) -> None:
        text = to_text(SAVED_STEPS)
        assert change(text) != text
        refused(change(text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON (line 1, column 1: Expecting value)"),
        (" \n", "not JSON"),
        ("\0\1\2\3", "not JSON"),
        ("p,y\n0.1,0\n", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper than 64"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested deeper than 64"),
        ('{"decal_model": 1' + "0" * 5000 + "}", "a number of thousands of digits"),
        ("[" + "0," * (1 << 22) + "0]", "holds more than 4,194,304 values"),
        ("{}", "is not a model file of decal"),
        ("[]", "is not a model file of decal"),
        ("null", "is not a model file of decal"),
        ("3", "is not a model file of decal"),
        ('"decal_model"', "is not a model file of decal"),
        ('{"schema": 1, "metrics": {}}', "is not a model file of decal"),
        ('{"decal_model": 2}', "is a model file of version 2; this decal reads version 1"),
        ('{"decal_model": 0}', "version 0"),
        ('{"decal_model": 1.0}', "a version that is no number"),
        ('{"decal_model": true}', "a version that is no number"),
        ('{"decal_model": "1\\n\\u001b[31m"}', "a version that is no number"),
        ('{"decal_model": 1}', "was changed after it was written"),
        ('{"decal_model": 1, "sha256": null}', "was changed"),
        ('{"decal_model": 1, "x": ' + "[" * 900 + "]" * 900 + "}", "nested deeper than 64"),
        ('{"decal_model": 1, "x": "\\udfff"}', "was changed"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_no_model_file_is_refused(text: str, says: str) -> None:
    assert says in refused(text)


NESTED: Any = 1
for _ in range(50):
    NESTED = {"model": "Binned", "curve": NESTED, "steps": NESTED if NESTED == 1 else 1}
PACKED = base64.b64encode(np.zeros(2).tobytes()).decode()


def small_patches() -> Saved:
    """Patches of subsets that a tree of three nodes tells apart."""
    tree = Tree(
        3,
        *(np.array(child, dtype=np.int32) for child in ([1, -1, -1], [2, -1, -1], [0, 0, 0])),
        np.array([0.5, 0.0, 0.0]),
        np.array([False, False, False]),
        np.array([0.0, 0.1, 0.9]),
    )
    patches = saved("multicalibration")
    return Saved(**{**vars(patches), "model": replace(patches.model, tree=tree)})


def of_forest() -> Saved:
    """A forest of one tree of three nodes."""
    child, zero = np.array([1, -1, -1], dtype=np.int32), np.zeros(3, dtype=np.int32)
    tree = Tree(2, child, np.array([2, -1, -1], dtype=np.int32), zero, np.zeros(3), zero > 0, np.full(3, 0.5))
    forest = StackedForest(Forest(tree, np.zeros(1, dtype=np.int32)))
    return Saved("stack-forest", forest, "p", ("x",), 1, ("number",))


TREE = {"model": "Curve", "at": {"float64": [0.0]}, "value": {"float64": [0.0]}}
FORGED: dict[Callable[[], Saved], dict[str, list[Any]]] = {
    (lambda: SAVED_STEPS): {
        "model": [None, 3, "isotonic", [], {}, {"model": "os.system"}, {"model": ["Steps"]}, {"model": "Steps"},
                  {"model": "Applied", "score": 1}, NESTED],
        "model.more": [1],
        "model.edges": [
            None, "0.25", [0.25, 0.5], {"float64": ["0.25", "0.5"]}, {"float64": [True, False]},
            {"float64": [[0.25], [0.5]]}, {"float64": [0.25, 0.5], "shape": [-1]},
            {"float64": [0.25, 0.5], "shape": [1, 2]}, {"float64": [0.25, 0.5], "shape": [3]},
            {"float64": [0.25, 0.5], "shape": "2"}, {"float64": [0.25, 0.5], "other": 1}, {"float64": {"a": 1}},
            {"float64": "no base64!"}, {"float64": "AAA="}, {"float64": PACKED, "shape": [2]}, {"float16": [0.25, 0.5]},
            {"object": [0.25, 0.5]}, {"int64": [0.25, 0.5]}, {"int64": [10**30, 1]}, {"text": ["0.25", "0.5"]},
            {"number": "nan"},
        ],
        "model.value": [LEFT_OUT, {"float64": [0.1]}, {"float64": []}, {"float64": [0.1, 0.2, 1.5]},
                        {"float64": [-0.1, 0.2, 0.5]}, {"int64": [0, 1, 1]}, {"text": ["a", "b", "c"]}],
        "columns": [None, []],
        "columns.score": [LEFT_OUT, 3],
        "columns.features": ["x*", ["x"]],
        "columns.groups": ["site"],
        "columns.kinds": [["number"], None],
        "columns.width": [10**15, 10**9, -1, "3", 0.5, True],
        "columns.more": [1],
        "columns.logit": ["no"],
        "task": [LEFT_OUT, {}, 0.3,
                 {"utility": [[0, 0], [0, 0]], "decision_threshold": 0.5, "threshold": 0.5},
                 {"utility": [[0.0, -0.5], [-0.5, 0.0]], "decision_threshold": 0.5, "threshold": 0.4}],
        "fitted_on": [None, [], [1], {"inputs": 3}, {"inputs": ["a"]}, {"inputs": [{}]}],
        "method": [LEFT_OUT, None],
        "more": [1],
    },
    (lambda: of_model(Sigmoid("p", 1.0, 0.0))): {
        "model.on": ["p\u001b[31m"],
        "model.slope": ["steep", None, {"number": "nan"}, {"number": "inf"}, {"number": "1.5"}, {"number": "1e400"},
                        {"float64": [1.0, 2.0, 3.0]}],
        "model.intercept": [[[]]],
    },
    small_patches: {  # trees that never end, and patches of nobody
        "model.tree": [TREE],
        "model.tree.left": [{"int32": [0, -1, -1]}, {"int32": [1, 0, -1]}, {"int32": [1, -1]}],
        "model.tree.right": [{"int32": [9, -1, -1]}],
        "model.tree.feature": [{"int32": [7, 0, 0]}, {"int32": [-1, 0, 0]}],
        "model.tree.columns": [2, "3"],
        "model.tree.value": [{"text": ["a", "b", "c"]}],
        "model.tree.threshold": [{"float64": "AAAAAAAA8H8AAAAAAAAAAAAAAAAAAAAA", "shape": [3]}],
        "model.cells": ["ten", None],
        "model.column": [{"int64": [5, 5, 5]}],
        "model.kind": [{"int64": [9, 2, 2, 2]}],
        "model.subset": [{"int64": [99]}],
    },
    # What shows only on other rows than the two that are scored when the file is read.
    (lambda: of_model(Curve(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.7, 1.0])))): {
        "model.value": [{"float64": [0.0, 7.0, 1.0]}],
        "model.at": [{"float64": [0.0, 2.0, 1.0]}],
    },
    (lambda: of_model(Threshold(0.5))): {"model.threshold": [{"number": "inf"}]},
    of_forest: {"model.forest.nodes.right": [{"int32": [1, -1, -1]}]},  # nodes with two parents
}  # fmt: skip


@pytest.mark.parametrize(
    ("of", "part", "value"),
    [(of, part, value) for of, parts in FORGED.items() for part, values in parts.items() for value in values],
)
def test_a_right_digest_on_a_wrong_model_meets_nobody_s_data(of: Callable[[], Saved], part: str, value: Any) -> None:
    assert same_bits(from_text(forged(lambda document: None, of()), "m.json").model, of().model)
    assert "cannot be used" in refused(forged(put(part, value), of()))


def chains(depth: int, trees: int) -> Callable[[dict[str, Any]], None]:
    """Put trees into a forest that go down one step after the other, with a leaf beside each."""
    size = 2 * depth + 1
    step = np.arange(size)
    inner = (step % 2 == 0) & (step < size - 1)
    left, right = np.where(inner, step + 2, -1), np.where(inner, step + 1, -1)
    starts = size * np.arange(trees)

    def packed(values: np.ndarray, kind: str) -> dict[str, Any]:
        return {kind: base64.b64encode(values.astype(kind).tobytes()).decode(), "shape": [len(values)]}

    def change(document: dict[str, Any]) -> None:
        forest = document["model"]["forest"]
        n = size * trees
        of_trees = {
            name: np.concatenate([np.where(child >= 0, child + start, -1) for start in starts])
            for name, child in (("left", left), ("right", right))
        }
        forest["nodes"] |= {name: packed(child, "int32") for name, child in of_trees.items()}
        forest["nodes"] |= {"feature": packed(np.zeros(n), "int32"), "missing_left": packed(np.zeros(n), "bool")}
        forest["nodes"] |= {name: packed(np.zeros(n), "float64") for name in ("threshold", "value")}
        forest["starts"] = packed(starts, "int32") if len(starts) > 4096 else {"int32": starts.tolist()}

    return change


def test_what_cannot_be_used_is_said_with_its_reason() -> None:
    curve = of_model(Curve(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.7, 1.0])))
    assert "a curve must not decrease" in refused(forged(put("model.value", {"float64": [0.0, 7.0, 1.0]}), curve))
    assert "one parent" in refused(forged(put("model.forest.nodes.right", {"int32": [1, -1, -1]}), of_forest()))
    assert "have no digests" in refused(forged(put("fitted_on", {"inputs": [{"sha256": ["a"]}]})))


def test_texts_that_fill_the_memory() -> None:
    texts = ["a" * 200_000, *(["b"] * 3_000)]
    assert "texts that take 2,400,800,000 bytes" in refused(forged(put("model.edges", {"text": texts})))


def test_a_forest_that_takes_minutes() -> None:
    assert "a tree is deeper than 1,000" in refused(forged(chains(20_000, 1), of_forest()))
    assert "more than 65,536" in refused(forged(chains(900, 100), of_forest()))


def test_probes_that_ask_for_gigabytes() -> None:
    rng = np.random.default_rng(0)
    rows = Training(rng.random(60), (rng.random(60) < 0.5).astype(float), features=rng.random((60, 1)))
    n = 20_000
    change = {
        "model.planes.coefficient": {"float64": base64.b64encode(np.zeros(2 * n).tobytes()).decode(), "shape": [n, 2]},
        "model.planes.intercept": {"float64": base64.b64encode(np.zeros(n).tobytes()).decode(), "shape": [n]},
        "model.edges": {"float64": base64.b64encode(np.linspace(0, 1, n + 1).tobytes()).decode(), "shape": [n + 1]},
    }
    probes = Saved("probing", fit(parse("probing"), rows), "p", ("x",), 1, ("number",))
    wide = forged(lambda document: [put(part, value)(document) for part, value in change.items()], probes)
    assert "at most 10,000 probes" in refused(wide)


METHODS = ("isotonic", "histogram", "platt", "platt(on=p)", "temperature", "beta", "quadratic", "threshold")


def rows_to_score() -> pa.Table:
    """Scores between, at and beyond those that a model was fitted to."""
    rng = np.random.default_rng(1)
    fitted = np.genfromtxt(BINARY, delimiter=",", names=True, dtype=None, encoding="utf-8")["p"]
    ends = np.array([0.0, -0.0, 1.0, 1e-300, 1e-13, 1e-9, 1 - 1e-16, 0.5, np.nextafter(0.5, 1)])
    return pa.table({"id": np.arange(2209), "p": np.concatenate([fitted, rng.random(200), ends])})


def assert_same_table(found: pa.Table, expected: pa.Table) -> None:
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        columns = (table.sort_by("id")[name].to_numpy() for table in (found, expected))
        np.testing.assert_allclose(*columns, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("method", "prevalence"), [*((method, None) for method in METHODS), *((METHODS[k], 0.02) for k in (0, 2, 7))]
)
def test_a_model_scores_in_the_engine_as_it_does_here(method: str, prevalence: float | None) -> None:
    rows = decal_cli.Data(str(BINARY), score="p", label="y")
    fitted = decal_cli.fit(rows if prevalence is None else rows.at_prevalence(prevalence), 0.3, method=method)
    with duckdb.connect() as connection:
        connection.register("new", rows_to_score())
        found = connection.sql(scoring_statement(fitted.model, "new", None, DIALECTS["duckdb"])).to_arrow_table()
    assert_same_table(found, fitted.apply(rows_to_score()))
    for name, dialect in DIALECTS.items():
        assert len(sqlglot.parse(scoring_statement(fitted.model, "a.new", None, dialect), read=name)) == 1, name


@pytest.mark.parametrize("method", ["isotonic", "histogram(bins=10)"])
@pytest.mark.parametrize("prevalence", [0.2, 0.25, 0.8])
def test_scores_that_are_moved_onto_an_edge_are_there_in_the_engine_too(method: str, prevalence: float) -> None:
    score = np.repeat(np.arange(1, 20) / 20, 40)
    rows = pa.table({"p": score, "y": (np.arange(len(score)) % 40 < 40 * score).astype(int), "id": range(len(score))})
    fitted = decal_cli.fit(decal_cli.Data(rows, score="p", label="y").at_prevalence(prevalence), 0.3, method=method)
    with duckdb.connect() as connection:
        connection.register("new", rows)
        found = connection.sql(scoring_statement(fitted.model, "new", None, DIALECTS["duckdb"])).to_arrow_table()
    assert_same_table(found, fitted.apply(rows))


def test_a_curve_may_jump_and_log_odds_are_scores() -> None:
    curve = Curve(np.array([0.2, 0.4, 0.4, 0.9]), np.array([0.1, 0.2, 0.6, 0.7]))
    score = np.array([0.0, 0.2, 0.3, np.nextafter(0.4, 0), 0.4, 0.5, 0.9, 1.0])
    for logit in (False, True):
        with np.errstate(divide="ignore"):
            given = np.log(score[1:-1] / (1 - score[1:-1])) if logit else score
        asked = scoring_statement(Saved("isotonic", curve, "p", logit=logit), "new", None, DIALECTS["duckdb"])
        with duckdb.connect() as connection:
            connection.register("new", pa.table({"p": given}))
            got = connection.sql(asked).to_arrow_table()["p_isotonic"].to_numpy()
        moved = 1 / (1 + np.exp(-given)) if logit else given
        near = np.abs(np.subtract.outer(moved, [0.4])).min(axis=1) > 1e-9 if logit else slice(None)
        np.testing.assert_allclose(got[near], np.interp(moved, curve.at, curve.value)[near], rtol=0, atol=1e-12)


def test_what_is_no_score_gets_no_new_one() -> None:
    curve = Curve(np.array([0.2]), np.array([0.1]))
    asked = scoring_statement(Saved("isotonic", curve, "p"), "new", None, DIALECTS["duckdb"])
    with duckdb.connect() as connection:
        connection.register("new", pa.table({"p": [0.5, None, float("nan"), -0.1, 1.1, float("inf")]}))
        assert connection.sql(asked).to_arrow_table()["p_isotonic"].to_pylist() == [0.1, *[None] * 5]
