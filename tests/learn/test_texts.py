"""Raw texts: what is found in them, that no row's own label is in its number, and that the model file keeps it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

import decal_cli
from decal_cli.data import Columns, from_arrays, read
from decal_cli.learn.encoding import EAGERNESS, HOLD, MAX_TEXT_CLASSES, STRENGTH, TextColumn, _regressed, encoded
from decal_cli.learn.method import Training, fit
from decal_cli.learn.methods import parse
from decal_cli.learn.model_file import Saved, from_text, to_text
from decal_cli.tables.features import Features
from decal_cli.tables.raw_texts import BUCKETS, MAX_CHARACTERS, RawTexts, _matrix
from simulation.texts import PHRASES, Written, foretold, with_keyword, written
from tests.helpers.files import write_columns

HOSTILE = [
    "a\0b",
    "\ud800 half",
    "",
    "   ",
    "ü" * 3,
    "漢字 かな",
    "x" * (3 * MAX_CHARACTERS),
    "🙂 ok",
    "\u202eabc",
    "a",
]


def keyword(rows: int = 800, seed: int = 0) -> Written:
    return with_keyword(np.random.default_rng(seed), rows)


def everything(data: Written) -> Training:
    return data.rows(np.arange(len(data.label)))


def test_n_grams_by_hand() -> None:
    grams = _matrix(["Ab c", "ab  C", None, "", "ab", "ab ab", "abcdef"])
    # Of ' ab c ': 2 letters at a time 4 (two ends of words with a space, within and at both sides), and so on.
    characters = {" a", "ab", "b ", " ab", "ab ", " ab ", " c", "c ", " c "}
    assert grams[0].nnz == len(characters) + len({"ab", "c"}) + len({"ab c"})
    assert (grams[0] != grams[1]).nnz == 0, "case and spaces say nothing"
    assert grams[2].indices.tolist() == [BUCKETS] and grams[3].nnz == 0
    assert grams[5].nnz == grams[4].nnz + 1, "an n-gram counts once; the pair of words is new"
    assert grams[6].nnz == 7 + 6 + 5 + 1, "2, 3 and 4 letters of ' abcdef ', and the word"


@pytest.mark.parametrize(
    ("texts", "learned"), [(["b"] * 3 + ["c"] * 2, ["b"]), (["b"] * 2 + ["c"] * 2, []), (["b"] * 4, [])]
)
def test_n_grams_of_three_texts_that_others_lack_are_learned_from(texts: list[str], learned: list[str]) -> None:
    rows = len(texts)
    column = _regressed(_matrix(texts), [(np.arange(rows) % 2.0, np.full(rows, 0.5))], np.ones(rows))
    assert column.gram.tolist() == sorted({*_matrix(learned).indices.tolist()})
    assert column.rarity == pytest.approx(np.log((1 + rows) / (1 + 3)) + 1)


def test_slopes_of_n_grams_are_those_of_a_general_optimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weighted: of an n-gram that the score clearly does not explain, a score test scales the penalty of its slope."""
    monkeypatch.setattr("decal_cli.learn.encoding.NEAR", 1e-6)
    rng = np.random.default_rng(0)
    words = rng.choice(list("abc"), (300, 2))
    score, weight = rng.uniform(0.1, 0.9, 300), rng.choice([0.2, 1.8], 300)
    label = (rng.random(300) < np.where(words[:, 0] == "a", 0.9, score / 2)).astype(float)
    texts = [" ".join(each) for each in words]
    column = _regressed(_matrix(texts), [(label, score)], 7 * weight)
    weight /= weight.mean()
    place, x = {gram: at for at, gram in enumerate(column.gram.tolist())}, np.zeros((300, len(column.gram)))
    for row, grams in enumerate(_matrix(texts)):
        known = [place[gram] for gram in grams.indices.tolist() if gram in place]
        x[row, known] = column.rarity[known] / np.linalg.norm(column.rarity[known])
    logits = np.log(score / (1 - score))

    def loss(line: np.ndarray, added: np.ndarray) -> float:
        total = line[0] + line[1] * logits + added
        return float(weight @ (np.logaddexp(0, total) - label * total))

    start = minimize(lambda at: loss(at, np.zeros(300)) + HOLD / 2 * at @ at, np.zeros(2)).x
    p, holds = 1 / (1 + np.exp(-start[0] - start[1] * logits)), x > 0
    off = np.array([(weight * (label - p))[has].sum() for has in holds.T])
    noise = np.array([(weight**2 * p * (1 - p))[has].sum() for has in holds.T])
    penalty = 1 / STRENGTH / (1 + EAGERNESS * np.maximum(off**2 / (noise + HOLD) - 1, 0))
    best = minimize(lambda at: loss(at[:2], x @ at[2:]) + penalty @ at[2:] ** 2 / 2, np.zeros(2 + len(penalty)))
    assert column.weight[0] == pytest.approx(best.x[2:], abs=0.01)
    assert penalty.max() > 5 * penalty.min()


