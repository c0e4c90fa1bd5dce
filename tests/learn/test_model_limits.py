"""Model files with a right checksum that would take minutes, gigabytes, or decide nonsense: each is one line."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from decal_cli.learn.curves import Curve, Threshold
from decal_cli.learn.method import Training, fit
from decal_cli.learn.methods import parse
from decal_cli.learn.model_file import Saved
from decal_cli.learn.stacks import StackedForest
from decal_cli.learn.trees import Forest, Tree
from tests.helpers.model_files import forged, of_model, put, refused


def of_forest() -> Saved:
    """A forest of one tree of three nodes."""
    child, zero = np.array([1, -1, -1], dtype=np.int32), np.zeros(3, dtype=np.int32)
    tree = Tree(2, child, np.array([2, -1, -1], dtype=np.int32), zero, np.zeros(3), zero > 0, np.full(3, 0.5))
    forest = StackedForest(Forest(tree, np.zeros(1, dtype=np.int32)))
    return Saved("stack-forest", forest, "p", ("x",), 1, ("number",))


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


def test_what_shows_only_on_other_rows_is_refused_too() -> None:
    # Two rows are scored when the file is read: 0 and 1.
    curve = of_model(Curve(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.7, 1.0])))
    assert "a curve must not decrease" in refused(forged(put("model.value", {"float64": [0.0, 7.0, 1.0]}), curve))
    assert "cannot be used" in refused(forged(put("model.at", {"float64": [0.0, 2.0, 1.0]}), curve))
    assert "cannot be used" in refused(forged(put("model.threshold", {"number": "inf"}), of_model(Threshold(0.5))))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "cannot be used"),
        ({"inputs": 3}, "cannot be used"),
        ({"inputs": ["a"]}, "cannot be used"),
        ({"inputs": [{}]}, "cannot be used"),
        ({"inputs": [{"sha256": ["a"]}]}, "have no digests"),
    ],
)
def test_where_it_was_fitted_is_of_one_shape(value: Any, says: str) -> None:
    assert says in refused(forged(put("fitted_on", value)))


def test_texts_that_fill_the_memory() -> None:
    texts = ["a" * 200_000, *(["b"] * 3_000)]
    assert "texts that take 2,400,800,000 bytes" in refused(forged(put("model.edges", {"text": texts})))


def test_a_forest_that_takes_minutes() -> None:
    assert "a tree is deeper than 1,000" in refused(forged(chains(20_000, 1), of_forest()))
    assert "more than 65,536" in refused(forged(chains(900, 100), of_forest()))


def test_nodes_with_two_parents() -> None:
    assert "one parent" in refused(forged(put("model.forest.nodes.right", {"int32": [1, -1, -1]}), of_forest()))


def test_probes_that_ask_for_gigabytes() -> None:
    rng = np.random.default_rng(0)
    rows = Training(rng.random(60), (rng.random(60) < 0.5).astype(float), features=rng.random((60, 1)))
    n = 20_000
    change = {
        "model.planes.coefficient": {"float64": base64.b64encode(np.zeros(2 * n).tobytes()).decode(), "shape": [n, 2]},
        "model.planes.intercept": {"float64": base64.b64encode(np.zeros(n).tobytes()).decode(), "shape": [n]},
        "model.edges": {
            "float64": base64.b64encode(np.linspace(0, 1, n + 1).tobytes()).decode(),
            "shape": [n + 1],
        },
    }
    probes = Saved("probing", fit(parse("probing"), rows), "p", ("x",), 1, ("number",))
    wide = forged(lambda document: [put(part, value)(document) for part, value in change.items()], probes)
    assert "at most 10,000 probes" in refused(wide)
