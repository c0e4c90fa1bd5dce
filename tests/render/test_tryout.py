"""The table of trials on the terminal: whatever the width, no name and no number is cut."""

import re
from dataclasses import replace

import pytest

from decal_cli.analysis.evaluate import Result
from decal_cli.analysis.recommend import Recommendation, Round
from decal_cli.learn.methods import parse as parse_method
from decal_cli.render.results.recommendation import Recommended, trial_table
from decal_cli.render.terms import PLAIN, StatedTerms
from tests.helpers.results import as_text, made_up_trial, two_rounds


def scaled(factor: float, cost: float = 0.001) -> Recommendation:
    """One round of which the utilities are in another unit."""
    whole = two_rounds()
    assert whole.rounds is not None
    first = whole.rounds["p_a"][0]

    def times(result: Result) -> Result:
        if result.value is None or result.interval is None:
            return result
        low, high = result.interval
        return replace(result, value=factor * result.value, interval=(factor * low, factor * high))

    trials = tuple(
        made_up_trial(key, times(each.predicted), times(each.achieved), factor * cost, 123.456)
        for key, each in zip(
            ("stack-boosting", "scaling-binning(bins=10)", "multicalibration", "meta-cal"), first.trials, strict=True
        )
    )
    return replace(whole, rounds={"p_a": (Round("p_a", trials),)})


def table_of(recommendation: Recommendation, width: int) -> list[str]:
    lines = as_text(Recommended(recommendation), width=width).splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("method  "))
    end = next(k for k, line in enumerate(lines) if k > start and line.startswith("–"))
    return lines[start:end]


def parts(cell: str) -> list[str]:
    """What of a cell stands on one line at least."""
    return re.findall(r"[^\s\[\],]*[^\s]*[^\s\[\],]", cell)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("factor", [1.0, 1900.0, 190_000.0])
@pytest.mark.parametrize("cost", [0.0, 0.001])
def test_names_and_numbers_are_whole(width: int, factor: float, cost: float) -> None:
    recommendation = scaled(factor, cost)
    assert recommendation.rounds is not None
    lines = table_of(recommendation, width)
    text = "\n".join(lines)
    assert "…" not in text
    # Of these names, numbers so large take more than 60 columns however they are laid out.
    assert max(map(len, lines)) <= (74 if factor > 1 and cost and width == 60 else width)
    for row in trial_table(recommendation.rounds["p_a"][0], PLAIN.scale(1.0)).rows:
        name, _, *amounts, _ = row.cells
        assert name.text in text
        assert len(amounts) == (3 if cost else 2)
        for part in (part for cell in amounts for part in parts(cell.text)):
            assert part in text, part


def test_columns_go_one_after_the_other_and_then_intervals_stand_beneath() -> None:
    heads = {width: table_of(scaled(1.0), width)[0].split() for width in (140, 90, 78, 66, 60)}
    everything = ["method", "kind", "predicted", "achieved", "after", "cost", "processor"]
    assert heads[140] == everything
    assert heads[90] == everything[:-1]
    narrow = [name for name in everything[:-1] if name != "kind"]
    assert heads[78] == heads[66] == heads[60] == narrow
    assert "16 [4, 28]" in "\n".join(table_of(scaled(1.0), 78))
    first, second = table_of(scaled(1.0), 66)[1:3]
    assert first.split() == ["stack-boosting", "16", "21", "20"]
    assert second.split() == ["[4,", "28]", "[9,", "34]"]


def test_amounts_are_in_the_unit_of_the_page() -> None:
    terms = StatedTerms(unit="EUR", decisions="2000/year")
    text = " ".join(as_text(Recommended(two_rounds(), terms), width=140).split())
    text = text[text.index("Tried on p_a") : text.index("Starting over")]
    assert "in EUR a year over acting on this score as it is" in text and "per 1,000" not in text
    gain = two_rounds().rounds["p_a"][0].trials[0].achieved.value
    assert f" {2000 * gain:.0f} [" in text


def test_without_costs_there_is_no_column_of_them() -> None:
    assert table_of(scaled(1.0, cost=0.0), 140)[0].split() == ["method", "kind", "predicted", "achieved", "processor"]
    lines = table_of(scaled(1.0, cost=0.0), 70)
    assert lines[0].split() == ["method", "predicted", "achieved"]
    assert "16 [4, 28]" in lines[1]


@pytest.mark.parametrize(
    ("gain", "low", "said"), [(0.01, -0.001, True), (0.01, 0.0, True), (0.01, 0.001, False), (0.0, -0.001, False)]
)
def test_a_recalibration_that_may_be_as_good_as_what_costs_more_is_named(gain: float, low: float, said: bool) -> None:
    whole = two_rounds()
    first = whole.rounds["p_a"][0]
    best, platt, *_ = first.trials
    trials = (best, replace(platt, achieved=Result(gain), behind=Result(0.01, (low, 0.02))))
    text = as_text(Recommended(replace(whole, rounds={"p_a": (replace(first, trials=trials),)})))
    assert ("platt(on=p) needs only the score and may be as good" in text) == said


def test_only_the_best_of_several_looks_better_than_it_is() -> None:
    whole = two_rounds()
    first = whole.rounds["p_a"][0]
    for n, said in ((1, False), (2, True)):
        tried = Recommended(replace(whole, rounds={"p_a": (replace(first, trials=first.trials[:n]),)}))
        assert (f"The best of {n} looks a little better than it is" in as_text(tried)) == said


def test_a_method_that_is_advised_and_was_not_tried_is_named() -> None:
    whole = two_rounds()
    (first, *others) = whole.rounds["p_a"]
    advised = whole.advice[0].act_now.method
    assert advised is not None
    for name, said in (("glar", True), (advised, False)):
        trials = tuple(replace(trial, chosen=parse_method(name)) for trial in first.trials[:1])
        text = as_text(Recommended(replace(whole, rounds={"p_a": (replace(first, trials=trials), *others)})))
        assert (f"The advice above names {advised}, which was not tried" in text) == said