def test_a_text_has_the_same_n_grams_among_others_and_alone() -> None:
    texts = RawTexts(sorted({*HOSTILE, *keyword().texts}))
    together = texts.grams(np.arange(len(texts)))
    for code in (0, 3, 7, len(texts) - 1):
        assert (together[code] != _matrix([texts[code]])).nnz == 0
    assert (texts.grams(np.array([-1])) != _matrix([None])).nnz == 0
    assert _matrix(["x" * MAX_CHARACTERS]).nnz == _matrix(["x" * MAX_CHARACTERS + " more"]).nnz


def test_long_columns_are_hashed_as_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = keyword(50).texts
    held = RawTexts(texts).grams(np.array([3, -1, 0]))
    monkeypatch.setattr("decal_cli.tables.raw_texts.HELD_CHARACTERS", 10)
    monkeypatch.setattr("decal_cli.tables.raw_texts._AT_ONCE", 1)
    assert (RawTexts(texts).grams(np.array([3, -1, 0])) != held).nnz == 0


def test_the_keyword_is_found_and_the_number_is_what_it_adds() -> None:
    data = keyword(2000)
    encoder, rows = encoded(everything(data), seed=0)
    assert encoder is not None and rows.matrix.shape == (2000, 1)
    has = np.array(["refund" in text for text in data.texts])
    number = rows.matrix[:, 0]
    assert number[has].mean() - number[~has].mean() > 1.0
    new = encoder(written_features(["please refund", "nothing of it", ""]))[:, 0]
    assert new[0] > new[1] + 1 and new[2] == 0


def written_features(texts: list[str | None]) -> Features:
    names = RawTexts(sorted({text for text in texts if text is not None}))
    codes = [[-1 if text is None else names.index(text)] for text in texts]
    return Features(np.empty((len(texts), 0)), np.array(codes, dtype=np.int32), (names,), ("text",))


def test_a_row_s_own_label_has_no_part_in_its_number() -> None:
    rows = everything(keyword(300))
    _, before = encoded(rows, seed=1)
    for row in (0, 150, 299):
        label = rows.label.copy()
        label[row] = 1 - label[row]
        _, after = encoded(replace(rows, label=label), seed=1)
        assert before.matrix[row].tolist() == after.matrix[row].tolist()
        assert before.matrix.tolist() != after.matrix.tolist()


def test_rows_beyond_the_most_that_teach_are_told_by_those_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decal_cli.learn.encoding.MAX_TEXT_ROWS", 400)
    rows = everything(keyword(600))
    encoder, taught = encoded(rows, seed=0)
    same = np.isclose(encoder(rows.typed)[:, 0], taught.matrix[:, 0], atol=1e-12)
    assert 200 <= same.sum() < 300


def test_one_label_and_few_rows_teach_nothing() -> None:
    data = keyword(30)
    for rows in (everything(data._replace(label=np.zeros(30))), everything(keyword(3))):
        encoder, taught = encoded(rows, seed=0)
        assert encoder is not None and np.isfinite(taught.matrix).all()


