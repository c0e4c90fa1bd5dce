"""Answers on several classes: sweeps over the task, and pictures."""

import numpy as np
import pytest

import decal_cli as decal

RNG = np.random.default_rng(4)
SCORE = RNG.dirichlet(np.ones(3), 200)
FRAME = {
    "y": np.array(["a", "b", "c"])[[RNG.choice(3, p=each) for each in SCORE]],
    **{f"m:{name}": SCORE[:, k] for k, name in enumerate("abc")},
}


def test_a_sweep_over_the_task_answers_as_others_do() -> None:
    answer = decal.sweep(FRAME, proba="m:*", label="y", abstain=0.3, vary="abstain=0.1,0.2")
    assert repr(answer) == "<VariedAnswer: m: price of abstention, 3 values, 0.1 to 0.3>"
    assert list(answer.to_frame("pandas")["at"].unique()) == [0.1, 0.2, 0.3]
    assert answer.plot("risk-coverage").get_title(loc="left") == "Risk-coverage curve"
    assert answer.plot().get_title(loc="left") == "What decisions are worth"
    with pytest.raises(decal.DecalError, match="picture='brier'"):
        answer.plot("brier")


def test_pictures_of_several_classes_are_drawn_of_any_answer() -> None:
    answer = decal.evaluate(FRAME, proba="m:*", label="y", abstain=0.3, metrics="brier")
    titles = [answer.plot(name).get_title(loc="left") for name in ("reliability", "confusion", "waterfall")]
    assert titles == ["Reliability: m", "Actions by class: m", "Gains: m"]
    cells = answer.plot("confusion")
    names = [[label.get_text() for label in labels] for labels in (cells.get_xticklabels(), cells.get_yticklabels())]
    assert sorted(names[0]) == ["a", "b", "c"] and sorted(names[1]) == ["a", "abstain", "b", "c"]
    with pytest.raises(decal.DecalError, match="report=1 is none of the 1 reports"):
        answer.plot("confusion", report=1)
    with pytest.raises(decal.DecalError, match="confusion shows what is decided"):
        decal.evaluate(FRAME, proba="m:*", label="y", metrics="brier").plot("confusion")
