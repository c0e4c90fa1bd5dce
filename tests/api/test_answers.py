"""What comes back: a short repr, frames of the user's library, and the notebook of the docs under every library."""

import copy
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import decal_cli as decal
from decal_cli.api.answer import OnlineAnswer
from decal_cli.plot import report
from tests.helpers.command import BINARY, FIXTURES, FOX, ROOT

FRAME = pd.read_csv(BINARY)
COLUMNS: dict[str, Any] = {"score": "p", "label": "y", "threshold": 0.3}
ANSWERS: dict[str, Callable[[], decal.Answer]] = {
    "evaluate": lambda: decal.evaluate(FRAME, **COLUMNS),
    "recommend": lambda: decal.recommend(FRAME, **COLUMNS),
    "gate": lambda: decal.gate(FRAME, **COLUMNS, rules=["brier<=0.1", "auc>=0.5"]),
    "compare": lambda: decal.compare({"a": FRAME["p"], "b": FRAME["p"] ** 2}, FRAME["y"], threshold=0.3),
    "sweep": lambda: decal.sweep(FRAME, **COLUMNS, thresholds="0.1,0.3"),
    "fit": lambda: decal.fit(FRAME, **COLUMNS, method="blend", features="x*"),
    "online": lambda: decal.online(FRAME, **COLUMNS),
}
LIBRARIES: dict[str, tuple[Callable[[], Any], type]] = {
    "pandas": (lambda: pd.read_parquet(FOX), pd.DataFrame),
    "polars": (lambda: pl.read_parquet(FOX), pl.DataFrame),
    "lazy": (lambda: pl.scan_parquet(FOX), pl.DataFrame),
    "pyarrow": (lambda: pq.read_table(FOX), pa.Table),
}


@pytest.mark.parametrize("verb", ANSWERS)
def test_an_answer_is_short_to_look_at_and_whole_on_request(verb: str, tmp_path: Path) -> None:
    answer = ANSWERS[verb]()
    assert (
        repr(answer).startswith(f"<{type(answer).__name__}: ") and len(repr(answer)) < 300 and "\n" not in repr(answer)
    )
    assert str(answer) == answer.to_text() and answer.to_dict()["schema"] == 1
    page = answer._repr_html_()
    assert page.startswith("<div class='decal'>") and page.rstrip().endswith("</div>") and "<html" not in page
    pandas, polars, arrow = (answer.to_frame(library) for library in ("pandas", "polars", "pyarrow"))
    assert pandas.shape == polars.shape == arrow.shape and list(pandas) == polars.columns == arrow.column_names
    assert isinstance(answer.to_frame(), pd.DataFrame)
    answer.save(tmp_path / "answer.json")
    assert json.loads((tmp_path / "answer.json").read_text(encoding="utf-8")) == answer.to_dict()
    for again in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        assert (str(again), again._repr_html_()) == (str(answer), page)
    if isinstance(answer, OnlineAnswer):
        assert pickle.loads(pickle.dumps(answer)).predictions().equals(answer.predictions())


def test_an_answer_is_not_saved_over_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("rows.csv", "others.csv", "rows.json"):
        (tmp_path / name).write_bytes(BINARY.read_bytes())
    answer = decal.evaluate("rows.csv", **COLUMNS, reference="others.csv")
    model = decal.fit("rows.json", **COLUMNS, method="threshold")
    monkeypatch.chdir("/")
    saves = {answer.save: ("rows.csv", "others.csv"), model.save: ("rows.json",), model.save_model: ("rows.json",)}
    for save, name in ((save, name) for save, names in saves.items() for name in names):
        with pytest.raises(decal.DecalError, match="is one of the files to be read; write elsewhere"):
            save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == BINARY.read_bytes()
    answer.save(tmp_path / "rows.json")


@pytest.mark.ci
def test_another_process_reads_an_answer(tmp_path: Path) -> None:
    answer = decal.evaluate(BINARY, **COLUMNS, features="x*")
    (tmp_path / "answer").write_bytes(pickle.dumps(answer))
    script = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')))"
    run = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "answer"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"{answer}\n"


