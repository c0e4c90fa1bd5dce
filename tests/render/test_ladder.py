"""The bars of expected utility: numbers and heading have one size."""

import pytest

from decal_cli.metrics import Result
from decal_cli.render.results.recommendation import ladder
from decal_cli.render.terms import StatedTerms


@pytest.mark.parametrize(
    ("scale", "texts", "measured_in"),
    [(1.0, ["-2,596", "-676"], "per 1,000 decisions"), (1000.0, ["-2.60", "-0.68"], "in million per 1,000 decisions")],
)
def test_the_heading_names_the_size_of_the_numbers(scale: float, texts: list[str], measured_in: str) -> None:
    bars = ladder(
        {"eu_never": Result(-2.596 * scale, None, None), "eu_always": Result(-0.676 * scale, None, None)}, StatedTerms()
    )
    assert bars.title == f"Expected utility {measured_in}"
    assert [bar.text for bar in bars.items] == texts