@pytest.mark.parametrize("name", ["blend", "stack-forest", "multicalibration"])
def test_a_model_file_keeps_what_the_texts_taught(name: str) -> None:
    data = keyword(400)
    rows = everything(data)
    model = fit(parse(name), rows)
    saved = Saved(name, model, "p", features=("t",), width=1, kinds=("text",))
    again = from_text(to_text(saved), "model.json")
    new = everything(data._replace(texts=[*HOSTILE, *data.texts[len(HOSTILE) :]]))
    assert again.model(new).score.tolist() == model(new).score.tolist()


def test_weights_of_n_grams_that_are_none_are_refused() -> None:
    one = np.ones(1, dtype=np.float32)
    for gram, rarity, weight in (
        ([BUCKETS + 1], one, one),
        ([-1], one, one),
        ([2], 0 * one, one),
        ([2], one, np.nan * one),
    ):
        with pytest.raises(ValueError, match="n-grams"):
            TextColumn(np.array(gram), rarity, weight[None])
    with pytest.raises(ValueError, match="one entry"):
        TextColumn(np.array([1, 2]), one, one[None])


def test_several_classes_have_a_number_each() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 600)
    texts = [f"it is {['red', 'green', 'blue'][k]} number {i} of them" for i, k in enumerate(label)]
    rows = Training(
        np.full((600, 3), 1 / 3), label, features=written_features(list(texts)), classes=("a", "b", "c"), seed=0
    )
    encoder, taught = encoded(rows, seed=0)
    assert encoder is not None and taught.matrix.shape == (600, min(3, MAX_TEXT_CLASSES))
    model = fit(parse("blend"), rows)
    assert np.mean(model(rows).score.argmax(axis=1) == label) > 0.95


@pytest.mark.ci
@pytest.mark.parametrize(
    "kind", [next(iter(PHRASES)), *(pytest.param(kind, marks=pytest.mark.long) for kind in list(PHRASES)[1:])]
)
def test_the_gain_of_raw_texts_is_foretold(kind: str) -> None:
    for each in foretold(written(np.random.default_rng(1), kind, 2000), 1, (0.3, 0.5)):
        assert each.held and each.told.value > 0.01


def test_texts_are_the_same_from_every_format_and_are_told_from_categories(tmp_path: Path) -> None:
    data = keyword(60)
    columns: dict[str, list[object]] = {
        "p": list(data.score),
        "y": list(data.label.astype(int)),
        "text": list(data.texts),
        "chinese": [f"我昨天买了第{k}本书" for k in range(60)],
        "often": [f"one of {k % 20} phrases" for k in range(60)],
        "id": [f"row-{k:03}" for k in range(60)],
        "same": ["the same words"] * 60,
    }
    names = ("text", "chinese", "often", "id", "same")
    kinds = ("text", "text", "category", "category", "category")
    paths = [write_columns(tmp_path, columns, form) for form in ("parquet", "csv", "jsonl")]
    sets = [read([path], Columns(features=names)) for path in paths]
    sets.append(from_arrays(pa.table(columns), columns=Columns(features=names)))
    known = [each.models[0].rows.typed for each in sets]
    for each, typed in zip(sets, known, strict=True):
        assert typed.kinds == kinds
        assert typed.categories == known[0].categories and typed.codes.tolist() == known[0].codes.tolist()
        assert "nothing can be learned from id, same" in each.all_notes[-1]


@pytest.mark.ci
@pytest.mark.usefixtures("one_deal")
def test_done_is_not_said_while_nothing_can_be_learned_from_a_column(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    score = rng.uniform(size=2000)
    label = (rng.random(2000) < score).astype(int)
    columns = {"score": score, "label": label, "x": rng.normal(size=2000)}
    done = decal_cli.recommend(columns, 0.5, score="score", label="label", features="x")
    assert done.to_dict()["recommendation"]["action"] == "done"
    columns["id"] = np.array([f"id{k}" for k in range(2000)])
    answer = decal_cli.recommend(columns, 0.5, score="score", label="label", features=["x", "id"])
    assert answer.to_dict()["recommendation"]["action"] == "cannot-tell"
    assert "Nothing can be learned from id in this form" in str(answer)
    assert "Leave id out of the features" in str(answer)
