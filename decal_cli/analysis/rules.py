"""The rules of a gate, read from text such as 'gain_recalibration<=0.01'.

rule    = side op bound
side    = [upper | lower | max | gap] ( measure scope ) | measure scope
measure = metric | delta ( metric ) | drop ( metric ) | rows | positives
metric  = name | name(parameter=value, ...)
scope   = { @model=NAME | @group=NAME }
NAME    = as it is | "quoted as in JSON"
bound   = number | baseline [ (+ | -) number ]
op      = <= | < | >= | >
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from decal_cli.errors import DecalError
from decal_cli.hints import Verb
from decal_cli.limits import MAX_UTILITY
from decal_cli.metrics import MetricSpec, parse
from decal_cli.task import ClassDecision, Task

if TYPE_CHECKING:
    from decal_cli.analysis.evaluate import MetricReport

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
"""How a value is compared with a bound."""
COUNTED = ("rows", "positives")
"""What a rule may ask of the data rather than of a metric."""
OVER_TIME = ("e_calibration", "gain")
"""What rules of `decal online` speak of."""
_EXAMPLE = "write for example 'brier<=0.2', 'gain_recalibration<=0.01' or 'upper(drop(expected_utility))<=0.005'"
_QUOTING = 'write it as JSON does: @group="a@b"; \\" is a quotation mark, \\\\ a backslash, \\n a new line'
_RULE = re.compile(r"(?P<side>.+?)\s*(?P<op><=|>=|<|>)\s*(?P<bound>[^<>=]+)")
_QUOTED = re.compile(r'(@\s*(?:model|group)\s*=\s*)("(?:[^"\\]|\\.)*")', re.DOTALL)
_SIDE = re.compile(r"(?P<over>upper|lower|max|gap)\s*\((?P<inner>.*)\)")
# delta is the metric of the second of exactly two models minus that of the first, on the rows that both have; its
# interval is the paired one. It goes without a model, a baseline, max and gap. drop is what a model lost since the
# baseline, above 0 where it became worse; it goes without max and gap, and its bound is a number. gap is the largest
# difference between two groups of a column, of those that have 30 rows in the denominator of the metric; its interval
# holds whichever pair has it. rows and positives are the rows of a model and group, and those of label 1; they stand
# alone, with a scope. A name in quotes may hold anything; one without ends at the next @, and loses spaces at its ends.
_CHANGE = re.compile(r"\s*(?P<change>delta|drop)\s*\((?P<metric>.*)\)\s*")
_NESTED = re.compile(r"\s*(upper|lower|max|gap|delta|drop)\s*\(")
_BOUND = re.compile(r"(?P<baseline>baseline)?\s*(?P<number>[+-]?\s*(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)?")


@dataclass(frozen=True)
class Rule:
    """One parsed gate rule. over: '' (the value), 'upper', 'lower' (interval ends), 'max', 'gap' (over groups).

    change: 'delta' of the difference of two models, 'drop' of what a model lost since the baseline, or ''. choice: the
    metric; None where the rule is on `counted`, one of COUNTED.
    """

    text: str
    over: str
    choice: MetricSpec | None
    scope: tuple[tuple[str, str], ...]
    operator: str
    baseline: bool
    number: float
    change: Literal["", "delta", "drop"] = ""
    counted: str = ""

    @property
    def key(self) -> str:
        """The key of the rule's metric, or the name of what it counts."""
        return self.counted if self.choice is None else self.choice.key

    @property
    def needs_interval(self) -> bool:
        """Whether the rule speaks of an end of the interval."""
        return self.over in ("upper", "lower")

    @property
    def at_most(self) -> bool:
        """Whether the bound is the largest value that passes, or the smallest that does not."""
        return self.operator.startswith("<")

    @property
    def side(self) -> str:
        """What stands left of the operator, without its scope."""
        return f"{self.over}({self.measure})" if self.over else self.measure

    @property
    def measure(self) -> str:
        """What it measures: a metric's key, delta(key), drop(key), or what is counted."""
        return f"{self.change}({self.key})" if self.change else self.key

    def holds(self, value: float, bound: float) -> bool:
        """Whether it holds for a value."""
        return OPERATORS[self.operator](value, bound)

    def distance(self, value: float, bound: float) -> float:
        """From value to bound, below 0 on the wrong side."""
        return bound - value if self.at_most else value - bound

    def applies_to(self, report: MetricReport) -> bool:
        """Whether the report lies in the rule's scope; max looks at groups only."""
        if self.over == "max" and report.of_all_rows:
            return False
        return all(getattr(report, name) == value for name, value in self.scope)


def choices_of(rules: Sequence[Rule]) -> tuple[MetricSpec, ...]:
    """The metrics that the rules speak of."""
    return tuple(dict.fromkeys(rule.choice for rule in rules if rule.choice is not None))


def parse_rule(text: str) -> Rule:
    """Parse a gate rule; a DecalError says what is wrong with it."""
    try:
        return _parsed(text.strip())
    except DecalError as error:
        problem, fix = error.given
        raise DecalError(f"rule {text!r}{problem}", fix or _EXAMPLE) from None