@pytest.mark.ci
@pytest.mark.usefixtures("undrawn")
def test_a_page_and_a_card_say_in_one_line_what_they_are_and_gains_are_over_the_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "MAX_PICTURED", 1)
    asked: dict[str, Any] = {"score": "p", "label": "y"}
    decided, measured = (decal.report(FRAME[:400], **asked, **more) for more in ({"threshold": 0.3}, {}))
    assert decided.one_line == "p, 400 rows: use as it is (how sure: open); 4 pictures"
    assert "too many groups" not in decided.to_text("html")
    start, end = "p, 400 rows, 99 metrics: brier 0.1814, auc 0.7628", "; 2 pictures"
    assert measured.one_line.startswith(start) and measured.one_line.endswith(end)
    card = decal.model_card(FRAME[:400], **asked)
    known = sum(each["known"] is not None for each in card.to_dict()["items"])
    assert card.one_line == f"Model card: p; {known} of 52 items say something"
    ways = re.findall(r"<tr data-way='(\w+)'>(.*?)</tr>", decided.to_text("html"))
    cells = {way: re.findall(r"<td data-head=.*?>([-+\d.,]+)", row) for way, row in ways}
    now = float(cells.pop("now")[0])
    assert len(cells) >= 4
    for worth, gain, *_ in cells.values():
        assert float(gain) == pytest.approx(float(worth) - now, abs=1.01)


def notebook() -> str:
    """The notebook of the page, without how its frame is read; what stands in comments must be so."""
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- notebook: .*? -->\n```python\n(.*?)```", text, re.DOTALL)
    lines = [line.partition("  # ") for line in block.split("\n\n", 2)[2].splitlines()]
    return "\n".join(f"assert repr({code}) == {value!r}, repr({code})" if mark else code for code, mark, value in lines)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_notebook_runs_under_every_library(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES.parent)
    read, kind = LIBRARIES[library]
    program = notebook()
    assert program.count("assert") == 5
    names: dict[str, Any] = {"decal": decal, "frame": read()}
    exec(program, names)
    assert isinstance(names["table"], kind) and type(names["scored"]) is type(names["frame"])
    scored = names["scored"].collect() if library == "lazy" else names["scored"]
    assert np.isfinite(np.asarray(scored["p_hatesonar_isotonic"])).all()


def test_only_the_columns_that_are_used_are_computed_of_a_lazy_frame() -> None:
    def refuse(values: Any) -> Any:
        raise AssertionError("computed")

    lazy = pl.from_pandas(FRAME).lazy().with_columns(trap=pl.col("x1").map_batches(refuse, return_dtype=pl.Float64))
    answer = decal.evaluate(lazy, score="p", label="y", metrics="brier")
    assert answer["brier"].value == pytest.approx(decal.evaluate(FRAME, score="p", label="y")["brier"].value)
    by_group = [decal.evaluate(rows, score="p", label="y", group=["group"]) for rows in (lazy, FRAME)]
    assert len(by_group[0].reports) == len(by_group[1].reports) > 1


def test_one_line_and_the_frame_say_what_to_do_now_as_the_page_does() -> None:
    answer = decal.recommend(FRAME, score="p", label="y", threshold=0.8, group=["group"])
    lines, table = str(answer).splitlines(), answer.to_frame("pyarrow").to_pylist()
    assert len(table) > 1
    for (of, advice), row in zip(answer.advised, table, strict=True):
        (line,) = [each for each in lines if re.match(rf"p +{of.group or 'all rows'} ", each)]
        assert row["do_now"] in line and row["certainty"] in line
        wins = f"{1000 * row['wins']:.0f}" if row["wins"] is not None else ""
        assert wins in line
        assert (row["wins"] is None) == (advice.act_now.action == "done" and advice.instead is None)
    assert f"{table[0]['do_now']}" in answer.one_line and table[0]["certainty"] in answer.one_line


def test_a_gate_counts_rules_not_what_came_of_them() -> None:
    answer = decal.gate(FRAME, score="p", label="y", group=["group"], rules=["brier<=0.5", "rows>=3"])
    assert answer.one_line == "passed, 2 rules" and len(answer.outcomes) > 2


@pytest.mark.ci
def test_amounts_and_actions_are_said_in_the_users_terms() -> None:
    answer = decal.recommend(
        FRAME, **COLUMNS, features="x*", unit="EUR", decisions="100000/year", names="reject,accept"
    )
    assert "EUR" in str(answer) and "accept" in str(answer) and "EUR" in answer._repr_html_()
    with pytest.raises(decal.DecalError, match="give decisions="):
        decal.Terms(per="year")


@pytest.mark.parametrize("verb", [decal.recommend, decal.model_card])
def test_advice_names_keywords_on_its_page_and_in_its_data(verb: Any) -> None:
    answer = verb(FRAME, score="p", label="y", threshold=0.3)
    assert "features=" in str(answer) and "--" not in str(answer).replace("---", "")
    assert "features=" in str(answer.to_dict()) and "--" not in str(answer.to_dict())


