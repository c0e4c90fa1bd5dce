"""The grammar of gate rules, and what is said of one that does not parse."""

import pytest

from decal_cli.analysis.rules import parse_rule
from decal_cli.errors import DecalError


def test_parameters_and_scopes_parse() -> None:
    rule = parse_rule("upper(ece(bins=20, strategy=width)@model=p_a@group=B) <= 0.05")
    assert rule.over == "upper"
    assert rule.choice.key == "ece(bins=20,strategy=width)"
    assert rule.scope == (("model", "p_a"), ("group", "B"))
    assert rule.number == 0.05


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("", "does not parse"),
        ("brier", "does not parse"),
        ("brier<=", "does not parse"),
        ("brier<=x", "is not a number or baseline"),
        ("brier=0.2", "does not parse"),
        ("brier=<0.2", "an operator ("),
        ("brier=>0.2", "an operator ("),
        ("brier<=0.1<=0.2", "does not parse"),
        ("brierr<=0.2", "did you mean brier"),
        ("ece(bins=0)<=0.2", "bins=0"),
        ("ece(binz=3)<=0.2", "has no parameter"),
        ("middle(brier)<=0.2", "no metric 'middle'"),
        ("brier@who=me<=0.2", "scope"),
        ("brier@model=<=0.2", "scope"),
        ('brier@model="p<=0.2', "a name in quotes does not parse"),
        ('brier@model="p"q<=0.2', "a name in quotes does not parse"),
        ('brier@model="\\x41"<=0.2', "a name in quotes does not parse"),
        ("brier<=baseline 0.1", "sign"),
        ("upper(lower(brier))<=0.1", "max, gap, delta and drop hold a metric alone"),
        ("upper(gap(brier))<=0.1", "max, gap, delta and drop hold a metric alone"),
        ("drop( max (brier))<=0.1", "hold a metric alone"),
        ("gap(delta(brier))<=0.1", "goes without"),
        ("delta(brier)@model=p<=0.1", "goes without"),
        ("delta(brier)<=baseline", "goes without"),
        ("delta(brierr)<=0", "did you mean brier"),
        ("delta(delta(brier))<=0", "hold a metric alone"),
    ],
)
def test_a_rule_that_does_not_parse_says_why(rule: str, says: str) -> None:
    with pytest.raises(DecalError, match=says.replace("(", r"\(")) as error:
        parse_rule(rule)
    assert "\n" not in str(error.value)