def _parsed(text: str) -> Rule:
    """The rule that a text is. Errors: DecalError, whose problem is worded to follow the text of the rule."""
    # In hexadecimal digits nothing of a quoted name is taken for grammar.
    plain = _QUOTED.sub(lambda name: f'{name[1]}"{name[2].encode("utf-8", "surrogatepass").hex()}"', text)
    match = _RULE.fullmatch(plain)
    # Of '=<' the expression takes the second half for the operator; after '@model' an equals sign lacks its name.
    if match is None or (match["side"].endswith("=") and "@" not in match["side"]):
        *others, last = OPERATORS
        raise DecalError(f" does not parse: it needs a metric, an operator ({', '.join(others)} or {last}) and a bound")
    side = _SIDE.fullmatch(match["side"])
    over, inner = (side["over"], side["inner"]) if side else ("", match["side"])
    name, *scopes = inner.split("@")
    scope = tuple(map(_scope, scopes))
    changed = _CHANGE.fullmatch(name)
    metric = changed["metric"] if changed else name
    change: Any = changed["change"] if changed else ""
    counted = name.strip() if name.strip() in COUNTED else ""
    choice = None if counted else _metric(metric)
    baseline, bound = _bound_of(match["bound"].strip())
    rule = Rule(text, over, choice, scope, match["op"], baseline, bound, change, counted)
    _check_parts(rule, name.strip())
    return rule


def _scope(text: str) -> tuple[str, str]:
    """The model or the group that a rule is about, as key and name."""
    key, equals, value = (piece.strip() for piece in text.partition("="))
    if key not in ("model", "group") or not equals or not value:
        raise DecalError(f": scope '@{text}' does not parse", "write @model=NAME or @group=NAME")
    if not value.startswith('"'):
        return key, value
    try:
        quoted = bytes.fromhex(value[1:-1]).decode("utf-8", "surrogatepass")
        return key, str(json.loads(quoted, strict=False))
    except ValueError:
        raise DecalError(": a name in quotes does not parse", _QUOTING) from None


def _metric(name: str) -> MetricSpec:
    if _NESTED.match(name):
        of_one = "max, gap, delta and drop hold a metric alone"
        raise DecalError(f": upper(..) and lower(..) hold a metric, delta(..) or drop(..); {of_one}")
    try:
        return parse(name)
    except DecalError as error:
        if name.strip() in OVER_TIME:
            raise DecalError(" is about rows in the order of time", f"use: {Verb('online', 'rule')}") from None
        problem, fix = error.given
        raise DecalError(f": {problem}", fix) from None


def _bound_of(text: str) -> tuple[bool, float]:
    """Whether the bound is the baseline, and the number, or what is added to the baseline."""
    bound = _BOUND.fullmatch(text)
    if bound is None or not (bound["baseline"] or bound["number"]):
        raise DecalError(f": bound {text!r} is not a number or baseline")
    number, baseline = re.sub(r"\s", "", bound["number"] or "0"), bool(bound["baseline"])
    if baseline and bound["number"] and number[0] not in "+-":
        raise DecalError(": baseline and its tolerance need a sign between them")
    if not abs(float(number)) < math.inf:
        raise DecalError(f": bound {text} is infinite, so no value can fail it")
    return baseline, float(number)


def _check_parts(rule: Rule, name: str) -> None:
    """Raise a DecalError where parts of a rule do not go together. name: the metric as it was written."""
    over, change, baseline = rule.over, rule.change, rule.baseline
    scopes = [key for key, _ in rule.scope]
    if rule.counted and (over or baseline):
        without = f"{over}(..)" if over else "a baseline"
        raise DecalError(f": {rule.counted} goes without {without}", f"write '{rule.counted}>=500'")
    of_model = change == "delta" and "model" in scopes
    if change and (over in ("max", "gap") or baseline or of_model):
        without = "max, gap, a baseline and @model" if change == "delta" else "max, gap and 'baseline' as its bound"
        raise DecalError(
            f": {change}(..) goes without {without}",
            f"write '{change}(brier)<=0', 'upper({change}(brier))<=0.001' or '{change}(brier)@group=B<=0'",
        )
    choice = rule.choice
    if change == "drop" and choice is not None and choice.declared.better == "neither":
        raise DecalError(
            f": neither a lower nor a higher {choice.name} is better, so nothing of it is lost",
            f"write '{choice.name}<=baseline+..', or drop(..) of another metric",
        )
    if over == "gap" and "group" in scopes:
        raise DecalError(": gap(..) compares all groups of a column", f"drop the group: 'gap({name})<=0.1'")


def as_named(name: str) -> str:
    """The name as rules take it: in quotes where it would be read differently without."""
    bare = name and name == name.strip() and name.isprintable() and "@" not in name and not name.startswith('"')
    return name if bare else json.dumps(name, ensure_ascii=False)


def check_bound(rule: Rule, task: Task | ClassDecision | None, of_classes: bool) -> None:
    """Raise a DecalError where the bound lies outside of what the rule's side can be."""
    if task is None and rule.choice is not None and rule.choice.declared.bounds_in_u_delta:
        return
    low, high = (0.0, math.inf) if rule.choice is None else rule.choice.declared.form(of_classes).bounds(task)
    if rule.change or rule.baseline:
        low, high = low - high, high - low
    elif rule.over == "gap":
        low, high = 0.0, high - low
    low, high = max(low, -MAX_UTILITY), min(high, MAX_UTILITY)
    rounding = 0.0 if rule.counted else 1e-9 * max(abs(low), abs(high))
    if low - rounding <= rule.number <= high + rounding:
        return
    never = "fail" if (rule.number > high) == rule.at_most else "pass"
    what = "the difference from the baseline" if rule.baseline else rule.side
    raise DecalError(
        f"rule {rule.text!r}: {what} lies from {low:g} to {high:g}, so no value can {never} it",
        "give a bound within that range",
    )


def example_rule(decides: bool) -> str:
    """A rule that most data can be judged by. decides: whether a decision is named."""
    return "gain_recalibration<=0.01" if decides else "brier<=0.2"