def test_an_answer_has_the_names_of_its_metrics_as_a_mapping_does() -> None:
    asked = ("ece(bins=10)", "auc", "brier")
    answer = decal.evaluate([0.2, 0.8, 0.6, 0.1], [0, 1, 1, 0], metrics=asked)
    assert list(answer) == list(answer.to_dict()["reports"][0]["metrics"]) and set(answer) == set(asked)
    assert len(answer) == 3 and "auc" in answer and "ece(bins=10)" in answer
    assert all(absent not in answer for absent in ("ece", "nonsense", "ece(bins=", 0, None))
    assert {name: answer[name].value for name in answer}["brier"] == pytest.approx(0.0625)
    grouped = decal.evaluate({"p": [0.2, 0.8] * 4, "y": [0, 1] * 4, "g": [0, 1, 1, 0] * 2}, group="g", metrics="auc")
    assert (list(grouped), len(grouped), "auc" in grouped) == (["auc"], 1, True)


def test_the_data_of_a_comparison_has_what_its_page_tells() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(300)
    data = {"p": p, "q": rng.random(300), "y": rng.random(300) < p, "g": rng.integers(0, 2, 300)}
    asked = {"score": ["p", "q"], "group": "g", "metrics": "auc", "threshold": 0.3}
    for more, told in (({}, "Expected utility"), ({"capacity": 30}, "Utility at capacity")):
        answer = decal.compare(data, **asked, **more)
        key = told.lower().replace(" ", "_")
        assert f"{told.lower()}, B - A" in str(answer)
        whole, *groups = answer.to_dict()["comparison"]["contests"]
        assert all({"auc", "brier", key} <= each["metrics"].keys() for each in (whole, *groups))
        assert whole["metrics"][key]["difference"]["value"] == pytest.approx(
            whole["metrics"][key]["b"] - whole["metrics"][key]["a"]
        )


def test_a_gate_takes_a_file_an_answer_and_its_data_as_baseline(tmp_path: Path) -> None:
    before, path = decal.evaluate(FRAME, score="p", label="y"), tmp_path / "base.json"
    with pytest.raises(decal.DecalError, match="not every rule passed"):
        decal.gate(FRAME, score="p", label="y", rules="brier<=0").write_baseline(path)
    assert not path.exists()
    decal.gate(FRAME, score="p", label="y", rules="brier<=1").write_baseline(path)
    for baseline in (path, before, before.to_dict()):
        gated = decal.gate(FRAME, score="p", label="y", rules="brier<=baseline", baseline=baseline)
        assert gated.passed is True and gated.outcomes[0].bound == pytest.approx(before["brier"].value)
    assert decal.gate(FRAME, score="p", label="y", rules="regret<=0.1").passed is None
    assert decal.gate(FRAME, score="p", label="y", rules=["brier<=0.01", "auc>=0.5"]).passed is False


RNG = np.random.default_rng(4)
SCORE = RNG.dirichlet(np.ones(3), 200)
CLASS_FRAME = {
    "y": np.array(["a", "b", "c"])[[RNG.choice(3, p=each) for each in SCORE]],
    **{f"m:{name}": SCORE[:, k] for k, name in enumerate("abc")},
}


def test_a_sweep_over_the_task_answers_as_others_do() -> None:
    answer = decal.sweep(CLASS_FRAME, proba="m:*", label="y", abstain=0.3, vary="abstain=0.1,0.2")
    assert repr(answer) == "<VariedAnswer: m: price of abstention, 3 values, 0.1 to 0.3>"
    assert list(answer.to_frame("pandas")["at"].unique()) == [0.1, 0.2, 0.3]
    assert answer.plot("risk-coverage").get_title(loc="left") == "Risk-coverage curve"
    assert answer.plot().get_title(loc="left") == "What decisions are worth"
    with pytest.raises(decal.DecalError, match="picture='brier'"):
        answer.plot("brier")


def test_pictures_of_several_classes_are_drawn_of_any_answer() -> None:
    answer = decal.evaluate(CLASS_FRAME, proba="m:*", label="y", abstain=0.3, metrics="brier")
    titles = [answer.plot(name).get_title(loc="left") for name in ("reliability", "confusion", "waterfall")]
    assert titles == ["Reliability: m", "Actions by class: m", "Gains: m"]
    cells = answer.plot("confusion")
    names = [[label.get_text() for label in labels] for labels in (cells.get_xticklabels(), cells.get_yticklabels())]
    assert sorted(names[0]) == ["a", "b", "c"] and sorted(names[1]) == ["a", "abstain", "b", "c"]
    with pytest.raises(decal.DecalError, match="report=1 is none of the 1 reports"):
        answer.plot("confusion", report=1)
    with pytest.raises(decal.DecalError, match="confusion shows what is decided"):
        decal.evaluate(CLASS_FRAME, proba="m:*", label="y", metrics="brier").plot("confusion")
